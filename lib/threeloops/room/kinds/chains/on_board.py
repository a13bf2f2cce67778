"""Follow-ups on a car's computer: a chip from its brochure, a frame that is late, cameras that take turns."""

import random

from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.room.kinds.chains.chain import Chain, Step
from threeloops.room.kinds.chains.change import Best, Change, redrawn, told_apart

# --- a chip from its brochure --------------------------------------------------------------------


def _draw_chip(rng: random.Random) -> Draw:
    total, dla = rng.choice(((275, 105), (200, 80), (254, 92)))  # sparse INT8 TOPS, as brochures add them up
    bandwidth = rng.choice((136, 205))
    return drawn(
        total=total,
        dla=dla,
        bandwidth=bandwidth,
        peak=(total - dla) / 2,
        weights=rng.choice((40, 60, 90)),
        values=rng.choice((110, 180, 260)),
        gops=rng.choice((150, 260, 420)),
        gpu_mb=rng.choice((900, 1500, 2100)),
        dla_mb=rng.choice((500, 800)),
        gpu_ms=rng.choice((7.5, 9.5)),
        dla_ms=rng.choice((5.5, 8.2)),
        fused=rng.choice((0.5, 0.7)),
        fewer=rng.choice((0.6, 0.75)),
    )


CHIP_STEPS = (
    Step(drill="soc-dense-gpu", numbers=lambda p: p),
    Step(drill="soc-latency-floor", numbers=lambda p: p),
    Step(drill="soc-shared-memory", numbers=lambda p: p),
)
CHIP_CHOICE = Best(
    drill="soc-latency-floor",
    now=lambda p: p,
    text=lambda p: (
        f"A frame is {p.gops} billion operations, {p.weights} MB of weights and {p.values} MB of activations, written"
        f" once and read once; {p.peak:g} dense TOPS, {p.bandwidth} GB/s, computing beside moving. Which change lowers"
        " its least time most?"
    ),
    changes=(
        Change(
            key="fused",
            text=lambda p: f"fused layers that write {p.values * p.fused:.0f} MB of activations",
            numbers=lambda p: changed(p, values=p.values * p.fused),
        ),
        Change(
            key="smaller",
            text=lambda p: f"a backbone of {p.gops * p.fewer:.0f} billion operations on as many bytes",
            numbers=lambda p: changed(p, gops=p.gops * p.fewer),
        ),
        Change(
            key="pruned",
            text=lambda p: "half of the weights' bytes, operations as before",
            numbers=lambda p: changed(p, weights=p.weights / 2),
        ),
    ),
)
CHIP = Chain(
    key="chip",
    title="A chip from its brochure",
    draw=redrawn(_draw_chip, lambda p: told_apart(CHIP_STEPS, p) and CHIP_CHOICE.clear(p)),
    steps=CHIP_STEPS,
    decision=CHIP_CHOICE.decision,
)

# --- a frame that is late ------------------------------------------------------------------------


def _draw_late(rng: random.Random) -> Draw:
    return drawn(
        rate=rng.choice((20, 30)),
        fixed_ms=rng.choice((5, 7)),
        median_ms=rng.choice((14, 18)),
        period_ms=33,
        usual_ms=rng.choice((29, 30, 31)),
        late_ms=rng.choice((67, 68, 69)),  # the two ages that could decide lie further apart than the band
        ftti_ms=rng.choice((515, 580, 640)),
        beat_ms=rng.choice((32, 40, 60)),
        missed=rng.choice((2, 3, 5)),
        poll_ms=rng.choice((40, 70, 150)),
    )


LATE_STEPS = (
    Step(drill="deadlines-tail-ratio", numbers=lambda p: p),
    Step(drill="deadlines-late-frame", numbers=lambda p: p),
    Step(drill="deadlines-watchdog", numbers=lambda p: p),
)
LATE_CHOICE = Best(
    drill="deadlines-watchdog",
    now=lambda p: p,
    more=True,
    text=lambda p: (
        f"FTTI {p.ftti_ms} ms; a heartbeat every {p.beat_ms} ms, a timeout of {p.missed} of them, a supervisor that"
        f" looks every {p.poll_ms} ms. Which change leaves most time from the detection to the safe state?"
    ),
    changes=(
        Change(
            key="missed",
            text=lambda p: f"a timeout of {p.missed - 1} heartbeats",
            numbers=lambda p: changed(p, missed=p.missed - 1),
        ),
        Change(
            key="beat",
            text=lambda p: f"a heartbeat every {p.beat_ms * 3 // 4} ms",
            numbers=lambda p: changed(p, beat_ms=p.beat_ms * 3 // 4),
        ),
        Change(
            key="poll",
            text=lambda p: f"a supervisor that looks every {p.poll_ms // 2} ms",
            numbers=lambda p: changed(p, poll_ms=p.poll_ms // 2),
        ),
    ),
)
LATE = Chain(
    key="late",
    title="A frame that is late",
    draw=redrawn(_draw_late, lambda p: told_apart(LATE_STEPS, p) and LATE_CHOICE.clear(p)),
    steps=LATE_STEPS,
    decision=LATE_CHOICE.decision,
)

# --- cameras that take turns ---------------------------------------------------------------------


def _draw_turns(rng: random.Random) -> Draw:
    return drawn(
        cameras=rng.choice((7, 8, 9)),
        reused=rng.choice((2, 3, 4)),
        width=1280,
        height=720,
        side=rng.choice((224, 288, 380)),
        image=rng.choice((3.6, 5.8, 8.4)),
        heads=rng.choice((60, 85, 130)),
        camera=rng.choice((2.2, 3.1, 4.4)),
        align=rng.choice((1.2, 1.8)),
        others=rng.choice((8, 12, 17)),
        rate=rng.choice((12, 20)),
        kmh=rng.choice((50, 75, 100)),
        dearer=rng.choice((2, 4, 6)),
    )


TURN_STEPS = (
    Step(drill="latency-frame-at-resolution", numbers=lambda p: p),
    Step(drill="latency-cameras-in-turn", numbers=lambda p: p),
    Step(drill="latency-oldest-view", numbers=lambda p: p),
)
TURN_CHOICE = Best(
    drill="latency-cameras-in-turn",
    now=lambda p: p,
    more=True,
    text=lambda p: (
        f"{p.camera:g} ms for each of {p.cameras} cameras, {p.reused} of them left out in turn, {p.align:g} ms to move"
        f" their features, {p.others} ms for the rest. Against all cameras in every frame, which further change makes"
        " a frame fastest?"
    ),
    changes=(
        Change(
            key="fewer",
            text=lambda p: f"{p.reused + 1} cameras left out in turn",
            numbers=lambda p: changed(p, reused=p.reused + 1),
        ),
        Change(
            key="align",
            text=lambda p: "features moved in half the time",
            numbers=lambda p: changed(p, align=p.align / 2),
        ),
        Change(
            key="two",
            text=lambda p: f"{p.reused + 2} cameras left out in turn, and {p.dearer * p.align:g} ms to move features",
            numbers=lambda p: changed(p, reused=p.reused + 2, align=p.dearer * p.align),
        ),
    ),
)
TURNS = Chain(
    key="turns",
    title="Cameras that take turns",
    draw=redrawn(_draw_turns, lambda p: told_apart(TURN_STEPS, p) and TURN_CHOICE.clear(p)),
    steps=TURN_STEPS,
    decision=TURN_CHOICE.decision,
)

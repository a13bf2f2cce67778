"""Drills on the age of an answer: how old its picture is, on average, after lost frames, behind a busy chain and behind
a queue.
"""

import math
import random
from fractions import Fraction

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import information_age
from threeloops.simulate.driving import picture_age
from threeloops.units import ms

TAUGHT = Taught("driving", "A car that must answer in time")
AGES = "Yates and others, Age of Information: An Introduction and Survey, 2020, arXiv:2007.08564"


def _period_s(p: Draw) -> float:
    return float(1 / p.rate)


# --- the mean ------------------------------------------------------------------------------------


def _draw_mean(rng: random.Random) -> Draw:
    return drawn(rate=rng.choice((10, 12, 15, 20, 24, 25)), latency_ms=rng.randrange(55, 175))


def _mean(p: Draw) -> float:
    return information_age.mean_age_s(latency_s=p.latency_ms * ms, period_s=_period_s(p))


def _count_mean(p: Draw) -> float:
    """Ask many times in ten periods how old the newest answer's picture is."""
    latency, period = Fraction(p.latency_ms, 1000), Fraction(1, p.rate)
    answers = picture_age.regular(latency=latency, period=period, frames=12)
    return float(picture_age.mean_age(answers, begin=latency, end=latency + 10 * period, step=period / 20))


MEAN = Drill(
    key="latency-mean-age",
    taught=TAUGHT,
    title="How old is what the planner sees?",
    unit="s",
    target_s=75,
    apart=1.05,
    draw=_draw_mean,
    small=_draw_mean,
    prompt=lambda p: (
        f"A camera gives {p.rate} frames per second. The chain is pipelined: every frame becomes a list of boxes, each"
        f" {p.latency_ms} ms after its exposure. A planner reads the newest list at moments that have nothing to do"
        " with the camera's. How old is the picture behind that list, on average?"
    ),
    derive=lambda p: Derivation(
        value=_mean(p),
        formula="latency + period / 2: the age falls to the latency with every new list and grows until the next",
        substitution=f"{p.latency_ms} / 1000 + 1 / (2 × {p.rate})",
        source=AGES,
    ),
    count=_count_mean,
    slips=(
        Slip("latency-only", lambda p: p.latency_ms * ms)
        | "That is the age at the moment when a list arrives. It is then used until the next one comes.",
        Slip("largest", lambda p: p.latency_ms * ms + _period_s(p))
        | "That is the oldest that a list ever is, just before the next. The mean is asked for.",
        Slip("halved-latency", lambda p: p.latency_ms * ms / 2 + _period_s(p))
        | "You halved the latency. Every list has all of it; what is met at a random moment is the period.",
        Slip("waiting-only", lambda p: _period_s(p) / 2)
        | "That is how long the list has been lying there. Its picture was old already when it came.",
    ),
)

# --- after lost frames ---------------------------------------------------------------------------


def _draw_lost(rng: random.Random) -> Draw:
    """With a single lost frame two of the mistakes would be the same number."""
    rate, latency_ms, _ = rng.choice((15, 20, 24, 25, 30)), rng.randrange(45, 140), rng.choice((1, 2, 3, 4))
    return drawn(rate=rate, latency_ms=latency_ms, lost=rng.choice((2, 3, 4)))


def _lost(p: Draw) -> float:
    return information_age.largest_age_s(latency_s=p.latency_ms * ms, period_s=_period_s(p), lost_in_a_row=p.lost)


def _count_lost(p: Draw) -> float:
    latency, period = Fraction(p.latency_ms, 1000), Fraction(1, p.rate)
    gone = range(3, 3 + p.lost)
    answers = picture_age.regular(latency=latency, period=period, frames=12, lost=gone)
    return float(max(picture_age.age_before_each(answers)))


LOST = Drill(
    key="latency-age-after-drop",
    taught=TAUGHT,
    title="Some frames without an answer",
    unit="s",
    target_s=90,
    apart=1.05,
    draw=_draw_lost,
    small=_draw_lost,
    prompt=lambda p: (
        f"A camera gives {p.rate} frames per second, and an answer comes {p.latency_ms} ms after each exposure. Now"
        f" {p.lost} frames in a row get no answer at all; the next one does. How old is the picture that is still in"
        " use, just before that answer arrives?"
    ),
    derive=lambda p: Derivation(
        value=_lost(p),
        formula="latency + (lost frames + 1) × period",
        substitution=f"{p.latency_ms} / 1000 + ({p.lost} + 1) / {p.rate}",
        source=AGES,
    ),
    count=_count_lost,
    prerequisites=("latency-mean-age",),
    slips=(
        Slip("nothing-lost", lambda p: p.latency_ms * ms + _period_s(p))
        | "That is the largest age where every frame gets its answer.",
        Slip("one-period-short", lambda p: p.latency_ms * ms + p.lost * _period_s(p))
        | "Count the gaps between the two pictures that got an answer: one more than frames were lost.",
        Slip("no-latency", lambda p: (p.lost + 1) * _period_s(p))
        | "That is how far apart the two pictures are. The second one's answer still takes its time.",
        Slip("mean-of-the-gap", lambda p: p.latency_ms * ms + (p.lost + 1) * _period_s(p) / 2)
        | "You halved the gap. Just before the answer arrives, all of it has passed.",
        Slip("latency-each-time", lambda p: (p.lost + 1) * (p.latency_ms * ms + _period_s(p)))
        | "You paid the latency once for every lost frame. They were lost, not worked on one after the other.",
    ),
)

# --- one at a time -------------------------------------------------------------------------------


def _draw_busy(rng: random.Random) -> Draw:
    rate, periods = rng.randrange(20, 61), rng.choice((1, 2, 3)) + rng.uniform(0.2, 0.8)
    return drawn(rate=rate, busy_ms=round(periods / (rate * ms)))


def _telling(p: Draw) -> bool:
    """From two periods on: with fewer, rounding down gives what the camera gives."""
    periods = p.busy_ms * ms * p.rate
    return bool(periods > 2.1 and 0.1 < periods % 1 < 0.9)


def _busy(p: Draw) -> float:
    return 1 / information_age.answered_every_s(busy_s=p.busy_ms * ms, period_s=_period_s(p))


def _count_busy(p: Draw) -> float:
    answers = picture_age.one_at_a_time(busy=Fraction(p.busy_ms, 1000), period=Fraction(1, p.rate), frames=200)
    return float((len(answers) - 1) / (answers[-1][1] - answers[0][1]))


BUSY = Drill(
    key="latency-busy-rate",
    taught=TAUGHT,
    title="A chain that takes one frame at a time",
    unit="",
    target_s=100,
    apart=1.05,
    wanted=_telling,
    draw=_draw_busy,
    small=_draw_busy,
    prompt=lambda p: (
        f"A camera gives {p.rate} frames per second. One processor works on one frame at a time, {p.busy_ms} ms from"
        " beginning to end; a frame that arrives while it is busy is dropped, and it begins only with a frame that just"
        " arrives. How many frames per second get an answer?"
    ),
    derive=lambda p: Derivation(
        value=_busy(p),
        formula="1 / (ceil(busy / period) × period): the next frame is waited for",
        substitution=f"{p.rate} / ceil({p.busy_ms} / 1000 × {p.rate})",
        source=f"the camera's period, counted in wholes; {AGES}",
    ),
    count=_count_busy,
    slips=(
        Slip("one-over-latency", lambda p: 1 / (p.busy_ms * ms))
        | "You let it begin anew at once. When it is done, no fresh frame is there; it waits for the next.",
        Slip("camera", lambda p: p.rate)
        | "That is what the camera gives. Frames that find the processor busy are dropped.",
        Slip("rounded-down", lambda p: p.rate / max(1, math.floor(p.busy_ms * ms * p.rate + 1e-9)))
        | "You rounded down: that frame arrives while the processor is still busy.",
        Slip("whole-period-more", lambda p: 1 / (p.busy_ms * ms + _period_s(p)))
        | "You let it wait a whole period after every frame. It waits only until the next frame comes.",
    ),
    function=AsFunction(
        takes=("rate", "busy_ms"), limit={"busy_ms": 7}, limit_case="a chain that is faster than the camera"
    ),
)

# --- a queue -------------------------------------------------------------------------------------


def _draw_queue(rng: random.Random) -> Draw:
    rate = rng.choice((20, 24, 25, 30, 40))
    return drawn(rate=rate, busy_ms=round(rng.uniform(1.15, 1.6) / (rate * ms)), frame=rng.randrange(8, 20))


def _queue(p: Draw) -> float:
    return information_age.queued_latency_s(busy_s=p.busy_ms * ms, period_s=_period_s(p), frame=p.frame)


def _count_queue(p: Draw) -> float:
    answers = picture_age.queued(busy=Fraction(p.busy_ms, 1000), period=Fraction(1, p.rate), frames=p.frame)
    return float(answers[-1][1] - answers[-1][0])


QUEUE = Drill(
    key="latency-queued-age",
    taught=TAUGHT,
    title="No frame is lost",
    unit="s",
    target_s=100,
    apart=1.05,
    draw=_draw_queue,
    small=_draw_queue,
    prompt=lambda p: (
        f"A camera gives {p.rate} frames per second, and a processor takes {p.busy_ms} ms for each. No frame is"
        " dropped: they wait in a queue, which is empty when the first one comes. How long after its exposure is frame"
        f" {p.frame} answered, the first one being frame 1?"
    ),
    derive=lambda p: Derivation(
        value=_queue(p),
        formula="busy + (n − 1) × (busy − period): each frame adds what the processor is too slow by",
        substitution=f"{p.busy_ms} / 1000 + ({p.frame} − 1) × ({p.busy_ms} / 1000 − 1 / {p.rate})",
        source=f"an answer every busy period, a frame every camera period; {AGES}",
    ),
    count=_count_queue,
    slips=(
        Slip("no-queue", lambda p: p.busy_ms * ms)
        | "That is the first frame's. Every later one finds the queue a little longer.",
        Slip("all-at-once", lambda p: p.frame * (p.busy_ms * ms))
        | "You measured from the first frame's exposure. This frame was exposed later.",
        Slip("waiting-only", lambda p: (p.frame - 1) * (p.busy_ms * ms - _period_s(p)))
        | "That is how long it waits. Then it is worked on, too.",
        Slip("periods-for-lateness", lambda p: p.busy_ms * ms + (p.frame - 1) * _period_s(p))
        | "You added a period for each frame before it. Add what the processor is too slow by.",
    ),
    function=AsFunction(
        takes=("rate", "busy_ms", "frame"), limit={"busy_ms": 7}, limit_case="a chain that is faster than the camera"
    ),
)

DRILLS = (MEAN, LOST, BUSY, QUEUE)

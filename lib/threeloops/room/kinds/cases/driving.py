"""Two cases of a car: a perception stack with 33 ms on an Orin, and what a test fleet records and brings home. Their
figures are invented.
"""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.room.kinds.cases.case import Case, design, requirements
from threeloops.room.kinds.chains.chain import Step
from threeloops.room.kinds.chains.change import Best, Change, shown, value_of
from threeloops.units import ms

# --- a perception stack --------------------------------------------------------------------------

BRAKES_MS = 300  # from a command until the brakes bite
STAGES = ("perception", "planning", "control")


def _draw_stack(rng: random.Random) -> Draw:
    cameras = rng.choice((6, 7, 8))
    return drawn(
        cameras=cameras,
        width=1920,
        height=1280,
        bits=rng.choice((12, 14)),
        rate=30,
        deadline=33,
        others=rng.randrange(8, 13),
        model=rng.choice((34, 46, 48, 50, 52, 58)),
        narrow=rng.choice((1.6, 1.8, 2.2)),
        periods_ms=(33, rng.choice((60, 100, 120)), 10),
        responses_ms=(rng.randrange(26, 33), rng.randrange(14, 25), rng.choice((2, 3))),
        kmh=rng.choice((90, 100, 110, 120)),
        braking=rng.choice((5.0, 6.0)),
        sooner_ms=rng.choice((20, 60, 100)),
        slower=1,
        chains=cameras,
        minutes=rng.choice((30, 45, 90)),
        per_ten_thousand=rng.choice((3, 5, 12)),
    )


def _stack_chain(p: Draw) -> Draw:
    return drawn(periods_ms=p.periods_ms, responses_ms=p.responses_ms)


def _stack_oftener(p: Draw) -> Draw:
    perception, planning, control = p.periods_ms
    return drawn(periods_ms=(perception, planning / 2, control), responses_ms=p.responses_ms)


def _stack_stop(p: Draw, *, chain: Draw, brakes_ms: float = BRAKES_MS, slower: float = 0) -> Draw:
    reaction = round(value_of("deadlines-chain", chain) / ms + brakes_ms)
    return drawn(kmh=p.kmh - slower, braking=p.braking, reaction_ms=reaction)


def _stack_stages(p: Draw) -> str:
    rows = zip(STAGES, p.periods_ms, p.responses_ms, strict=True)
    return "; ".join(f"{name} every {period} ms, up to {response} ms" for name, period, response in rows)


def _stack_meets(p: Draw) -> str:
    enough = value_of("latency-speedup-needed", p) <= p.narrow
    return (
        "which is enough by itself" if enough else "which is not enough by itself: a smaller network, or fewer pixels"
    )


STACK_CASE = Case(
    key="case-perception-stack",
    title="33 ms on an Orin",
    loop="driving",
    section="Tails and schedules",
    draw=_draw_stack,
    requirements=requirements(
        lambda p: "Design the perception of a car on one Jetson AGX Orin. You have 33 ms.",
        (
            "33 ms from what to what, at which percentile, and what happens to a late frame",
            lambda p: f"from picture to result, {p.deadline} ms, every frame; a late one is dropped and counted",
        ),
        (
            "which sensors, how many pixels, how many bits, how often",
            lambda p: f"{p.cameras} cameras of {p.width} × {p.height}, {p.bits} bits raw, {p.rate} frames per second",
        ),
        (
            "what the stages take today, on this chip, warm, with the neighbours running",
            lambda p: f"the network {p.model} ms in FP16, everything else {p.others} ms, one after the other",
        ),
        (
            "what follows behind, on which clocks, until the brakes bite",
            lambda p: f"{_stack_stages(p)}; clocks not aligned; brakes {BRAKES_MS} ms after a command",
        ),
        (
            "how fast the car drives, in what weather, and how hard it may brake",
            lambda p: f"{p.kmh} km/h, {p.braking} m/s²",
        ),
        (
            "what INT8 has cost in accuracy, by condition and not on the mean",
            lambda p: f"{p.narrow:g} times as fast here; measured at night only after you ask",
        ),
    ),
    estimates=(
        Step(drill="latency-camera-bandwidth", numbers=lambda p: p),
        Step(drill="latency-speedup-needed", numbers=lambda p: p),
        Step(drill="deadlines-chain", numbers=_stack_chain),
    ),
    design=design(
        lambda p: (
            f"Now the design: {p.cameras} cameras, one Orin, a result {p.deadline} ms after each picture. What runs on"
            " what, and what is promised?"
        ),
        (
            "a budget stage by stage whose sum leaves a reserve, and says whose share the reserve is",
            "latency apart from rate: what is pipelined, and what each hand-over adds to the age of a result",
            "a p99 or a worst case for every stage, never a mean, measured with the neighbours on and the chip warm",
            "what happens to a late frame: dropped or degraded, who notices, and how long that takes beside the FTTI",
            "accuracy in INT8 by condition, with the layers that stay in 16 bits, before the speed is counted",
            "the one measurement that would change the design, and what is not known yet",
        ),
        lambda p: (
            f"The cameras bring {shown('latency-camera-bandwidth', p)}. The network must become"
            f" {shown('latency-speedup-needed', p)} times as fast; INT8 gives {p.narrow:g}, {_stack_meets(p)}. From an"
            " event to the end of a command that knows of it, clocks not aligned, it is"
            f" {shown('deadlines-chain', _stack_chain(p))} at worst, and with the brakes the car stands after"
            f" {shown('latency-stopping-distance', _stack_stop(p, chain=_stack_chain(p)))} from {p.kmh} km/h. A frame"
            " that is late is dropped, the tracker moves its boxes on, and a watchdog counts. What would change the"
            " design: the network's p99 with everything else running."
        ),
    ),
    trade_off=Best(
        drill="latency-stopping-distance",
        now=lambda p: _stack_stop(p, chain=_stack_chain(p)),
        text=lambda p: (
            f"The stages: {_stack_stages(p)}; each reads the newest value when it starts, clocks not aligned. The"
            f" brakes bite {BRAKES_MS} ms after a command and slow the car by {p.braking} m/s². At {p.kmh} km/h, which"
            " single change saves most metres from the event to standstill, at worst?"
        ),
        changes=(
            Change(
                key="oftener",
                text=lambda p: "planning twice as often, each run as long as before",
                numbers=lambda p: _stack_stop(p, chain=_stack_oftener(p)),
            ),
            Change(
                key="brakes",
                text=lambda p: f"brakes that bite {p.sooner_ms} ms sooner",
                numbers=lambda p: _stack_stop(p, chain=_stack_chain(p), brakes_ms=BRAKES_MS - p.sooner_ms),
            ),
            Change(
                key="speed",
                text=lambda p: f"driving {p.slower} km/h slower",
                numbers=lambda p: _stack_stop(p, chain=_stack_chain(p), slower=p.slower),
            ),
        ),
    ),
    price=(
        "planning twice as often needs its computing twice: from whom does it take it",
        "speed is the only change that also makes a crash less hard",
        "brakes are another supplier and another year; software is tonight",
    ),
    follow_ups=(
        Step(
            drill="latency-stopping-distance",
            numbers=lambda p: _stack_stop(p, chain=_stack_oftener(p)),
            text=lambda p: (
                f"Suppose that planning runs twice as often: {shown('deadlines-chain', _stack_oftener(p))} from an"
                f" event to the end of a command, at worst; the brakes bite {BRAKES_MS} ms later and slow the car by"
                f" {p.braking} m/s². At {p.kmh} km/h, how far does it travel from the event to standstill?"
            ),
        ),
        Step(drill="deadlines-misses", numbers=lambda p: p),
    ),
)

# --- what a test fleet records -------------------------------------------------------------------


def _draw_recorder(rng: random.Random) -> Draw:
    lidar = DRILLS["sensor-lidar-bytes"].draw(rng)
    return drawn(
        cameras=rng.choice((7, 9, 11)),
        width=1920,
        height=1280,
        bits=rng.choice((12, 14)),
        rate=rng.choice((20, 36)),
        lidar=lidar,
        drive_tb=rng.choice((8, 16, 32)),
        factor=rng.choice((2.5, 3.5)),
        lossy=rng.choice((1.15, 1.3, 1.6)),
        fewer=rng.choice((1, 2)),
        half=rng.choice((0.75, 0.9)),
        link_gbit=rng.choice((1, 2.5, 5)),
        usable=rng.choice((0.7, 0.85)),
        stamp=DRILLS["sensor-time-stamp"].draw(rng),
    )


RECORDER = Case(
    key="case-fleet-recorder",
    title="What a test fleet records and brings home",
    loop="driving",
    section="The data coming in",
    draw=_draw_recorder,
    requirements=requirements(
        lambda p: "Our test cars shall record everything, so that we can train on it. How large is that?",
        (
            "what the recordings are for: training, replaying a bug bit by bit, evidence",
            lambda p: "training, and the replay of what the driver marked",
        ),
        (
            "which sensors, raw or after the image processor, at which rates",
            lambda p: (
                f"{p.cameras} cameras of {p.width} × {p.height}, {p.bits} bits raw, {p.rate} frames per second, and a"
                " LiDAR"
            ),
        ),
        (
            "what compression may lose, and who has looked at what it does to the network",
            lambda p: f"nothing for now: lossless, by a factor of {p.factor:g}",
        ),
        (
            "how long a shift is, and where the data go when the car is back",
            lambda p: (
                f"a shift of eight hours; a drive of {p.drive_tb} TB, and a link of {p.link_gbit:g} Gbit/s in the"
                " garage"
            ),
        ),
        (
            "whether all of it is wanted, or what is rare: who decides what is kept",
            lambda p: "what is rare, if you can say how the car knows",
        ),
        (
            "whose clock stamps what, and how well clocks agree",
            lambda p: f"each sensor its own; {p.stamp.error_ms} ms have been seen",
        ),
    ),
    estimates=(
        Step(drill="latency-camera-bandwidth", numbers=lambda p: p),
        Step(drill="sensor-lidar-bytes", numbers=lambda p: p.lidar),
        Step(drill="sensor-drive-lasts", numbers=lambda p: p),
    ),
    design=design(
        lambda p: f"Now the design: what {p.cameras} cameras and a LiDAR record in a shift, and how it comes home.",
        (
            "rates first, sensor by sensor: which one decides (the cameras), and which are noise beside it",
            "what is written all the time and what on a trigger, with a ring buffer that keeps the minute before",
            "lossless against lossy, tried on the network that shall learn from it",
            "one clock for all sensors, hardware stamps at exposure, and the error written beside each",
            "how it comes home: a drive that is changed, or a link; how long that takes for a fleet",
            "privacy and retention: faces and plates, who may look, when it is deleted",
        ),
        lambda p: (
            f"The cameras make {shown('latency-camera-bandwidth', p)}, the LiDAR"
            f" {shown('sensor-lidar-bytes', p.lidar)}: only cameras decide. At a factor of {p.factor:g} a drive of"
            f" {p.drive_tb} TB is full after {shown('sensor-drive-lasts', p)}. So: everything into a ring"
            " buffer, to disk what a trigger marks (the driver, a hard brake, a network that disagrees with the"
            f" tracker), drives changed after the shift. Clocks by PTP, and the error of"
            " each stamp written beside it."
        ),
    ),
    trade_off=Best(
        drill="sensor-drive-lasts",
        now=lambda p: p,
        more=True,
        text=lambda p: (
            f"The drive must last longer: {p.cameras} cameras of {p.width} × {p.height}, {p.bits} bits,"
            f" {p.rate} frames per second, compressed {p.factor:g} times, {p.drive_tb} TB. Which single change gives"
            " most hours?"
        ),
        changes=(
            Change(
                key="lossy",
                text=lambda p: f"compression {p.lossy:g} times as strong, with some loss",
                numbers=lambda p: changed(p, factor=p.factor * p.lossy),
            ),
            Change(
                key="cameras",
                text=lambda p: f"{p.fewer} of the cameras not recorded",
                numbers=lambda p: changed(p, cameras=p.cameras - p.fewer),
            ),
            Change(
                key="rate",
                text=lambda p: f"{p.rate * p.half:g} frames per second recorded instead of {p.rate}",
                numbers=lambda p: changed(p, rate=p.rate * p.half),
            ),
        ),
    ),
    price=(
        "a camera that was not recorded is missing in every label for ever",
        "fewer frames are no loss for standing things, and one for a pedestrian who crosses the road",
        "loss in compression is learnt by the network: try it on the rare and the dark first",
    ),
    follow_ups=(
        Step(drill="sensor-compression", numbers=lambda p: p),
        Step(drill="sensor-time-stamp", numbers=lambda p: p.stamp),
    ),
)

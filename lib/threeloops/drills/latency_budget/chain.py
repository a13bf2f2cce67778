"""Drills on the chain from picture to brake: latency and rate, the age of a picture, what a deadline leaves, and how
tails add up.
"""

import itertools
import random
from fractions import Fraction

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import latency_budget
from threeloops.simulate.driving import vehicle
from threeloops.units import ms

TAUGHT = Taught("driving", "A car that must answer in time")
PIPELINING = (
    "Hennessy and Patterson, Computer Architecture, 6th ed., 2017, appendix C.1 (throughput of a pipeline is set by its"
    " slowest stage)"
)
TAILS = "Dean and Barroso, The Tail at Scale, Communications of the ACM 56(2), 2013, doi:10.1145/2408776.2408794"

# --- rate ----------------------------------------------------------------------------------------


def _small_rate(rng: random.Random) -> Draw:
    """A camera that delivers exactly when the slowest stage is free again, every time or every second time."""
    slowest = rng.choice((20, 25))
    return drawn(stages=[slowest, 10, 15], camera=rng.choice((1, 2)) / (slowest * ms))


def _stages_s(p: Draw) -> list[float]:
    return [stage * ms for stage in p.stages]


def _count_rate(p: Draw) -> float:
    """Let hundreds of frames in and look how far apart the results come out, once the pipeline is full."""
    period = Fraction(round(1 / (p.camera * ms), 9)).limit_denominator(10_000)
    finished = [
        finish
        for _, finish in vehicle.frames_through([Fraction(stage) for stage in p.stages], period=period, frames=400)
    ]
    return (len(finished) - 11) / (float(finished[-1] - finished[10]) * ms)


RATE = Drill(
    key="latency-pipeline-rate",
    taught=TAUGHT,
    title="Three stages, how many frames",
    unit="",
    target_s=75,
    draw=lambda rng: drawn(
        stages=[rng.randrange(40, 50) / 10, rng.randrange(240, 330) / 10, rng.randrange(140, 190) / 10],
        camera=rng.choice((85, 90, 95)),
    ),
    small=_small_rate,
    prompt=lambda p: (
        f"Pictures go through three stages on three processors: preparation {p.stages[0]} ms, network {p.stages[1]} ms,"
        f" tracking {p.stages[2]} ms. Each stage works on one picture while the others work on theirs. The camera gives"
        f" {p.camera} frames per second. At most how many pictures per second can come out?"
    ),
    derive=lambda p: Derivation(
        value=latency_budget.pipeline_frames_per_s(_stages_s(p), camera_frames_per_s=p.camera),
        formula="min(camera's rate, 1 / slowest stage)",
        substitution=f"min({p.camera}, 1000 / {max(p.stages)})",
        source=PIPELINING,
    ),
    count=_count_rate,
    slips=(
        Slip("one-over-latency", lambda p: 1 / sum(_stages_s(p)))
        | "You let a picture leave the last stage before the next one enters the first. The stages work at the"
        " same time.",
        Slip("camera", lambda p: p.camera) | "That is what the camera gives. One of the stages cannot take that many.",
        Slip("average", lambda p: 3 / sum(_stages_s(p)))
        | "You took the average of the stages. A chain is as fast as its slowest part.",
        Slip("fastest", lambda p: 1 / min(_stages_s(p)))
        | "You took the fastest stage. The pictures pile up before another one.",
    ),
)

# --- age -----------------------------------------------------------------------------------------


def _draw_age(rng: random.Random) -> Draw:
    return drawn(rate=rng.choice((10, 12, 15, 20, 24)), latency_ms=rng.randrange(105, 180))


def _age(p: Draw) -> float:
    return latency_budget.oldest_picture_s(latency_s=p.latency_ms * ms, frames_per_s=p.rate)


AGE = Drill(
    key="latency-oldest-picture",
    taught=TAUGHT,
    title="A child steps out just after the shutter",
    unit="s",
    target_s=75,
    draw=_draw_age,
    small=_draw_age,
    prompt=lambda p: (
        f"A camera takes {p.rate} pictures per second, and each becomes a command {p.latency_ms} ms after its exposure"
        " (none waits for another). What is the longest time from an event in the street to the first command that can"
        " know of it?"
    ),
    derive=lambda p: Derivation(
        value=_age(p),
        formula="one frame time + latency",
        substitution=f"1 / {p.rate} + {p.latency_ms} / 1000",
        source="Kopetz, Real-Time Systems, 2nd ed., 2011, chapter 5 (how old an observation is when it is used)",
    ),
    count=lambda p: float(
        vehicle.longest_to_reaction(latency=Fraction(p.latency_ms, 1000), period=Fraction(1, p.rate), moments=20)
    ),
    slips=(
        Slip("latency-only", lambda p: p.latency_ms * ms)
        | "That is the best case: the event falls into an exposure. It may just miss one.",
        Slip("half-a-frame", lambda p: p.latency_ms * ms + 0.5 / p.rate)
        | "That is the average case: half a frame of waiting. Here the longest is asked for.",
        Slip("frame-only", lambda p: 1 / p.rate) | "You waited for the picture and forgot to work on it.",
        Slip("two-frames", lambda p: p.latency_ms * ms + 2 / p.rate)
        | "You waited for two exposures. The next one already sees it.",
    ),
)

# --- what a deadline leaves ----------------------------------------------------------------------


def _draw_needed(rng: random.Random) -> Draw:
    deadline, others = rng.choice((33.3, 40, 50)), rng.randrange(14, 22)
    return drawn(
        deadline=deadline,
        others=others,
        model=rng.choice([model for model in range(38, 62) if _telling(deadline, others, model)]),
    )


def _telling(deadline: float, others: int, model: int) -> bool:
    """Whether these numbers keep the mistakes apart."""
    left, over = deadline - others, model + others - deadline
    results = (model / left, (model + others) / deadline, model / deadline, model / over, left / model)
    return all(max(one, two) > 1.05 * min(one, two) for one, two in itertools.combinations(results, 2))


def _small_needed(rng: random.Random) -> Draw:
    others, tenths = rng.choice((10, 20)), rng.choice((15, 23, 31))
    return drawn(deadline=others + 20, others=others, model=2 * tenths)


def _needed(p: Draw) -> float:
    return latency_budget.speedup_needed(deadline_s=p.deadline * ms, stage_s=p.model * ms, others_s=p.others * ms)


def _count_needed(p: Draw) -> float:
    """Make the model a tenth faster, and again, until the chain is in time."""
    tenths = 10
    while Fraction(str(p.others)) + Fraction(p.model * 10, tenths) > Fraction(str(p.deadline)):
        tenths += 1
    return tenths / 10


NEEDED = Drill(
    key="latency-speedup-needed",
    taught=TAUGHT,
    title="What the deadline leaves for the model",
    unit="",
    target_s=75,
    draw=_draw_needed,
    small=_small_needed,
    prompt=lambda p: (
        f"A command is due {p.deadline:g} ms after each picture. Reading, tracking and planning take {p.others} ms"
        f" together, the network {p.model} ms, one after the other. How many times faster must the network become, if"
        " nothing else can?"
    ),
    derive=lambda p: Derivation(
        value=_needed(p),
        formula="network / (deadline − the others)",
        substitution=f"{p.model} / ({p.deadline:g} − {p.others})",
        source="Amdahl, 1967, doi:10.1145/1465482.1465560, solved for the factor",
    ),
    count=_count_needed,
    slips=(
        Slip("whole-chain", lambda p: (p.model + p.others) / p.deadline)
        | "You made everything faster by the same factor. Only the network can change.",
        Slip("whole-deadline", lambda p: p.model / p.deadline)
        | "You gave the network the whole deadline. The others need their part of it.",
        Slip("overshoot", lambda p: p.model / (p.model + p.others - p.deadline))
        | "You divided by what must be saved. Divide by what is left.",
        Slip("share", lambda p: (p.deadline - p.others) / p.model)
        | "That is what share of its time the network may keep, not how many times faster it must be.",
    ),
)

# --- tails ---------------------------------------------------------------------------------------


TAIL = Drill(
    key="latency-any-late",
    taught=TAUGHT,
    title="Waiting for the slowest of many",
    unit="",
    target_s=75,
    draw=lambda rng: drawn(parts=rng.randrange(7, 19), late_percent=rng.choice((1.2, 1.5, 1.8, 2.1, 2.4))),
    small=lambda rng: drawn(parts=rng.choice((2, 3, 5)), late_percent=rng.choice((1, 5, 20))),
    prompt=lambda p: (
        f"A result needs answers from {p.parts} services, asked at the same time. Each one misses its deadline"
        f" {p.late_percent:g} % of the time, independently of the others. What share of the results is late?"
    ),
    derive=lambda p: Derivation(
        value=latency_budget.any_late_share(late_share=p.late_percent / 100, parts=p.parts),
        formula="1 − (1 − late share)^services",
        substitution=f"1 − (1 − {p.late_percent / 100:g})**{p.parts}",
        source=TAILS,
    ),
    count=lambda p: float(vehicle.late_share(late=Fraction(str(p.late_percent)) / 100, parts=p.parts)),
    slips=(
        Slip("one-service", lambda p: p.late_percent / 100)
        | "That is one service. The result waits for the slowest of all of them.",
        Slip("none-late", lambda p: (1 - p.late_percent / 100) ** p.parts) | "That is how often everything is in time.",
        Slip("all-late", lambda p: (p.late_percent / 100) ** p.parts)
        | "That is how often all are late at once. One is enough.",
        Slip("averaged", lambda p: p.late_percent / 100 / p.parts)
        | "You shared the lateness among the services. More services make it worse, not better.",
    ),
)

DRILLS = (RATE, AGE, NEEDED, TAIL)

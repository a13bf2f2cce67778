"""Drills on more processors: where a fixed batch stops gaining, what one measurement says about the limit, work that
grows with the machine; and money.
"""

import random

from threeloops.drills.all_reduce.ring import SOURCE_RING, engineering
from threeloops.drills.amdahl.law import SOURCE_AMDAHL, WHOLE, share
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import scaling
from threeloops.simulate.inner_loop import ticks
from threeloops.training_loop.network import collectives
from threeloops.units import GB, fmt_bytes, fmt_si

TAUGHT = Taught("training", "Three loops")

SOURCE_KARP_FLATT = "Karp and Flatt, CACM 33(5), 1990, doi:10.1145/78607.78614"
SOURCE_GUSTAFSON = "Gustafson, CACM 31(5), 1988, doi:10.1145/42411.42415"

# --- a limit from one measurement ----------------------------------------------------------------


def _draw_limit(rng: random.Random) -> Draw:
    gpus = rng.choice((6, 7, 8, 9, 10, 11, 12, 13, 14))
    return drawn(gpus=gpus, speedup=round(gpus * rng.choice((0.56, 0.6, 0.64, 0.68, 0.72, 0.75)), 1))


def _small_limit(rng: random.Random) -> Draw:
    """Speed-ups that a whole number of hundredths of serial work leads to, found by dealing the work out."""
    gpus, alone = rng.choice((5, 6, 9)), rng.choice((10, 20))
    shared = WHOLE - alone
    return drawn(
        gpus=gpus, speedup=WHOLE * gpus / ticks.dealt_out(alone=alone * gpus, shared=shared * gpus, workers=gpus)
    )


def _derive_limit(p: Draw) -> Derivation:
    serial = scaling.serial_share(speedup=p.speedup, num_processors=p.gpus)
    return Derivation(
        value=scaling.amdahl_limit(accelerated_share=1 - serial),
        formula="1 / serial share, serial share = (1 / speed-up − 1 / n) / (1 − 1 / n)",
        substitution=f"(1 − 1 / {p.gpus}) / (1 / {p.speedup:.15g} − 1 / {p.gpus})",
        source=f"{SOURCE_KARP_FLATT}; {SOURCE_AMDAHL}",
    )


def _count_limit(p: Draw) -> float:
    """Find the split of 100 units that runs as fast as measured; with workers without end, only the units for one
    worker take time.
    """
    took = {
        alone: ticks.dealt_out(alone=alone * p.gpus, shared=(WHOLE - alone) * p.gpus, workers=p.gpus)
        for alone in range(1, WHOLE)
    }
    alone = min(took, key=lambda units: abs(WHOLE * p.gpus / took[units] - p.speedup))
    return WHOLE / alone


LIMIT = Drill(
    key="amdahl-limit-from-a-run",
    taught=TAUGHT,
    title="The limit that one measurement knows",
    unit="",
    target_s=120,
    draw=_draw_limit,
    small=_small_limit,
    prompt=lambda p: (
        f"On {p.gpus} GPUs a job runs {p.speedup:g} times as fast as on one. Suppose that a fixed part of one GPU's"
        " time cannot be shared out, and that nothing else is lost. However many GPUs it gets, how many times as fast"
        " as on one can the job become at most?"
    ),
    derive=_derive_limit,
    count=_count_limit,
    prerequisites=("amdahl-one-part",),
    slips=(
        Slip("lost-efficiency", lambda p: 1 / (1 - p.speedup / p.gpus))
        | "You took what is lost on all GPUs for the serial share. That share is one of a single GPU's time.",
        Slip("perfect-share-left-in", lambda p: 1 / (1 / p.speedup - 1 / p.gpus))
        | "You took the whole excess over a perfect run for serial time. Serial work has its place in the perfect"
        " run as well.",
        Slip(
            "share-of-the-fast-run",
            lambda p: 1 / (scaling.serial_share(speedup=p.speedup, num_processors=p.gpus) * p.speedup),
        )
        | "You took the serial share of the fast run. On one GPU the same seconds are a smaller share.",
        Slip("as-many-as-there-are", lambda p: p.gpus)
        | "That is what these GPUs would do at best. What would more of them bring?",
    ),
)

# --- a fixed batch on more and more GPUs ---------------------------------------------------------


def _draw_fixed(rng: random.Random) -> Draw:
    gpus, size, rate = rng.choice((10, 11, 12)), rng.choice((3.2, 4.4, 5.6, 7.2)) * GB, rng.choice((40, 45, 50)) * GB
    return drawn(
        compute_s=round(1.8 * size / rate / rng.choice((0.126, 0.134, 0.142, 0.15)), 2), gpus=gpus, size=size, rate=rate
    )


def _small_fixed(rng: random.Random) -> Draw:
    gpus = rng.choice((5, 7))
    return drawn(
        compute_s=float(gpus * rng.choice((2, 3))),
        gpus=gpus,
        size=8.0 * gpus * rng.choice((3, 4)),
        rate=rng.choice((50.0, 90.0)),
    )


def _ring_s(p: Draw, gpus: int) -> float:
    return collectives.collective_time(
        op="all_reduce", algorithm="ring", size_bytes=p.size, ranks=gpus, alpha_s=0, bytes_per_s_one_way=p.rate
    ).total_s


def _count_fixed(p: Draw) -> float:
    # numpy, which a reader's own drills do not need
    from threeloops.simulate.training_loop.collectives import simulated

    told_s = simulated(op="all_reduce", algorithm="ring", ranks=p.gpus, elements=int(p.size) // 8).seconds(
        alpha_s=0, bytes_per_s_one_way=p.rate
    )
    samples = round(p.compute_s)  # one second each
    return float(samples / (ticks.dealt_out(alone=0, shared=samples, workers=p.gpus) + told_s))


FIXED = Drill(
    key="amdahl-fixed-batch",
    taught=TAUGHT,
    title="The same batch on more GPUs",
    unit="",
    target_s=120,
    draw=_draw_fixed,
    small=_small_fixed,
    prompt=lambda p: (
        f"One GPU computes a training step in {p.compute_s} s. The same batch is now split evenly over {p.gpus} GPUs;"
        f" when all have computed, a ring all-reduces {fmt_bytes(p.size, base=10)} of gradients over links of"
        f" {fmt_si(p.rate, 'B/s')} one way. Latency is negligible and nothing overlaps. How many times as fast as on"
        " one GPU is a step?"
    ),
    derive=lambda p: Derivation(
        value=p.compute_s / (p.compute_s / p.gpus + _ring_s(p, p.gpus)),
        formula="T / (T / n + 2 × (n − 1) / n × S / rate)",
        substitution=(
            f"{p.compute_s} / ({p.compute_s} / {p.gpus} + 2 × ({p.gpus} − 1) / {p.gpus} × {engineering(p.size)} /"
            f" {engineering(p.rate)})"
        ),
        source=f"{SOURCE_AMDAHL}; {SOURCE_RING}",
    ),
    count=_count_fixed,
    prerequisites=("amdahl-one-part", "ring-time"),
    slips=(
        Slip("perfect", lambda p: float(p.gpus))
        | "That would be perfect scaling. What do the GPUs do when they have computed?",
        Slip("sent-once", lambda p: p.compute_s / (p.compute_s / p.gpus + p.size / p.rate))
        | "You sent the gradients once. A ring goes around twice: once to add up, once to tell.",
        Slip("shared-exchange", lambda p: p.compute_s / (p.compute_s / p.gpus + _ring_s(p, p.gpus) / p.gpus))
        | "You shared the exchange out among the GPUs. Only the computing gets less with every GPU.",
        Slip("overlapped", lambda p: p.compute_s / max(p.compute_s / p.gpus, _ring_s(p, p.gpus)))
        | "You let the exchange run beside the computing. Here it comes afterwards.",
        Slip(
            "exchange-on-one",
            lambda p: (p.compute_s + _ring_s(p, p.gpus)) / (p.compute_s / p.gpus + _ring_s(p, p.gpus)),
        )
        | "You made the single GPU pay for an exchange. It has no other GPU to send to.",
    ),
    function=AsFunction(
        takes=("compute_s", "gpus", "size", "rate"), limit={"gpus": 1}, limit_case="a single GPU, which sends nothing"
    ),
)

# --- work that grows with the machine ------------------------------------------------------------


def _count_grows(p: Draw) -> float:
    """What n workers did in 100 ticks, given to one."""
    shared = (WHOLE - p.alone) * p.gpus
    return ticks.dealt_out(alone=p.alone, shared=shared, workers=1) / ticks.dealt_out(
        alone=p.alone, shared=shared, workers=p.gpus
    )


GROWS = Drill(
    key="amdahl-grown-work",
    taught=TAUGHT,
    title="Work that grows with the machine",
    unit="",
    target_s=75,
    draw=lambda rng: drawn(gpus=rng.randrange(44, 58, 2), alone=rng.randrange(16, 25)),
    small=lambda rng: drawn(gpus=rng.choice((5, 6, 7)), alone=rng.choice((12, 15, 18))),
    prompt=lambda p: (
        f"A job's batch grows with the number of GPUs. Measured on {p.gpus} GPUs, {p.alone} % of a step is work that"
        " one of them does while the others wait; in the rest all of them compute. That serial part does not grow with"
        " the batch. How many times as long would a single GPU need for this large step?"
    ),
    derive=lambda p: Derivation(
        value=scaling.scaled_speedup(serial_share=share(p.alone), num_processors=p.gpus),
        formula="serial share + (1 − serial share) × n",
        substitution=f"{p.alone} / 100 + (1 − {p.alone} / 100) × {p.gpus}",
        source=SOURCE_GUSTAFSON,
    ),
    count=_count_grows,
    prerequisites=("amdahl-one-part",),
    slips=(
        Slip("amdahl", lambda p: scaling.amdahl_speedup(accelerated_share=1 - share(p.alone), factor=p.gpus))
        | "You took the share for one of a single GPU's time. It was measured on all of them.",
        Slip("perfect", lambda p: float(p.gpus))
        | "You let all GPUs compute all the time. For a part of the step only one did.",
        Slip("serial-multiplied", lambda p: share(p.alone) * p.gpus + 1 - share(p.alone))
        | "You gave the serial part to all GPUs and the shared one to a single GPU. It is the other way round.",
        Slip("serial-forgotten", lambda p: scaling.amdahl_limit(accelerated_share=1 - share(p.alone)))
        | "You took the limit of Amdahl's law. That is for work that stays the same, on any number of GPUs.",
    ),
)

# --- what a repair is worth ----------------------------------------------------------------------


def _draw_worth(rng: random.Random) -> Draw:
    run = {
        "hours": rng.randrange(60, 130, 10),
        "gpus": rng.choice((64, 96, 192)),
        "dollars": rng.choice((2.1, 2.4, 2.9, 3.3)),
    }
    return drawn(**run, products=rng.randrange(28, 39), factor=rng.choice((2.6, 2.9, 3.2)))


def _small_worth(rng: random.Random) -> Draw:
    run = {"hours": rng.choice((3, 5)), "gpus": rng.choice((4, 6)), "dollars": rng.choice((2.1, 2.9))}
    return drawn(**run, products=rng.choice((40, 60)), factor=rng.choice((2.5, 3.2)))


def _run_dollars(p: Draw) -> float:
    return float(p.hours * p.gpus * p.dollars)


def _derive_worth(p: Draw) -> Derivation:
    speedup = scaling.amdahl_speedup(accelerated_share=share(p.products), factor=p.factor)
    return Derivation(
        value=_run_dollars(p) * (1 - 1 / speedup),
        formula="hours × GPUs × price × share × (1 − 1 / factor)",
        substitution=f"{p.hours} × {p.gpus} × {p.dollars} × {p.products} / 100 × (1 − 1 / {p.factor})",
        source=SOURCE_AMDAHL,
    )


def _count_worth(p: Draw) -> float:
    """The meter of every GPU, hour by hour, before and after."""
    before = after = 0.0
    kept = ticks.one_after_another([(p.products, p.factor), (WHOLE - p.products, 1)]) / WHOLE
    for _ in range(p.gpus):
        for _ in range(p.hours):
            before += p.dollars
            after += float(kept) * p.dollars
    return before - after


WORTH = Drill(
    key="amdahl-worth-of-a-repair",
    taught=TAUGHT,
    title="What a repair is worth",
    unit="",
    target_s=90,
    draw=_draw_worth,
    small=_small_worth,
    prompt=lambda p: (
        f"A training run takes {p.hours} hours on {p.gpus} GPUs at {p.dollars} dollars per GPU-hour. Matmuls"
        f" are {p.products} % of its time, and an engineer can make them {p.factor} times faster; nothing overlaps. How"
        " many dollars does a run save?"
    ),
    derive=_derive_worth,
    count=_count_worth,
    prerequisites=("amdahl-one-part",),
    slips=(
        Slip("whole-run", lambda p: _run_dollars(p) * (1 - 1 / p.factor))
        | "You made the whole run as much faster as the matmuls. The rest of the step costs what it cost.",
        Slip("share-vanishes", lambda p: _run_dollars(p) * share(p.products))
        | "You saved all that the matmuls cost. They still take some time.",
        Slip(
            "what-is-paid",
            lambda p: _run_dollars(p) / scaling.amdahl_speedup(accelerated_share=share(p.products), factor=p.factor),
        )
        | "That is what a run costs afterwards. What does it save?",
        Slip("one-gpu", lambda p: _run_dollars(p) / p.gpus * share(p.products) * (1 - 1 / p.factor))
        | "That is the saving on one GPU. All of them are paid for.",
        Slip("products-after", lambda p: _run_dollars(p) * share(p.products) / p.factor)
        | "That is what the matmuls still cost. What is saved is the difference to before.",
    ),
)

DRILLS = (LIMIT, FIXED, GROWS, WORTH)

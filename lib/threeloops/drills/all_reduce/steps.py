"""Drills on steps and their latency: what two timings reveal, and what partners at doubled distances save."""

import random

from threeloops.drills.all_reduce.ring import SOURCE_PARTS, engineering
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.training_loop.network import collectives, measured_collectives
from threeloops.units import GB, MB, fmt_bytes, fmt_seconds, fmt_si, us

TAUGHT = Taught("training", "Data parallelism and all-reduce")

# --- alpha from two timings ----------------------------------------------------------------------


def _timed(ranks: int, alpha: float, rate: float, few: float, many: float) -> tuple[float, ...]:
    """What a stopwatch with four digits shows for a ring at both sizes."""
    times = (
        collectives.collective_time(
            op="all_reduce", algorithm="ring", size_bytes=size, ranks=ranks, alpha_s=alpha, bytes_per_s_one_way=rate
        ).total_s
        for size in (few, many)
    )
    return tuple(float(f"{seconds:.3e}") for seconds in times)


def _draw_alpha(rng: random.Random) -> Draw:
    ranks, alpha, rate = rng.choice((6, 8, 12, 16)), rng.randrange(30, 95, 5) / 10 * us, rng.choice((25, 50, 100)) * GB
    # the bytes take a third of the smaller time, or a little more
    few = round(rng.uniform(0.35, 0.54) * ranks * rate * alpha / MB, 2) * MB
    many = rng.choice((4, 5, 6)) * few
    first, second = _timed(ranks, alpha, rate, few, many)
    return drawn(ranks=ranks, few=few, many=many, first=first, second=second)


def _small_alpha(rng: random.Random) -> Draw:
    ranks = rng.choice((6, 8))
    few = 8 * ranks * 2
    first, second = _timed(ranks, rng.choice((3.0, 4.0)), rng.choice((5.0, 6.0)), few, 4 * few)
    return drawn(ranks=ranks, few=few, many=4 * few, first=first, second=second)


def _latency(p: Draw) -> float:
    """What is left of the small time when its bytes are taken off."""
    return float(p.first - (p.second - p.first) * p.few / (p.many - p.few))


def _count_alpha(p: Draw) -> float:
    """Two simulated rings say how many steps and how many bytes one after another; two equations, two unknowns."""
    # numpy, which a reader's own drills do not need
    from threeloops.simulate.training_loop.collectives import simulated

    runs = [
        simulated(op="all_reduce", algorithm="ring", ranks=p.ranks, elements=int(size) // 8) for size in (p.few, p.many)
    ]
    (steps, few), (_, many) = ((run.steps, run.seconds(alpha_s=0, bytes_per_s_one_way=1)) for run in runs)
    return float((p.first * many - p.second * few) / (steps * (many - few)))


ALPHA = Drill(
    key="alpha-from-two-timings",
    taught=TAUGHT,
    title="Two timings, one latency",
    unit="s",
    target_s=120,
    draw=_draw_alpha,
    small=_small_alpha,
    prompt=lambda p: (
        f"A ring all-reduce among {p.ranks} GPUs takes {p.first / us:g} µs for {fmt_bytes(p.few, base=10)} and"
        f" {p.second / us:g} µs for {fmt_bytes(p.many, base=10)}. Every step costs the same latency, whatever it"
        " carries, and then its bytes at a steady rate. How large is the latency of one step?"
    ),
    derive=lambda p: Derivation(
        value=measured_collectives.step_latency_s(
            op="all_reduce",
            algorithm="ring",
            ranks=p.ranks,
            few_bytes=p.few,
            few_s=p.first,
            many_bytes=p.many,
            many_s=p.second,
        ),
        formula=(
            "(t₁ − (t₂ − t₁) × S₁ / (S₂ − S₁)) / (2 (n − 1)): the line through both points, at size zero, over the"
            " steps"
        ),
        substitution=(
            f"({engineering(p.first)} − ({engineering(p.second)} − {engineering(p.first)}) × {engineering(p.few)} / "
            f"({engineering(p.many)} − {engineering(p.few)})) / (2 × ({p.ranks} − 1))"
        ),
        source=SOURCE_PARTS,
    ),
    count=_count_alpha,
    prerequisites=("ring-small-message",),
    slips=(
        Slip("small-is-all-latency", lambda p: p.first / (2 * (p.ranks - 1)))
        | "You took the whole of the smaller time for latency. Its bytes take time as well; the larger size says"
        " how much per byte.",
        Slip("one-trip", lambda p: _latency(p) / (p.ranks - 1))
        | "You spread the latency over one trip around the ring. An all-reduce makes two.",
        Slip("not-per-step", _latency) | "That is the latency of the whole all-reduce. The question is about one step.",
        Slip("as-many-steps-as-ranks", lambda p: _latency(p) / p.ranks)
        | "You spread the latency over as many steps as there are GPUs. Count the steps of a ring once more.",
        Slip("line-through-zero", lambda p: (p.first - p.second * p.few / p.many) / (2 * (p.ranks - 1)))
        | "You took the rate from the larger time alone, as if that held no latency. The difference of the two"
        " times is free of it.",
    ),
)

# --- halving and doubling ------------------------------------------------------------------------


def _small_halving(rng: random.Random) -> Draw:
    ranks = rng.choice((8, 16))
    return drawn(
        ranks=ranks, size=8 * ranks * rng.choice((2, 3)), alpha=rng.choice((3.0, 4.0)), rate=rng.choice((40.0, 50.0))
    )


def _halving(p: Draw) -> collectives.CollectiveTime:
    return collectives.collective_time(
        op="all_reduce",
        algorithm="halving-doubling",
        size_bytes=p.size,
        ranks=p.ranks,
        alpha_s=p.alpha,
        bytes_per_s_one_way=p.rate,
    )


def _levels(p: Draw) -> int:
    return int(p.ranks - 1).bit_length()


def _count_halving(p: Draw) -> float:
    # numpy, which a reader's own drills do not need
    from threeloops.simulate.training_loop.collectives import simulated

    run = simulated(op="all_reduce", algorithm="halving-doubling", ranks=p.ranks, elements=int(p.size) // 8)
    return run.seconds(alpha_s=p.alpha, bytes_per_s_one_way=p.rate)


HALVING = Drill(
    key="halving-doubling-time",
    taught=TAUGHT,
    title="Distant partners first",
    unit="s",
    target_s=100,
    draw=lambda rng: drawn(
        ranks=rng.choice((32, 64, 512)),
        size=rng.randrange(40, 71, 5) / 10 * MB,
        alpha=rng.choice((4, 5, 6)) * us,
        rate=rng.choice((40, 50)) * GB,
    ),
    small=_small_halving,
    prompt=lambda p: (
        f"{p.ranks} GPUs all-reduce {fmt_bytes(p.size, base=10)} by halving and doubling: each trades half of the"
        " vector with a distant partner and adds, then a quarter with a nearer one, and so on down to one piece; then"
        f" the sums go back the same way. A step costs {fmt_seconds(p.alpha)} and its bytes at {fmt_si(p.rate, 'B/s')}"
        " one way; partners send at the same time. How long does the all-reduce take?"
    ),
    derive=lambda p: Derivation(
        value=_halving(p).total_s,
        formula="2 × (log₂ n × latency + (1/2 + 1/4 + … + 1/n) × S / rate), and that sum is (n − 1)/n",
        substitution=(
            f"2 × ({_levels(p)} × {engineering(p.alpha)} + {p.ranks - 1}/{p.ranks} × {engineering(p.size)} /"
            f" {engineering(p.rate)})"
        ),
        source=SOURCE_PARTS,
    ),
    count=_count_halving,
    prerequisites=("ring-small-message",),
    slips=(
        Slip("ring-steps", lambda p: 2 * (p.ranks - 1) * p.alpha + _halving(p).bandwidth_s)
        | "You counted the steps of a ring. Here the distance of the partners doubles, so that few steps reach"
        " every rank.",
        Slip("no-latency", lambda p: _halving(p).bandwidth_s) | "You left the latency out, which every step costs.",
        Slip("one-half", lambda p: _halving(p).total_s / 2)
        | "You stopped when each GPU held one piece of the sum. The pieces still have to be handed out.",
        Slip("latency-of-one-half", lambda p: _halving(p).latency_s / 2 + _halving(p).bandwidth_s)
        | "You counted the bytes of both directions, but the steps of one.",
        Slip("whole-vector-each-step", lambda p: 2 * _levels(p) * (p.alpha + p.size / p.rate))
        | "You sent the whole vector in every step, as a tree does. Here each message is half as long as the one"
        " before.",
    ),
)

DRILLS = (ALPHA, HALVING)

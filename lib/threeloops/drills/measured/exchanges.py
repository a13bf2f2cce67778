"""Drills on all-reduces that somebody timed: what two sizes say of start-up and rate."""

import functools
import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.measured.rows import took
from threeloops.facts import kernel_times
from threeloops.facts.engine_exchanges import EngineExchange, engine_exchanges
from threeloops.operations import two_timings
from threeloops.training_loop.network import collectives
from threeloops.units import GiB, KiB, MiB, fmt_bytes

RING = Taught("training", "Data parallelism and all-reduce")
CLUSTER = Taught("training", "Network and cluster")

SOURCE_HOCKNEY = "Hockney, Parallel Computing 20(3), 1994, pp. 389-398"
SOURCE_NCCL_TESTS = "NVIDIA nccl-tests, doc/PERFORMANCE.md (algbw and busbw), read in 2026"

# --- two sizes of an all-reduce --------------------------------------------------------------------


@functools.cache
def linked_exchanges() -> tuple[EngineExchange, ...]:
    """Those between GPUs that a part's own links join."""
    return tuple(one for one in engine_exchanges() if "link_bytes_per_s_one_way" in catalogued.part(one.part).facts)


def row_of(one: EngineExchange) -> str:
    device = kernel_times.kernel_times(one.part).device
    return f"{one.engine} {one.version} on {device}: {one.source} ({one.licence}), read in 2026"


def _draw_sizes(rng: random.Random, *, least: float, most: float) -> Draw:
    one = rng.choice(linked_exchanges())
    points = [point for point in one.points if least <= point[0] <= most]
    few, many = sorted(rng.sample(points, 2))
    return drawn(
        few=few[0],
        few_s=few[1],
        many=many[0],
        many_s=many[1],
        ranks=one.ranks,
        device=kernel_times.kernel_times(one.part).device,
        engine=f"{one.engine} {one.version}",
        row=row_of(one),
    )


def _line(p: Draw) -> two_timings.StartAndRate:
    return two_timings.line_through_timings(few_bytes=p.few, few_s=p.few_s, many_bytes=p.many, many_s=p.many_s)


def _two_sizes(p: Draw) -> str:
    return (
        f"The all-reduce of {p.engine} among {p.ranks} GPUs of one node ({p.device}) took {took(p.few_s)} for"
        f" {fmt_bytes(p.few, base=2)} and {took(p.many_s)} for {fmt_bytes(p.many, base=2)} (the tensor that each GPU"
        " holds; in a CUDA graph, mean over replays)."
    )


def _small_sizes(rng: random.Random) -> Draw:
    """Times of a clock that starts, and then counts bytes."""
    start, byte, few = rng.randrange(20, 60), rng.randrange(1, 5), rng.randrange(5, 15)
    many = few * rng.randrange(3, 9)
    return drawn(
        few=few,
        few_s=start + byte * few,
        many=many,
        many_s=start + byte * many,
        ranks=rng.choice((4, 5, 8)),
        start=start,
        byte=byte,
        row="drawn in 2026",
    )


def _slope(p: Draw) -> float:
    return collectives.bus_factor(op="all_reduce", ranks=p.ranks) * _line(p).steady_bytes_per_s


def _count_slope(p: Draw) -> float:
    """Two rounds, in each of which every rank passes on all pieces but one, and the clock of the bytes alone."""
    pieces = sum(1 for _ in ("add up", "hand out") for step in range(p.ranks) if step)
    clock = sum(p.byte for _ in range(p.few, p.many))
    return float(pieces * (p.many - p.few) / p.ranks / clock)


SLOPE = Drill(
    key="measured-rate-without-start",
    taught=CLUSTER,
    title="The rate without the start-up",
    unit="B/s",
    target_s=120,
    draw=lambda rng: _draw_sizes(rng, least=4 * MiB, most=GiB),
    small=_small_sizes,
    prompt=lambda p: (
        f"{_two_sizes(p)} Lay a straight line through both points: a start-up, and then bytes at a steady rate. What"
        " is"
        " that rate as a bus bandwidth (busbw), so that it can be held against one link?"
    ),
    derive=lambda p: Derivation(
        value=_slope(p),
        formula="2 (n − 1)/n × (S₂ − S₁) / (t₂ − t₁)",
        substitution=f"2 × ({p.ranks} − 1) / {p.ranks} × ({p.many} − {p.few}) / ({p.many_s!r} − {p.few_s!r})",
        source=f"{SOURCE_HOCKNEY}; {SOURCE_NCCL_TESTS}; {p.row}",
    ),
    count=_count_slope,
    wanted=lambda p: p.many_s > 1.2 * p.few_s,
    prerequisites=("busbw",),
    slips=(
        Slip(
            "larger-alone",
            lambda p: collectives.busbw_bytes_per_s(
                op="all_reduce", ranks=p.ranks, size_bytes=p.many, seconds=p.many_s
            ),
        )
        | "You took the larger size alone. Its time holds the start-up as well.",
        Slip(
            "smaller-alone",
            lambda p: collectives.busbw_bytes_per_s(op="all_reduce", ranks=p.ranks, size_bytes=p.few, seconds=p.few_s),
        )
        | "You took the smaller size alone. Its time holds the start-up as well.",
        Slip("algbw", lambda p: _line(p).steady_bytes_per_s)
        | "That is size over time, algbw. The links of an all-reduce carry more than the size.",
        Slip("one-phase", lambda p: _slope(p) / 2)
        | "That factor belongs to an all-gather or a reduce-scatter. An all-reduce is both, in turn.",
        Slip("all-ranks", lambda p: p.ranks * _slope(p)) | "You added up all GPUs. A bus bandwidth is about one link.",
    ),
)

# --- the size that is worth sending ----------------------------------------------------------------


def _derive_half(p: Draw) -> Derivation:
    rate = f"({p.many} − {p.few}) / ({p.many_s!r} − {p.few_s!r})"
    return Derivation(
        value=_line(p).half_rate_bytes,
        formula="(t₁ − S₁ / rate) × rate, with rate = (S₂ − S₁) / (t₂ − t₁)",
        substitution=f"({p.few_s!r} − {p.few} / ({rate})) × {rate}",
        source=f"{SOURCE_HOCKNEY} (the half-performance length); {p.row}",
    )


def _count_half(p: Draw) -> float:
    """Byte by byte, until the bytes have taken as long as the start."""
    sent = clock = 0
    while clock + p.byte <= p.start:
        sent, clock = sent + 1, clock + p.byte
    return float(sent + (p.start - clock) / p.byte)


HALF = Drill(
    key="measured-half-rate-size",
    taught=RING,
    title="Where bytes take as long as the start-up",
    unit="B",
    capacity=True,
    target_s=150,
    draw=lambda rng: _draw_sizes(rng, least=16 * KiB, most=64 * MiB),
    small=_small_sizes,
    prompt=lambda p: (
        f"{_two_sizes(p)} Lay a straight line through both points: a start-up, and then bytes at a steady rate. At"
        " what"
        " size of the tensor do the bytes take just as long as the start-up, so that half of that rate is reached?"
    ),
    derive=_derive_half,
    count=_count_half,
    wanted=lambda p: 0.1 * p.few_s < _line(p).startup_s < 0.9 * p.few_s if p.few_s < p.many_s else False,
    prerequisites=("measured-rate-without-start",),
    slips=(
        Slip("all-start", lambda p: p.few_s * _line(p).steady_bytes_per_s)
        | "You took the whole time of the smaller size for start-up. Its bytes take time as well.",
        Slip("larger-rate", lambda p: _line(p).startup_s * p.many / p.many_s)
        | "You took the rate from the larger time alone, as if that held no start-up.",
        Slip("both-larger", lambda p: p.few_s * p.many / p.many_s)
        | "You took the smaller time for start-up and the larger one for rate. Each holds both.",
        Slip("on-the-bus", lambda p: _line(p).half_rate_bytes * collectives.bus_factor(op="all_reduce", ranks=p.ranks))
        | "Those are the bytes that each GPU sends. The size of the tensor is asked for.",
        Slip("twice", lambda p: 2 * _line(p).half_rate_bytes)
        | "At that size the bytes take longer than the start-up, and more than half of the rate is reached.",
    ),
)

DRILLS = (SLOPE, HALF)

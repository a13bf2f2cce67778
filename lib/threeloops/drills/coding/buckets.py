"""An all-reduce of a model's gradients: in one piece over a link of the catalogue, and in buckets with latency."""

import math
import random

from threeloops.drills.all_reduce.ring import SOURCE_PARTS, SOURCE_RING, engineering
from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions
from threeloops.models.parameters import model_parameters
from threeloops.training_loop.network import collectives
from threeloops.units import GB, MB, TB, fmt_bytes, fmt_seconds, fmt_si, us

TAUGHT = Taught("driving", "The reference sheet")
MODELS = ("llama-2-7b", "qwen2.5-7b", "llama-3-8b", "llama-2-13b")
LINKS = ("nvlink-3", "nvlink-4", "infiniband-hdr", "infiniband-ndr")


def _ring_s(*, ranks: int, size_bytes: float, alpha_s: float, rate: float) -> float:
    return collectives.collective_time(
        op="all_reduce",
        algorithm="ring",
        size_bytes=size_bytes,
        ranks=ranks,
        alpha_s=alpha_s,
        bytes_per_s_one_way=rate,
    ).total_s


def _counted_s(*, ranks: int, elements: int, alpha_s: float, rate: float) -> float:
    """The same with real vectors of 8-byte numbers."""
    # numpy, which a reader's own drills do not need
    from threeloops.simulate.training_loop.collectives import simulated

    run = simulated(op="all_reduce", algorithm="ring", ranks=ranks, elements=elements)
    return run.seconds(alpha_s=alpha_s, bytes_per_s_one_way=rate)


# --- one piece -----------------------------------------------------------------------------------


def _draw_model(rng: random.Random) -> Draw:
    model, link = rng.choice(MODELS), catalogued.part(rng.choice(LINKS))
    return drawn(
        name=catalogued.model_name(model),
        parameters=model_parameters(catalogued.model(model)).total,
        bytes_per_gradient=2,
        ranks=rng.choice((5, 6, 7)),
        link=link.name,
        rate=link["bytes_per_s_one_way"],
    )


def _small_model(rng: random.Random) -> Draw:
    ranks = rng.choice((5, 6, 7))
    parameters = ranks * rng.choice((3, 4))
    return drawn(
        name="drawn", parameters=parameters, bytes_per_gradient=8, ranks=ranks, link="drawn", rate=rng.choice((50, 90))
    )


def _size(p: Draw) -> float:
    return float(p.parameters * p.bytes_per_gradient)


WHOLE = Drill(
    key="coding-all-reduce",
    taught=TAUGHT,
    title="All-reduce of a real model's gradients",
    unit="s",
    target_s=90,
    draw=_draw_model,
    small=_small_model,
    prompt=lambda p: (
        f"{p.ranks} GPUs train {p.name}, {p.parameters:,} parameters, and add up their gradients, kept in 16 bits, by"
        f" a ring all-reduce. Each sends over {p.link} at {fmt_si(p.rate, 'B/s')} in each direction; latency is"
        " negligible. How long does it take?"
    ),
    derive=lambda p: Derivation(
        value=_ring_s(ranks=p.ranks, size_bytes=_size(p), alpha_s=0, rate=p.rate),
        formula="2 × (n − 1)/n × parameters × bytes per gradient / rate one way",
        substitution=(
            f"2 × {p.ranks - 1}/{p.ranks} × {p.parameters:,} × {p.bytes_per_gradient} / {engineering(p.rate)}"
        ),
        source=SOURCE_RING,
    ),
    count=lambda p: _counted_s(ranks=p.ranks, elements=p.parameters, alpha_s=0, rate=p.rate),
    prerequisites=("ring-time",),
    slips=(
        Slip("half", lambda p: (p.ranks - 1) / p.ranks * _size(p) / p.rate)
        | "Half of it: you went around the ring once, or took both directions of the link for one, or one byte"
        " for a gradient.",
        Slip("sent-once", lambda p: _size(p) / p.rate)
        | "You sent each gradient once. A sum that every rank needs takes more than one transfer of it.",
        Slip("many-ranks-limit", lambda p: 2 * _size(p) / p.rate)
        | "That is what a very large ring takes. In a small one each rank keeps a piece: count the steps.",
        Slip("bits", lambda p: 16 * (p.ranks - 1) / p.ranks * _size(p) / p.rate)
        | "You took bytes per second for bits per second.",
        Slip("whole-vector-each-step", lambda p: 2 * (p.ranks - 1) * _size(p) / p.rate)
        | "You passed the whole vector on in every step. The ring cuts it into pieces, one per rank.",
        Slip("one-piece", lambda p: 2 * _size(p) / p.ranks / p.rate)
        | "You sent one piece there and back. A rank passes a piece on in every step.",
    ),
)

# --- in buckets ----------------------------------------------------------------------------------


def _both_count(p: Draw) -> bool:
    """Latency and bytes: a quarter to four tenths of the time is latency, or most of it."""
    latency = _latency_s(p) / _bucketed_s(p)
    return 0.25 < latency < 0.42 or 0.72 < latency < 0.85


def _small_buckets(rng: random.Random) -> Draw:
    ranks = rng.choice((5, 7))
    return drawn(
        parameters=ranks * rng.choice((10, 14)),
        bytes_per_gradient=8,
        ranks=ranks,
        bucket_bytes=8 * ranks * 4,
        alpha=rng.choice((0.5, 0.7)),
        rate=40.0,
    )


def _buckets(p: Draw) -> int:
    full: int = math.ceil(_size(p) / p.bucket_bytes)
    return full


def _latency_s(p: Draw) -> float:
    return float(_buckets(p) * 2 * (p.ranks - 1) * p.alpha)


def _bytes_s(p: Draw) -> float:
    return float(2 * (p.ranks - 1) / p.ranks * _size(p) / p.rate)


def _bucketed_s(p: Draw) -> float:
    """All full buckets, and what is left for the last one."""
    full, rest = divmod(_size(p), p.bucket_bytes)
    ring = {"ranks": p.ranks, "alpha_s": p.alpha, "rate": p.rate}
    last_s = _ring_s(size_bytes=rest, **ring) if rest else 0.0
    return float(full * _ring_s(size_bytes=p.bucket_bytes, **ring) + last_s)


def _count_buckets(p: Draw) -> float:
    """Fill buckets until no gradient is left, and send each around a real ring."""
    left, seconds = p.parameters, 0.0
    while left:
        filled = min(left, p.bucket_bytes // p.bytes_per_gradient)
        seconds += _counted_s(ranks=p.ranks, elements=filled, alpha_s=p.alpha, rate=p.rate)
        left -= filled
    return seconds


BUCKETED = Drill(
    key="coding-bucketed-all-reduce",
    taught=TAUGHT,
    title="An all-reduce in buckets",
    unit="s",
    target_s=150,
    wanted=_both_count,
    draw=lambda rng: drawn(
        parameters=rng.randrange(60, 99) * 100_000_000,
        bytes_per_gradient=2,
        ranks=rng.choice((48, 56, 72, 96)),
        bucket_bytes=rng.choice((25, 30, 40)) * round(MB),
        alpha=rng.choice((4, 5, 6, 8)) * us,
        rate=rng.choice((40, 50, 100)) * GB,
    ),
    small=_small_buckets,
    prompt=lambda p: (
        f"{p.ranks} GPUs add up the gradients of {billions(p.parameters)} parameters, {p.bytes_per_gradient} bytes"
        f" each, in buckets of {fmt_bytes(p.bucket_bytes, base=10)}, one ring all-reduce after the other; the last"
        f" bucket holds what is left. Each GPU sends at {fmt_si(p.rate, 'B/s')} one way, and each of a ring's steps"
        f" costs {fmt_seconds(p.alpha)} before its first byte. How long do all of them take?"
    ),
    derive=lambda p: Derivation(
        value=_bucketed_s(p),
        formula="buckets × 2 × (n − 1) × latency + 2 × (n − 1)/n × all bytes / rate",
        substitution=(
            f"{_buckets(p)} × 2 × ({p.ranks} − 1) × {engineering(p.alpha)} + 2 × {p.ranks - 1}/{p.ranks} ×"
            f" {p.parameters:,} × {p.bytes_per_gradient} / {engineering(p.rate)}"
        ),
        source=SOURCE_PARTS,
    ),
    count=_count_buckets,
    prerequisites=("ring-small-message",),
    slips=(
        Slip("no-latency", _bytes_s)
        | "You left the latency out, or paid it once a bucket. It is due in every step of every bucket's ring.",
        Slip("one-trip", lambda p: _bucketed_s(p) / 2)
        | "You went around the ring once. Then every rank has a part of the sum, and no rank has all of it.",
        Slip("latency-only", _latency_s) | "You left the bytes out.",
        Slip("whole-bucket-each-step", lambda p: _latency_s(p) + p.ranks * _bytes_s(p))
        | "You passed the whole bucket on in every step. The ring cuts it into pieces, one per rank.",
        Slip("latency-of-one-trip", lambda p: _latency_s(p) / 2 + _bytes_s(p))
        | "You counted the bytes of both trips around the ring, but the latency of one.",
    ),
    function=AsFunction(
        takes=("parameters", "bytes_per_gradient", "ranks", "bucket_bytes", "alpha", "rate"),
        limit={"bucket_bytes": round(TB)},
        limit_case="a bucket larger than all gradients",
    ),
)

DRILLS = (WHOLE, BUCKETED)

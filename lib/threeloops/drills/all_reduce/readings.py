"""Drills on reading the time of an all-reduce: what becomes of it with more ranks, and which bandwidth a benchmark
makes of it.
"""

import random

from threeloops.drills.all_reduce.ring import SOURCE_RING, counted_ring, engineering, small_ring
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.training_loop.network import collectives
from threeloops.units import GB, fmt_bytes, fmt_seconds, ms

TAUGHT = Taught("training", "Data parallelism and all-reduce")

SOURCE_NCCL_TESTS = "NVIDIA nccl-tests, doc/PERFORMANCE.md (algbw and busbw), read in 2026"

# --- more ranks ----------------------------------------------------------------------------------


def _draw_more(rng: random.Random) -> Draw:
    few, many = rng.choice(((3, 12), (3, 24), (4, 24), (4, 48)))
    return drawn(few=few, many=many, seconds=rng.randrange(7, 32, 2) * ms)


def _small_more(rng: random.Random) -> Draw:
    few, many = rng.choice(((3, 12), (4, 12)))
    return drawn(few=few, many=many, seconds=rng.choice((2.0, 3.0)))


def _derive_more(p: Draw) -> Derivation:
    factors = [collectives.bus_factor(op="all_reduce", ranks=ranks) for ranks in (p.many, p.few)]
    return Derivation(
        value=p.seconds * factors[0] / factors[1],
        formula="t × [2 (m − 1)/m] / [2 (n − 1)/n], from n ranks to m",
        substitution=f"{p.seconds:.6g} × (2 × {p.many - 1}/{p.many}) / (2 × {p.few - 1}/{p.few})",
        source=SOURCE_RING,
    )


def _count_more(p: Draw) -> float:
    """Two rings with the same vector; the rate of the links is whatever makes the small one take the time given."""
    size = 8 * p.few * p.many
    small, large = (counted_ring(drawn(ranks=ranks, size=size, rate=1.0, alpha=0.0))[0] for ranks in (p.few, p.many))
    return float(p.seconds * large / small)


MORE_RANKS = Drill(
    key="ring-more-ranks",
    taught=TAUGHT,
    title="The same ring, with more in it",
    unit="s",
    target_s=60,
    draw=_draw_more,
    small=_small_more,
    prompt=lambda p: (
        f"{p.few} GPUs all-reduce their gradients by a ring in {fmt_seconds(p.seconds)}. The same model then runs on"
        f" {p.many} GPUs, with links as fast as before and latency still negligible. How long does the ring take now?"
    ),
    derive=_derive_more,
    count=_count_more,
    prerequisites=("ring-time",),
    slips=(
        Slip("unchanged", lambda p: p.seconds)
        | "You left the time as it was. That is nearly so between two large rings; the first one here is small.",
        Slip("proportional", lambda p: p.seconds * p.many / p.few)
        | "You let the time grow with the ranks. There are more steps, but each carries a smaller piece.",
        Slip("steps", lambda p: p.seconds * (p.many - 1) / (p.few - 1))
        | "You let the time grow with the steps. What happens to the size of the pieces?",
        Slip("bandwidth-adds-up", lambda p: p.seconds * p.few / p.many)
        | "You let the links add up. Each new link comes with a rank that has a vector of its own.",
        Slip("upside-down", lambda p: p.seconds * ((p.few - 1) / p.few) / ((p.many - 1) / p.many))
        | "You went the wrong way: a rank's share of the sending does not shrink when others join.",
    ),
)

# --- bus bandwidth -------------------------------------------------------------------------------


def _draw_busbw(rng: random.Random) -> Draw:
    ranks, size = rng.choice((5, 6, 8, 12)), rng.choice((1.6, 2.4, 4.8, 6.4)) * GB
    return drawn(ranks=ranks, size=size, seconds=round(size / rng.choice((170, 190, 210, 230)) / GB / ms, 1) * ms)


def _small_busbw(rng: random.Random) -> Draw:
    numbers = small_ring(rng, (5, 6, 8))
    # The time of a ring on links of 90 bytes/s, added up by hand: 2(n − 1) steps of one piece each.
    pieces = [numbers["size"] / numbers["ranks"]] * (2 * int(numbers["ranks"]) - 2)
    return drawn(**numbers | {"rate": 90.0}, seconds=sum(pieces) / 90)


def _count_busbw(p: Draw) -> float:
    """The rate at which each link really worked: the bytes that a rank sent in a simulated ring, over the time."""
    return counted_ring(p)[1][0] / float(p.seconds)


BUSBW = Drill(
    key="busbw",
    taught=TAUGHT,
    title="What the benchmark means by busbw",
    unit="B/s",
    target_s=60,
    draw=_draw_busbw,
    small=_small_busbw,
    prompt=lambda p: (
        f"nccl-tests runs all_reduce_perf on {p.ranks} GPUs: {fmt_bytes(p.size, base=10)} in {p.seconds / ms:.1f} ms."
        " It also prints busbw, which is meant to be compared with the rate of a link. What does it print there?"
    ),
    derive=lambda p: Derivation(
        value=collectives.busbw_bytes_per_s(op="all_reduce", ranks=p.ranks, size_bytes=p.size, seconds=p.seconds),
        formula="S / t × 2 (n − 1)/n",
        substitution=f"{engineering(p.size)} / {p.seconds:.6g} × 2 × {p.ranks - 1}/{p.ranks}",
        source=SOURCE_NCCL_TESTS,
    ),
    count=_count_busbw,
    slips=(
        Slip("algbw", lambda p: p.size / p.seconds)
        | "That is algbw, size over time, which stands beside it. The links carried more than the size.",
        Slip("twice-algbw", lambda p: 2 * p.size / p.seconds)
        | "You doubled size over time. That is right for very many ranks only.",
        Slip("one-phase", lambda p: (p.ranks - 1) / p.ranks * p.size / p.seconds)
        | "That factor belongs to an all-gather or a reduce-scatter. An all-reduce is both, one after the other.",
        Slip("inverted", lambda p: p.size / p.seconds / (2 * (p.ranks - 1) / p.ranks))
        | "You divided by the factor where the links did more work than the size suggests.",
        Slip("all-ranks", lambda p: p.ranks * p.size / p.seconds)
        | "You added up the buffers of all ranks. busbw is about one link.",
    ),
    function=AsFunction(takes=("ranks", "size", "seconds"), limit={"ranks": 2}, limit_case="two ranks"),
)

DRILLS = (MORE_RANKS, BUSBW)

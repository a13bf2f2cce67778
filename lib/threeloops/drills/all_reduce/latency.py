"""Drills on latency: what hundreds of steps cost a small message, and from what size on a ring beats a tree."""

import random

from threeloops.drills.all_reduce.ring import SOURCE_PARTS, engineering, ring
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.training_loop.network import collective_limits
from threeloops.units import GB, MB, fmt_bytes, fmt_seconds, fmt_si, us

TAUGHT = Taught("training", "Data parallelism and all-reduce")

# --- small messages ------------------------------------------------------------------------------


def _small_latency(rng: random.Random) -> Draw:
    ranks = rng.choice((6, 11, 12))
    return drawn(ranks=ranks, size=8 * ranks * rng.choice((2, 3)), alpha=rng.choice((3.0, 4.0)), rate=40.0)


def _count_latency(p: Draw) -> float:
    # numpy, which a reader's own drills do not need
    from threeloops.simulate.training_loop.collectives import simulated

    return simulated(op="all_reduce", algorithm="ring", ranks=p.ranks, elements=p.size // 8).seconds(
        alpha_s=p.alpha, bytes_per_s_one_way=p.rate
    )


LATENCY = Drill(
    key="ring-small-message",
    taught=TAUGHT,
    title="A few megabytes, hundreds of steps",
    unit="s",
    target_s=90,
    draw=lambda rng: drawn(
        ranks=rng.choice((192, 224, 256, 288, 320)),
        size=rng.choice((6, 8, 10, 12)) * MB,
        alpha=rng.choice((4, 5, 6)) * us,
        rate=50 * GB,
    ),
    small=_small_latency,
    prompt=lambda p: (
        f"{p.ranks} GPUs, each behind a link of {fmt_si(p.rate, 'B/s')} one way, all-reduce a bucket of"
        f" {fmt_bytes(p.size, base=10)} by a ring. Starting a message costs {fmt_seconds(p.alpha)}, whatever its size."
        " How long does the all-reduce take?"
    ),
    derive=lambda p: Derivation(
        value=ring(p).total_s,
        formula="2 × (n − 1) × (latency + S / (n × rate))",
        substitution=(
            f"2 × ({p.ranks} − 1) × ({engineering(p.alpha)} + {engineering(p.size)} / ({p.ranks} ×"
            f" {engineering(p.rate)}))"
        ),
        source=SOURCE_PARTS,
    ),
    count=_count_latency,
    prerequisites=("ring-time",),
    slips=(
        Slip("no-latency", lambda p: 2 * (p.ranks - 1) / p.ranks * p.size / p.rate)
        | "You left the latency out, or paid it once. It is due in every step, and this ring has hundreds.",
        Slip(
            "tree-latency",
            lambda p: 2 * (p.ranks - 1).bit_length() * p.alpha + 2 * (p.ranks - 1) / p.ranks * p.size / p.rate,
        )
        | "You gave a ring the latency of a tree. In a ring, news travels from neighbour to neighbour.",
        Slip("one-trip", lambda p: (p.ranks - 1) * (p.alpha + p.size / p.ranks / p.rate))
        | "You went around the ring once. Then every rank has a part of the sum, and no rank has all of it.",
        Slip("latency-only", lambda p: 2 * (p.ranks - 1) * p.alpha)
        | "You left the bytes out. They are the smaller part here, but not nothing.",
        Slip("whole-vector-each-step", lambda p: 2 * (p.ranks - 1) * (p.alpha + p.size / p.rate))
        | "You passed the whole bucket on in every step. The ring cuts it into pieces, one per rank.",
        Slip("latency-of-one-trip", lambda p: (p.ranks - 1) * p.alpha + 2 * (p.ranks - 1) / p.ranks * p.size / p.rate)
        | "You counted the bytes of both trips around the ring, but the latency of one.",
    ),
    function=AsFunction(
        takes=("ranks", "size", "alpha", "rate"),
        limit={"ranks": 1},
        limit_case="a single GPU, which has no other GPU's gradients to add",
    ),
)

# --- ring or tree --------------------------------------------------------------------------------


def _derive_crossover(p: Draw) -> Derivation:
    at = collective_limits.crossover(
        op="all_reduce",
        algorithms=("ring", "binomial-tree"),
        ranks=p.ranks,
        alpha_s=p.alpha,
        bytes_per_s_one_way=p.rate,
    )
    levels = (p.ranks - 1).bit_length()
    return Derivation(
        value=at.size_bytes,
        formula="S where 2 (n − 1) (latency + S / (n × rate)) = 2 levels × (latency + S / rate), with levels = log2(n)",
        substitution=(
            f"(2 × {p.ranks - 1} − 2 × {levels}) × {engineering(p.alpha)} × {engineering(p.rate)} / (2 × {levels} − 2 ×"
            f" {p.ranks - 1}/{p.ranks})"
        ),
        source=SOURCE_PARTS,
    )


def _count_crossover(p: Draw) -> float:
    """Both algorithms with two sizes each, a straight line through either pair of times, and where the lines meet."""
    # numpy, which a reader's own drills do not need
    from threeloops.simulate.training_loop.collectives import simulated

    lines = []
    for algorithm in ("ring", "binomial-tree"):
        runs = [
            simulated(op="all_reduce", algorithm=algorithm, ranks=p.ranks, elements=elements)
            for elements in (p.ranks, 3 * p.ranks)
        ]
        near, far = (run.seconds(alpha_s=p.alpha, bytes_per_s_one_way=p.rate) for run in runs)
        slope = (far - near) / (8 * 2 * p.ranks)
        lines.append((near - slope * 8 * p.ranks, slope))
    (ring_start, ring_slope), (tree_start, tree_slope) = lines
    return float((ring_start - tree_start) / (tree_slope - ring_slope))


def _meeting(p: Draw, ring_line: tuple[float, float], tree_line: tuple[float, float]) -> float:
    """Where two lines meet; each is (messages one after the other, multiples of S one after the other)."""
    return float((ring_line[0] - tree_line[0]) / (tree_line[1] - ring_line[1]) * p.alpha * p.rate)


def _levels(p: Draw) -> int:
    return int(p.ranks - 1).bit_length()


CROSSOVER = Drill(
    key="ring-or-tree",
    taught=TAUGHT,
    title="From what size on the ring wins",
    unit="B",
    target_s=180,
    draw=lambda rng: drawn(
        ranks=rng.choice((32, 64, 128)), alpha=rng.randrange(3, 10) * us, rate=rng.choice((25, 50, 100)) * GB
    ),
    small=lambda rng: drawn(ranks=rng.choice((8, 16)), alpha=rng.choice((2.0, 3.0)), rate=rng.choice((50.0, 80.0))),
    prompt=lambda p: (
        f"{p.ranks} GPUs can all-reduce by a ring, or by a tree: pairs add up the whole vector level by level until one"
        f" rank has the sum, and send it back the same way. A message costs {fmt_seconds(p.alpha)} and then travels at"
        f" {fmt_si(p.rate, 'B/s')}. Small vectors go faster by the tree. From what size on is the ring faster?"
    ),
    derive=_derive_crossover,
    count=_count_crossover,
    prerequisites=("ring-small-message",),
    slips=(
        Slip(
            "tree-one-way",
            lambda p: _meeting(p, (2 * (p.ranks - 1), 2 * (p.ranks - 1) / p.ranks), (_levels(p), _levels(p))),
        )
        | "Your tree only went up. The sum has to come down to every rank again.",
        Slip(
            "ring-one-trip",
            lambda p: _meeting(p, (p.ranks - 1, (p.ranks - 1) / p.ranks), (2 * _levels(p), 2 * _levels(p))),
        )
        | "Your ring went around once. Then every rank has a part of the sum, and no rank has all of it.",
        Slip("ring-moves-nothing", lambda p: _meeting(p, (2 * (p.ranks - 1), 0), (2 * _levels(p), 2 * _levels(p))))
        | "You let the ring's bytes travel for nothing. Each rank sends nearly twice the vector over its link.",
        Slip("latency-of-one-step", lambda p: p.alpha * p.rate * p.ranks)
        | "You looked for the size at which a ring step spends as long on its piece as on its latency. The tree"
        " has not entered into that.",
        Slip("one-message", lambda p: p.alpha * p.rate)
        | "You looked for the message that travels as long as it takes to start. Compare the two whole algorithms"
        " instead.",
    ),
)

DRILLS = (LATENCY, CROSSOVER)

"""Drills on who belongs together: replicas of a layout, the far end of a group, and the largest tensor group that a
model and a node allow.
"""

import itertools
import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions
from threeloops.models.parameters import weights_bytes
from threeloops.training_loop.parallelism import layouts, pipelines, placement, tensor_parallel
from threeloops.units import billion

TAUGHT = Taught("training", "Experts, contexts and hybrids")
SOURCE_GRID = "Narayanan et al., 2021, arXiv:2104.04473, section 3 (p · t · d = n)"
SOURCE_ORDER = "Megatron Core, parallel_state.py, 2025 (ranks in the order tp, cp, dp, pp)"

# --- replicas ------------------------------------------------------------------------------------


# Grids in which no two mistakes look alike.
_GRIDS = (
    (4, 6, 3),
    (4, 7, 2),
    (4, 9, 2),
    (8, 5, 3),
    (8, 6, 3),
    (8, 9, 2),
    (8, 10, 3),
    (8, 12, 2),
    (4, 12, 2),
    (8, 7, 3),
)


def _draw_replicas(rng: random.Random) -> Draw:
    tp, pp, cp = rng.choice(_GRIDS)
    replicas = rng.choice((11, 13, 14, 17, 19, 21, 22, 23, 26, 27, 29, 31, 33, 34, 37))
    return drawn(
        tp=tp, pp=pp, cp=cp, gpus=tp * pp * cp * replicas, size=rng.choice((3, 4, 6)), runs=rng.choice((20, 30, 45))
    )


def _small_replicas(rng: random.Random) -> Draw:
    tp, pp, cp = rng.choice((2, 4)), rng.choice((3, 5)), rng.choice((2, 3))
    return drawn(
        tp=tp, pp=pp, cp=cp, gpus=tp * pp * cp * rng.choice((4, 6, 7)), size=rng.choice((3, 4)), runs=rng.choice((3, 5))
    )


def _count_replicas(p: Draw) -> float:
    """Deal the pieces of the first weight matrix and of the sequence out to the GPUs in turn, and count who gets the
    first piece of both.
    """
    pieces = itertools.cycle(itertools.product(range(p.tp), range(p.cp), range(p.pp)))
    replicas = sum(piece == (0, 0, 0) for piece in itertools.islice(pieces, p.gpus))
    return float(sum(p.size for _replica in range(replicas) for _run in range(p.runs)))


def _replicas(p: Draw) -> int:
    return int(p.gpus // placement.num_gpus(order=(("tp", p.tp), ("cp", p.cp), ("pp", p.pp))))


REPLICAS = Drill(
    key="layout-replicas",
    taught=TAUGHT,
    title="How many models train",
    unit="",
    whole="exact",
    target_s=45,
    draw=_draw_replicas,
    small=_small_replicas,
    prompt=lambda p: (
        f"{p.gpus:,} GPUs train one model: tensor parallelism of {p.tp}, a pipeline of {p.pp} stages, each sequence cut"
        f" over {p.cp} context-parallel ranks, and data parallelism over what is left. A replica runs {p.runs}"
        f" micro-batches of {p.size} sequences per optimiser step. How many sequences make one optimiser step?"
    ),
    derive=lambda p: Derivation(
        value=float(pipelines.global_batch(micro_batch=p.size, micro_batches=p.runs, dp=_replicas(p))),
        formula="GPUs / (tensor × pipeline × context) replicas × micro-batches × sequences in each",
        substitution=f"{p.gpus} / ({p.tp} × {p.pp} × {p.cp}) × {p.runs} × {p.size}",
        source=SOURCE_GRID,
    ),
    count=_count_replicas,
    slips=(
        Slip("context-multiplies", lambda p: p.gpus / (p.tp * p.pp) * p.size * p.runs)
        | "You took context-parallel ranks for replicas. They work on pieces of the same sequence.",
        Slip("stages-multiply", lambda p: p.gpus / (p.tp * p.cp) * p.size * p.runs)
        | "You took pipeline stages for replicas. All stages work on the same sequences, one after another.",
        Slip("every-gpu", lambda p: float(p.gpus * p.size * p.runs))
        | "You gave every GPU sequences of its own. A replica is a whole group of them.",
        Slip("degrees-added", lambda p: p.gpus / (p.tp + p.pp + p.cp) * p.size * p.runs)
        | "You added the degrees. Every tensor rank stands in every stage: they form a grid.",
        Slip("one-micro-batch", lambda p: float(_replicas(p) * p.size))
        | "You stepped after one micro-batch. Their gradients are added up first.",
    ),
)

# --- the far end of a group ----------------------------------------------------------------------


def _draw_far(rng: random.Random) -> Draw:
    tp, cp, dp, pp = rng.choice((4, 8)), rng.choice((2, 3)), rng.choice((5, 6, 7, 9)), rng.choice((4, 6))
    stage = rng.choice((1, 2)) if dp < 7 else 1
    own = rng.randrange(1, 3)  # an early replica, so that the far end is far
    rank = ((stage * dp + own) * cp + rng.randrange(1, cp)) * tp + rng.randrange(1, tp)
    return drawn(tp=tp, cp=cp, dp=dp, pp=pp, rank=rank)


def _far(p: Draw) -> int:
    inner, stage = p.rank % (p.tp * p.cp), p.rank // (p.tp * p.cp * p.dp)
    return int((stage * p.dp + p.dp - 1) * p.tp * p.cp + inner)


def _count_far(p: Draw) -> float:
    """Number all places by nested loops, and take the last that differs from ours in the replica alone."""
    places = list(itertools.product(range(p.pp), range(p.dp), range(p.cp), range(p.tp)))
    own = places[p.rank]
    return float(max(rank for rank, place in enumerate(places) if place[0] == own[0] and place[2:] == own[2:]))


FAR_END = Drill(
    key="layout-last-of-the-group",
    taught=TAUGHT,
    title="Who gets the same gradients",
    unit="",
    whole="exact",
    target_s=120,
    draw=_draw_far,
    small=_draw_far,
    prompt=lambda p: (
        f"{p.tp * p.cp * p.dp * p.pp} ranks, numbered from 0, train with tensor parallelism of {p.tp}, context"
        f" parallelism of {p.cp}, {p.dp} replicas and {p.pp} stages. Numbers run through the tensor group first, then"
        f" the context group, then the replicas, and through the stages last. Rank {p.rank} adds up gradients with the"
        " ranks that hold the same weights and the same piece of other sequences. Which is the highest number among"
        " them?"
    ),
    derive=lambda p: Derivation(
        value=float(layouts.rank_group("dp", rank=p.rank, layout=_layout(p))[-1]),
        formula="whole stages before it + (replicas − 1) × tensor × context + own place inside a replica",
        substitution=(
            f"{p.rank // (p.tp * p.cp * p.dp)} × {p.tp * p.cp * p.dp} + ({p.dp} − 1) × {p.tp} × {p.cp} +"
            f" {p.rank % (p.tp * p.cp)}"
        ),
        source=SOURCE_ORDER,
    ),
    count=_count_far,
    slips=(
        Slip(
            "no-context",
            lambda p: p.rank // (p.tp * p.cp * p.dp) * p.tp * p.cp * p.dp + (p.dp - 1) * p.tp + p.rank % (p.tp * p.cp),
        )
        | "You stepped from replica to replica by the tensor group alone. What else lies inside a replica's"
        " stage?",
        Slip("across-stages", lambda p: ((p.pp - 1) * p.dp + p.dp - 1) * p.tp * p.cp + p.rank % (p.tp * p.cp))
        | "You went on to the last stage. Ranks of other stages hold other weights.",
        Slip("first-stage", lambda p: (p.dp - 1) * p.tp * p.cp + p.rank % (p.tp * p.cp))
        | "You forgot which stage the rank is in.",
        Slip("one-too-far", lambda p: _far(p) + p.tp * p.cp) | "You went one replica too far: they count from 0, too.",
    ),
    function=AsFunction(
        takes=("rank", "tp", "cp", "dp", "pp"),
        limit={"dp": 1, "rank": 7},
        limit_case="a single replica, whose ranks have no gradients of others to add",
    ),
)


def _layout(p: Draw) -> layouts.Layout:
    return layouts.Layout(
        dp=p.dp,
        tp=p.tp,
        pp=p.pp,
        cp=p.cp,
        ep=1,
        micro_batch=1,
        zero_stage=0,
        recompute="none",
        schedule="1f1b",
        chunks=1,
    )


# --- the largest tensor group -------------------------------------------------------------------

_HEADS = (
    (8, 28, 4),
    (16, 56, 8),
    (16, 36, 4),
    (8, 20, 4),
    (8, 30, 10),
    (12, 55, 5),
    (8, 42, 6),
    (72, 96, 8),
    (36, 60, 10),
    (16, 60, 12),
)


def _draw_largest(rng: random.Random) -> Draw:
    domain, heads, kv_heads = rng.choice(_HEADS)
    return drawn(
        domain=domain,
        heads=heads,
        kv_heads=kv_heads,
        pp=rng.choice((3, 6)),
        parameters=rng.choice(range(20, 190, 3)) * billion,
    )


def _largest(p: Draw) -> int:
    return tensor_parallel.largest_tensor_group(num_heads=p.heads, num_kv_heads=p.kv_heads, domain_gpus=p.domain)


def _largest_by_heads(p: Draw) -> int:
    return max(n for n in range(1, p.domain + 1) if p.heads % n == 0)


def _count_largest(p: Draw) -> float:
    """Try every group of GPUs of the domain: deal both kinds of heads out one by one, and take the largest group
    whose members have equally many.
    """
    best = 1
    for ranks in range(1, p.domain + 1):
        hands = [[0, 0] for _ in range(ranks)]
        for kind, number in enumerate((p.heads, p.kv_heads)):
            for head in range(number):
                hands[head % ranks][kind] += 1
        if all(hand == hands[0] and min(hand) > 0 for hand in hands):
            best = ranks
    return float(2 * p.parameters / best / p.pp)


LARGEST = Drill(
    key="layout-largest-tensor-group",
    taught=TAUGHT,
    title="Heads decide, and the node",
    unit="B",
    target_s=90,
    capacity=True,
    draw=_draw_largest,
    small=lambda rng: drawn(**vars(_draw_largest(rng)) | {"parameters": rng.choice((9000, 12000))}),
    prompt=lambda p: (
        f"A model of {billions(p.parameters)} parameters has {p.heads} query heads and {p.kv_heads} KV heads per layer;"
        f" its widths can be cut in any way. {p.domain} GPUs share fast links, and a tensor group must not leave them."
        " Every tensor rank gets the same number of whole query heads and of whole KV heads, of which none is held"
        f" twice. The group is as large as all that allows; besides, there are {p.pp} even pipeline stages. How many"
        " bytes of bf16 weights does one GPU hold?"
    ),
    derive=lambda p: Derivation(
        value=weights_bytes(num_parameters=p.parameters, dtype="bf16") / _largest(p) / p.pp,
        formula=(
            "2 bytes × parameters / (largest common divisor of both kinds of heads that fits into the domain × stages)"
        ),
        substitution=f"2 × {p.parameters:.12g} / {_largest(p)} / {p.pp}",
        source=(
            "Shoeybi et al., 2019, arXiv:1909.08053, section 3 (heads are split); Ainslie et al., 2023,"
            " arXiv:2305.13245 (KV heads)"
        ),
    ),
    count=_count_largest,
    slips=(
        Slip("whole-domain", lambda p: 2 * p.parameters / p.domain / p.pp)
        | "You used every GPU on the fast links. Can the heads be dealt out to so many?",
        Slip("query-heads-only", lambda p: 2 * p.parameters / _largest_by_heads(p) / p.pp)
        | "Your group suits the query heads. There is another kind of head, and fewer of it.",
        Slip("no-stages", lambda p: 2 * p.parameters / _largest(p))
        | "You left the pipeline out: no GPU holds all layers.",
        Slip("fp32", lambda p: 4 * p.parameters / _largest(p) / p.pp) | "You took 4 bytes for a weight.",
    ),
    function=AsFunction(
        takes=("parameters", "pp", "heads", "kv_heads", "domain"),
        limit={"domain": 1},
        limit_case="a GPU without fast links to any other",
    ),
)

DRILLS = (REPLICAS, FAR_END, LARGEST)

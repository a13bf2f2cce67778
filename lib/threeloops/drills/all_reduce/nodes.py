"""Drills on links that are not alike: fast ones inside a node, slow ones between nodes, and network cards that
several GPUs share.
"""

import random

from threeloops.drills.all_reduce.ring import SOURCE_PARTS, engineering, ring
from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.training_loop.network import collectives
from threeloops.units import BITS_PER_BYTE, GB, fmt_bytes, fmt_si

TAUGHT = Taught("training", "Network and cluster")

SOURCE_LEVELS = f"{SOURCE_PARTS} (the phases); NVIDIA nccl-tests, doc/PERFORMANCE.md, read in 2026 (rate of a rank)"

# --- two levels of links -------------------------------------------------------------------------


LEVELS = (
    ("nvlink-3", "infiniband-hdr", "A100"),
    ("nvlink-4", "infiniband-ndr", "H100"),
    ("nvlink-5", "infiniband-ndr", "B200"),
)


def _draw_levels(rng: random.Random) -> Draw:
    inside, between, gpu = rng.choice(LEVELS)
    rates = {
        "inside": catalogued.part(inside)["bytes_per_s_one_way"],
        "between": catalogued.part(between)["bytes_per_s_one_way"],
    }
    return drawn(
        **rates,
        gpu=gpu,
        card=catalogued.part(between).name,
        per_node=8,
        nodes=rng.choice((3, 6)),
        size=rng.randrange(12, 72, 4) / 10 * GB,
    )


def _small_levels(rng: random.Random) -> Draw:
    nodes, per_node = rng.choice(((3, 2), (2, 3), (3, 4)))
    return drawn(
        inside=90.0, between=rng.choice((20.0, 30.0)), per_node=per_node, nodes=nodes, size=8 * nodes * per_node * 2
    )


def _levels_time(p: Draw) -> collectives.HierarchicalTime:
    return collectives.hierarchical_all_reduce(
        size_bytes=p.size,
        nodes=p.nodes,
        ranks_per_node=p.per_node,
        intra_alpha_s=0,
        intra_bytes_per_s_one_way=p.inside,
        inter_alpha_s=0,
        inter_bytes_per_s_one_way_per_rank=p.between,
        inter_algorithm="ring",
    )


def _derive_levels(p: Draw) -> Derivation:
    inside = f"2 × {p.per_node - 1}/{p.per_node} × {engineering(p.size)} / {engineering(p.inside)}"
    between = f"2 × {p.nodes - 1}/{p.nodes} × ({engineering(p.size)} / {p.per_node}) / {engineering(p.between)}"
    return Derivation(
        value=_levels_time(p).total_s,
        formula="2 (g − 1)/g × S / rate inside + 2 (N − 1)/N × (S / g) / rate between, with g GPUs in each of N nodes",
        substitution=f"{inside} + {between}",
        source=SOURCE_LEVELS,
    )


def _count_levels(p: Draw) -> float:
    # numpy, which a reader's own drills do not need
    from threeloops.simulate.training_loop.collectives import random_vectors
    from threeloops.simulate.training_loop.ring import hierarchical_all_reduce

    run = hierarchical_all_reduce(
        random_vectors(ranks=p.nodes * p.per_node, elements=p.size // 8, seed=0), ranks_per_node=p.per_node
    )
    return run.seconds_over(
        lambda source, target: (0.0, p.inside if source // p.per_node == target // p.per_node else p.between)
    )


TWO_LEVELS = Drill(
    key="two-level-all-reduce",
    taught=TAUGHT,
    title="Inside the node, then between nodes",
    unit="s",
    target_s=150,
    draw=_draw_levels,
    small=_small_levels,
    prompt=lambda p: (
        f"{p.nodes} nodes of {p.per_node} {p.gpu} all-reduce {fmt_bytes(p.size, base=10)} per GPU in three phases:"
        f" reduce-scatter inside each node over NVLink at {fmt_si(p.inside, 'B/s')}; ring all-reduces between the"
        f" nodes, each GPU over its own {p.card} card at {fmt_si(p.between, 'B/s')}; all-gather inside each node. Rates"
        " are per GPU and one way, latency is negligible, nothing overlaps. How long does it take?"
    ),
    derive=_derive_levels,
    count=_count_levels,
    prerequisites=("ring-time", "reduce-scatter"),
    slips=(
        Slip("whole-vector-between", lambda p: _levels_time(p).intra_s + p.per_node * _levels_time(p).inter_s)
        | "You sent the whole vector between the nodes on every card. After the first phase each GPU is"
        " responsible for a part of it only.",
        Slip("one-flat-ring", lambda p: 2 * (1 - 1 / (p.nodes * p.per_node)) * p.size / p.between)
        | "That is one ring of all GPUs at the pace of its slowest link. The three phases exist to keep most"
        " bytes off that link.",
        Slip("between-only", lambda p: _levels_time(p).inter_s)
        | "You left out the phases inside the nodes. NVLink is fast, but it carries the whole vector.",
        Slip("inside-only", lambda p: _levels_time(p).intra_s)
        | "You left out what happens between the nodes. The parts are small by then, and so is the rate.",
        Slip("all-reduce-in-each-phase", lambda p: 2 * _levels_time(p).intra_s + _levels_time(p).inter_s)
        | "You ran a whole all-reduce inside the node before and after. Each of the two phases is half of one.",
    ),
    function=AsFunction(
        takes=("size", "nodes", "per_node", "inside", "between"), limit={"nodes": 1}, limit_case="a single node"
    ),
)

# --- several cards, several GPUs -----------------------------------------------------------------


def _draw_cards(rng: random.Random) -> Draw:
    sizes = {"nodes": 5, "per_node": 6, "cards": rng.choice((2, 4)), "gigabits": rng.choice((100, 200, 400))}
    return drawn(**sizes, size=rng.randrange(5, 28, 2) / 10 * GB)


def _rate(p: Draw) -> float:
    """One GPU's share of its node's cards, in bytes per second."""
    return float(p.cards * p.gigabits * GB / BITS_PER_BYTE / p.per_node)


def _ring_between(p: Draw, rate: float) -> float:
    return ring(drawn(ranks=p.nodes, size=p.size, alpha=0, rate=rate)).total_s


def _count_cards(p: Draw) -> float:
    """All rings at once, message by message: in every step the node's cards together carry what each of its GPUs
    sends.
    """
    # numpy, which a reader's own drills do not need
    from threeloops.simulate.training_loop.collectives import simulated

    run = simulated(op="all_reduce", algorithm="ring", ranks=p.nodes, elements=p.size // 8)
    bits_per_s = sum(p.gigabits * GB for _ in range(p.cards))
    bits_of_first_node = sum(
        sum(8 * message.num_bytes for _ in range(p.per_node)) for message in run.messages if message.source == 0
    )
    return float(bits_of_first_node / bits_per_s)


CARDS = Drill(
    key="shared-network-cards",
    taught=TAUGHT,
    title="Six GPUs, fewer cards",
    unit="s",
    target_s=120,
    draw=_draw_cards,
    small=lambda rng: drawn(
        nodes=5,
        per_node=rng.choice((3, 6)),
        cards=rng.choice((2, 4)),
        gigabits=rng.choice((100, 200)),
        size=80 * rng.choice((1, 2)),
    ),
    prompt=lambda p: (
        f"Each of {p.nodes} nodes has {p.per_node} GPUs, which share {p.cards} network cards of {p.gigabits} Gbit/s one"
        f" way. Every GPU holds {fmt_bytes(p.size, base=10)} and all-reduces it by a ring with the GPUs in the same"
        f" place of the other nodes: {p.per_node} rings of {p.nodes}, all at the same time. Latency is negligible. How"
        " long does it take?"
    ),
    derive=lambda p: Derivation(
        value=_ring_between(p, _rate(p)),
        formula="2 × (N − 1)/N × S / (cards × bit/s / 8 / GPUs)",
        substitution=(
            f"2 × {p.nodes - 1}/{p.nodes} × {engineering(p.size)} / ({p.cards} × {p.gigabits}e9 / 8 / {p.per_node})"
        ),
        source=SOURCE_LEVELS,
    ),
    count=_count_cards,
    prerequisites=("ring-time",),
    slips=(
        Slip("bits-as-bytes", lambda p: _ring_between(p, BITS_PER_BYTE * _rate(p)))
        | "You read the cards' Gbit/s as GB/s. Networks are sold in bits.",
        Slip("whole-node-each", lambda p: _ring_between(p, p.per_node * _rate(p)))
        | "You gave every GPU all of its node's cards. The rings run at the same time and share them.",
        Slip("a-card-each", lambda p: _ring_between(p, p.per_node / p.cards * _rate(p)))
        | "You gave every GPU a card of its own. Count the cards.",
        Slip("one-card", lambda p: _ring_between(p, _rate(p) / p.cards))
        | "You sent everything through one card. There are more.",
        Slip("half", lambda p: _ring_between(p, 2 * _rate(p)))
        | "Half of it: either you went around the ring once, or you added the two directions of the cards. A rank"
        " sends in one of them.",
        Slip("ten-bits", lambda p: _ring_between(p, _rate(p) * BITS_PER_BYTE / 10))
        | "You divided the bits by ten. Old links sent ten bits for every byte; the rate of these cards is that"
        " of the data.",
    ),
)

DRILLS = (TWO_LEVELS, CARDS)

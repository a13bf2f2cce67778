"""Drills on networks of switches: a thin upper tier, a detour through host memory, and a brochure's total taken
apart.
"""

import itertools
import random
from collections import Counter

from threeloops.drills.all_reduce.ring import engineering
from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.training_loop.network import fabric
from threeloops.units import GB, TB, fmt_bytes, fmt_si

TAUGHT = Taught("training", "Network and cluster")
SOURCE_FABRIC = (
    "Dally and Towles, Principles and Practices of Interconnection Networks, 2004, section 3.3 (the load of a channel"
    " bounds the throughput)"
)
SOURCE_GPUDIRECT = "NVIDIA, GPUDirect RDMA documentation (transfers with and without), read in 2026"

# --- a thin upper tier ---------------------------------------------------------------------------


def _draw_taper(rng: random.Random) -> Draw:
    leaves, taper = rng.choice(((3, 4), (4, 3), (5, 3), (5, 4), (6, 4)))
    return drawn(
        leaves=leaves,
        taper=taper,
        below=rng.choice((6, 9, 12)),
        rate=rng.choice((25, 50)) * GB,
        size=rng.randrange(7, 40, 3) / 10 * GB,
    )


def _ranks(p: Draw) -> int:
    return int(p.leaves * p.below)


def _up(p: Draw) -> float:
    """Share of a buffer that goes to other leaves."""
    return float((p.leaves - 1) / p.leaves)


def _count_taper(p: Draw) -> float:
    # the simulators are not loaded for a reader's own drills
    from threeloops.simulate.training_loop import fabric as played

    spines = 2
    net = played.Fabric(
        nodes=p.leaves, gpus_per_node=p.below, nodes_per_leaf=1, spines=spines, wiring="by-node", through_nvlink=False
    )
    flows = played.all_to_all(list(range(net.gpus)), p.size)
    return net.seconds(
        flows,
        card_bytes_per_s=p.rate,
        uplink_bytes_per_s=p.below * p.rate / p.taper / spines,
        nvlink_bytes_per_s=p.rate,
    )


TAPER = Drill(
    key="network-thin-top",
    taught=TAUGHT,
    title="An all-to-all through a thin top",
    unit="s",
    target_s=120,
    draw=_draw_taper,
    small=lambda rng: drawn(
        leaves=rng.choice((3, 4)), below=rng.choice((2, 3)), taper=rng.choice((2, 3)), rate=60.0, size=720.0
    ),
    prompt=lambda p: (
        f"{p.leaves} leaf switches have {p.below} GPUs each, every GPU with a card of {fmt_si(p.rate, 'B/s')} each way."
        f" Upwards a leaf has {p.taper} times less bandwidth than downwards. All {_ranks(p)} GPUs run one all-to-all"
        f" over the network: each cuts {fmt_bytes(p.size, base=10)} into equal parts, one for every GPU, itself"
        " included. Latency is negligible and the load is spread evenly over all spines. How long does it take?"
    ),
    derive=lambda p: Derivation(
        value=fabric.all_to_all_s(
            size_bytes=p.size,
            leaves=p.leaves,
            gpus_per_leaf=p.below,
            oversubscription=p.taper,
            bytes_per_s_one_way=p.rate,
        ),
        formula="share that changes leaf × S × taper / B (the GPUs' own links are done sooner)",
        substitution=f"{p.leaves - 1}/{p.leaves} × {engineering(p.size)} × {p.taper} / {engineering(p.rate)}",
        source=SOURCE_FABRIC,
    ),
    count=_count_taper,
    slips=(
        Slip("full-tree", lambda p: (_ranks(p) - 1) / _ranks(p) * p.size / p.rate)
        | "You stopped at the GPUs' own links. Which links do they share?",
        Slip("everything-up", lambda p: p.taper * p.size / p.rate)
        | "You sent everything to the spines. Some of it stays below its leaf.",
        Slip("taper-forgotten-up", lambda p: _up(p) * p.size / p.rate / p.taper)
        | "You made the upper links wider than the lower ones. They are narrower.",
        Slip("only-home", lambda p: (1 - _up(p)) * p.size * p.taper / p.rate)
        | "You counted the part that stays at home. Who crosses the thin links?",
        Slip("both-ways", lambda p: 2 * _up(p) * p.size * p.taper / p.rate)
        | "You added what comes down to what goes up. A link does both at the same time.",
    ),
)

# --- a detour through host memory ----------------------------------------------------------------


def _draw_detour(rng: random.Random) -> Draw:
    bus, card = rng.choice(
        (("pcie-4-x16", "infiniband-hdr"), ("pcie-5-x16", "infiniband-ndr"), ("pcie-6-x16", "infiniband-xdr"))
    )
    rates = {"bus": catalogued.part(bus)["bytes_per_s_one_way"], "card": catalogued.part(card)["bytes_per_s_one_way"]}
    pairs = rng.choice((2, 3, 4))
    return drawn(
        **rates,
        bus_name=catalogued.part(bus).name,
        pairs=pairs,
        senders=pairs * rng.choice((3, 5, 6, 7, 9, 11, 13)),
        seconds=rng.choice((2, 3, 4)),
    )


def _each(p: Draw) -> float:
    return float(p.bus / (2 * p.pairs))


def _count_detour(p: Draw) -> float:
    """Walk one unit out of and one into every GPU, and count how often the shared link is used upwards."""
    hops: Counter[tuple[str, str]] = Counter()
    for _pair in range(p.pairs):
        out_of = ["GPU", "switch", "host", "switch", "card"]
        for way in (out_of, out_of[::-1]):
            hops.update(itertools.pairwise(way))
    crossings = max(count for (start, end), count in hops.items() if "host" in (start, end))
    return float(p.senders * p.seconds * p.bus / crossings)


def _sent(p: Draw, rate: float) -> float:
    return float(p.senders * p.seconds * rate)


DETOUR = Drill(
    key="network-host-detour",
    taught=TAUGHT,
    title="Without GPUDirect",
    unit="B",
    target_s=120,
    draw=_draw_detour,
    small=lambda rng: drawn(bus=120.0, card=100.0, pairs=rng.choice((2, 3, 4)), senders=3, seconds=2, bus_name="bus"),
    prompt=lambda p: (
        f"{p.pairs} GPUs and {p.pairs} network cards of {fmt_si(p.card, 'B/s')} each way hang on one PCIe switch. A"
        f" single {p.bus_name} link of {fmt_si(p.bus, 'B/s')} each way joins that switch to the processor. GPUDirect"
        " RDMA is off: whatever a card sends or receives passes through host memory. All cards send and receive at the"
        f" same time, as fast as the links allow. How many bytes do {p.senders} GPUs on {p.senders // p.pairs} such"
        f" switches send out together in {p.seconds} s?"
    ),
    derive=lambda p: Derivation(
        value=_sent(p, fabric.slowest_link({"shared link": _each(p), "card": p.card})[1]),
        formula=(
            "GPUs × seconds × link / (2 × cards): on the way up the link carries what the cards will send, and what"
            " they have received"
        ),
        substitution=f"{p.senders} × {p.seconds} × {engineering(p.bus)} / (2 × {p.pairs})",
        source=SOURCE_GPUDIRECT,
    ),
    count=_count_detour,
    slips=(
        Slip("cards-rate", lambda p: _sent(p, p.card))
        | "You let the cards run at their own rate. What lies between them and the GPUs?",
        Slip("sending-only", lambda p: _sent(p, p.bus / p.pairs))
        | "You let the link carry the bytes that are sent. What is received takes the same detour.",
        Slip("own-link", lambda p: _sent(p, p.bus)) | "You gave every GPU the link to the processor. They share it.",
        Slip("all-one-direction", lambda p: _sent(p, p.bus / (4 * p.pairs)))
        | "You added what goes down to what goes up. The link has its rate in each direction.",
        Slip("in-bits", lambda p: _sent(p, _each(p) / 8))
        | "You divided by eight once too often. The rate is in bytes already.",
    ),
)

# --- a brochure's total --------------------------------------------------------------------------


def _draw_total(rng: random.Random) -> Draw:
    gpus, per_gpu = rng.choice((24, 36, 48, 64, 72, 96)), rng.choice((0.6, 0.9, 1.8))
    return drawn(
        gpus=gpus, total=round(gpus * per_gpu, 1) * TB, taper=rng.choice((3, 4)), size=rng.randrange(12, 90, 6) * GB
    )


def _half_rate(p: Draw) -> float:
    return float(p.total / p.gpus / 2 / p.taper)


def _count_total(p: Draw) -> float:
    # the simulators are not loaded for a reader's own drills
    from threeloops.simulate.training_loop import fabric as played

    half = p.gpus // 2
    one_way = sum([p.total / p.gpus] * half) / half / 2
    net = played.Fabric(nodes=2, gpus_per_node=half, nodes_per_leaf=1, spines=1, wiring="by-node", through_nvlink=False)
    flows = [played.Flow(gpu, gpu + half, p.size) for gpu in range(half)] + [
        played.Flow(gpu + half, gpu, p.size) for gpu in range(half)
    ]
    return net.seconds(
        flows, card_bytes_per_s=one_way, uplink_bytes_per_s=half * one_way / p.taper, nvlink_bytes_per_s=one_way
    )


TOTAL = Drill(
    key="network-brochure-total",
    taught=TAUGHT,
    title="What a brochure's total is worth",
    unit="s",
    target_s=90,
    draw=_draw_total,
    small=lambda rng: drawn(gpus=rng.choice((4, 6, 8)), total=4800.0, taper=rng.choice((2, 3)), size=600.0),
    prompt=lambda p: (
        f"A brochure gives {p.gpus} GPUs a total link bandwidth of {p.total / TB:.1f} TB/s: all GPUs added up, both"
        " directions. Half of the GPUs sit below one group of switches, half below another, and between the groups the"
        f" network is tapered {p.taper}:1. Every GPU of each half sends {fmt_bytes(p.size, base=10)} to a partner in"
        " the other half, all at the same time. Latency is negligible. How long does it take?"
    ),
    derive=lambda p: Derivation(
        value=p.gpus
        / 2
        * p.size
        / fabric.bisection_bytes_per_s(
            num_gpus=p.gpus, bytes_per_s_one_way=p.total / p.gpus / 2, oversubscription=p.taper
        ),
        formula="S × taper / (total / GPUs / 2)",
        substitution=f"{engineering(p.size)} × {p.taper} / ({engineering(p.total)} / {p.gpus} / 2)",
        source=SOURCE_FABRIC,
    ),
    count=_count_total,
    slips=(
        Slip("advertised", lambda p: p.size / (2 * _half_rate(p)))
        | "You used the sum of both directions. Each transfer goes one way.",
        Slip("no-taper", lambda p: p.size / (p.taper * _half_rate(p)))
        | "You gave every GPU its own link all the way. Not all of it goes up.",
        Slip("neither", lambda p: p.size / (2 * p.taper * _half_rate(p)))
        | "You divided the total by the GPUs and left it there. Which way is it counted, and what lies between"
        " the halves?",
        Slip("halved-twice", lambda p: 2 * p.size / _half_rate(p))
        | "You halved once more than there is reason to: both halves send at the same time, each in its own"
        " direction.",
        Slip("whole-total", lambda p: p.size / p.total) | "You gave one transfer the links of all GPUs.",
    ),
)

DRILLS = (TAPER, DETOUR, TOTAL)

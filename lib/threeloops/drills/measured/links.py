"""Drills on what a bus bandwidth is held against: a link inside a node, and a card between nodes."""

import functools
import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, drawn
from threeloops.drills.engine.phrasing import giga
from threeloops.drills.measured.exchanges import CLUSTER, SOURCE_NCCL_TESTS
from threeloops.drills.measured.rows import TimedCall, chosen, took
from threeloops.facts.printed_rates import NodeExchange, node_exchanges
from threeloops.training_loop.network import collectives
from threeloops.units import MiB, fmt_bytes, fmt_si

# --- a link and what it is held against ------------------------------------------------------------

OPS = {"all_gather": "an all-gather", "reduce_scatter": "a reduce-scatter", "all_to_all": "an all-to-all"}
MEANS = {
    "all_gather": "what each GPU holds afterwards",
    "reduce_scatter": "what each GPU brings",
    "all_to_all": "what each GPU brings, its own part included",
}


@functools.cache
def _collectives() -> tuple[tuple[str, TimedCall], ...]:
    def asked(call: TimedCall) -> bool:
        return call.sizes["size_bytes"] >= MiB and "link_bytes_per_s_one_way" in catalogued.part(call.part).facts

    return tuple((op, call) for op in OPS for call in chosen(op, "bf16", where=asked))


def _draw_link(rng: random.Random) -> Draw:
    op, call = rng.choice(_collectives())
    return drawn(
        op=op,
        ranks=call.sizes["ranks"],
        size=call.sizes["size_bytes"],
        seconds=call.seconds,
        device=call.device,
        engine=call.engine,
        link=call.rate,
        row=call.source,
    )


def _small_link(rng: random.Random) -> Draw:
    ranks = rng.choice((3, 4, 5))
    return drawn(
        op=rng.choice(tuple(OPS)),
        ranks=ranks,
        size=ranks * rng.randrange(3, 9),
        seconds=rng.randrange(21, 99) / 10,
        link=rng.randrange(30, 60),
        row="drawn in 2026",
    )


def _busbw(p: Draw, op: str = "") -> float:
    return collectives.busbw_bytes_per_s(op=op or p.op, ranks=p.ranks, size_bytes=p.size, seconds=p.seconds)


def _count_link(p: Draw) -> float:
    """Element by element of the buffer: what belongs to another rank leaves this one, or has come to it."""
    moved = sum(1 for element in range(p.size) if element * p.ranks // p.size != 0)
    return float(moved / p.seconds / p.link)


LINK = Drill(
    key="measured-link-share",
    taught=CLUSTER,
    title="A bus bandwidth beside the links",
    unit="",
    target_s=90,
    draw=_draw_link,
    small=_small_link,
    prompt=lambda p: (
        f"nccl-tests ({p.engine}) ran {OPS[p.op]} among {p.ranks} GPUs of one node ({p.device}):"
        f" {fmt_bytes(p.size, base=2)} ({MEANS[p.op]}) in {took(p.seconds)}. NVLink is sold with"
        f" {fmt_si(2 * p.link, 'B/s')} per GPU, both directions added up. What share of the rate of a GPU's links, one"
        " way, was its bus bandwidth?"
    ),
    derive=lambda p: Derivation(
        value=_busbw(p) / p.link,
        formula="(n − 1)/n × S / t / one-way rate of the links",
        substitution=f"({p.ranks} − 1) / {p.ranks} × {p.size} / {p.seconds!r} / ({giga(2 * p.link)} / 2)",
        source=f"{SOURCE_NCCL_TESTS}; {p.row}",
    ),
    count=_count_link,
    prerequisites=("busbw",),
    slips=(
        Slip("both-directions", lambda p: _busbw(p) / (2 * p.link))
        | "You held it against both directions. A GPU sends over one of them.",
        Slip("algbw", lambda p: p.size / p.seconds / p.link)
        | "You let everything travel. A GPU's own part stays where it is.",
        Slip("all-reduce", lambda p: _busbw(p, "all_reduce") / p.link)
        | "That factor belongs to an all-reduce, which goes round twice.",
        Slip("size-per-rank", lambda p: p.ranks * _busbw(p) / p.link)
        | "You took the size for one GPU's share of it. Read once more whose buffer it is.",
    ),
)

# --- what leaves the node --------------------------------------------------------------------------


@functools.cache
def _between_nodes() -> tuple[tuple[NodeExchange, int, float], ...]:
    """Runs of at least a mebibyte: run, size, seconds."""
    return tuple(
        (run, size, seconds)
        for run in node_exchanges().values()
        for times in (run.seconds, run.in_place_s)
        for size, seconds in zip(run.sizes_bytes, times, strict=bool(times))
        if size >= MiB
    )


def _draw_card(rng: random.Random) -> Draw:
    run, size, seconds = rng.choice(_between_nodes())
    return drawn(
        nodes=run.nodes,
        gpus=run.gpus_of_node,
        size=size,
        seconds=float(f"{seconds:.4g}"),
        device=catalogued.part(run.part).name,
        card=run.card_bytes_per_s,
    )


def _small_card(rng: random.Random) -> Draw:
    nodes, gpus = rng.choice(((2, 3), (3, 2), (4, 2)))
    return drawn(
        nodes=nodes,
        gpus=gpus,
        size=8 * nodes * gpus * rng.randrange(2, 6),
        seconds=rng.randrange(21, 99) / 10,
        device="a small GPU",
        card=50.0,
    )


def _derive_card(p: Draw) -> Derivation:
    return Derivation(
        value=collectives.card_bytes_per_s(size_bytes=p.size, nodes=p.nodes, ranks_per_node=p.gpus, seconds=p.seconds),
        formula="2 (k − 1)/k × S / g / t, with k nodes of g GPUs",
        substitution=f"2 × ({p.nodes} − 1) / {p.nodes} × {p.size} / {p.gpus} / {p.seconds!r}",
        source="S. Bekman, Machine Learning Engineering, network, 2026; catalog/printed_rates.toml",
    )


def _count_card(p: Draw) -> float:
    """Message by message: what the first rank sends to other nodes."""
    import numpy as np  # which a reader's own drills do not need

    from threeloops.simulate.training_loop import ring

    ranks = p.nodes * p.gpus
    run = ring.hierarchical_all_reduce([np.ones(p.size // 8)] * ranks, ranks_per_node=p.gpus)
    left = sum(one.num_bytes for one in run.messages if one.source == 0 and one.destination >= p.gpus)
    return float(left / p.seconds)


CARD = Drill(
    key="measured-card-between-nodes",
    taught=CLUSTER,
    title="What leaves the node",
    unit="B/s",
    target_s=120,
    draw=_draw_card,
    small=_small_card,
    prompt=lambda p: (
        f"An all-reduce of {fmt_bytes(p.size, base=2)} (each GPU's tensor) among {p.nodes * p.gpus} GPUs on {p.nodes}"
        f" nodes ({p.device}) took {took(p.seconds)}. Each GPU has a network card of {fmt_si(p.card, 'B/s')} one way."
        " NCCL sums inside each node first, then every GPU exchanges its share of the tensor with its like on the other"
        " nodes. How many bytes a second did each card send, on average over the whole time?"
    ),
    derive=_derive_card,
    count=_count_card,
    prerequisites=("busbw",),
    slips=(
        Slip(
            "busbw",
            lambda p: collectives.busbw_bytes_per_s(
                op="all_reduce", ranks=p.nodes * p.gpus, size_bytes=p.size, seconds=p.seconds
            ),
        )
        | "That is the bus bandwidth of one flat ring. Most of its bytes never leave a node here.",
        Slip(
            "whole-tensor",
            lambda p: collectives.busbw_bytes_per_s(
                op="all_reduce", ranks=p.nodes, size_bytes=p.size, seconds=p.seconds
            ),
        )
        | "You sent the whole tensor over one card. Each GPU of a node has a card, and a share of it.",
        Slip("one-phase", lambda p: _derive_card(p).value / 2)
        | "You let the shares cross once. They are added up, and the sums are handed out.",
        Slip("own-share-too", lambda p: _derive_card(p).value * p.nodes / (p.nodes - 1))
        | "You divided by the GPUs alone. What a node adds up itself need not leave it.",
    ),
)

DRILLS = (LINK, CARD)

"""A drill on what a bus bandwidth is held against."""

import functools
import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, drawn
from threeloops.drills.engine.phrasing import giga
from threeloops.drills.measured.exchanges import CLUSTER, SOURCE_NCCL_TESTS
from threeloops.drills.measured.rows import TimedCall, chosen, took
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


def _derive_link(p: Draw) -> Derivation:
    return Derivation(
        value=_busbw(p) / p.link,
        formula="(n − 1)/n × S / t / one-way rate of the links",
        substitution=f"({p.ranks} − 1) / {p.ranks} × {p.size} / {p.seconds!r} / ({giga(2 * p.link)} / 2)",
        source=f"{SOURCE_NCCL_TESTS}; {p.row}",
    )


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
    derive=_derive_link,
    count=_count_link,
    prerequisites=("busbw",),
    slips=(
        Slip(
            key="both-directions",
            wrong=lambda p: _busbw(p) / (2 * p.link),
            story="You held it against both directions. A GPU sends over one of them.",
        ),
        Slip(
            key="algbw",
            wrong=lambda p: p.size / p.seconds / p.link,
            story="You let everything travel. A GPU's own part stays where it is.",
        ),
        Slip(
            key="all-reduce",
            wrong=lambda p: _busbw(p, "all_reduce") / p.link,
            story="That factor belongs to an all-reduce, which goes round twice.",
        ),
        Slip(
            key="size-per-rank",
            wrong=lambda p: p.ranks * _busbw(p) / p.link,
            story="You took the size for one GPU's share of it. Read once more whose buffer it is.",
        ),
    ),
)

DRILLS = (LINK,)

"""A drill on chips in a torus, as TPUs stand: every link carries a part of the vector."""

import random

from threeloops.drills.all_reduce.ring import engineering
from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.training_loop.network.torus import torus_all_reduce_s
from threeloops.units import GB, fmt_bytes, fmt_si

TAUGHT = Taught("training", "Network and cluster")
SOURCE = (
    "Austin et al., How to Scale Your Model, part 3, 2025 (all axes at once); Google Cloud, Cloud TPU, read in 2026"
    " (rates of a chip)"
)
# Part, axes of its torus, sides of slices that are closed to rings.
SLICES = (("tpu-v5e", 2, (16,)), ("tpu-v6e", 2, (16,)), ("tpu-v5p", 3, (4, 8, 12, 16)), ("tpu7x", 3, (4, 8, 12, 16)))


def _draw_torus(rng: random.Random) -> Draw:
    part, axes, sides = rng.choice(SLICES)
    return drawn(
        chip=catalogued.part(part).name.removesuffix(" (one chip)").removeprefix("Google Cloud "),
        axes=axes,
        side=rng.choice(sides),
        both_ways=2 * catalogued.part(part)["link_bytes_per_s_one_way"],
        size=rng.randrange(9, 140) / 10 * GB,
    )


def _small_torus(rng: random.Random) -> Draw:
    axes, side = rng.choice(((2, 3), (2, 4), (3, 2), (3, 3)))
    return drawn(
        chip="a chip",
        axes=axes,
        side=side,
        both_ways=rng.choice((480.0, 600.0)),
        size=8 * 2 * axes * side**axes * rng.choice((1, 2)),
    )


def _torus_s(p: Draw, *, links: float = 1) -> float:
    """With so many times as many links."""
    a_link = p.both_ways / 2 / (2 * p.axes)
    return links * torus_all_reduce_s(size_bytes=p.size, side=p.side, axes=p.axes, link_bytes_per_s_one_way=a_link)


def _count_torus(p: Draw) -> float:
    # numpy, which a reader's own drills do not need
    from threeloops.simulate.training_loop.collectives import random_vectors
    from threeloops.simulate.training_loop.torus import all_reduce

    vectors = random_vectors(ranks=p.side**p.axes, elements=p.size // 8, seed=0)
    run = all_reduce(vectors, side=p.side, axes=p.axes)
    return run.seconds(link_bytes_per_s_one_way=p.both_ways / (4 * p.axes))


def _sides(p: Draw) -> str:
    return " × ".join([str(p.side)] * p.axes)


TORUS = Drill(
    key="torus-all-reduce",
    taught=TAUGHT,
    title="An all-reduce on a torus",
    unit="s",
    target_s=120,
    draw=_draw_torus,
    small=_small_torus,
    prompt=lambda p: (
        f"{_sides(p)} chips ({p.chip}) form a torus: each has {2 * p.axes} links, two along each axis, and every axis"
        f" is closed to rings. Google prints {fmt_si(p.both_ways, 'B/s')} of inter-chip bandwidth for a chip, all links"
        f" and both directions together. How long does an all-reduce of {fmt_bytes(p.size, base=10)} on each chip take,"
        " if all links are busy all the time and latency is negligible?"
    ),
    derive=lambda p: Derivation(
        value=_torus_s(p),
        formula="2 × (1 − 1/chips) × size / (printed rate / 2): what a chip sends, over all of its links at once",
        substitution=f"2 × (1 − 1/{p.side}^{p.axes}) × {engineering(p.size)} / ({engineering(p.both_ways)} / 2)",
        source=SOURCE,
    ),
    count=_count_torus,
    prerequisites=("ring-time",),
    slips=(
        Slip("both-ways", lambda p: _torus_s(p) / 2)
        | "That is half of it: one trip of two, or the printed rate, which counts both directions, as if a chip"
        " could send with it.",
        Slip("one-axis", lambda p: _torus_s(p, links=p.axes))
        | "You used the links of one axis. The vector can be cut so that every axis carries a part.",
        Slip("one-link", lambda p: _torus_s(p, links=2 * p.axes))
        | "You used one link of each chip: one ring in one direction. All of them can be busy.",
        Slip("shared-among-chips", lambda p: _torus_s(p) / p.side**p.axes)
        | "You divided the vector among the chips. Each of them has a whole one to begin with, and at the end.",
    ),
)

DRILLS = (TORUS,)

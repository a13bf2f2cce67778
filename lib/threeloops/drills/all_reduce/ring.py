"""Drills on the ring: what each rank sends, what the network carries, and how long it takes.

Five ranks where the whole list of slips has to come apart: with three, six or eight of them, different mistakes give
the same number.
"""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.training_loop.network import collectives
from threeloops.units import GB, MB, billion, fmt_bytes, fmt_si, us

TAUGHT = Taught("training", "Data parallelism and all-reduce")

SOURCE_RING = "Patarasuk and Yuan, JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002 (ring all-reduce)"
SOURCE_PARTS = "Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, doi:10.1177/1094342005051521, section 4"


def engineering(value: float) -> str:
    """A number as it stands in a formula.

    >>> engineering(1_200_000_000), engineering(12_000_000.0), engineering(0.000005)
    ('1.2e9', '12e6', '5e-6')
    """
    for scale, power in ((GB, "e9"), (MB, "e6"), (1, "")):
        if value >= scale:
            return f"{value / scale:.10g}{power}"
    return f"{value / us:.10g}e-6"


def ring(p: Draw, op: str = "all_reduce") -> collectives.CollectiveTime:
    """The ring of a draw."""
    return collectives.collective_time(
        op=op, algorithm="ring", size_bytes=p.size, ranks=p.ranks, alpha_s=p.alpha, bytes_per_s_one_way=p.rate
    )


def counted_ring(p: Draw, op: str = "all_reduce") -> tuple[float, tuple[int, ...]]:
    """The same ring with real vectors: its seconds, and the bytes that each rank sent."""
    # numpy, which a reader's own drills do not need
    from threeloops.simulate.training_loop.collectives import simulated

    run = simulated(op=op, algorithm="ring", ranks=p.ranks, elements=p.size // 8)
    return run.seconds(alpha_s=p.alpha, bytes_per_s_one_way=p.rate), run.sent_bytes


def small_ring(rng: random.Random, ranks: tuple[int, ...]) -> dict[str, float]:
    """A ring of short vectors of 8-byte numbers that every rank count divides."""
    chosen = rng.choice(ranks)
    return {"ranks": chosen, "size": 8 * chosen * rng.choice((3, 4)), "rate": rng.choice((50.0, 90.0)), "alpha": 0.0}


# --- what one rank sends ------------------------------------------------------------------------


def _draw_sent(rng: random.Random) -> Draw:
    parameters = rng.choice((1.3, 1.7, 2.2, 2.9, 3.4, 4.6, 5.3, 6.7, 7.2, 8.3)) * billion
    return drawn(
        ranks=rng.choice((6, 7, 8, 9, 10, 12)),
        parameters=parameters,
        bytes_per_element=4,
        size=4 * parameters,
        rate=1,
        alpha=0,
    )


def _small_sent(rng: random.Random) -> Draw:
    numbers = small_ring(rng, (6, 7, 9))
    return drawn(**numbers, parameters=numbers["size"] / 8, bytes_per_element=8)


SENT = Drill(
    key="ring-bytes-per-rank",
    taught=TAUGHT,
    title="What one rank has to send",
    unit="B",
    target_s=60,
    draw=_draw_sent,
    small=_small_sent,
    prompt=lambda p: (
        f"A model of {p.parameters / billion:g} billion parameters is trained by plain data parallelism on {p.ranks}"
        " GPUs. Gradients are kept and exchanged in fp32. How many bytes does each GPU send per step, if the all-reduce"
        " is a ring?"
    ),
    derive=lambda p: Derivation(
        value=ring(p).sent_bytes_per_rank,
        formula="2 × (n − 1)/n × parameters × bytes per gradient",
        substitution=f"2 × {p.ranks - 1}/{p.ranks} × {engineering(p.parameters)} × {p.bytes_per_element}",
        source=SOURCE_RING,
    ),
    count=lambda p: counted_ring(p)[1][0],
    slips=(
        Slip("elements", lambda p: 2 * (p.ranks - 1) / p.ranks * p.parameters) | "You counted gradients, not bytes.",
        Slip("half", lambda p: (p.ranks - 1) / p.ranks * p.size)
        | "Half of it: either you left out the second trip around the ring, which brings the sums back, or you"
        " took 16-bit gradients.",
        Slip("sent-once", lambda p: p.size)
        | "You sent the gradients once. They are added up on one trip around the ring, and the sums are handed"
        " out on another.",
        Slip("many-ranks-limit", lambda p: 2 * p.size)
        | "That is what it comes to among very many ranks. In a ring of this size it matters that each rank keeps"
        " a piece on every trip.",
        Slip("all-ranks", lambda p: 2 * (p.ranks - 1) * p.size)
        | "That many bytes cross the network in all, or one rank's if it passed on the whole vector in every"
        " step. Each sends one piece at a time.",
        Slip("one-piece", lambda p: 2 * p.size / p.ranks)
        | "You let each rank send one piece and one sum. It also passes on the pieces of the others.",
    ),
)

# --- the time of a ring --------------------------------------------------------------------------


def _draw_ring(rng: random.Random) -> Draw:
    link = catalogued.part(rng.choice(("nvlink-3", "nvlink-4", "nvlink-5")))
    size = rng.randrange(8, 76, 2) / 10 * GB
    return drawn(ranks=5, size=size, rate=link["bytes_per_s_one_way"], link=link.name, alpha=0)


RING_TIME = Drill(
    key="ring-time",
    taught=TAUGHT,
    title="Once around, and around again",
    unit="s",
    target_s=75,
    draw=_draw_ring,
    small=lambda rng: drawn(**small_ring(rng, (5,))),
    prompt=lambda p: (
        f"{p.ranks} GPUs hold {fmt_bytes(p.size, base=10)} of gradients each and add them up by a ring all-reduce."
        f" Every GPU sends over {p.link} at {fmt_si(p.rate, 'B/s')} in each direction; latency is negligible. How long"
        " does it take?"
    ),
    derive=lambda p: Derivation(
        value=ring(p).total_s,
        formula="2 (reduce-scatter, all-gather) × (n − 1) steps × (S / n) bytes in each / rate of a link, one way",
        substitution=f"2 × ({p.ranks} − 1) × ({engineering(p.size)} / {p.ranks}) / {engineering(p.rate)}",
        source=SOURCE_RING,
    ),
    count=lambda p: counted_ring(p)[0],
    slips=(
        Slip("sent-once", lambda p: p.size / p.rate)
        | "You sent each gradient once. A sum that every rank needs takes more than one transfer of it.",
        Slip("half", lambda p: (p.ranks - 1) / p.ranks * p.size / p.rate)
        | "Half of it: either you stopped when each rank held its part of the sum, or you took both directions of"
        " the link for one.",
        Slip("many-ranks-limit", lambda p: 2 * p.size / p.rate)
        | "That is what a very large ring takes. In a small one each rank keeps a piece that it need not send:"
        " count the steps.",
        Slip("through-one-rank", lambda p: (p.ranks - 1) * p.size / p.rate)
        | "You sent all vectors to one rank. The ring exists so that no single link carries everything.",
        Slip("everybodys-bytes", lambda p: p.ranks * p.size / p.rate)
        | "You added up the gradients of all ranks and sent them over one link. Every rank has a link of its own,"
        " and they work at the same time.",
        Slip("whole-vector-each-step", lambda p: 2 * (p.ranks - 1) * p.size / p.rate)
        | "You passed the whole vector on in every step. The ring cuts it into pieces, one per rank.",
        Slip("unpipelined-tree", lambda p: 2 * (p.ranks - 1).bit_length() * p.size / p.rate)
        | "You climbed a tree and came down again with the whole vector at every level. A ring has more steps,"
        " and smaller ones.",
        Slip("shared-among-ranks", lambda p: 2 * (p.ranks - 1) / p.ranks * p.size / p.rate / p.ranks)
        | "You let the links of all ranks add up. They do work at once, but each rank still has to send its own"
        " share over its own link.",
    ),
)

# --- what crosses the network --------------------------------------------------------------------


WIRE = Drill(
    key="ring-bytes-on-the-wire",
    taught=TAUGHT,
    title="What the whole network carries",
    unit="B",
    target_s=60,
    draw=lambda rng: drawn(ranks=rng.choice((5, 6, 7, 9)), size=rng.randrange(7, 65, 3) / 10 * GB, rate=1, alpha=0),
    small=lambda rng: drawn(**small_ring(rng, (5, 6, 7, 9))),
    prompt=lambda p: (
        f"A cloud bills every byte that leaves a machine. {p.ranks} machines with one GPU each add up"
        f" {fmt_bytes(p.size, base=10)} of gradients by a ring all-reduce. How many bytes are on the bill?"
    ),
    derive=lambda p: Derivation(
        value=p.ranks * ring(p).sent_bytes_per_rank,
        formula="n ranks × 2 × (n − 1)/n × S, which is 2 × (n − 1) × S",
        substitution=f"{p.ranks} × 2 × {p.ranks - 1}/{p.ranks} × {engineering(p.size)}",
        source=SOURCE_RING,
    ),
    count=lambda p: sum(counted_ring(p)[1]),
    slips=(
        Slip("one-rank", lambda p: 2 * (p.ranks - 1) / p.ranks * p.size)
        | "That is what one machine sends. All of them do.",
        Slip("one-trip", lambda p: (p.ranks - 1) * p.size)
        | "You went around the ring once, or sent everything to one machine and left it there. Every rank needs"
        " the sum.",
        Slip("as-many-steps-as-ranks", lambda p: 2 * p.ranks * p.size)
        | "You took a step too many on each trip: what a machine has at the start or finishes itself need not be"
        " sent.",
        Slip("each-vector-once", lambda p: p.ranks * p.size)
        | "You sent the vector of each machine once. The sums still have to come back.",
        Slip("everyone-to-everyone", lambda p: p.ranks * (p.ranks - 1) * p.size)
        | "You sent every vector to every other machine. A ring adds up on the way, so that sums travel and not"
        " vectors.",
    ),
)

DRILLS = (SENT, RING_TIME, WIRE)

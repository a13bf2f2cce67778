"""Drills on a collective that hangs, a run that goes on with fewer ranks, and arithmetic that is silently wrong."""

import math
import random
from decimal import Decimal

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.training_loop.run import corruption, elastic, flight_record
from threeloops.units import GB, day, hour, minute, thousand

TAUGHT = Taught("training", "Failure as routine")

SOURCE_RECORD = "Pandya, Wang, Flight Recorder for Debugging Stuck Jobs, PyTorch tutorials, 2024"
SOURCE_ELASTIC = "by definition, 2026: what a run does while it waits, and shards that overlap"
SOURCE_LLAMA = "Llama Team, The Llama 3 Herd of Models, 2024, arXiv:2407.21783, table 5"

# --- the rank that the others wait for -----------------------------------------------------------


def _draw_hang(rng: random.Random) -> Draw:
    ranks = sorted(rng.sample(range(16, 1020), 7))
    at = rng.randrange(2100, 9900)
    late, first, ahead = rng.sample(range(1, 7), 3)
    numbers = [at + rng.choice((0, 1, 1, 2)) for _ in ranks]
    numbers[late], numbers[ahead] = at - 1, at + 3
    return drawn(ranks=ranks, numbers=numbers, first=first, ahead=ahead, waited_s=rng.choice((300, 600, 900)))


def _late(p: Draw) -> int:
    return flight_record.late_rank(dict(zip(p.ranks, p.numbers, strict=True)))


def _count_hang(p: Draw) -> float:
    """Collective after collective is completed when all ranks have called it; the first that is not names the rank."""
    collective = 0
    while True:
        missing = [rank for rank, number in zip(p.ranks, p.numbers, strict=True) if number < collective]
        if missing:
            (rank,) = missing
            node = 0
            while 8 * (node + 1) <= rank:
                node += 1
            return float(node)
        collective += 1


HANG = Drill(
    key="hang-which-node",
    taught=TAUGHT,
    title="One rank that all others wait for",
    unit="",
    whole="exact",
    target_s=75,
    draw=_draw_hang,
    small=_draw_hang,
    wanted=lambda p: len({rank // 8 for rank in p.ranks}) == 7,
    prompt=lambda p: (
        f"A job hangs. The watchdog of rank {p.ranks[p.first]} is the first to fire, after {p.waited_s} s in an"
        " all-reduce. The flight recorders of the group's ranks hold as the number of the last collective that each"
        " has enqueued: "
        + "; ".join(f"rank {rank}: {number}" for rank, number in zip(p.ranks, p.numbers, strict=True))
        + ". A node has 8 GPUs, ranks are numbered node by node, and the first node is node 0. On which node do you"
        " look for the cause?"
    ),
    derive=lambda p: Derivation(
        value=float(_late(p) // 8),
        formula="floor(rank with the fewest collectives / GPUs of a node)",
        substitution=f"floor({_late(p)} / 8)",
        source=SOURCE_RECORD,
    ),
    count=_count_hang,
    slips=(
        Slip("first-to-fire", lambda p: float(p.ranks[p.first] // 8))
        | "You went where the watchdog fired first. That rank waits, as the others do.",
        Slip("furthest-ahead", lambda p: float(p.ranks[p.ahead] // 8))
        | "You took the rank that is furthest. It has called what another one has not.",
        Slip("lowest-rank", lambda p: float(p.ranks[0] // 8))
        | "You took the group's first rank. It leads nothing in an all-reduce.",
        Slip("rank", lambda p: float(_late(p))) | "That is the rank. On which node does it run?",
    ),
)

# --- the same batch on fewer ranks ---------------------------------------------------------------


# Ranks, how many of them are lost, and micro-batches of each before: rounding up shows in the time of a step.
WHOLE_ROUNDS_LOST = (
    (24, 6, 2),
    (32, 8, 2),
    (48, 12, 2),
    (48, 15, 3),
    (64, 15, 2),
    (64, 16, 2),
    (64, 20, 3),
    (96, 23, 2),
    (96, 24, 2),
    (96, 30, 3),
)


def _draw_accumulated(rng: random.Random) -> Draw:
    before, lost, rounds = rng.choice(WHOLE_ROUNDS_LOST)
    return drawn(
        before=before,
        lost=lost,
        micro=rng.choice((1, 2, 4)),
        rounds=rounds,
        pass_ms=rng.randrange(410, 990),
        other_ms=rng.randrange(1200, 2900, 10),
    )


def _batch(p: Draw) -> int:
    return int(p.before * p.micro * p.rounds)


def _rounds(p: Draw) -> int:
    return elastic.micro_batches_each(global_batch=_batch(p), micro_batch=p.micro, ranks=p.before - p.lost)


def _count_accumulated(p: Draw) -> float:
    """Micro-batches dealt out like cards; the rank with the most of them is waited for."""
    dealt = [0] * (p.before - p.lost)
    for number in range(_batch(p) // p.micro):
        dealt[number % len(dealt)] += 1
    return float((max(dealt) * p.pass_ms + p.other_ms) / thousand)


ACCUMULATED = Drill(
    key="elastic-step-time",
    taught=TAUGHT,
    title="The same batch on fewer ranks",
    unit="s",
    target_s=110,
    draw=_draw_accumulated,
    small=_draw_accumulated,
    prompt=lambda p: (
        f"A run with {p.before} data-parallel ranks and a global batch of {_batch(p):,} sequences loses {p.lost} ranks"
        f" and goes on without them, with the same batch. Micro-batches have {p.micro} sequence{'s' * (p.micro > 1)}"
        f" and take {p.pass_ms} ms each, forward and backward; exchange and update take {p.other_ms} ms once a step."
        " Micro-batches are dealt out as evenly as can be. How long is a step now?"
    ),
    derive=lambda p: Derivation(
        value=(_rounds(p) * p.pass_ms + p.other_ms) / thousand,
        formula="ceil(global batch / (micro-batch × ranks left)) × time of a micro-batch + exchange and update",
        substitution=(
            f"(ceil({_batch(p)} / ({p.micro} × ({p.before} − {p.lost}))) × {p.pass_ms} + {p.other_ms}) / 1000"
        ),
        source=SOURCE_ELASTIC,
    ),
    count=_count_accumulated,
    slips=(
        Slip("as-before", lambda p: (p.rounds * p.pass_ms + p.other_ms) / thousand)
        | "That is a step before the loss. The same batch is on fewer ranks now.",
        Slip("not-rounded", lambda p: (p.rounds * p.before / (p.before - p.lost) * p.pass_ms + p.other_ms) / thousand)
        | "You divided the batch into fractions of a micro-batch. Some rank runs a whole one more.",
        Slip("all-grows", lambda p: (p.rounds * p.pass_ms + p.other_ms) / thousand * p.before / (p.before - p.lost))
        | "You stretched the whole step. Exchange and update come once, however many micro-batches there are.",
        Slip("other-each-time", lambda p: _rounds(p) * (p.pass_ms + p.other_ms) / thousand)
        | "You exchanged gradients after every micro-batch. They are accumulated.",
    ),
)

# --- shards that move ----------------------------------------------------------------------------


def _draw_resharded(rng: random.Random) -> Draw:
    before = rng.randrange(12, 65, 2)
    return drawn(before=before, after=before - rng.randrange(1, 5), state_gb=rng.randrange(120, 1900, 10))


def _small_resharded(rng: random.Random) -> Draw:
    before = rng.randrange(5, 12)
    return drawn(before=before, after=before - rng.randrange(1, 3), state_gb=rng.randrange(120, 1900, 10))


def _derive_resharded(p: Draw) -> Derivation:
    kept = round(elastic.shard_overlap(before=p.before, after=p.after) * p.before * p.after)
    return Derivation(
        value=(1 - elastic.shard_overlap(before=p.before, after=p.after)) * p.state_gb * GB,
        formula=(
            "state × (1 − sum of the overlaps of rank i's old and new shard), overlaps in shares of 1 / (before ×"
            " after)"
        ),
        substitution=f"{p.state_gb}e9 × (1 − {kept} / ({p.before} × {p.after}))",
        source=SOURCE_ELASTIC,
    )


def _count_resharded(p: Draw) -> float:
    """As many equal pieces as both cuts share, each looked up before and after."""
    pieces = p.before * p.after
    moved = sum(1 for piece in range(pieces) if piece // p.after != piece // p.before)
    return float(moved / pieces * p.state_gb * GB)


RESHARDED = Drill(
    key="elastic-bytes-moved",
    taught=TAUGHT,
    title="One rank fewer, and most shards move",
    unit="B",
    target_s=150,
    draw=_draw_resharded,
    small=_small_resharded,
    prompt=lambda p: (
        f"A state of {p.state_gb} GB is sharded over {p.before} ranks, in equal consecutive shards in the order of"
        f" ranks. The last {p.before - p.after} rank{'s' * (p.before - p.after > 1)} drop out, after everything has"
        f" been saved in the hosts' memory, and the state is cut anew into {p.after} shards for ranks 0 to"
        f" {p.after - 1}. How many bytes, over all ranks together, must move to a rank that did not have them?"
    ),
    derive=_derive_resharded,
    count=_count_resharded,
    slips=(
        Slip("lost-shards-only", lambda p: (p.before - p.after) / p.before * p.state_gb * GB)
        | "You moved what the lost ranks had. The other shards' borders move, too.",
        Slip("everything", lambda p: p.state_gb * GB * 1.0)
        | "You moved everything. The first ranks keep most of what they have.",
        Slip("kept", lambda p: elastic.shard_overlap(before=p.before, after=p.after) * p.state_gb * GB)
        | "That is what stays where it is.",
        Slip("growth-of-each", lambda p: (p.before - p.after) / p.after * p.state_gb * GB)
        | "You counted how much larger the shards become. Their beginnings move as well.",
    ),
)

# --- going on or waiting -------------------------------------------------------------------------


def _draw_elastic(rng: random.Random) -> Draw:
    return drawn(
        nodes=rng.choice((12, 16, 20, 24)),
        lost=rng.choice((2, 3, 4, 5)),
        spare_min=rng.randrange(65, 300, 5),
        restart_min=rng.randrange(9, 28),
    )


def _gain(p: Draw) -> float:
    return elastic.elastic_gain_s(
        nodes=p.nodes, lost=p.lost, spare_s=p.spare_min * minute, restart_s=p.restart_min * minute
    )


def _count_elastic(p: Draw) -> float:
    """Two runs, second by second, with ten hours of work left on all nodes: one waits, one goes on."""
    ended = []
    for goes_on in (False, True):
        left, second = 10.0 * hour * p.nodes, 0
        while left > 1e-6:
            second += 1
            spares, back = p.spare_min * minute, (p.spare_min + p.restart_min) * minute
            if second > back:
                left -= p.nodes
            elif goes_on and p.restart_min * minute < second <= spares:
                left -= p.nodes - p.lost
        ended.append(second + left / p.nodes)
    return float(ended[0] - ended[1])


ELASTIC = Drill(
    key="elastic-or-wait",
    taught=TAUGHT,
    title="Go on with fewer, or wait for spares",
    unit="s",
    target_s=100,
    draw=_draw_elastic,
    small=_draw_elastic,
    prompt=lambda p: (
        f"A run on {p.nodes} nodes loses {p.lost}; spares are there {p.spare_min} minutes after the failure. It can"
        f" wait for them, and then needs {p.restart_min} minutes to restart. Or it restarts at once with the nodes"
        f" that are left, which takes {p.restart_min} minutes, too, runs at their share of its speed, and restarts"
        " once more on all nodes when the spares are there. How much sooner does it end in the second way?"
    ),
    derive=lambda p: Derivation(
        value=_gain(p),
        formula="(until spares − restart) × nodes left / nodes",
        substitution=f"({p.spare_min} − {p.restart_min}) × 60 × ({p.nodes} − {p.lost}) / {p.nodes}",
        source=SOURCE_ELASTIC,
    ),
    count=_count_elastic,
    slips=(
        Slip("free-restart", lambda p: p.spare_min * minute * (p.nodes - p.lost) / p.nodes)
        | "You ran from the first minute on. Restarting with fewer nodes takes time.",
        Slip("full-speed", lambda p: (p.spare_min - p.restart_min) * minute * 1.0)
        | "You ran at full speed. Some nodes are missing.",
        Slip("two-restarts", lambda p: (p.spare_min - 2 * p.restart_min) * minute * (p.nodes - p.lost) / p.nodes)
        | "You charged both restarts. The run that waits restarts once, too.",
        Slip("what-is-missing", lambda p: (p.spare_min - p.restart_min) * minute * p.lost / p.nodes)
        | "That is what the missing nodes would have done.",
    ),
)

# --- silent corruption ---------------------------------------------------------------------------


def _draw_corrupted(rng: random.Random) -> Draw:
    gpus = rng.choice((2048, 4096, 6144, 8192, 12288, 24576))
    one_in_days = 16384 * 54 / 6 / gpus
    return drawn(gpus=gpus, days=rng.randrange(int(0.25 * one_in_days) + 1, int(2.9 * one_in_days)))


def _chance(p: Draw) -> float:
    return corruption.corruption_chance(num_gpus=p.gpus, run_s=p.days * day, events=6, events_gpu_s=16384.0 * 54 * day)


def _expected(p: Draw) -> float:
    return float(6 / (16384 * 54) * p.gpus * p.days)


def _count_corrupted(p: Draw) -> float:
    """Very many short stretches, each with its small chance, in all of which nothing happens."""
    clean = 1 - Decimal(_expected(p)) / 2**50
    for _ in range(50):  # squared so often, it is that of all 2^50 stretches
        clean *= clean
    return float(1 - clean)


CORRUPTED = Drill(
    key="corruption-chance",
    taught=TAUGHT,
    title="Wrong, and without a word",
    unit="",
    target_s=100,
    draw=_draw_corrupted,
    small=_draw_corrupted,
    wanted=lambda p: 0.2 < _expected(p) < 3,
    prompt=lambda p: (
        "In 54 days on 16,384 GPUs a published run met 6 silent data corruptions that were noticed. At the same rate,"
        f" how likely is it that a run of {p.days} days on {p.gpus:,} GPUs meets at least one?"
    ),
    derive=lambda p: Derivation(
        value=_chance(p),
        formula="1 − e^(−events / (GPUs × days) × GPUs × days of this run)",
        substitution=f"1 − {math.e}**(−6 / (16384 × 54) × {p.gpus} × {p.days})",
        source=SOURCE_LLAMA,
    ),
    count=_count_corrupted,
    slips=(
        Slip("expected", _expected)
        | "That is how many are expected. A chance is no number of events, and several may fall into one run.",
        Slip("none", lambda p: 1 - _chance(p)) | "That is the chance of none.",
        Slip("gpus-ignored", lambda p: -math.expm1(-6 / 54 * p.days))
        | "You scaled by days alone. This run has another number of GPUs.",
        Slip("days-ignored", lambda p: -math.expm1(-6 / 16384 * p.gpus))
        | "You scaled by GPUs alone. This run lasts for another number of days.",
    ),
)

DRILLS = (HANG, ACCUMULATED, RESHARDED, ELASTIC, CORRUPTED)

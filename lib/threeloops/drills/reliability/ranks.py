"""Drills on many ranks: a step that waits for the slowest of them, and nodes that are always somewhere in repair."""

import itertools
import math
import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.training_loop.run import reliability, stragglers
from threeloops.units import day, ms

TAUGHT = Taught("training", "Failure as routine")

YEAR_DAYS = 365
SOURCE_ORDER = "David and Nagaraja, Order Statistics, 3rd ed., 2003, section 2.1"
SOURCE_RENYI = "Rényi, 1953; David and Nagaraja, Order Statistics, 3rd ed., 2003, section 2.5"
SOURCE_LITTLE = "Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383"

# --- rare stalls ---------------------------------------------------------------------------------


def _stalled(p: Draw) -> float:
    return stragglers.stalled_s(step_s=p.step_s, stall_s=p.stall_s, probability=1 / p.every, ranks=p.ranks)


def _draw_stalls(rng: random.Random) -> Draw:
    ranks = rng.randrange(64, 1100, 8)
    return drawn(
        ranks=ranks,
        every=round(ranks * rng.uniform(0.7, 2.2) / 10) * 10,
        step_s=rng.randrange(300, 900, 10) * ms,
        stall_s=rng.randrange(250, 1500, 10) * ms,
    )


def _count_stalls(p: Draw) -> float:
    """Every combination of ranks that stall and ranks that do not, with its chance; the step ends with the
    slowest.
    """
    mean = 0.0
    for stalls in itertools.product((False, True), repeat=p.ranks):
        chance = 1.0
        for stalled in stalls:
            chance *= 1 / p.every if stalled else (p.every - 1) / p.every
        mean += chance * max(p.step_s + p.stall_s * stalled for stalled in stalls)
    return mean


STALLS = Drill(
    key="failure-rare-stalls",
    taught=TAUGHT,
    title="One step in a thousand, on a thousand ranks",
    unit="s",
    target_s=120,
    apart=1.06,
    draw=_draw_stalls,
    small=lambda rng: drawn(
        ranks=rng.randrange(3, 10),
        every=rng.randrange(4, 15),
        step_s=rng.randrange(300, 900) * ms,
        stall_s=rng.randrange(250, 1500) * ms,
    ),
    prompt=lambda p: (
        f"A synchronous step on {p.ranks} ranks takes {p.step_s / ms:.0f} ms. Now and then a rank stalls for"
        f" {p.stall_s / ms:.0f} ms: one step in {p.every}, each rank by itself and independently of the others. How"
        " long does a step of the whole job take on average?"
    ),
    derive=lambda p: Derivation(
        value=_stalled(p),
        formula="step + stall × (1 − (1 − chance)^ranks)",
        substitution=f"{p.step_s:.15g} + {p.stall_s:.15g} × (1 − (1 − 1 / {p.every}) ** {p.ranks})",
        source=SOURCE_ORDER,
    ),
    count=_count_stalls,
    slips=(
        Slip("stalls-added", lambda p: p.step_s + p.stall_s * p.ranks / p.every)
        | "You added the stalls of all ranks. Two that stall in the same step stall together.",
        Slip("one-rank", lambda p: p.step_s + p.stall_s / p.every)
        | "That is what a single rank loses. The step waits for all of them.",
        Slip("every-step", lambda p: p.step_s + p.stall_s)
        | "You let a rank stall in every step. In some steps none does.",
        Slip("step-forgotten", lambda p: _stalled(p) - p.step_s) | "That is the waiting. How long is the step?",
    ),
    function=AsFunction(takes=("ranks", "every", "step_s", "stall_s"), limit={"ranks": 1}, limit_case="a single rank"),
)

# --- the slowest of a few ------------------------------------------------------------------------


def _slowest(p: Draw) -> float:
    return stragglers.slowest_exponential_s(base_s=p.base_s, delay_s=p.delay_s, ranks=p.ranks)


def _draw_slowest(rng: random.Random) -> Draw:
    return drawn(
        ranks=rng.randrange(4, 11), base_s=rng.randrange(100, 500, 10) * ms, delay_s=rng.randrange(60, 400, 5) * ms
    )


def _count_slowest(p: Draw) -> float:
    """Add up, by Simpson's rule, the chance that at least one rank is still delayed, over all times."""
    pieces, reach = 4000, 50.0

    def still_waiting(time: float) -> float:
        everybody_done = 1.0
        for _ in range(p.ranks):
            everybody_done *= 1 - math.exp(-time)
        return 1 - everybody_done

    width = reach / pieces
    area = (
        sum((1 if at in (0, pieces) else 4 if at % 2 else 2) * still_waiting(at * width) for at in range(pieces + 1))
        * width
        / 3
    )
    return float(p.base_s + p.delay_s * area)


SLOWEST = Drill(
    key="failure-slowest-rank",
    taught=TAUGHT,
    title="The slowest of a few",
    unit="s",
    target_s=150,
    apart=1.06,
    draw=_draw_slowest,
    small=_draw_slowest,
    prompt=lambda p: (
        f"{p.ranks} ranks each need {p.base_s / ms:.0f} ms for a step, and then a delay of their own: exponentially"
        f" distributed, {p.delay_s / ms:.0f} ms on average, independent of the others and of the step before. They"
        " synchronise after every step. How long does a step take on average?"
    ),
    derive=lambda p: Derivation(
        value=_slowest(p),
        formula="base + mean delay × (1 + 1/2 + … + 1/ranks)",
        substitution=(
            f"{p.base_s:.15g} + {p.delay_s:.15g} × ({' + '.join(f'1 / {rank}' for rank in range(1, p.ranks + 1))})"
        ),
        source=SOURCE_RENYI,
    ),
    count=_count_slowest,
    slips=(
        Slip("average-rank", lambda p: p.base_s + p.delay_s)
        | "That is an average rank by itself. It has to wait for the slowest.",
        Slip("delays-added", lambda p: p.base_s + p.ranks * p.delay_s)
        | "You let the ranks be late one after another. They are late at the same time.",
        Slip("logarithm", lambda p: p.base_s + math.log(p.ranks) * p.delay_s)
        | "The logarithm is what the sum grows like for many ranks. For so few, add the terms up.",
        Slip("base-forgotten", lambda p: _slowest(p) - p.base_s)
        | "That is the longest delay. What does every rank need before it?",
    ),
    function=AsFunction(
        takes=("ranks", "base_s", "delay_s"), limit={"ranks": 1}, limit_case="a single rank, which waits for no other"
    ),
)

# --- nodes in repair -----------------------------------------------------------------------------


def _failures_per_day(p: Draw) -> float:
    return float(p.nodes * p.gpus / (p.gpu_years * YEAR_DAYS))


def _small_repair(rng: random.Random) -> Draw:
    # A failure every few whole hours: nodes × gpus divide the hours of the years.
    nodes, gpus = rng.choice((12, 15, 20, 73)), rng.choice((4, 6))
    return drawn(nodes=nodes, gpus=gpus, gpu_years=rng.choice((2, 3, 5, 7)), repair_days=rng.choice((2, 3, 9, 12)))


def _derive_repair(p: Draw) -> Derivation:
    system = reliability.system_mtbf_s(part_mtbf_s=p.gpu_years * YEAR_DAYS * day, num_parts=p.nodes * p.gpus)
    return Derivation(
        value=p.repair_days * day / system,
        formula="nodes × GPUs per node × repair time / time between failures of a GPU",
        substitution=f"{p.nodes} × {p.gpus} × {p.repair_days} / ({p.gpu_years} × {YEAR_DAYS})",
        source=SOURCE_LITTLE,
    )


def _count_repair(p: Draw) -> float:
    """Failures come at equal gaps; look into the workshop in every hour of a year that is far from the first, and
    count the nodes.
    """
    parts, life_hours, stay = p.nodes * p.gpus, p.gpu_years * YEAR_DAYS * 24, p.repair_days * 24
    seen = 0
    for now in range(life_hours):
        # Failure number k comes at k × life / parts. In the workshop: those of the last `stay` hours.
        latest, earliest = now * parts // life_hours, (now - stay) * parts // life_hours
        seen += latest - earliest
    return float(seen / life_hours)


REPAIR = Drill(
    key="failure-nodes-in-repair",
    taught=TAUGHT,
    title="Nodes that are always missing",
    unit="",
    target_s=90,
    apart=1.06,
    draw=lambda rng: drawn(
        nodes=rng.randrange(300, 3000, 20),
        gpus=rng.choice((4, 6)),
        gpu_years=rng.randrange(4, 14),
        repair_days=rng.choice((2, 3, 4, 5, 9, 10, 12, 15)),
    ),
    small=_small_repair,
    prompt=lambda p: (
        f"A cluster keeps a run of {p.nodes} nodes with {p.gpus} GPUs each going by means of spare nodes. A GPU fails"
        f" every {p.gpu_years} years of {YEAR_DAYS} days on average; its whole node is then taken out and comes back"
        f" after {p.repair_days} days. How many nodes are in repair on average, so that fewer spares can never be"
        " enough?"
    ),
    derive=_derive_repair,
    count=_count_repair,
    prerequisites=("failure-larger-run",),
    slips=(
        Slip("one-gpu-per-node", lambda p: _failures_per_day(p) * p.repair_days / p.gpus)
        | "You gave each node one GPU. Any of its GPUs can take a node out.",
        Slip("gpus-for-nodes", lambda p: _failures_per_day(p) * p.repair_days * p.gpus)
        | "That is how many GPUs are out of work. The question is nodes.",
        Slip("per-day", _failures_per_day) | "That is how many fail in a day. How long does each of them stay away?",
        Slip("per-week", lambda p: _failures_per_day(p) * 7)
        | "You let every repair take a week. Read again how long it takes.",
    ),
)

DRILLS = (STALLS, SLOWEST, REPAIR)

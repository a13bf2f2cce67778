"""Drills on shards: from how many GPUs on a model fits, and what a rank holds of a matrix that does not come out
even.
"""

import random
from itertools import pairwise
from math import ceil

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions, giga
from threeloops.drills.training_memory.states import MIXED, SOURCE_ZERO, rank_bytes
from threeloops.models.parameter_buckets import ParameterBuckets
from threeloops.simulate.training_loop.sharding import Grid, Parameter
from threeloops.training_loop.memory import row_shards
from threeloops.training_loop.memory.rank_states import fewest_data_parallel_ranks
from threeloops.units import fmt_bytes

TAUGHT = Taught("training", "ZeRO and FSDP")
SOURCE_ROWS = "PyTorch documentation, torch.distributed.fsdp.fully_shard, read in 2026 (torch.chunk on dimension 0)"

# --- how many GPUs -------------------------------------------------------------------------------


def _draw_ranks(rng: random.Random) -> Draw:
    parameters = rng.randrange(11_000_000_000, 29_000_000_000, 1_000_000_000)
    # what is left beside the weights
    over = rng.randrange(parameters * 16 // 100, parameters // 2) // 100_000_000 * 100_000_000
    return drawn(parameters=parameters, budget=2 * parameters + over)


def _small_ranks(rng: random.Random) -> Draw:
    parameters = rng.choice((240, 360))
    return drawn(parameters=parameters, budget=2 * parameters + 14 * rng.choice((7, 11, 13)))


def _count_ranks(p: Draw) -> float:
    """Add a GPU until the fullest one has room, dealing every value's state out anew each time."""
    ranks = 1
    while (
        rank_bytes(
            [Parameter(name="w", size=p.parameters, kind="split", stage=0)],
            Grid(dp=ranks, tp=1, pp=1),
            zero_stage=2,
            per_value=MIXED,
        )
        > p.budget
    ):
        ranks += 1
    return ranks


RANKS_TO_FIT = Drill(
    key="zero-ranks-to-fit",
    taught=TAUGHT,
    title="From how many GPUs on?",
    unit="",
    whole="up",
    target_s=120,
    draw=_draw_ranks,
    small=_small_ranks,
    prompt=lambda p: (
        f"A model of {billions(p.parameters)} parameters shall train with ZeRO stage 2: fp16 weights and gradients,"
        f" fp32 Adam with a master copy. Each GPU has {fmt_bytes(p.budget, base=10)} left for model states. What is the"
        " smallest number of GPUs with which it fits?"
    ),
    derive=lambda p: Derivation(
        value=fewest_data_parallel_ranks(
            parameters=ParameterBuckets.plain(p.parameters),
            recipe="zero-paper",
            zero_stage=2,
            usable_bytes=p.budget,
        ),
        formula=(
            "14 × parameters / (budget − 2 × parameters), rounded up: weights are whole on every GPU, the other 14"
            " bytes are shared"
        ),
        substitution=f"ceil(14 × {giga(p.parameters)} / ({giga(p.budget)} − 2 × {giga(p.parameters)}))",
        source=SOURCE_ZERO,
    ),
    count=_count_ranks,
    prerequisites=("memory-zero-2",),
    slips=(
        Slip("stage-3", lambda p: ceil(16 * p.parameters / p.budget))
        | "You shared everything. At this stage one thing stays whole on every GPU, however many there are.",
        Slip("no-master", lambda p: ceil(10 * p.parameters / (p.budget - 2 * p.parameters)))
        | "You shared Adam's two moments and the gradients. The weights that Adam updates are a copy of their"
        " own.",
        Slip("gradients-forgotten", lambda p: ceil(12 * p.parameters / (p.budget - 2 * p.parameters)))
        | "You shared the optimiser's state. What else does this stage share?",
        Slip("weights-twice", lambda p: ceil(16 * p.parameters / (p.budget - 2 * p.parameters)))
        | "You put the 16-bit weights on every GPU and shared them as well.",
    ),
    function=AsFunction(
        takes=("parameters", "budget"),
        limit=lambda p: {"budget": 4 * p.parameters},
        limit_case="states that fill the budget to the last byte",
    ),
)

# --- rows that do not come out even --------------------------------------------------------------


def _uneven() -> list[tuple[int, int]]:
    """(rows, ranks) of which the last rank gets a short block, told apart from every simpler way to divide."""
    found = []
    for ranks in range(5, 13):
        for rows in range(2 * ranks, 9 * ranks):
            chunk = ceil(rows / ranks)
            last, mean, rest = rows - (ranks - 1) * chunk, rows / ranks, rows % ranks
            ways = sorted((last, mean, chunk, rows // ranks, rest))
            if last > 0 and rest and all(more - less > 0.06 * more for less, more in pairwise(ways)):
                found.append((rows, ranks))
    return found


UNEVEN = _uneven()


def _draw_rows(rng: random.Random) -> Draw:
    rows, ranks = rng.choice(UNEVEN)
    return drawn(rows=rows, ranks=ranks, rank=ranks - 1, width=rng.randrange(3_072, 17_408, 512), bytes_per_element=4)


def _count_rows(p: Draw) -> float:
    """Deal the rows out, block by block, and weigh this rank's."""
    # loads numpy, which a reader's own drills do not need
    from threeloops.simulate.training_loop.offloaded_layers import dealt_rows

    return float(dealt_rows(p.rows, p.ranks)[p.rank] * p.width * p.bytes_per_element)


def _small_rows(rng: random.Random) -> Draw:
    rows, ranks = rng.choice([pair for pair in UNEVEN if pair[0] < 50])
    return drawn(rows=rows, ranks=ranks, rank=ranks - 1, width=rng.choice((3, 5)), bytes_per_element=4)


def _derive_rows(p: Draw) -> Derivation:
    chunk = ceil(p.rows / p.ranks)
    return Derivation(
        value=row_shards.local_elements([(p.rows, p.width)], ranks=p.ranks, rank=p.rank) * p.bytes_per_element,
        formula="rows left after the ranks before it have taken blocks of ceil(rows / ranks) × columns × bytes",
        substitution=f"max(0, min({chunk}, {p.rows} − {p.rank} × {chunk})) × {p.width} × {p.bytes_per_element}",
        source=SOURCE_ROWS,
    )


UNEVEN_ROWS = Drill(
    key="zero-uneven-rows",
    taught=TAUGHT,
    title="The last rank's rows",
    unit="B",
    target_s=75,
    draw=_draw_rows,
    small=_small_rows,
    prompt=lambda p: (
        f"FSDP2 shards an fp32 matrix of {p.rows} rows and {p.width:,} columns over {p.ranks} GPUs: it cuts dimension 0"
        " into equal blocks of whole rows, as torch.chunk does, and deals them out in order; the last block may be"
        " shorter. How many bytes of the matrix does the last GPU hold?"
    ),
    derive=_derive_rows,
    count=_count_rows,
    slips=(
        Slip("mean-share", lambda p: p.rows / p.ranks * p.width * p.bytes_per_element)
        | "You divided evenly. No rank holds a fraction of a row.",
        Slip("full-block", lambda p: ceil(p.rows / p.ranks) * p.width * p.bytes_per_element)
        | "That is the first GPU's share. Count how many rows are left when the others have theirs.",
        Slip("rounded-down", lambda p: p.rows // p.ranks * p.width * p.bytes_per_element)
        | "You gave the surplus rows to the first GPUs, one each. The blocks here are equal, but for the last.",
        Slip("remainder", lambda p: p.rows % p.ranks * p.width * p.bytes_per_element)
        | "You took the remainder of the division. It counts rows that are over when blocks are too small, not"
        " what the last block is left with.",
        Slip("whole-matrix", lambda p: p.rows * p.width * p.bytes_per_element)
        | "That is the whole matrix, which stands on a GPU only while its layer computes.",
    ),
    function=AsFunction(
        takes=("rows", "width", "ranks", "rank", "bytes_per_element"),
        limit=lambda p: {"rows": p.ranks - 2},
        limit_case="fewer rows than ranks",
    ),
)


DRILLS = (RANKS_TO_FIT, UNEVEN_ROWS)

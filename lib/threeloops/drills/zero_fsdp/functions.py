"""What the set on zero fsdp asks to be written as a function, each with a limit case."""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import changed, with_numbers


def _exact_fit(rng: random.Random) -> Draw:
    p = DRILLS["zero-ranks-to-fit"].draw(rng)
    return changed(p, budget=4 * p.parameters)


def _fewer_rows_than_ranks(rng: random.Random) -> Draw:
    p = DRILLS["zero-uneven-rows"].draw(rng)
    return changed(p, rows=p.ranks - 2)


FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["zero-ranks-to-fit"],
        takes=("parameters", "budget"),
        limit=_exact_fit,
        limit_case="states that fill the budget to the last byte",
    ),
    FunctionDrill(
        drill=DRILLS["zero-uneven-rows"],
        takes=("rows", "width", "ranks", "rank", "bytes_per_element"),
        limit=_fewer_rows_than_ranks,
        limit_case="fewer rows than ranks",
    ),
    FunctionDrill(
        drill=DRILLS["zero-fetch-shards"],
        takes=("size", "ranks", "link", "exchange"),
        limit=with_numbers("zero-fetch-shards", ranks=1),
        limit_case="a single GPU, which has no other to gather from",
    ),
)

"""What the set on attention io asks to be written as a function, each with a limit case."""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import changed, with_numbers


def _one_query_block(rng: random.Random) -> Draw:
    p = DRILLS["attention-fused-traffic"].draw(rng)
    return changed(p, tokens=p.block)


FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["attention-fused-traffic"],
        takes=("heads", "head_dim", "tokens", "block", "bytes_per_element"),
        limit=_one_query_block,
        limit_case="a sequence that is one block of queries",
    ),
    FunctionDrill(
        drill=DRILLS["attention-causal-blocks"],
        takes=("block", "blocks", "head_dim", "heads"),
        limit=with_numbers("attention-causal-blocks", blocks=1),
        limit_case="a sequence of a single block",
    ),
    FunctionDrill(
        drill=DRILLS["attention-fused-chain"],
        takes=("unary", "binary", "rows", "width", "bytes_per_element"),
        limit=with_numbers("attention-fused-chain", unary=1, binary=0),
        limit_case="a single kernel, with which nothing can be fused",
    ),
)

"""What the set on pipeline asks to be written as a function, each with a limit case."""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import changed, with_numbers


def _even_stages(rng: random.Random) -> Draw:
    p = DRILLS["pipeline-slow-stage"].draw(rng)
    return changed(p, slow_s=p.fast_s)


FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["pipeline-bytes-between-stages"],
        takes=("pp", "chunks", "m", "sequence", "hidden"),
        limit=with_numbers("pipeline-bytes-between-stages", chunks=1),
        limit_case="one chunk per GPU, the plain pipeline",
    ),
    FunctionDrill(
        drill=DRILLS["pipeline-slow-stage"],
        takes=("pp", "m", "fast_s", "slow_s"),
        limit=_even_stages,
        limit_case="a last stage that is no slower than the others",
    ),
    FunctionDrill(
        drill=DRILLS["pipeline-late-links"],
        takes=("pp", "total_s", "send_s"),
        limit=with_numbers("pipeline-late-links", pp=1),
        limit_case="a single stage, with no hop to make",
    ),
)

"""What the set on deadlines asks to be written as a function, each with a limit case, and one for the set on networks
that share a chip.
"""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import changed, with_numbers


def _one_stage(rng: random.Random) -> Draw:
    p = DRILLS["deadlines-chain"].draw(rng)
    return changed(p, periods_ms=p.periods_ms[:1], responses_ms=p.responses_ms[:1])


FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["deadlines-response"],
        takes=("cost_ms", "above_costs_ms", "above_periods_ms"),
        limit=with_numbers("deadlines-response", above_costs_ms=(), above_periods_ms=()),
        limit_case="a task that has the core to itself",
    ),
    FunctionDrill(
        drill=DRILLS["deadlines-chain"],
        takes=("periods_ms", "responses_ms"),
        limit=_one_stage,
        limit_case="a chain of a single stage",
    ),
    FunctionDrill(
        drill=DRILLS["deadlines-frames"],
        takes=("one_in", "confidence"),
        limit=with_numbers("deadlines-frames", one_in=2, confidence=0.5),
        limit_case="the slower half, as likely as not",
    ),
    FunctionDrill(
        drill=DRILLS["deadlines-launch-wait"],
        takes=("kernel_us", "busy"),
        limit=with_numbers("deadlines-launch-wait", busy=1.0),
        limit_case="a GPU that is never idle",
    ),
)

"""What the set on speculative asks to be written as a function, each with a limit case."""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import changed, with_numbers


def _nothing_drafted(rng: random.Random) -> Draw:
    p = DRILLS["spec-in-a-batch"].draw(rng)
    return changed(p, drafted=0, check_ms=p.plain_ms)


FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["serving-tokens-per-check"],
        takes=("accepted", "drafted"),
        limit=with_numbers("serving-tokens-per-check", accepted=0.0),
        limit_case="a draft that is never right",
    ),
    FunctionDrill(
        drill=DRILLS["spec-in-a-batch"],
        takes=("plain_ms", "check_ms", "draft_ms", "accepted", "drafted"),
        limit=_nothing_drafted,
        limit_case="nothing drafted at all",
    ),
    FunctionDrill(
        drill=DRILLS["spec-extra-work"],
        takes=("accepted", "drafted", "operations"),
        limit=with_numbers("spec-extra-work", drafted=1),
        limit_case="a single drafted token",
    ),
)

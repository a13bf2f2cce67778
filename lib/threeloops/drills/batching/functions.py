"""What the set on batching asks to be written as a function, each with a limit case."""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import changed, with_numbers


def _any_slots(rng: random.Random) -> Draw:
    """Any number of slots, not only the two that the question names."""
    return drawn(outputs=[rng.randrange(2, 60) for _ in range(rng.randrange(8, 14))], slots=rng.choice((2, 3, 5)))


def _slots_for_all(rng: random.Random) -> Draw:
    return drawn(outputs=[rng.randrange(2, 60) for _ in range(6)], slots=9)


def _whole_chunks(rng: random.Random) -> Draw:
    p = DRILLS["batching-budget-ttft"].draw(rng)
    return changed(p, prompt=11 * (p.budget - p.running))


FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["serving-refilled-steps"],
        takes=("outputs", "slots"),
        draw=_any_slots,
        limit=_slots_for_all,
        limit_case="more slots than requests",
    ),
    FunctionDrill(
        drill=DRILLS["batching-gain"],
        takes=("short", "long", "share", "slots"),
        limit=with_numbers("batching-gain", slots=1),
        limit_case="a single slot, in which no request waits for another's answer",
    ),
    FunctionDrill(
        drill=DRILLS["batching-budget-ttft"],
        takes=("budget", "running", "prompt", "step_ms"),
        limit=_whole_chunks,
        limit_case="a prompt that fills its last step exactly",
    ),
)

"""The drills that also ask for a function."""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import AsFunction, Draw, Drill, changed
from threeloops.drills.engine.functions import FunctionDrill


def _asked(drill: Drill, function: AsFunction) -> FunctionDrill:
    def limit(rng: random.Random) -> Draw:
        if function.limit_draw:
            return function.limit_draw(rng)
        p = drill.draw(rng)
        return changed(p, **(function.limit(p) if callable(function.limit) else function.limit))

    return FunctionDrill(
        drill=drill, takes=function.takes, limit=limit, limit_case=function.limit_case, draw=function.draw
    )


FUNCTIONS: dict[str, FunctionDrill] = {
    key: _asked(drill, drill.function) for key, drill in DRILLS.items() if drill.function
}

"""Draws that can be asked: each slip can be told from the answer and from the others, and the question does not hold
its answer. The engine draws again until one is; a drill says no more than how its numbers are drawn.

>>> too_close({"": 7.0, "doubled": 14.0, "off-by-one": 14.5}, 1.06)
('doubled', 'off-by-one')
>>> too_close({"": 7.0, "doubled": 14.0, "wrong-sign": -7.0}, 1.06)
"""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from threeloops.drills.engine.answers_in_text import held
from threeloops.drills.engine.drill import Draw, Drill

TRIES = 2000  # where no draw of so many can be asked, something else is wrong


def fair(drill: Drill) -> Drill:
    """The drill with draws that can be asked. Small ones, which are counted and never asked, need only keep their
    results apart, and only where they are drawn in the same way.

    Raises:   ValueError, when it draws, for a drill that has none
    """
    small = drill.small
    if small is drill.draw:
        small = _redrawn(drill, drill.draw, alike)
    return replace(drill, draw=_redrawn(drill, drill.draw, unfit), small=small)


def _redrawn(
    drill: Drill, draw: Callable[[random.Random], Draw], fault: Callable[[Drill, Draw], str]
) -> Callable[[random.Random], Draw]:
    def redrawn(rng: random.Random) -> Draw:
        faults: Counter[str] = Counter()
        for _ in range(TRIES):
            p = draw(rng)
            found = fault(drill, p)
            if not found:
                return p
            faults[found] += 1
        told = "; ".join(f"{times} times {found}" for found, times in faults.most_common())
        raise ValueError(f"{drill.key}: none of {TRIES} draws can be asked: {told}")

    return redrawn


def unfit(drill: Drill, p: Draw) -> str:
    """Why this draw cannot be asked; empty where it can."""
    found = alike(drill, p)
    if found:
        return found
    value = drill.derive(p).value
    in_the_question = held(drill.prompt(p), value, unit=drill.unit, tolerance=drill.tolerance)
    return "the question holds its answer" if in_the_question else ""


def alike(drill: Drill, p: Draw) -> str:
    """Why this draw is not wanted, or which two of its results look alike; empty for neither."""
    if not drill.wanted(p):
        return "`wanted` refuses the numbers"
    pair = too_close(drill.results(p), drill.apart)
    return "{} and {} look alike".format(*(key or "the answer" for key in sorted(pair))) if pair else ""


def too_close(results: Mapping[str, float], factor: float) -> tuple[str, str] | None:
    """Two neighbouring results that do not differ by more than the factor."""
    for (one, a), (two, b) in itertools.pairwise(sorted(results.items(), key=lambda result: result[1])):
        smaller, larger = (a, b) if a > 0 else (-b, -a)
        if larger <= (factor * smaller if smaller > 0 else smaller):
            return one, two
    return None

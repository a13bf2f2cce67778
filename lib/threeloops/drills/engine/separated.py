"""Draws in which every answer that is meant to be told apart can be.

>>> separated(random.Random(1), lambda rng: rng.randrange(1, 9), lambda number: (number, 4.0)) != 4
True
"""

import itertools
import random
from collections.abc import Callable, Iterable

from threeloops.drills.engine.drill import Draw

FACTOR = 1.06  # neighbours differ by more than this


def separated(
    rng: random.Random, draw: Callable[[random.Random], Draw], told: Callable[[Draw], Iterable[float]]
) -> Draw:
    """Draw again until all told values, the answer and its slips, lie apart."""
    while True:
        p = draw(rng)
        if all(larger > FACTOR * smaller for smaller, larger in itertools.pairwise(sorted(told(p)))):
            return p

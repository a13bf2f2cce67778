"""Draws that keep mistakes apart: drawn again until the answer and every slip differ."""

import itertools
import random
from collections.abc import Callable, Sequence

from threeloops.drills.engine.drill import Draw, Slip

RATIO = 1.06  # a little more than the tests ask for


def until_told_apart(
    draw: Callable[[random.Random], Draw],
    answer: Callable[[Draw], float],
    slips: Sequence[Slip],
    *,
    wanted: Callable[[Draw], bool] = lambda p: True,
) -> Callable[[random.Random], Draw]:
    """The same draw, repeated until it is wanted and no two results lie close."""

    def drawn_apart(rng: random.Random) -> Draw:
        while True:
            p = draw(rng)
            if not wanted(p):
                continue
            results = [answer(p), *(slip.wrong(p) for slip in slips)]
            if all(max(one, two) > RATIO * min(one, two) for one, two in itertools.combinations(results, 2)):
                return p

    return drawn_apart

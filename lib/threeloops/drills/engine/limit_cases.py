"""How a limit case is made: a drill's own draw, with some of its numbers set."""

import random
from collections.abc import Callable

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, drawn


def changed(p: Draw, **numbers: object) -> Draw:
    """A draw with some of its numbers replaced."""
    return drawn(**vars(p) | numbers)


def with_numbers(key: str, **numbers: object) -> Callable[[random.Random], Draw]:
    """What draws for this drill as ever, and then sets some of its numbers."""
    return lambda rng: changed(DRILLS[key].draw(rng), **numbers)

"""Searches: the number up to which something holds, for counts that try; and a draw that is wanted.

>>> round(holds_up_to(lambda side: side * side < 2, high=10), 9)
1.414213562
>>> wanted(iter([4, 6, 7, 8]).__next__, lambda number: number % 2)
7
"""

from collections.abc import Callable
from typing import TypeVar

TRIES = 2000  # where none of so many draws is wanted, something else is wrong
Drawn = TypeVar("Drawn")


def holds_up_to(holds: Callable[[float], bool], *, high: float, low: float = 0.0, halvings: int = 64) -> float:
    """The number between two others up to which something holds, by halving what is left between them."""
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def wanted(draw: Callable[[], Drawn], fits: Callable[[Drawn], object]) -> Drawn:
    """The first draw that fits.

    Raises:   ValueError where none of TRIES does
    """
    for _ in range(TRIES):
        found = draw()
        if fits(found):
            return found
    raise ValueError(f"none of {TRIES} draws is wanted")

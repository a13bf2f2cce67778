"""A job written out unit by unit: every unit of work is done on a clock, by one worker at some speed or by whichever
of several is free first.

Nothing here knows a share, a speed-up or a law; times are exact fractions.

>>> one_after_another([(8, 1), (4, 2)])  # 8 units at one per tick, then 4 at two per tick
Fraction(10, 1)
>>> dealt_out(alone=10, shared=90, workers=4)  # 10 units that one worker must do, then 90 for all: 23 rounds
33
"""

import heapq
from collections.abc import Iterable
from fractions import Fraction


def one_after_another(parts: Iterable[tuple[int, float | str]]) -> Fraction:
    """Ticks for parts of (units of work, units per tick), one unit after the other; a speed may be written as text
    ("1.7"), to be exact.
    """
    clock = Fraction(0)
    for units, speed in parts:
        for _ in range(units):
            clock += 1 / Fraction(str(speed))
    return clock


def dealt_out(*, alone: int, shared: int, workers: int) -> int:
    """Ticks until all is done: `alone` units by one worker while the others wait, then each shared unit by the worker
    that is free first.
    """
    if workers < 1 or alone < 0 or shared < 0:
        raise ValueError(f"workers={workers} must be at least 1, alone={alone} and shared={shared} at least 0")
    free_at = [alone] * workers
    for _ in range(shared):
        heapq.heapreplace(free_at, free_at[0] + 1)
    return max(free_at)

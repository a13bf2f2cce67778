"""Two clocks, walked through: which slow result is behind every command of the fast loop, and how old its picture
gets.

>>> clocks = {name: Fraction(time) for name, time in [("slow_latency", 3), ("slow_period", 5), ("fast_latency", 1)]}
>>> [(int(starts), int(ends)) for starts, ends in ages([Fraction(0)], **clocks, fast_period=Fraction(1))]
[(9, 10)]
>>> int(oldest(**clocks, fast_period=Fraction(1))), int(mean_age(**clocks, fast_period=Fraction(1)))
(10, 7)
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

PHASES = 40  # places of a slow period at which a fast loop begins


def ages(
    phases: Sequence[Fraction],
    *,
    slow_latency: Fraction,
    slow_period: Fraction,
    fast_latency: Fraction,
    fast_period: Fraction,
) -> Iterator[tuple[Fraction, Fraction]]:
    """(age of the slow picture when a command begins to hold, when it ends), for fast loops that begin at these parts
    of a slow period. A result that is done at the very moment a fast loop begins comes too late for it.
    """
    for phase in phases:
        begins = slow_latency + 2 * slow_period + slow_period * phase
        taken = Fraction(0)  # when the picture was taken behind the newest result that is there
        while taken + slow_period + slow_latency < begins:
            taken += slow_period
        yield begins + fast_latency - taken, begins + fast_latency + fast_period - taken


def oldest(**clocks: Fraction) -> Fraction:
    """The greatest age, with the moments among the phases at which the fast loop has just missed a result."""
    return max(end for _, end in ages([Fraction(one, PHASES) for one in range(PHASES)], **clocks))


def mean_age(**clocks: Fraction) -> Fraction:
    """The mean age over phases spread evenly, each command counted from its beginning to its end."""
    found = list(ages([Fraction(2 * one + 1, 2 * PHASES) for one in range(PHASES)], **clocks))
    return sum((start + end for start, end in found), Fraction(0)) / (2 * len(found))

"""A chain of stages with clocks of their own: each reads the newest value when it starts and writes when it ends.

Knows no bound: it follows what happens to an event from stage to stage, for one setting of the clocks or for all of
them.

>>> journey = follow([Stage(period=4, response=3, first=1), Stage(period=5, response=2, first=0)], event=1)
>>> [(hop.seen, hop.start, hop.end) for hop in journey], reaction(journey)
([(1, 5, 8), (8, 10, 12)], 11)
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Time = Any  # whole numbers or fractions


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Starts at first, first + period, and so on; writes so long after each start."""

    period: Time
    response: Time
    first: Time = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """What one stage did with the event: when it could be seen, the start that read it, the end that wrote it."""

    seen: Time
    start: Time
    end: Time


def follow(stages: Sequence[Stage], *, event: Time) -> list[Hop]:
    """The event's way through the stages. A value written in the very moment in which the next stage reads is missed:
    the worst of two ways to see a tie.
    """
    hops, seen = [], event
    for stage in stages:
        start = stage.first
        while start <= seen:
            start += stage.period
        hops.append(Hop(seen=seen, start=start, end=start + stage.response))
        seen = hops[-1].end
    return hops


def reaction(hops: Sequence[Hop]) -> Time:
    """From the event to the end of the last stage."""
    return hops[-1].end - hops[0].seen


def slowest(stages: Sequence[tuple[int, int]]) -> int:
    """The slowest reaction over all settings of the clocks in whole steps: (period, response) of each stage.

    >>> slowest([(3, 2), (10, 5)])
    20
    """
    clocks = itertools.product(*(range(period) for period, _ in stages))
    return max(int(reaction(follow(_set(stages, firsts), event=0))) for firsts in clocks)


def reactions(stages: Sequence[tuple[int, int]], *, firsts: Sequence[int], events: int) -> list[Fraction]:
    """Reactions to events spread evenly over the time after which the clocks stand as at the start."""
    span = 1
    for period, _ in stages:
        span = span * period // _common(span, period)
    return [
        Fraction(reaction(follow(_set(stages, firsts), event=Fraction(2 * number + 1, 2 * events) * span)))
        for number in range(events)
    ]


def _set(stages: Sequence[tuple[int, int]], firsts: Sequence[int]) -> list[Stage]:
    return [
        Stage(period=period, response=response, first=first)
        for (period, response), first in zip(stages, firsts, strict=True)
    ]


def _common(one: int, other: int) -> int:
    """Their greatest common divisor, by subtraction."""
    while other:
        one, other = other, one % other
    return one

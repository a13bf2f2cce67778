"""Frames that sometimes take too long, and what is done about it: played frame by frame.

Knows no formula: it notes when which frame's result stands, and asks at every tick of a control loop how old the
newest result is. Times are whole numbers of any unit, or fractions.

>>> results = play([20, 40, 20, 20], period=25, policy="skip")
>>> [(one.captured, one.stands) for one in results], oldest(results)
([(0, 20), (25, 65), (75, 95)], 70)
"""

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from threeloops import checks

Time = Any
POLICIES = ("queue", "skip", "abort", "degrade")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    captured: Time
    stands: Time  # when the result can be used
    cheap: bool = False  # the fallback's, not the network's


def play(takes: Sequence[Time], *, period: Time, policy: str) -> list[Result]:
    """Results of frames captured every period, frame k taking takes[k] on one processor.

    queue: each frame waits for its turn. skip: a frame that comes while another is worked on is dropped. abort: a frame
    that is not done when the next one comes is given up. degrade: the same, but then a cheap result of it stands.
    """
    checks.one_of(POLICIES, policy=policy)
    free: Time = 0
    results = []
    for number, takes_one in enumerate(takes):
        captured = number * period
        if policy == "skip" and free > captured:
            continue
        start = max(free, captured)
        free = start + takes_one
        given_up = policy in ("abort", "degrade") and free > captured + period
        if given_up:
            free = captured + period
        if not given_up or policy == "degrade":
            results.append(Result(captured=captured, stands=free, cheap=given_up))
    return results


def oldest(results: Sequence[Result]) -> Time:
    """The greatest age of the newest result: it is reached just before the next one stands."""
    return max(later.stands - one.captured for one, later in itertools.pairwise(results))


def ages(results: Sequence[Result], *, tick: Time) -> list[Time]:
    """Age of the newest result at each tick of a control loop, from the first result to the last."""
    found, newest, now = [], 0, -(-results[0].stands // tick) * tick
    while now < results[-1].stands:
        while newest + 1 < len(results) and results[newest + 1].stands <= now:
            newest += 1
        found.append(now - results[newest].captured)
        now += tick
    return found


def at_share(values: Sequence[Time], share: Fraction) -> Time:
    """The smallest of the values that at least this share of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-share.numerator * len(ordered) // share.denominator) - 1)]


def drawn_times(*, usual: tuple[int, int], late: tuple[int, int], one_in: int, frames: int, seed: int) -> list[int]:
    """Times of frames, whole numbers between two bounds; one in so many comes from the later bounds."""
    rng = random.Random(seed)
    return [rng.randint(*(late if rng.randrange(one_in) == 0 else usual)) for _ in range(frames)]

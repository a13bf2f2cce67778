"""Measuring a tail, tried out: draw frames again and again, and see how often the slowest is slow enough.

>>> frames_until(share=Fraction(9, 10), confidence=Fraction(95, 100))
29
"""

import random
from collections.abc import Sequence
from fractions import Fraction


def frames_until(*, share: Fraction, confidence: Fraction) -> int:
    """Add frame after frame to a test, keeping the exact chance that all of them were faster than the percentile, until
    that chance is small enough.
    """
    frames, all_below, doubt = 0, Fraction(1), 1 - confidence
    while all_below > doubt:
        frames += 1
        all_below *= share
    return frames


def share_of_tests(*, frames: int, one_in: int, tests: int, seed: int) -> float:
    """The share of tests of so many frames in which at least one was among the slowest 1 in so many."""
    rng = random.Random(seed)
    return sum(any(rng.randrange(one_in) == 0 for _ in range(frames)) for _ in range(tests)) / tests


def late_in_an_hour(*, pattern: Sequence[bool], frames_per_s: int) -> int:
    """Go through an hour frame by frame, in which lateness repeats by this pattern, and count the late ones.

    >>> late_in_an_hour(pattern=[True] + [False] * 99, frames_per_s=10)
    360
    """
    frames = frames_per_s * 60 * 60
    return sum(pattern[number % len(pattern)] for number in range(frames))

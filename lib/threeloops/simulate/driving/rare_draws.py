"""Rare cases drawn: drives in which a case comes or does not, step by step, and a trigger that fires or does not.

Knows no formula: each step is a draw.

>>> share_of_drives(steps=300, one_in=100, drives=2_000, seed=1)
0.955
>>> fired(steps=100_000, one_in=50, found_one_in=2, false_one_in=100, seed=1)
Fired(right=964, wrong=1036)
"""

import random
from typing import NamedTuple

import numpy as np

from threeloops import checks


class Fired(NamedTuple):
    """How often a trigger fired where the case was there, and where it was not."""

    right: int
    wrong: int


def share_of_drives(*, steps: int, one_in: int, drives: int, seed: int) -> float:
    """Of so many drives, how many met the case at least once; each step of a drive meets it one time in one_in."""
    checks.count(steps=steps, one_in=one_in, drives=drives)
    drawn = np.random.default_rng(seed).integers(one_in, size=(drives, steps))
    return float((drawn == 0).any(axis=1).mean())


def fired(*, steps: int, one_in: int, found_one_in: int, false_one_in: int, seed: int) -> Fired:
    """A drive of so many steps with a trigger that finds the case one time in found_one_in, and in any step fires
    without it one time in false_one_in.
    """
    checks.count(steps=steps, one_in=one_in, found_one_in=found_one_in, false_one_in=false_one_in)
    drawn, right, wrong = random.Random(seed), 0, 0
    for _step in range(steps):
        if drawn.randrange(one_in) == 0:
            right += drawn.randrange(found_one_in) == 0
        wrong += drawn.randrange(false_one_in) == 0
    return Fired(right, wrong)

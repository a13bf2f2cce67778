"""How many seeds a test tries in this run: the one place that says what is left to `book.py test --thorough`.

A drill promises something about a thousand draws. Trying them all at every commit takes longer than anybody waits, so

- `--quick` tries the first 6 (before a commit);
- a plain run tries the first 6 as well, and one of 23 shares: that of this commit, so that 23 commits in a row try
  every seed; 23 and five have no common divisor, so that what takes turns as well sees every share in time;
- `--thorough` tries them all.

What is not drawn and takes long is cut into shares in the same way: `todays`. Whole tests that take long take turns:
tests/turns.py.

A test asks `seeds(1000)` for what it may try of a thousand. Statistics over many draws (how many answers there are,
how far draws scatter) need them all and do not ask: they run over their full number every time, unless they are
marked `thorough`.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from tests.turns import TURNS
from threeloops import wall_clock

T = TypeVar("T")
FIRST, SHARES = 6, 23
# in the environment, which the workers of one run have in common
MODE, ALL = "THREELOOPS_TESTS", "THREELOOPS_TESTS_ALL"
COUNT = "THREELOOPS_TESTS_COUNT"


def mode() -> str:
    """quick, usual or thorough."""
    return os.environ.get(MODE, "usual")


def begin(chosen: str, *, named: bool = False) -> None:
    """Fix the mode and the number of this run, once, before any worker starts; `named`: somebody asked for these files,
    and no turn is waited for.
    """
    os.environ[MODE] = chosen
    os.environ[ALL] = "yes" if named or chosen == "thorough" else ""
    os.environ.setdefault(COUNT, str(_commits()))


def counted() -> int:
    """A number that goes up by one from commit to commit."""
    return int(os.environ.get(COUNT, "0"))


def _commits() -> int:
    """How many there are; days where the history is not there."""
    commits = subprocess.run(
        ["git", "rev-list", "--count", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    shallow = subprocess.run(
        ["git", "rev-parse", "--is-shallow-repository"], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    if commits.returncode or shallow.stdout.strip() != "false":
        return wall_clock.today().toordinal()
    return int(commits.stdout)


def chosen(most: int, *, mode: str, share: int) -> list[int]:
    """Which of so many seeds a run tries.

    >>> chosen(1000, mode="quick", share=3), chosen(4, mode="quick", share=3)
    ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3])
    >>> usual = chosen(1000, mode="usual", share=3)
    >>> len(usual), usual[4:8]
    (49, [4, 5, 26, 49])
    """
    if mode == "thorough":
        return list(range(most))
    if mode == "quick":
        return list(range(min(most, FIRST)))
    return [seed for seed in range(most) if seed < FIRST or seed % SHARES == share]


def seeds(most: int = 1000) -> list[int]:
    """What this run tries of so many seeds."""
    return chosen(most, mode=mode(), share=counted() % SHARES)


def todays(everything: Sequence[T], *, shares: int = SHARES) -> list[T]:
    """What this run looks at: one share of so many, or all of it when it is thorough.

    Raises:   ValueError, for a number of shares that turns divide: a test that takes turns would see the same few
    """
    if shares % TURNS == 0:
        raise ValueError(f"{shares} shares and {TURNS} turns go round together; take {shares + 1}")
    return list(everything if mode() == "thorough" else everything[counted() % shares :: shares])


def turn() -> int | None:
    """Which of so many turns this run has; None where it runs them all."""
    return None if os.environ.get(ALL) else counted() % TURNS


def whole() -> bool:
    """Does this run take the whole suite, and not files that somebody named?"""
    return mode() == "thorough" or not os.environ.get(ALL)


def said() -> str:
    """What this run tried, in a sentence or two."""
    if mode() == "thorough":
        return "Every seed was tried."
    if mode() == "quick":
        return f"The first {FIRST} seeds were tried, and nothing that takes long; `book.py test` tries more."
    tried = f"The first {FIRST} seeds were tried, and of all of them one in {SHARES}, from seed {counted() % SHARES} on"
    if turn() is not None:
        tried += f"; of what takes turns, the tests of turn {turn()} of 0 to {TURNS - 1}"
    return f"{tried}. `book.py test --thorough` tries all."

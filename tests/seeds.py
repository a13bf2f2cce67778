"""How many seeds a test tries in this run: the one place that says what is left to `book.py test --thorough`.

A drill promises something about a thousand draws. Trying them all at every commit takes longer than anybody waits, so

- `--quick` tries the first 6 (before a commit);
- a plain run tries the first 60, and one tenth of all: the share of this commit, so that ten commits in a row try
  every seed;
- `--thorough` tries them all.

What is not drawn and takes long (a page in a browser, a chapter without torch, a benchmark's smallest run) is cut
into shares in the same way: `todays`.

A test asks `seeds(1000)` for what it may try of a thousand. Statistics over many draws (how many answers there are,
how far draws scatter) need them all and do not ask: they run over their full number every time, unless they are
marked `thorough`.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from threeloops import wall_clock

T = TypeVar("T")
QUICK, USUAL, SHARES = 6, 60, 10
# in the environment, which the workers of one run have in common
MODE, SHARE = "THREELOOPS_TESTS", "THREELOOPS_TESTS_SHARE"


def mode() -> str:
    """quick, usual or thorough."""
    return os.environ.get(MODE, "usual")


def begin(chosen: str) -> None:
    """Fix the mode and the share of this run, once, before any worker starts."""
    os.environ[MODE] = chosen
    os.environ.setdefault(SHARE, str(todays_share()))


def todays_share() -> int:
    """0 to 9: counted on by commits; by days where the history is not there."""
    counted = subprocess.run(
        ["git", "rev-list", "--count", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    shallow = subprocess.run(
        ["git", "rev-parse", "--is-shallow-repository"], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    if counted.returncode or shallow.stdout.strip() != "false":
        return wall_clock.today().toordinal() % SHARES
    return int(counted.stdout) % SHARES


def chosen(most: int, *, mode: str, share: int) -> list[int]:
    """Which of so many seeds a run tries.

    >>> chosen(1000, mode="quick", share=3), chosen(4, mode="quick", share=3)
    ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3])
    >>> usual = chosen(1000, mode="usual", share=3)
    >>> len(usual), usual[58:64]
    (154, [58, 59, 63, 73, 83, 93])
    """
    if mode == "thorough":
        return list(range(most))
    if mode == "quick":
        return list(range(min(most, QUICK)))
    return [seed for seed in range(most) if seed < USUAL or seed % SHARES == share]


def seeds(most: int = 1000) -> list[int]:
    """What this run tries of so many seeds."""
    return chosen(most, mode=mode(), share=int(os.environ.get(SHARE, "0")))


def todays(everything: Sequence[T], *, shares: int = SHARES) -> list[T]:
    """What this run looks at: one share of so many, or all of it when it is thorough."""
    share = int(os.environ.get(SHARE, "0")) % shares
    return list(everything if mode() == "thorough" else everything[share::shares])


def said() -> str:
    """What this run tried, in a sentence."""
    if mode() == "thorough":
        return "Every seed was tried."
    if mode() == "quick":
        return f"The first {QUICK} seeds were tried, and nothing that takes long; `book.py test` tries more."
    return (
        f"The first {USUAL} seeds were tried, and of all of them every tenth from {os.environ[SHARE]}; `book.py test"
        " --thorough` tries all."
    )

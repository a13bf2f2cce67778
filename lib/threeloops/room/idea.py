"""What one idea is: the thing that is counted, scheduled and got wrong, whichever way it is asked."""

from collections.abc import Callable
from dataclasses import dataclass

from threeloops.room.question import Question

LONGEST_S = 240.0  # what takes longer is a conversation or code: asked by name or in a mock, not between others
EASY_S, HARD_S = 90, 130  # target times up to which an idea counts as easy, and above which as hard


@dataclass(frozen=True, slots=True, kw_only=True)
class Idea:
    """One thing to know. `ask[kind](seed)` makes the question."""

    key: str
    title: str
    topic: str
    loop: str
    section: str
    target_s: float
    ask: dict[str, Callable[[str], Question]]
    prerequisites: tuple[str, ...] = ()

    @property
    def difficulty(self) -> int:
        """1 to 3: how long a fluent person needs."""
        return 1 if self.target_s <= EASY_S else 2 if self.target_s <= HARD_S else 3

"""What one idea is: the thing that is counted, scheduled and got wrong, whichever way it is asked."""

from collections.abc import Callable
from dataclasses import dataclass, fields

from threeloops.room.question import Question, Subject

LONGEST_S = 240.0  # what takes longer is a conversation or code: asked by name or in a mock, not between others
EASY_S, HARD_S = 90, 130  # target times up to which an idea counts as easy, and above which as hard


@dataclass(frozen=True, slots=True, kw_only=True)
class Idea(Subject):
    """One thing to know. `ask[kind](seed)` makes the question."""

    ask: dict[str, Callable[[str], Question]]

    @property
    def difficulty(self) -> int:
        """1 to 3: how long a fluent person needs."""
        return 1 if self.target_s <= EASY_S else 2 if self.target_s <= HARD_S else 3


def idea_of(subject: Subject, ask: dict[str, Callable[[str], Question]]) -> Idea:
    """A subject with the ways to ask it."""
    return Idea(**{field.name: getattr(subject, field.name) for field in fields(Subject)}, ask=ask)

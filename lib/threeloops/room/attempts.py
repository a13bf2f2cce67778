"""What a history keeps: attempts, questions to come, sessions."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

STATUSES = ("right", "wrong", "given-up", "skipped", "interrupted")
ANSWERED = ("right", "wrong")
RATED = ("right", "wrong", "given-up")
DESK = "desk"  # the kind of an answer on a card of a notebook: it has no clock, and says only how sure it was
WORDS = ("session", "idea", "topic", "kind", "seed", "written", "slips")
FIGURES = ("position", "seconds", "target_s", "extra", "hints", "at_s", "share")
LATEST_S = 4e9  # Unix time in the year 2096: what lies beyond is damage


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One question, judged: by its first readable answer."""

    session: str
    position: int
    idea: str
    topic: str
    kind: str
    seed: str
    written: str
    status: str
    slips: str  # keys of the slips that were named, comma between
    seconds: float
    target_s: float
    extra: float  # 1.5 where half as much time again was given
    hints: int
    at_s: float  # Unix time
    share: float = 0.0  # of a wrong answer in several parts: how much of it is right
    sure: float | None = None  # how sure it was said to be before the verdict, in percent; None: not said

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status={self.status!r} is not known; an attempt is one of: {', '.join(STATUSES)}")
        for name in WORDS:
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name}={getattr(self, name)!r} is no text")
        for name in FIGURES:
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value < LATEST_S:
                raise ValueError(f"{name}={value!r} is no number of an attempt")
        if self.share > 1:
            raise ValueError(f"share={self.share!r} is more than a whole answer")
        if self.sure is not None and not (isinstance(self.sure, int | float) and 0 <= self.sure <= 100):
            raise ValueError(f"sure={self.sure!r} is no percentage")

    @property
    def rated(self) -> bool:
        """Whether it moves the idea's schedule."""
        return self.status in RATED and self.kind != DESK

    @property
    def points(self) -> float:
        """What it counts: 1 when right, its share when some parts are."""
        return 1.0 if self.status == "right" else self.share if self.status == "wrong" else 0.0


def tally(points: float) -> str:
    """A number of right answers, some of them right in part.

    >>> tally(3.0), tally(2 + 2 / 3)
    ('3', '2.7')
    """
    return f"{points:.1f}".removesuffix(".0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question to come: which idea, in which kind, with which seed."""

    idea: str
    kind: str
    seed: str


def plan_text(plan: Sequence[Ask]) -> str:
    """Questions to come as the text that is kept of them.

    >>> plan_of(plan_text([Ask(idea="ring-time", kind="number", seed="a")]))
    (Ask(idea='ring-time', kind='number', seed='a'),)
    """
    return json.dumps([[ask.idea, ask.kind, ask.seed] for ask in plan])


def plan_of(text: str) -> tuple[Ask, ...]:
    """The questions of such a text.

    Raises:   ValueError or TypeError for any other
    """
    return tuple(Ask(idea=str(idea), kind=str(kind), seed=str(seed)) for idea, kind, seed in json.loads(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A session as it is kept: whichever door opens it finds the same questions at the same place."""

    id: str
    mode: str
    options: dict[str, object]
    plan: tuple[Ask, ...]
    started_s: float
    ended_s: float | None

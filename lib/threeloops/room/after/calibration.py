"""Whether answers are right as often as they were said to be: of those that were 80 % sure, 80 % should be."""

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import units
from threeloops.room.attempts import ANSWERED, Attempt

EDGES = (0, 50, 70, 85, 95, 101)  # percent: where the rows of the table begin
FEWEST = 5  # answers with a confidence before a topic is judged
CHANCE = 0.05  # a topic is named where a reader as often right as sure would do so badly in fewer than these
MOST_SURE = 99.0  # what 100 % is taken for: else one wrong answer in a hundred would be impossible
TOLERANCE = 1e-9  # three thirds are one answer
WIDTH = 20  # characters of the curve


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Answers that were about equally sure."""

    low: int  # percent
    high: int
    answers: int
    said: float  # mean of the stated confidences, percent
    right: float  # an answer in several parts counts by its share

    @property
    def share(self) -> float:
        """Percent of them that were right."""
        return 100 * self.right / self.answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Surer:
    """A topic in which answers are right less often than they were said to be."""

    topic: str
    answers: int
    said: float  # percent
    right: float  # percent
    chance: float  # probability of so few right ones if the stated confidences were true


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Stated confidence against what was right."""

    rows: tuple[Row, ...]  # only those that have answers
    surer: tuple[Surer, ...]  # the clearest first

    @property
    def answers(self) -> int:
        """How many answers have a confidence."""
        return sum(row.answers for row in self.rows)

    @property
    def lines(self) -> tuple[str, ...]:
        """The table and the curve as plain lines; none where no confidence was ever stated."""
        if not self.rows:
            return ()
        return (
            f"How sure, and how often right ({units.counted(self.answers, 'answer')} with a stated confidence):",
            f"  {'stated':<12} {'answers':>7} {'mean':>5} {'right':>6}  0 %{'100 %':>{WIDTH - 3}}",
            *(
                f"  {_range(row):<12} {row.answers:>7} {row.said:>3.0f} % {row.share:>4.0f} %  {_curve(row)}"
                for row in self.rows
            ),
            "  #: right, |: what was stated. A bar that ends before its | was surer than right.",
        )


def calibration(attempts: Sequence[Attempt]) -> Calibration:
    """The table over all answers that have a confidence, and the topics that are surer than right.

    >>> calibration([]).lines
    ()
    """
    stated = [one for one in attempts if one.sure is not None and one.status in ANSWERED]
    by_topic: defaultdict[str, list[Attempt]] = defaultdict(list)
    for one in stated:
        by_topic[one.topic].append(one)
    named = [found for topic in sorted(by_topic) if (found := _surer(topic, by_topic[topic]))]
    return Calibration(
        rows=tuple(
            _row(low, high - 1, inside)
            for low, high in itertools.pairwise(EDGES)
            if (inside := [one for one in stated if low <= _sure(one) < high])
        ),
        surer=tuple(sorted(named, key=lambda one: one.chance)),
    )


def surer_lines(surer: Sequence[Surer]) -> list[str]:
    """Each topic that is surer than right, in a sentence."""
    return [
        f"Surer than right: {one.topic} (stated {one.said:.0f} %, right {one.right:.0f} % of"
        f" {units.counted(one.answers, 'answer')}). `python3 book.py drill {one.topic}` asks it; check the answer a"
        " second way before you send it."
        for one in surer
    ]


def so_few(stated: Sequence[float], right: float) -> float:
    """The probability that of answers which are right with these probabilities at most so many are right.

    Exact: the distribution of the number of right answers, one answer added at a time.

    >>> so_few([0.9, 0.9], 1)
    0.19
    >>> so_few([0.9, 0.9], 0.7 + 0.2 + 0.1)  # a float just below 1
    0.19
    """
    numbers = [1.0]  # probability of 0, 1, 2, ... right ones
    for sure in stated:
        numbers = [miss * (1 - sure) + hit * sure for miss, hit in zip([*numbers, 0.0], [0.0, *numbers], strict=True)]
    return round(sum(numbers[: int(right + TOLERANCE) + 1]), 12)


def _sure(attempt: Attempt) -> float:
    assert attempt.sure is not None
    return attempt.sure


def _row(low: int, high: int, inside: Sequence[Attempt]) -> Row:
    return Row(
        low=low,
        high=high,
        answers=len(inside),
        said=sum(map(_sure, inside)) / len(inside),
        right=sum(one.points for one in inside),
    )


def _surer(topic: str, answers: Sequence[Attempt]) -> Surer | None:
    """The topic, if it has enough answers and chance alone seldom makes so few of them right."""
    if len(answers) < FEWEST:
        return None
    right = sum(one.points for one in answers)
    chance = so_few([min(_sure(one), MOST_SURE) / 100 for one in answers], right)
    row = _row(0, 100, answers)
    if chance >= CHANCE:
        return None
    return Surer(topic=topic, answers=row.answers, said=row.said, right=row.share, chance=chance)


def _range(row: Row) -> str:
    return f"{row.low} to {row.high} %"


def _curve(row: Row) -> str:
    """A bar of what was right, with a mark at what was stated."""
    bar = ("#" * round(WIDTH * row.share / 100)).ljust(WIDTH, ".")
    at = min(round(WIDTH * row.said / 100), WIDTH - 1)
    return f"{bar[:at]}|{bar[at + 1 :]}"

"""Whether it gets better: the latest answers beside those before them, and the days on which there were any."""

import datetime as dt
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import units
from threeloops.room.attempts import RATED, Attempt, tally

BLOCK = 20  # answers on either side of the comparison, where there are that many
FEWEST = 10  # answers before there is anything to compare
DAYS = 10  # latest days with answers that the chart has
WIDTH = 20  # letters of its longest bar


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Right answers lately and before, and by day."""

    answers: int
    block: int  # answers on either side; 0 while there are too few
    lately: float
    before: float
    pace_lately: float | None  # median of seconds over the time allowed, right answers only
    pace_before: float | None
    days: tuple[tuple[dt.date, float, int], ...]  # (day, right, answered), oldest first

    @property
    def sentences(self) -> tuple[str, ...]:
        """The trend in words."""
        if not self.block:
            return (f"Too few answers for a trend: {self.answers} of {FEWEST}.",) if self.answers else ()
        share = f"Of the last {self.block} answers {tally(self.lately)} were right, of the {self.block} before"
        share += f" {tally(self.before)}"
        if self.pace_lately is None or self.pace_before is None:
            return (f"{share}: {self.verdict}.",)
        pace = f"Right ones took {self.pace_lately:.2f} of the time allowed, before {self.pace_before:.2f}."
        return (f"{share}: {self.verdict}.", pace)

    @property
    def verdict(self) -> str:
        """Better or worse, and whether chance alone would do it: two standard deviations of the difference."""
        mean = (self.lately + self.before) / (2 * self.block)
        chance = math.sqrt(2 * mean * (1 - mean) * self.block)
        change = self.lately - self.before
        if abs(change) <= chance:
            return "about as before"
        way = "better" if change > 0 else "worse"
        return way if abs(change) > 2 * chance else f"{way}, though chance alone can do that"

    @property
    def chart(self) -> tuple[str, ...]:
        """A line a day: the share of right answers as a bar."""
        shares = ((day, right / answered, f"{tally(right)} of {answered}") for day, right, answered in self.days)
        return tuple(
            f"{day.isoformat()}  {_bar(share)}  {units.fmt_percent(share):>6}  {told}" for day, share, told in shares
        )


def trend(attempts: Sequence[Attempt]) -> Trend:
    """The trend of all attempts, which come oldest first."""
    answered = [attempt for attempt in attempts if attempt.status in RATED]
    block = min(BLOCK, len(answered) // 2) if len(answered) >= FEWEST else 0
    lately, before = (answered[-block:], answered[-2 * block : -block]) if block else ([], [])
    right: defaultdict[dt.date, float] = defaultdict(float)
    for attempt in answered:
        right[_day(attempt)] += attempt.points
    given = Counter(map(_day, answered))
    return Trend(
        answers=len(answered),
        block=block,
        lately=_right(lately),
        before=_right(before),
        pace_lately=_pace(lately),
        pace_before=_pace(before),
        days=tuple((day, right[day], given[day]) for day in sorted(given)[-DAYS:]),
    )


def _bar(share: float) -> str:
    return ("#" * round(WIDTH * share)).ljust(WIDTH, ".")


def _day(attempt: Attempt) -> dt.date:
    return dt.datetime.fromtimestamp(attempt.at_s).date()


def _right(attempts: Sequence[Attempt]) -> float:
    return sum(attempt.points for attempt in attempts)


def _pace(attempts: Sequence[Attempt]) -> float | None:
    paces = [one.seconds / (one.target_s * one.extra) for one in attempts if one.status == "right"]
    return statistics.median(paces) if paces else None

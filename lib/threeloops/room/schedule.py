"""When an idea is asked again. FSRS decides over days; within a session there is a short ladder of our own, because
FSRS thinks in days.

>>> import datetime as dt
>>> now = dt.datetime(2026, 3, 1, tzinfo=dt.timezone.utc)
>>> later = review(None, rating(right=True, seconds=50, target_s=90, hints=0), at=now)
>>> (due(later, interview=None) - now).days
2
"""

import datetime as dt
import functools
from typing import TYPE_CHECKING

from threeloops.room.attempts import Attempt

if TYPE_CHECKING:  # loaded when an answer is rated or a date is asked for: not before the first question
    from fsrs import Rating, Scheduler

# a missed idea returns after so many other questions, with fresh numbers; once right there, it is left to the days
LADDER = (3, 8)
# shares of the target time above which a right answer counts as hard won, and below which as easy
SLOW, QUICK = 1.0, 0.5
LAST_DAYS = 2  # before the interview: what was wrong and the numbers to know; nothing new, but for whoever comes late


@functools.cache
def _scheduler() -> "Scheduler":
    from fsrs import Scheduler

    # No learning steps of minutes, because the ladder does that: a card's next date is a day off at least. No random
    # spread: the same answers, the same dates.
    return Scheduler(desired_retention=0.9, learning_steps=(), relearning_steps=(), enable_fuzzing=False)


def rating(*, right: bool, seconds: float, target_s: float, hints: int) -> "Rating":
    """What an answer says about how well the idea is known: wrong, three hints or a surrender are Again; slow or
    hinted is Hard.

    >>> (
    ...     rating(right=True, seconds=30, target_s=90, hints=0).name,
    ...     rating(right=True, seconds=30, target_s=90, hints=1).name,
    ... )
    ('Easy', 'Hard')
    """
    from fsrs import Rating

    if not right or hints >= 3:
        return Rating.Again
    if hints or seconds > SLOW * target_s:
        return Rating.Hard
    return Rating.Easy if seconds < QUICK * target_s else Rating.Good


def review(card: str | None, rated: "Rating", *, at: dt.datetime) -> str:
    """The card (JSON) after one more answer."""
    from fsrs import Card

    before = Card.from_json(card) if card else Card(card_id=0, due=at)
    after, _ = _scheduler().review_card(before, rated, at)
    return str(after.to_json())


def reviewed(card: str | None, attempt: Attempt) -> str:
    """The card after this attempt. Extra time stretches the target: who was promised it is not slow for using it."""
    rated = rating(
        right=attempt.status == "right",
        seconds=attempt.seconds,
        target_s=attempt.target_s * attempt.extra,
        hints=attempt.hints,
    )
    return review(card, rated, at=dt.datetime.fromtimestamp(attempt.at_s, dt.UTC))


def readable(card: object) -> bool:
    """Whether a card can be read: a file can be damaged.

    >>> readable("{}"), readable("not JSON")
    (False, False)
    """
    from fsrs import Card

    try:
        read = Card.from_json(card)  # type: ignore[arg-type]
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
    return read.due.tzinfo is not None and (read.stability or 0) >= 0


def day_end(now: dt.datetime) -> dt.datetime:
    """The last moment of today where the reader sits: what is due at nine in the evening is due all day.

    >>> day_end(dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)).astimezone().time().isoformat()
    '23:59:59.999999'
    """
    return dt.datetime.combine(now.astimezone().date(), dt.time.max).astimezone()


def due(card: str, *, interview: dt.date | None) -> dt.datetime:
    """When the idea is due: FSRS's date, or the last day before the last days if that comes first. Never after the
    interview.

    >>> from fsrs import Rating
    >>> now = dt.datetime(2026, 3, 1, tzinfo=dt.timezone.utc)
    >>> card = review(None, Rating.Easy, at=now)
    >>> due(card, interview=None).date().isoformat(), due(card, interview=dt.date(2026, 3, 7)).date().isoformat()
    ('2026-03-09', '2026-03-04')
    """
    from fsrs import Card

    read = Card.from_json(card)
    if interview is None:
        return read.due
    last_days = dt.datetime.combine(interview - dt.timedelta(days=LAST_DAYS), dt.time(), dt.UTC)
    tomorrow = (read.last_review or last_days) + dt.timedelta(days=1)
    return min(read.due, max(last_days - dt.timedelta(days=1), min(tomorrow, last_days + dt.timedelta(days=LAST_DAYS))))


def remembered(card: str, *, at: dt.datetime) -> float:
    """The probability, by FSRS, that the idea would be answered now."""
    from fsrs import Card

    return float(_scheduler().get_card_retrievability(Card.from_json(card), at))


def is_last_days(today: dt.date, interview: dt.date | None) -> bool:
    """Whether the interview is so near that nothing new makes sense."""
    return interview is not None and dt.timedelta() <= interview - today <= dt.timedelta(days=LAST_DAYS)

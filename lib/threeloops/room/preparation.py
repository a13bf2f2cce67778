"""What each day until an interview holds: repeats as memory has them, then ideas not met yet, the most asked first and
never before what they build on; on the last two days only what was wrong, and the numbers to know. Whoever comes as
late as that has nothing behind them: they get the most asked of their track first.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from threeloops import checks, units, wall_clock
from threeloops.room import schedule
from threeloops.room.attempts import RATED, Attempt
from threeloops.room.history import History
from threeloops.room.idea import LONGEST_S, Idea
from threeloops.room.ideas import IDEAS
from threeloops.room.kinds.band_draws import INTERVIEW
from threeloops.room.kinds.cases import CASES
from threeloops.room.kinds.chains import CHAINS

EVERYTHING = "everything"
# What the interview is for -> the loops that it asks about, its own first.
TRACKS = {
    EVERYTHING: ("inner", "training", "product", "driving"),
    "kernels": ("inner",),
    "training": ("training", "inner"),
    "serving": ("product", "inner"),
    "driving": ("driving", "product", "inner"),
}
READING = 2.0  # times the target: a question is answered once and its working read
MOCK_S = 1800.0  # that a mock interview takes
MOCK_BEFORE, MOCK_EVERY = 2, 7  # days: the last mock is so long before the interview, the others so far apart
HORIZON = 60  # days that are planned at once; what lies behind them is planned when it comes nearer
ENOUGH_MET = 10  # ideas of the track, as many as a sprint asks: before that, the last days bring new ones, too
LATE_SHARE = 0.7  # of whose last days goes to those, and the rest to the numbers
NUMBERS = "numbers"  # the topic of the numbers to know by heart


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the reader said of the interview."""

    date: dt.date | None
    minutes: float
    track: str

    def __post_init__(self) -> None:
        checks.positive(minutes=self.minutes)
        checks.one_of(TRACKS, track=self.track)


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day's questions, in order."""

    date: dt.date
    repeats: tuple[str, ...]
    new: tuple[str, ...]
    last: bool = False  # one of the last days: nothing new, but for whoever comes late
    mock: bool = False  # begins with a mock interview


def wishes(history: History) -> Wishes:
    """What was said before, or half an hour a day on everything."""
    return Wishes(
        date=history.interview,
        minutes=float(history.setting("minutes") or 30),
        track=history.setting("track") or EVERYTHING,
    )


def days(history: History, *, today: dt.date, most: int = HORIZON) -> list[Day]:
    """Every day from today to the day before the interview, at most so many; today alone when there is no date."""
    wished = wishes(history)
    attempts = history.attempts()
    waiting = list(_unseen(wished.track, attempts))
    of_track = [idea for idea in IDEAS.values() if idea.loop in TRACKS[wished.track] and idea.target_s <= LONGEST_S]
    due = [(key, time.astimezone().date()) for key, time in due_times(history, of_track).items()]
    until = wished.date or today + dt.timedelta(days=1)
    planned: list[Day] = []
    for place in range(min(max((until - today).days, 1), most)):
        date = today + dt.timedelta(days=place)
        last = schedule.is_last_days(date, wished.date)
        # nobody begins with a mock, but for whom there is no other day
        mock = _is_mock_day(date, wished.date) and (last or place > 0 or bool(attempts))
        left_s = max(wished.minutes * units.minute - (MOCK_S if mock else 0), 0)
        mock = mock and (place > 0 or not _held_today(history, today))
        if last:
            planned_new = sum(len(day.new) for day in planned)
            late = () if _met(wished, attempts) + planned_new >= ENOUGH_MET else _late(waiting, left_s)
            repeats = tuple(key for key in _last(wished, attempts, left_s - _taken_s(late)) if key not in late)
            planned.append(Day(date=date, repeats=repeats, new=late, last=True, mock=mock))
            waiting = [key for key in waiting if key not in late]
            continue
        due_now = [key for key, day in due if day <= date]
        if mock:  # what has no room beside it comes a day later
            due_now = _fitting(due_now, left_s)
        due = [(key, day) for key, day in due if key not in due_now]
        new = _fitting(waiting, left_s - _taken_s(due_now))
        del waiting[: len(new)]
        planned.append(Day(date=date, repeats=tuple(due_now), new=tuple(new), mock=mock))
    return planned


def mode_of_today(history: History) -> str:
    """The mode that the plan has first today."""
    (day,) = days(history, today=wall_clock.today(), most=1)
    return "mock" if day.mock else "today"


def _is_mock_day(date: dt.date, interview: dt.date | None) -> bool:
    """Whether a day has a mock interview: one a week, counted back from the last.

    >>> [day for day in range(1, 21) if _is_mock_day(dt.date(2026, 11, day), dt.date(2026, 11, 21))]
    [5, 12, 19]
    """
    before = (interview - date).days - MOCK_BEFORE if interview else -1
    return before >= 0 and before % MOCK_EVERY == 0


def _held_today(history: History, today: dt.date) -> bool:
    return any(dt.date.fromtimestamp(begun_s) == today for begun_s in history.begun("mock"))


def in_words(planned: Sequence[Day], wished: Wishes, *, surer: Sequence[str] = ()) -> str:
    """The plan, a line a day; below it the topics in which answers are surer than right."""
    if wished.date is None:
        return "No interview date; `python3 book.py drill --interview 2026-11-26 --minutes 30` plans towards one."
    head = (
        f"Interview on {wished.date.isoformat()}, {wished.minutes:g} minutes a day, track {wished.track}. Each day type"
        " `python3 book.py drill` with what stands here:"
    )
    lines = [f"  {day.date:%a %d %b}  {_told(day)}" for day in planned]
    left = (wished.date - planned[-1].date).days - 1
    if left > 0:
        lines.append(f"  and {units.counted(left, 'day')} more, planned when they come nearer")
    return "\n".join([head, *lines, *(f"  {line}" for line in surer)])


def _told(day: Day) -> str:
    """What a day holds, each part after what to type for it."""
    asked = f"`--mode today`: {_asked_on(day)}"
    if not day.mock:
        return asked
    mock = f"`--mode mock`: a mock interview of {MOCK_S / units.minute:g} minutes"
    return f"{mock}; then {asked}" if day.repeats or day.new else mock


def _asked_on(day: Day) -> str:
    if day.last and day.new:
        numbers = sum(IDEAS[key].topic == NUMBERS for key in day.repeats)
        wrong = f"{len(day.repeats) - numbers} that went wrong, " if len(day.repeats) > numbers else ""
        return f"{_new_topics(day)}, the most asked first; then {wrong}{units.counted(numbers, 'number')} to know"
    if day.last:
        return f"only what was wrong, and the numbers to know: {units.counted(len(day.repeats), 'question')}"
    if not day.repeats and not day.new:
        return "what comes back by then"
    repeats = f"{units.counted(len(day.repeats), 'repeat')}, " if day.repeats else ""
    return f"{repeats}{_new_topics(day)}" if day.new else repeats.removesuffix(", ")


def _new_topics(day: Day) -> str:
    topics = Counter(IDEAS[key].topic for key in day.new)
    return f"{len(day.new)} new: " + ", ".join(f"{topic} {number}" for topic, number in topics.most_common())


def due_times(history: History, ideas: Iterable[Idea]) -> dict[str, dt.datetime]:
    """When each of these ideas that was ever answered is due, longest overdue first."""
    cards, interview = history.cards(), history.interview
    times = {idea.key: schedule.due(cards[idea.key], interview=interview) for idea in ideas if idea.key in cards}
    return dict(sorted(times.items(), key=lambda pair: pair[1]))


def _unseen(track: str, attempts: Sequence[Attempt]) -> Iterator[str]:
    """Ideas that no answer was given to, by importance; what an idea builds on comes before it."""
    seen = {attempt.idea for attempt in attempts if attempt.status in RATED}
    known = _shares(attempts)
    loops = TRACKS[track]
    ideas = [idea for idea in IDEAS.values() if idea.loop in loops and idea.target_s <= LONGEST_S]
    place = {idea.key: place for place, idea in enumerate(ideas)}

    def rank(idea: Idea) -> tuple[float, ...]:
        return (loops.index(idea.loop), -_asked(idea), known.get(idea.topic, 0.5), idea.difficulty, place[idea.key])

    given = set(seen)

    def with_needed(key: str) -> Iterator[str]:
        if key in place and key not in given:
            given.add(key)
            for needed in IDEAS[key].prerequisites:
                yield from with_needed(needed)
            yield key

    for idea in sorted(ideas, key=rank):
        yield from with_needed(idea.key)


def _asked(idea: Idea) -> int:
    """How often interviewers ask it: 2 in their own words and numbers, 1 as a follow-up."""
    if idea.key in INTERVIEW:
        return 2
    followed = [chain.kinds for chain in CHAINS.values()] + [case.kinds for case in CASES.values()]
    return int(any(idea.key == key for kinds in followed for key, _ in kinds))


def _shares(attempts: Sequence[Attempt]) -> dict[str, float]:
    """Topic -> share of right answers. The first sprint fills it: what was wrong there comes first."""
    rated = [attempt for attempt in attempts if attempt.status in RATED]
    return {
        topic: sum(one.status == "right" for one in rated if one.topic == topic)
        / sum(one.topic == topic for one in rated)
        for topic in {attempt.topic for attempt in rated}
    }


def _last(wished: Wishes, attempts: Sequence[Attempt], seconds: float) -> list[str]:
    """What was wrong last time, then the numbers to know, as far as the time goes."""
    latest = {attempt.idea: attempt.status for attempt in attempts if attempt.status in RATED}
    loops = TRACKS[wished.track]
    wrong = [
        key
        for key, status in latest.items()
        if status != "right" and key in IDEAS and IDEAS[key].target_s <= LONGEST_S and IDEAS[key].loop in loops
    ]
    numbers = [idea.key for idea in IDEAS.values() if idea.topic == NUMBERS and idea.loop in loops]
    return _fitting([*wrong, *(key for key in numbers if key not in wrong)], seconds)


def _met(wished: Wishes, attempts: Sequence[Attempt]) -> int:
    """How many ideas of the track were answered, beside the numbers to know."""
    met = {one.idea for one in attempts if one.status in RATED and one.idea in IDEAS and one.topic != NUMBERS}
    return sum(IDEAS[key].loop in TRACKS[wished.track] for key in met)


def _late(waiting: Sequence[str], seconds: float) -> tuple[str, ...]:
    """What the last days bring to somebody who has met next to nothing of the track."""
    return tuple(_fitting([key for key in waiting if IDEAS[key].topic != NUMBERS], LATE_SHARE * seconds))


def _taken_s(keys: Sequence[str]) -> float:
    return sum(IDEAS[key].target_s * READING for key in keys)


def _fitting(keys: Sequence[str], seconds: float) -> list[str]:
    """The first of these ideas that fit into the time."""
    fitting, taken_s = [], 0.0
    for key in keys:
        taken_s += IDEAS[key].target_s * READING
        if taken_s > seconds:
            break
        fitting.append(key)
    return fitting

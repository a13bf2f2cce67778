"""What the attempts say: accuracy and time by topic, whether it gets better, the slips made most, what is due, and
whether a topic is ready for an interview.
"""

import datetime as dt
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import units
from threeloops.room import mistakes, preparation, schedule
from threeloops.room.after.calibration import Calibration, calibration, surer_lines
from threeloops.room.attempts import Attempt, tally
from threeloops.room.history import History
from threeloops.room.ideas import IDEAS
from threeloops.room.kinds.cases import CASES
from threeloops.room.trend import Trend, trend

RECENT = 10  # latest answers per topic that readiness looks at
READY_SHARE = 0.8  # of them right and in time
FEWEST = 5  # answers before anything is said about readiness


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReport:
    """One topic in figures. Shares are None where there is nothing to divide by."""

    topic: str
    answered: int
    right: float  # an answer in several parts counts by its share
    pace: float | None  # median of seconds over the time allowed, right answers only
    in_time: int  # of the latest answers: right, unaided, within the time
    latest: int  # how many of them there are
    known: int  # ideas ever right
    ideas: int  # ideas that the topic has

    @property
    def readiness(self) -> str:
        """ready, nearly, not yet, or too few answers to say."""
        if self.latest < FEWEST:
            return f"too few answers to say ({self.latest} of {FEWEST})"
        share = self.in_time / self.latest
        return "ready" if share >= READY_SHARE else "nearly" if share >= READY_SHARE / 2 else "not yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Everything that the progress page shows."""

    topics: tuple[TopicReport, ...]
    slips: tuple[tuple[str, str, int], ...]  # (idea, slip, times), most frequent first
    trend: Trend
    calibration: Calibration  # how sure answers were said to be, and how often they were right
    due_now: int
    due_week: int
    interview: dt.date | None
    plan: str  # day by day to the interview
    extra_time: bool  # whether any of the answers had it


def progress(history: History, *, now: dt.datetime) -> Progress:
    """The report on everything in the history."""
    attempts = history.attempts()
    by_topic: defaultdict[str, list[Attempt]] = defaultdict(list)
    slips: Counter[tuple[str, str]] = Counter()
    for attempt in attempts:
        by_topic[attempt.topic].append(attempt)
        # which letter a point of a case has differs from stage to stage, so all that were left out are one mistake
        slips.update(
            {
                (attempt.idea, slip.split(":")[0] if slip.startswith("unsaid:") else slip)
                for slip in attempt.slips.split(",")
                if slip
            }
        )
    dates = [
        schedule.due(card, interview=history.interview)
        for key, card in history.cards().items()
        if key not in CASES  # a conversation comes in a mock, not by its day
    ]
    sureness = calibration(history.attempts(desk=True))
    return Progress(
        topics=tuple(_topic(topic, by_topic[topic]) for topic in sorted(by_topic)),
        slips=tuple((idea, slip, times) for (idea, slip), times in slips.most_common(10)),
        trend=trend(attempts),
        calibration=sureness,
        due_now=sum(date <= schedule.day_end(now) for date in dates),
        due_week=sum(date <= schedule.day_end(now) + dt.timedelta(days=7) for date in dates),
        interview=history.interview,
        plan=preparation.in_words(
            preparation.days(history, today=now.astimezone().date()),
            preparation.wishes(history),
            surer=surer_lines(sureness.surer),
        ),
        extra_time=any(attempt.extra > 1 for attempt in attempts),
    )


def _topic(topic: str, attempts: Sequence[Attempt]) -> TopicReport:
    answered = [attempt for attempt in attempts if attempt.status in ("right", "wrong", "given-up")]
    right = [attempt for attempt in answered if attempt.status == "right"]
    latest = answered[-RECENT:]
    return TopicReport(
        topic=topic,
        answered=len(answered),
        right=sum(attempt.points for attempt in answered),
        pace=(
            statistics.median(attempt.seconds / (attempt.target_s * attempt.extra) for attempt in right)
            if right
            else None
        ),
        in_time=sum(
            attempt.status == "right" and not attempt.hints and attempt.seconds <= attempt.target_s * attempt.extra
            for attempt in latest
        ),
        latest=len(latest),
        known=len({attempt.idea for attempt in right}),
        ideas=sum(idea.topic == topic for idea in IDEAS.values()),
    )


def in_words(report: Progress) -> str:
    """The report as plain lines."""
    if not report.topics:
        nothing = (
            "Nothing answered yet. `python3 book.py drill --mode sprint` asks ten questions and is your placement."
        )
        surer = surer_lines(report.calibration.surer)
        return "\n".join([nothing, *report.calibration.lines, *(f"  {line}" for line in surer)])
    lines = [f"{'topic':<18} {'right':>9} {'pace':>6} {'ideas':>8}  readiness"]
    for topic in report.topics:
        pace = f"{topic.pace:.2f}×" if topic.pace is not None else "–"
        right = f"{tally(topic.right):>4} of {topic.answered:<3}"
        lines.append(f"{topic.topic:<18} {right}{pace:>6} {topic.known:>3} of {topic.ideas:<2}  {topic.readiness}")
    lines.append(
        "Pace: median time of right answers over the time allowed. Ready: eight of the last ten right, unaided and in"
        " time."
    )
    lines += ["", *report.trend.sentences, *(f"  {line}" for line in report.trend.chart)]
    if report.calibration.rows:
        surer = [] if report.interview else surer_lines(report.calibration.surer)  # a plan says it, too
        lines += ["", *report.calibration.lines, *(f"  {line}" for line in surer)]
    if report.slips:
        lines += ["", "Mistakes you make most:", *(f"  {line}" for line in slip_lines(report))]
    lines += [
        "",
        (
            f"{units.counted(report.due_now, 'idea')} due today, {report.due_week} within a week. `python3 book.py"
            " drill --mode today` asks them."
        ),
    ]
    if report.interview:
        lines += ["", report.plan]
    if report.extra_time:
        lines.append("Some answers were given with extra time; it is part of the time allowed above.")
    return "\n".join(lines)


def slip_lines(report: Progress) -> list[str]:
    """The slips made most, each with how often, where, and the sentence that names it."""
    return [
        f"{units.counted(times, 'time')}, {_title(idea)}: {mistakes.told(idea, slip)}"
        for idea, slip, times in report.slips
    ]


def _title(idea: str) -> str:
    return IDEAS[idea].title if idea in IDEAS else idea

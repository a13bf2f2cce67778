"""Interview room, the progress page: accuracy, time and readiness by topic as a table, slips and what is due as
sentences.

>>> from threeloops.room.history import NOWHERE
>>> print(page(History(NOWHERE)).text)
Nothing answered yet. `python3 book.py drill --mode sprint` asks ten questions and is your placement.
"""

from dataclasses import dataclass
from html import escape
from typing import Any

from threeloops import units, wall_clock
from threeloops.room.after.calibration import surer_lines
from threeloops.room.attempts import tally
from threeloops.room.history import History
from threeloops.room.progress import FEWEST, READY_SHARE, RECENT, Progress, TopicReport, in_words, progress, slip_lines

COLUMNS = ("topic", "right", "share", "time / target", "questions known", "readiness")
LEFT = "text-align:left;padding:0 14px 2px 0"
NUMBERS = "text-align:right;padding:0 14px 2px 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The report: a page for a browser, lines for everything else."""

    report: Progress
    trouble: str = ""  # why the history cannot be kept or read, in a sentence

    @property
    def text(self) -> str:
        return "\n".join(filter(None, [self.trouble, in_words(self.report)]))

    @property
    def html(self) -> str:
        sentences = [self.trouble, *_sentences(self.report)]
        slips = "".join(f"<li>{escape(line)}</li>" for line in slip_lines(self.report))
        made = f"<p>Mistakes you make most:</p><ol>{slips}</ol>" if slips else ""
        return (
            (_table(self.report) + _days(self.report) if self.report.topics else "")
            + _sure(self.report)
            + made
            + "".join(f"<p>{escape(line)}</p>" for line in sentences if line)
        )

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/html": self.html, "text/plain": self.text}


def page(history: History, trouble: str = "") -> Page:
    """The progress page of everything in the history."""
    return Page(report=progress(history, now=wall_clock.now()), trouble=trouble)


def cells(topic: TopicReport) -> tuple[str, ...]:
    """One row of the table."""
    share = units.fmt_percent(topic.right / topic.answered) if topic.answered else "–"
    pace = f"{topic.pace:.2f}×" if topic.pace is not None else "–"
    return (
        topic.topic.replace("_", " "),
        f"{tally(topic.right)} of {topic.answered}",
        share,
        pace,
        f"{topic.known} of {topic.ideas}",
        topic.readiness,
    )


def _table(report: Progress) -> str:
    head = "".join(f'<th scope="col" style="{LEFT}">{escape(column)}</th>' for column in COLUMNS)
    body = "".join(_row(cells(topic)) for topic in report.topics)
    caption = '<caption style="caption-side:top;text-align:left;padding-bottom:4px">How it goes, by topic</caption>'
    return f'<table style="line-height:1.45">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _days(report: Progress) -> str:
    """Whether it gets better: sentences, and a bar a day."""
    said = "".join(f"<p>{escape(line)}</p>" for line in report.trend.sentences)
    rows = "".join(
        f'<tr><th scope="row" style="{LEFT};font-weight:normal">{day.isoformat()}</th><td style="{LEFT};width:8rem">'
        f'<div aria-hidden="true" style="background:#0b7fab;height:0.7em;width:{100 * right / answered:.0f}%;'
        f'min-width:1px"></div></td><td style="{NUMBERS}">{units.fmt_percent(right / answered)}</td>'
        f'<td style="{NUMBERS}">{tally(right)} of {answered}</td></tr>'
        for day, right, answered in report.trend.days
    )
    caption = '<caption style="caption-side:top;text-align:left;padding-bottom:4px">Right answers by day</caption>'
    return f'{said}<table style="line-height:1.45">{caption}<tbody>{rows}</tbody></table>'


def _sure(report: Progress) -> str:
    """How sure answers were said to be, and how often they were right; empty where none was."""
    if not report.calibration.rows:
        return ""
    head = "".join(f'<th scope="col" style="{LEFT}">{name}</th>' for name in ("stated", "answers", "mean", "right"))
    rows = "".join(
        f'<tr><th scope="row" style="{LEFT};font-weight:normal">{row.low} to {row.high} %</th>'
        + "".join(
            f'<td style="{NUMBERS}">{told}</td>' for told in (row.answers, f"{row.said:.0f} %", f"{row.share:.0f} %")
        )
        + "</tr>"
        for row in report.calibration.rows
    )
    caption = (
        '<caption style="caption-side:top;text-align:left;padding-bottom:4px">How sure, and how often right</caption>'
    )
    surer = "".join(f"<p>{escape(line)}</p>" for line in surer_lines(report.calibration.surer))
    return (
        f'<table style="line-height:1.45">{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{surer}'
    )


def _row(written: tuple[str, ...]) -> str:
    topic, *figures, readiness = map(escape, written)
    middle = "".join(f'<td style="{NUMBERS}">{figure}</td>' for figure in figures)
    return (
        f'<tr><th scope="row" style="{LEFT};font-weight:normal">{topic}</th>{middle}<td'
        f' style="{LEFT}">{readiness}</td></tr>'
    )


def _sentences(report: Progress) -> list[str]:
    if not report.topics:
        return ["Nothing answered yet. A sprint asks ten questions; your first is your placement."]
    found = [
        (
            "Time / target is the median of right answers; below 1× is in time. A topic is ready when"
            f" {READY_SHARE * RECENT:.0f} of its last {RECENT} answers were right, without a hint and in time; with"
            f" fewer answers, the same share of them; with fewer than {FEWEST}, nothing is said."
        ),
        (
            f"{units.counted(report.due_now, 'question')} due today, {report.due_week} within a week: the mode “today”"
            " asks them."
        ),
    ]
    if report.interview:
        found += report.plan.splitlines()
    if report.extra_time:
        found.append("Some answers were given with extra time; it is part of the target here.")
    return found

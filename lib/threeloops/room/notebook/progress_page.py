"""Interview room, the progress page: accuracy, time and readiness by topic as a table, slips and what is due as
sentences.

>>> from threeloops.room.history import NOWHERE
>>> print(page(History(NOWHERE)).text)
Nothing answered yet. `python3 book.py drill --mode sprint` asks ten questions and is your placement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import units, wall_clock
from threeloops.markup import Markup, each, element, table, text
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
        slips = slip_lines(self.report)
        return text(
            [_table(self.report), _days(self.report)] if self.report.topics else None,
            _sure(self.report),
            [element("p", "Mistakes you make most:"), element("ol", each("li", slips))] if slips else None,
            each("p", filter(None, [self.trouble, *_sentences(self.report)])),
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


def _table(report: Progress) -> Markup:
    rows = []
    for topic, *figures, readiness in map(cells, report.topics):
        rows.append([_name(topic), *each("td", figures, style=NUMBERS), element("td", readiness, style=LEFT)])
    return _captioned("How it goes, by topic", COLUMNS, rows)


def _days(report: Progress) -> Markup:
    """Whether it gets better: sentences, and a bar a day."""
    rows = []
    for day, right, answered in report.trend.days:
        bar = f"background:#0b7fab;height:0.7em;width:{100 * right / answered:.0f}%;min-width:1px"
        rows.append(
            [
                _name(day.isoformat()),
                element("td", element("div", aria_hidden="true", style=bar), style=f"{LEFT};width:8rem"),
                *each("td", [units.fmt_percent(right / answered), f"{tally(right)} of {answered}"], style=NUMBERS),
            ]
        )
    return text(each("p", report.trend.sentences), _captioned("Right answers by day", (), rows))


def _sure(report: Progress) -> Markup | None:
    """How sure answers were said to be, and how often they were right; nothing where none was."""
    if not report.calibration.rows:
        return None
    rows = [
        [
            _name(f"{row.low} to {row.high} %"),
            *each("td", [str(row.answers), f"{row.said:.0f} %", f"{row.share:.0f} %"], style=NUMBERS),
        ]
        for row in report.calibration.rows
    ]
    made = _captioned("How sure, and how often right", ("stated", "answers", "mean", "right"), rows)
    return text(made, each("p", surer_lines(report.calibration.surer)))


def _captioned(caption: str, columns: Sequence[str], rows: Sequence[Sequence[Markup]]) -> Markup:
    above = element("caption", caption, style="caption-side:top;text-align:left;padding-bottom:4px")
    head = each("th", columns, scope="col", style=LEFT)
    return table(head, rows, caption=above, style="line-height:1.45")


def _name(said: str) -> Markup:
    return element("th", said, scope="row", style=f"{LEFT};font-weight:normal")


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

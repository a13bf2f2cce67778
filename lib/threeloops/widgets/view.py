"""What an explorer shows for a state: a figure, a sentence that is spoken, and a table. No widget in here.

>>> html_table(("part", "bytes"), [("weights", "14 GB")]).count("<tr>")
2
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from threeloops.figures.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything an explorer shows."""

    figure: Figure
    summary: str  # what has changed: spoken by a screen reader
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def text(self) -> str:
        """All of it as plain text."""
        return "\n".join([f"{self.figure.title}.", self.summary, self.figure.alt])

    @property
    def table(self) -> str:
        """The rows as an HTML table."""
        return html_table(self.columns, self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What the page is told. Both texts are JSON."""

    chart: str  # a Vega-Lite specification without its rows; empty where nothing is drawn
    shown: str  # where the controls stand, the words, the rows


def html_table(columns: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A plain HTML table; the first cell of a row is its heading. A column without a name has no heading."""
    head = "".join(
        f'<th scope="col" style="text-align:left;padding:0 14px 2px 0">{escape(column)}</th>' if column else "<td></td>"
        for column in columns
    )
    body = "".join(
        f'<tr><th scope="row" style="text-align:left;font-weight:normal;padding-right:14px">{escape(row[0])}</th>'
        + "".join(f'<td style="text-align:left;padding-right:14px">{escape(cell)}</td>' for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return f'<table style="line-height:1.45"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'

"""What an explorer shows for a state: a figure, a sentence that is spoken, and a table. No widget in here.

>>> html_table(("part", "bytes"), [("weights", "14 GB")]).count("<tr>")
2
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from threeloops.figures.figure import Figure
from threeloops.markup import Markup, each, element, table


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


def html_table(columns: Iterable[str], rows: Iterable[Sequence[str]]) -> Markup:
    """A plain HTML table; the first cell of a row is its heading. A column without a name has no heading."""
    left, room = "text-align:left;padding:0 14px 2px 0", "padding-right:14px"
    head = [element("th", column, scope="col", style=left) if column else element("td") for column in columns]
    body = []
    for first, *rest in rows:
        name = element("th", first, scope="row", style=f"text-align:left;font-weight:normal;{room}")
        body.append([name, *each("td", rest, style=f"text-align:left;{room}")])
    return table(head, body, style="line-height:1.45")

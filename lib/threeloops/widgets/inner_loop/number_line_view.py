"""Number line view: what the explorer shows for a state, as figure, sentences and table. No widget in here: it is
computed and tested without a browser.

>>> shown = view(State(formats=("E2M1", "E4M3"), high=8.0, value=3.3))
>>> print(shown.summary)
Up to 8, E2M1 has 8 numbers and E4M3 81. 3.3 becomes 3 in E2M1, 3.25 in E4M3.
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.figures.figure import Figure
from threeloops.figures.inner_loop import number_line
from threeloops.inner_loop import number_formats
from threeloops.inner_loop.number_formats import Format
from threeloops.units import fmt_percent
from threeloops.widgets.view import html_table

FORMATS = ("E2M1", "E2M3", "E3M2", "E4M3", "E5M2", "FP16", "BF16")
COLUMNS = ("format", "nearest number", "error", "gap there", "largest", "smallest above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand: which formats, from zero to where, and a value to round."""

    formats: tuple[str, ...]
    high: float
    value: float

    def __post_init__(self) -> None:
        if not self.formats:
            raise ValueError(f"formats is empty; choose from {', '.join(FORMATS)}")
        for name in self.formats:
            checks.one_of(FORMATS, format=name)
        checks.positive(high=self.high)
        checks.non_negative(value=self.value)
        if self.value > self.high:
            raise ValueError(f"value={self.value!r} must not be above high={self.high!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One format: what it makes of the value, and how many numbers it has in view."""

    form: Format
    value: float
    shown: int

    @property
    def nearest(self) -> float:
        return number_formats.rounded(self.value, self.form, overflow="saturate")

    @property
    def error(self) -> float:
        return abs(self.nearest / self.value - 1) if self.value else 0.0

    @property
    def words(self) -> str:
        end = ", its end," if self.value > self.form.largest else ""
        return f"{self.nearest:.6g}{end} in {self.form.name}"

    @property
    def cells(self) -> tuple[str, ...]:
        gap = number_formats.spacing(min(self.value, self.form.largest), self.form)
        ends = (f"{self.form.largest:.6g}", f"{self.form.smallest_subnormal:.3g}")
        return (self.form.name, f"{self.nearest:.6g}", fmt_percent(self.error), f"{gap:.3g}", *ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything the explorer shows."""

    figure: Figure
    summary: str  # what has changed: spoken by a screen reader
    rows: tuple[Row, ...]

    @property
    def text(self) -> str:
        """All of it as plain text."""
        return "\n".join([f"{self.figure.title}.", self.summary, self.figure.alt])

    @property
    def table(self) -> str:
        """The formats as an HTML table."""
        return html_table(COLUMNS, (row.cells for row in self.rows))


def view(state: State) -> View:
    """What to show for a state; values beyond a format are saturated, and said to be at its end."""
    forms = [number_formats.FORMATS[name] for name in state.formats]
    # zero is a number too
    rows = tuple(
        Row(form=form, value=state.value, shown=1 + number_formats.numbers_up_to(min(state.high, form.largest), form))
        for form in forms
    )
    figure = number_line.number_line(
        forms,
        low=0,
        high=state.high,
        marked=state.value,
        title=_finding(rows, state.value),
        caption=f"Every number from 0 to {state.high:g}, one tick each.",
    )
    counts = [
        f"{row.form.name}{' has' if not place else ''} {row.shown:,}{' numbers' if not place else ''}"
        for place, row in enumerate(rows)
    ]
    becomes = f"{state.value:g} becomes " + ", ".join(row.words for row in rows)
    return View(figure=figure, summary=f"Up to {state.high:g}, {_joined(counts)}. {becomes}.", rows=rows)


def _finding(rows: tuple[Row, ...], value: float) -> str:
    """The figure's title: which format comes closest to the value."""
    best = min(row.error for row in rows)
    closest = [row.form.name for row in rows if row.error == best]
    if best == 0:
        return f"{value:g} is a number of {_joined(closest)}"
    come, miss = ("comes", "misses") if len(closest) == 1 else ("come", "miss")
    return f"{_joined(closest)} {come} closest to {value:g}, and {miss} by {fmt_percent(best)}"


def _joined(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]

"""Who works when: groups of warps on the matrix unit and the exponential unit, as bars on a clock.

>>> turns = [Turn(group=0, unit="matrix", start=0, end=2), Turn(group=0, unit="exponential", start=2, end=3)]
>>> played = bars({"alone": turns}, names={"matrix": "tensor cores", "exponential": "exponentials"})
>>> figure = unit_turns(played, title="One group leaves units idle", caption="Cycles of one multiprocessor.")
>>> for row in figure.alt.split(". ")[1:]:
...     print(row)
alone: tensor cores: busy 2 of the first 2: A 0 to 2
alone: exponentials: busy 1 of the first 3: A 2 to 3.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.figure import Figure
from threeloops.simulate.inner_loop.unit_turns import Turn

ROW_HEIGHT = 34  # pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One group on one unit for a while."""

    row: str
    group: str
    start: float
    end: float

    def __post_init__(self) -> None:
        checks.non_negative(start=self.start)
        if not self.end > self.start:
            raise ValueError(f"end={self.end!r} of {self.row!r} must lie behind start={self.start!r}")


def bars(runs: Mapping[str, Sequence[Turn]], *, names: Mapping[str, str]) -> list[Bar]:
    """A bar per turn, ordered by run and, within it, by unit in the order of `names`; groups become letters."""
    return [
        Bar(row=f"{run}: {name}", group=ascii_uppercase[turn.group], start=turn.start, end=turn.end)
        for run, turns in runs.items()
        for unit, name in names.items()
        for turn in turns
        if turn.unit == unit
    ]


def unit_turns(bars: Sequence[Bar], *, title: str, caption: str) -> Figure:
    """One row per unit and schedule, from top to bottom in the order of the bars; groups by colour and by letter."""
    if not bars:
        raise ValueError("bars is empty; a chart needs at least one Bar")
    rows, groups = list(dict.fromkeys(bar.row for bar in bars)), list(dict.fromkeys(bar.group for bar in bars))
    values = [
        {
            "row": b.row,
            "group": b.group,
            "start": b.start,
            "end": b.end,
            "middle": (b.start + b.end) / 2,
            "words": _words(b),
        }
        for b in bars
    ]
    last = max(bar.end for bar in bars)
    y = {
        "field": "row",
        "type": "nominal",
        "sort": rows,
        "axis": {"title": None, "labelLimit": 200, "ticks": False, "domain": False},
    }
    x = {
        "field": "start",
        "type": "quantitative",
        "scale": {"domain": [0, last], "nice": False},
        "axis": {"title": "clock (cycles)", "format": ",~r"},
    }
    colour = {
        "field": "group",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": groups, "range": list(look.SERIES_COLOURS[: len(groups)])},
    }
    return Figure(
        title=title,
        caption=caption,
        alt="Bars on a clock, in cycles. " + " ".join(_row([bar for bar in bars if bar.row == row]) for row in rows),
        body={
            "width": look.PLOT_WIDTH - 110,
            "height": ROW_HEIGHT * len(rows),
            "data": {"values": values},
            "encoding": {"y": y},
            "layer": [
                {
                    "mark": {"type": "bar", "stroke": look.PAPER, "strokeWidth": 1.5, "height": {"band": 0.8}},
                    "encoding": {
                        "x": x,
                        "x2": {"field": "end"},
                        "color": colour,
                        "description": {"field": "words"},
                        "tooltip": {"field": "words"},
                    },
                },
                {
                    "mark": {"type": "text", "color": look.PAPER, "fontWeight": "bold", "aria": False},
                    "encoding": {"x": {"field": "middle", "type": "quantitative"}, "text": {"field": "group"}},
                },
            ],
        },
    )


def _row(bars: Sequence[Bar]) -> str:
    """How long a row is busy, then bar by bar."""
    busy, last = sum(bar.end - bar.start for bar in bars), max(bar.end for bar in bars)
    return f"{bars[0].row}: busy {busy:,g} of the first {last:,g}: {', '.join(_words(bar) for bar in bars)}."


def _words(bar: Bar) -> str:
    return f"{bar.group} {bar.start:,g} to {bar.end:,g}"

"""Predicted beside recorded: a pair of bars for every case.

>>> pairs = [Pair(name="copy", predicted_s=0.010, recorded_s=0.012)]
>>> figure = recorded_bars(pairs, title="A finding", caption="What to see.")
>>> print(figure.alt)
Recorded over predicted: from 1.20 to 1.20 times. copy: predicted 10.0 ms, recorded 12.0 ms, 1.20 times.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import CAPTION_LINE, TITLE_LINE, Figure
from threeloops.inner_loop.prediction_error import Row
from threeloops.units import fmt_seconds

ROW_HEIGHT = 36  # pixels, of a pair
NAME_LINE = 34  # letters of a case's name that fit beside the plot; a longer one takes two lines
SERIES = ("predicted", "recorded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One case."""

    name: str
    predicted_s: float
    recorded_s: float

    def __post_init__(self) -> None:
        checks.positive(predicted_s=self.predicted_s, recorded_s=self.recorded_s)

    @property
    def ratio(self) -> float:
        return self.recorded_s / self.predicted_s

    @property
    def sentence(self) -> str:
        times = f"predicted {fmt_seconds(self.predicted_s)}, recorded {fmt_seconds(self.recorded_s)}"
        return f"{self.name}: {times}, {self.ratio:.2f} times"


def pairs(rows: Iterable[Row]) -> list[Pair]:
    """Every row of a prediction-error table, the best prediction first."""
    return [
        Pair(name=row.case.label, predicted_s=row.predicted_s, recorded_s=row.measured.median)
        for row in sorted(rows, key=lambda row: abs(math.log(row.ratio)))
    ]


def recorded_bars(pairs: Sequence[Pair], *, title: str, caption: str) -> Figure:
    """Times on a logarithmic scale, one pair of bars per case, from top to bottom in the order given."""
    if not pairs:
        raise ValueError("pairs is empty; a chart needs at least one Pair")
    names = [pair.name for pair in pairs]
    if len(set(names)) < len(names):
        raise ValueError("two pairs have the same name; their bars would cover each other")
    seconds = [time for pair in pairs for time in (pair.predicted_s, pair.recorded_s)]
    low, high = 10 ** math.floor(math.log10(min(seconds)) - 0.2), 10 ** math.ceil(math.log10(max(seconds)) + 0.3)
    return Figure(
        title=title,
        caption=caption,
        alt=f"Recorded over predicted: {_ratios(pairs)}. " + " ".join(f"{pair.sentence}." for pair in pairs),
        body={
            # From the left edge of the labels, which are long here, and not of the plot.
            "title": {"text": wrap(title, TITLE_LINE), "subtitle": wrap(caption, CAPTION_LINE), "frame": "bounds"},
            "width": look.PLOT_WIDTH - 190,
            "height": ROW_HEIGHT * len(pairs),
            "data": {"values": [row for pair in pairs for row in _rows(pair, low)]},
            "encoding": _places([_lines(name) for name in names], low, high),
            "layer": [_bars(), _words()],
        },
    )


def _lines(name: str) -> str:
    return "\n".join(wrap(name, NAME_LINE))


def _ratios(pairs: Sequence[Pair]) -> str:
    ratios = [pair.ratio for pair in pairs]
    return f"from {min(ratios):.2f} to {max(ratios):.2f} times"


def _rows(pair: Pair, low: float) -> list[dict[str, Any]]:
    predicted = {
        "name": _lines(pair.name),
        "series": SERIES[0],
        "from": low,
        "to": pair.predicted_s,
        "words": pair.sentence,
        "label": "",
    }
    recorded = {
        "name": _lines(pair.name),
        "series": SERIES[1],
        "from": low,
        "to": pair.recorded_s,
        "words": pair.sentence,
        "label": f"{pair.ratio:.2f}×",
    }
    return [predicted, recorded]


def _places(names: list[str], low: float, high: float) -> dict[str, Any]:
    ticks = {
        "title": "time per call",
        "values": [10.0**power for power in range(round(math.log10(low)), round(math.log10(high)) + 1)],
        "labelExpr": "format(datum.value, '~s') + 's'",
    }
    return {
        "y": nominal(
            "name",
            sort=names,
            axis={
                "title": None,
                "labelLimit": 260,
                "labelExpr": r"split(datum.label, '\n')",
                "ticks": False,
                "domain": False,
            },
        ),
        "yOffset": nominal("series", sort=list(SERIES), scale={"paddingInner": 0.05}),
        "x": quantitative("from", scale={"type": "log", "domain": [low, high], "nice": False}, axis=ticks),
    }


def _bars() -> dict[str, Any]:
    return layer(
        {"type": "bar", "stroke": look.INK, "strokeWidth": 0.5},
        x2="to",
        color=nominal("series", scale={"domain": list(SERIES), "range": [look.GREY, look.ORANGE]}),
        **WORDS,
    )


def _words() -> dict[str, Any]:
    """The ratio behind the recorded bar."""
    return layer(
        {"type": "text", "align": "left", "baseline": "middle", "dx": 5, "fontSize": look.TEXT - 1},
        x=quantitative("to"),
        text="label",
    )

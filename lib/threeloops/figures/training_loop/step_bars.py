"""Step bars: who works how long in a step, as bars of pieces on one clock; side by side, so that the longest bar is
the step.

>>> figure = step_bars(
...     {"loader": {"load": 0.2}, "device": {"matmuls": 0.1, "update": 0.02}},
...     title="The loader is the bottleneck",
...     caption="One step.",
... )
>>> print(figure.alt)
Seconds of a step. loader: load 200 ms, 200 ms in all. device: matmuls 100 ms, update 20.0 ms, 120 ms in all. The step takes 200 ms.
"""  # noqa: E501

from collections.abc import Mapping
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import fmt_seconds, ms

ROW = 46  # pixels per bar
COLOURS = (*look.SERIES_COLOURS, "#7a5c00", look.GREY)  # for seven pieces; the letters on them are white
ROOM = 0.05  # a piece shorter than this share of the axis has no room for its letter


def step_bars(
    rows: Mapping[str, Mapping[str, float]],
    *,
    title: str,
    caption: str,
    upto_s: float | None = None,
    side_by_side: bool = True,
) -> Figure:
    """One bar per row, its pieces one after another; a dashed line where the longest ends. upto_s: where the axis
    ends, if that shall stay put. side_by_side=False: rows are steps to compare, and no line is drawn.

    Raises:   ValueError if there is no row, one of no length, or more than seven kinds of pieces
    """
    if not rows:
        raise ValueError("rows is empty; give at least one, like {'device': {'matmuls': 0.1}}")
    for row, pieces in rows.items():
        checks.non_negative(**{f"{row}[{name}]": seconds for name, seconds in pieces.items()})
        checks.positive(**{f"sum of {row}": sum(pieces.values())})
    names = list(dict.fromkeys(name for pieces in rows.values() for name in pieces))
    if len(names) > len(COLOURS):
        raise ValueError(f"{len(names)} kinds of pieces; draw at most {len(COLOURS)}, each in a colour of its own")
    whole_s = max(sum(pieces.values()) for pieces in rows.values())
    end_s = whole_s if upto_s is None else max(whole_s, upto_s)
    marks = [mark for row, pieces in rows.items() for mark in _marks(row, pieces, names)]
    x = quantitative("start", title="milliseconds", scale={"domain": [0, end_s / ms]}, axis={"tickCount": 6})
    y = nominal("row", sort=list(rows), title=None)
    keys = [f"{'ABCDEFG'[place]} {name}" for place, name in enumerate(names)]
    colours = {
        "domain": keys,
        "range": list(COLOURS[: len(keys)]),
    }
    told = " ".join(_told(row, pieces) for row, pieces in rows.items())
    bars = layer(
        {"type": "bar", "stroke": look.PAPER, "height": ROW - 14},
        marks,
        x=x,
        x2="end",
        y=y,
        color=nominal("piece", scale=colours, legend={"columns": 3, "labelLimit": 220}),
        **WORDS,
    )
    letters = layer(
        {"type": "text", "color": look.PAPER, "fontWeight": "bold", "fontSize": look.TEXT, "aria": False},
        [mark for mark in marks if mark["end"] - mark["start"] >= ROOM * end_s / ms],
        x=quantitative("middle"),
        y=y,
        text="letter",
    )
    line = layer(
        {"type": "rule", "color": look.INK, "strokeDash": [6, 4], "strokeWidth": 2, "aria": False},
        [{"start": whole_s / ms}],
        x=quantitative("start"),
    )
    return Figure(
        title=title,
        caption=caption,
        alt=f"Seconds of a step. {told}" + (f" The step takes {fmt_seconds(whole_s)}." if side_by_side else ""),
        body={
            "width": look.PLOT_WIDTH - 30,
            "height": ROW * len(rows),
            "layer": [bars, letters, *([line] if side_by_side else [])],
        },
    )


def _told(row: str, pieces: Mapping[str, float]) -> str:
    parts = ", ".join(f"{name} {fmt_seconds(seconds)}" for name, seconds in pieces.items() if seconds)
    return f"{row}: {parts}, {fmt_seconds(sum(pieces.values()))} in all."


def _marks(row: str, pieces: Mapping[str, float], names: list[str]) -> list[dict[str, Any]]:
    made, start = [], 0.0
    for name, seconds in pieces.items():
        end, letter = start + seconds / ms, "ABCDEFG"[names.index(name)]
        if seconds > 0:
            words = f"{row}, {name}: {fmt_seconds(seconds)}"
            made.append(
                {
                    "row": row,
                    "piece": f"{letter} {name}",
                    "start": start,
                    "end": end,
                    "middle": (start + end) / 2,
                    "letter": letter,
                    "words": words,
                }
            )
        start = end
    return made

"""Technique map: how many times faster, and how many times less memory, each at its best; one point a technique.

>>> drawn = technique_map({"INT8": (2.0, 2.0), "recomputing": (0.75, 16.0)}, title="Two", caption="Computed.")
>>> print(drawn.alt)
INT8: 2 times as fast, 2 times less memory. recomputing: 0.75 times as fast, 16 times less memory.
"""

import math
from collections.abc import Mapping
from typing import Any

from threeloops.figures import labels, look
from threeloops.figures.channels import WORDS, layer, quantitative
from threeloops.figures.figure import Figure

WIDTH, HEIGHT = 550, 330
FASTER, LESS = (0.25, 8.0), (0.7, 24.0)  # both axes are logarithmic
TICKS = {"x": [0.5, 1, 2, 4], "y": [1, 2, 4, 8, 16]}


def technique_map(factors: Mapping[str, tuple[float, float]], *, title: str, caption: str) -> Figure:
    """Technique -> (times faster, times less memory). The dashed lines stand at 1: nothing won, nothing paid.

    Raises:   ValueError for a factor beyond the axes
    """
    for name, (faster, less) in factors.items():
        if not (FASTER[0] <= faster <= FASTER[1] and LESS[0] <= less <= LESS[1]):
            raise ValueError(f"{name}: {faster:g} and {less:g} lie beyond the axes {FASTER} and {LESS}")
    marks = [labels.Mark(_x(faster), _y(less), name) for name, (faster, less) in factors.items()]
    ones = [labels.Line(_x(1), 0, _x(1), HEIGHT), labels.Line(0, _y(1), WIDTH, _y(1))]
    spots = labels.beside(marks, width=WIDTH, height=HEIGHT, lines=ones)
    points = [{"x": mark.x, "y": mark.y, "words": _words(mark.name, *factors[mark.name])} for mark in marks]
    names = [
        {"x": mark.x + spot.side * labels.GAP, "y": spot.row, "text": mark.name, "side": spot.side}
        for mark, spot in zip(marks, spots, strict=True)
    ]
    return Figure(
        title=title,
        caption=caption,
        alt=" ".join(f"{_words(name, *pair)}." for name, pair in factors.items()),
        body={"width": WIDTH, "height": HEIGHT, "layer": [*_axes(), _points(points), *_names(names)]},
    )


def _words(name: str, faster: float, less: float) -> str:
    return f"{name}: {faster:.3g} times as fast, {less:.3g} times less memory"


def _share(value: float, ends: tuple[float, float]) -> float:
    return math.log(value / ends[0]) / math.log(ends[1] / ends[0])


def _x(faster: float) -> float:
    return WIDTH * _share(faster, FASTER)


def _y(less: float) -> float:
    return HEIGHT * (1 - _share(less, LESS))


def _axes() -> list[dict[str, Any]]:
    """Axes in factors; the points lie over them in pixels."""
    axes = {
        way: quantitative(
            way,
            scale={"type": "log", "domain": list(ends), "nice": False},
            axis={"values": TICKS[way], "format": "~g", "title": title},
        )
        for way, ends, title in (
            ("x", FASTER, "times as fast, where it helps most"),
            ("y", LESS, "times less memory, of what is named"),
        )
    }
    rule = {"type": "rule", "color": look.GREY, "strokeDash": [6, 4], "aria": False}
    return [{"data": {"values": [{way: 1}]}, "mark": rule, "encoding": {way: axes[way]}} for way in ("x", "y")]


def _points(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return layer(
        {"type": "point", "filled": True, "size": 90, "color": look.BLUE, "opacity": 1}, rows, **_pixels(), **WORDS
    )


def _names(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        layer(
            {"type": "text", "align": align, "baseline": "middle", "aria": False},
            [row for row in rows if row["side"] == side],
            **_pixels(),
            text="text",
        )
        for side, align in ((1, "left"), (-1, "right"))
    ]


def _pixels() -> dict[str, Any]:
    return {way: quantitative(way, scale=None) for way in ("x", "y")}

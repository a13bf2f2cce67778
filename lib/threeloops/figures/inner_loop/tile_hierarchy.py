"""Tile hierarchy: one result cut four times, from the whole down to the lane that holds an element.

>>> cuts = [
...     Cut(name="result", rows=1024, columns=1024),
...     Cut(name="block tile", rows=128, columns=128),
...     Cut(name="warp tile", rows=64, columns=64),
... ]
>>> print(tile_hierarchy(cuts, title="Cuts", caption="A product.").alt)
result 1,024 by 1,024, cut into 64 of block tile 128 by 128, cut into 4 of warp tile 64 by 64.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import quantitative
from threeloops.figures.figure import Figure

SIDE, GAP = 132, 40  # pixels
MOST_LINES = 16  # along a side; finer cuts are drawn as this many


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """One size of tile, who works on it, and from which memory at which rate."""

    name: str
    rows: int
    columns: int
    worker: str = ""
    feed: str = ""

    def __post_init__(self) -> None:
        checks.count(rows=self.rows, columns=self.columns)

    @property
    def words(self) -> str:
        return f"{self.name} {self.rows:,} by {self.columns:,}"

    @property
    def told(self) -> str:
        return f"{self.words} ({self.feed})" if self.feed else self.words


def tile_hierarchy(cuts: Sequence[Cut], *, title: str, caption: str) -> Figure:
    """Squares from left to right: each is one tile of the square before it, magnified, and is cut into tiles of the
    next size; one of them is filled.

    The last tile stands alone at the right, in the colour of the filled one.
    """
    if len(cuts) < 2:
        raise ValueError("cuts needs at least two sizes, from the largest to the smallest")
    for outer, inner in itertools.pairwise(cuts):
        checks.divides(
            part=f"rows of {inner.name}", part_value=inner.rows, whole=f"rows of {outer.name}", whole_value=outer.rows
        )
        checks.divides(
            part=f"columns of {inner.name}",
            part_value=inner.columns,
            whole=f"columns of {outer.name}",
            whole_value=outer.columns,
        )
    panels = [_panel(outer, inner, place) for place, (outer, inner) in enumerate(itertools.pairwise(cuts))]
    pieces = [
        (outer.rows // inner.rows) * (outer.columns // inner.columns) for outer, inner in itertools.pairwise(cuts)
    ]
    alt = ", ".join(
        [cuts[0].told, *(f"cut into {number:,} of {cut.told}" for number, cut in zip(pieces, cuts[1:], strict=True))]
    )
    lines = [one for panel in panels for one in panel] + _last(cuts) + _zooms(cuts)
    body = {"width": len(cuts) * (SIDE + GAP) - GAP, "height": SIDE + 70, "layer": lines}
    return Figure(title=title, caption=caption, alt=f"{alt}.", body=body)


def _rectangle(values: list[dict[str, Any]], mark: dict[str, Any]) -> dict[str, Any]:
    channels = {name: quantitative(name, scale=None, axis=None) for name in ("x", "y")}
    return {
        "data": {"values": values},
        "mark": {"type": "rect", "aria": False, **mark},
        "encoding": channels | {n: {"field": n} for n in ("x2", "y2")},
    }


def _grid(outer: Cut, inner: Cut) -> tuple[int, int]:
    return min(MOST_LINES, outer.rows // inner.rows), min(MOST_LINES, outer.columns // inner.columns)


def _text(words: str, *, x: float, y: float, colour: str) -> dict[str, Any]:
    return {
        "data": {"values": [{}]},
        "mark": {"type": "text", "x": x, "y": y, "text": words, "align": "left", "color": colour, "aria": False},
    }


def _panel(outer: Cut, inner: Cut, place: int) -> list[dict[str, Any]]:
    left, (down, across) = place * (SIDE + GAP), _grid(outer, inner)
    height, width = SIDE / down, SIDE / across
    cells = [
        {"x": left + column * width, "x2": left + (column + 1) * width, "y": row * height, "y2": (row + 1) * height}
        for row in range(down)
        for column in range(across)
    ]
    return [
        _rectangle(cells, {"fill": look.PAPER, "stroke": look.GREY, "strokeWidth": 0.6}),
        _rectangle(cells[across - 1 : across], {"fill": look.BLUE}),
        _rectangle(
            [{"x": left, "x2": left + SIDE, "y": 0, "y2": SIDE}], {"fill": None, "stroke": look.INK, "strokeWidth": 1.4}
        ),
        _text(outer.words, x=left, y=SIDE + 16, colour=look.INK),
        _text(outer.worker, x=left, y=SIDE + 34, colour=look.GREY),
        _text(outer.feed, x=left, y=SIDE + 52, colour=look.GREY),
    ]


def _last(cuts: Sequence[Cut]) -> list[dict[str, Any]]:
    """The smallest tile, as high or as wide as the squares."""
    cut, left = cuts[-1], (len(cuts) - 1) * (SIDE + GAP)
    longer = max(cut.rows, cut.columns)
    box = {"x": left, "x2": left + SIDE * cut.columns / longer, "y": 0, "y2": SIDE * cut.rows / longer}
    return [
        _rectangle([box], {"fill": look.BLUE, "stroke": look.INK, "strokeWidth": 1.4}),
        _text(cut.words, x=left, y=SIDE + 16, colour=look.INK),
        _text(cut.worker, x=left, y=SIDE + 34, colour=look.GREY),
        _text(cut.feed, x=left, y=SIDE + 52, colour=look.GREY),
    ]


def _zooms(cuts: Sequence[Cut]) -> list[dict[str, Any]]:
    """Dashed lines from the filled tile to the square that shows it magnified."""
    rows = []
    for place, (outer, inner) in enumerate(itertools.pairwise(cuts)):
        right, height = place * (SIDE + GAP) + SIDE, SIDE / _grid(outer, inner)[0]
        rows += [{"x": right, "x2": right + GAP, "y": start, "y2": end} for start, end in ((0, 0), (height, SIDE))]
    channels = {name: quantitative(name, scale=None, axis=None) for name in ("x", "y")}
    mark = {"type": "rule", "color": look.BLUE, "strokeDash": [4, 3], "aria": False}
    return [
        {
            "data": {"values": rows},
            "mark": mark,
            "encoding": channels | {name: {"field": name} for name in ("x2", "y2")},
        }
    ]

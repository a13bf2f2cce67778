"""Token cache: what one token leaves in one layer, vector by vector, in several architectures under one another.

Each little box is one cached vector of `unit` elements: a key, a value, or a piece of a latent vector.

>>> figure = token_cache(
...     {"grouped, 2 KV heads": (("keys", 256), ("values", 256))}, unit=128, title="Four vectors", caption="A layer."
... )
>>> print(figure.alt)
Elements that one token leaves in one layer, in boxes of 128. grouped, 2 KV heads: keys 256, values 256; 512 in all.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure

CELL, PER_ROW, GAP, NAMES = 12, 32, 20, 150  # pixels; boxes side by side; pixels between rows; pixels for names
COLOURS = (look.BLUE, look.ORANGE, look.GREEN, look.PINK)

Pieces = Sequence[tuple[str, int]]  # name of what is kept, elements


def token_cache(rows: Mapping[str, Pieces], *, unit: int, title: str, caption: str) -> Figure:
    """One block of boxes per architecture; a piece begins on a line of its own only where the one before is full.

    Raises:   ValueError without rows
    """
    checks.count(unit=unit)
    if not rows:
        raise ValueError("rows is empty; give at least one architecture with what it keeps")
    names = list(dict.fromkeys(name for pieces in rows.values() for name, _ in pieces))
    boxes: list[dict[str, Any]] = []
    labels: list[dict[str, Any]] = []
    top = 0.0
    for row, pieces in rows.items():
        made, lines = _boxes(pieces, unit=unit, top=top)
        height = lines * CELL
        boxes += made
        total = sum(elements for _, elements in pieces)
        labels.append({"y": top + height / 2, "row": row, "total": f"{total:,}"})
        top += max(height, 14) + GAP
    height = round(top - GAP + 4)
    y = quantitative("y", axis=None, scale={"domain": [0, height], "reverse": True})
    x = quantitative("x", axis=None, scale={"domain": [0, look.PLOT_WIDTH], "nice": False})
    text = {"type": "text", "baseline": "middle", "fontSize": look.TEXT, "aria": False}
    end = NAMES + PER_ROW * CELL + 8
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(rows, unit),
        body={
            "width": look.PLOT_WIDTH + 40,
            "height": height,
            "layer": [
                layer(
                    {"type": "rect", "stroke": look.PAPER, "strokeWidth": 1.5, "aria": False},
                    boxes,
                    x=x,
                    x2="x2",
                    y=y,
                    y2="y2",
                    color=nominal(
                        "piece",
                        scale={"domain": names, "range": list(COLOURS[: len(names)])},
                        legend={"symbolType": "square"},
                    ),
                ),
                layer({**text, "align": "left"}, [{**label, "x": 0} for label in labels], x=x, y=y, text="row"),
                layer({**text, "align": "left"}, [{**label, "x": end} for label in labels], x=x, y=y, text="total"),
            ],
        },
    )


def _boxes(pieces: Pieces, *, unit: int, top: float) -> tuple[list[dict[str, Any]], int]:
    """Boxes of one architecture from left to right, line by line; the last box of a piece may be narrow."""
    made: list[dict[str, Any]] = []
    place, line = 0.0, 0
    for name, elements in pieces:
        left = elements
        while left:
            take = min(left, unit) / unit
            if place + take > PER_ROW + 1e-9:
                place, line = 0.0, line + 1
            x = NAMES + place * CELL
            y = top + line * CELL
            made.append({"piece": name, "x": x, "x2": x + take * CELL, "y": y, "y2": y + CELL})
            place += take
            left -= min(left, unit)
    return made, line + 1


def _alt(rows: Mapping[str, Pieces], unit: int) -> str:
    said = [f"Elements that one token leaves in one layer, in boxes of {unit}."]
    for row, pieces in rows.items():
        parts = ", ".join(f"{name} {elements:,}" for name, elements in pieces)
        said.append(f"{row}: {parts}; {sum(elements for _, elements in pieces):,} in all.")
    return " ".join(said)

"""Fragment map: which lane of a warp holds which element of a small matrix, or which column lies where in memory.

>>> figure = fragment_map({"c": [[0, 0, 1, 1], [4, 4, 5, 5]]}, marked=5, title="Two neighbours each", caption="A toy.")
>>> print(figure.alt)
c, 2 by 4: lane 5 holds row 1, columns 2, 3. Row by row: c: 0 0 1 1; 4 4 5 5.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, ordinal
from threeloops.figures.figure import Figure

CELL = 20  # pixels

Holders = Sequence[Sequence[int]]  # the lane that holds each element, row by row


def fragment_map(
    matrices: Mapping[str, Holders], *, marked: int, title: str, caption: str, said: str = "lane {} holds"
) -> Figure:
    """One grid per matrix with a number in each cell, of a lane if `said` says so; the cells of one number are
    filled.
    """
    checks.count(at_least=0, marked=marked)
    if not matrices or not all(matrices.values()):
        raise ValueError("matrices is empty; give at least one, like {'c': [[0, 1], [2, 3]]}")
    return Figure(
        title=title,
        caption=caption,
        alt=" ".join(_words(name, holders, marked, said) for name, holders in matrices.items())
        + f" Row by row: {' '.join(_rows(name, holders) for name, holders in matrices.items())}",
        body={"hconcat": [_panel(name, holders, marked) for name, holders in matrices.items()], "spacing": 28},
    )


def _words(name: str, holders: Holders, marked: int, said: str) -> str:
    held = {
        row: [str(column) for column, lane in enumerate(lanes) if lane == marked] for row, lanes in enumerate(holders)
    }
    where = (
        " and ".join(
            f"row {row}, column{'s' * (len(columns) > 1)} {', '.join(columns)}"
            for row, columns in held.items()
            if columns
        )
        or "nothing"
    )
    return f"{name}, {len(holders)} by {len(holders[0])}: {said.format(marked)} {where}."


def _rows(name: str, holders: Holders) -> str:
    return f"{name}: {'; '.join(' '.join(str(lane) for lane in lanes) for lanes in holders)}."


def _panel(name: str, holders: Holders, marked: int) -> dict[str, Any]:
    values = [
        {"row": row, "column": column, "lane": lane, "mine": lane == marked}
        for row, lanes in enumerate(holders)
        for column, lane in enumerate(lanes)
    ]
    axis = {"title": None, "ticks": False, "domain": False, "labelAngle": 0, "labelColor": look.GREY}
    fill = {"condition": {"test": "datum.mine", "value": look.BLUE}, "value": look.PAPER}
    letters = {"condition": {"test": "datum.mine", "value": look.PAPER}, "value": look.INK}
    return {
        "title": {"text": name, "anchor": "start", "fontSize": look.TEXT, "fontWeight": "normal", "color": look.INK},
        "width": CELL * len(holders[0]),
        "height": CELL * len(holders),
        "data": {"values": values},
        "encoding": {
            "x": ordinal("column", scale={"padding": 0}, axis={**axis, "orient": "top"}),
            "y": ordinal("row", scale={"padding": 0}, axis=axis),
        },
        "layer": [
            layer({"type": "rect", "stroke": look.GREY, "strokeWidth": 0.6, "aria": False}, color=fill),
            layer({"type": "text", "aria": False}, text="lane", color=letters, opacity={"value": 1}),
        ],
    }

"""Credit bars: the same saving, divided among those who made it, once for every way to divide it.

>>> figure = credit_bars(
...     {"kernels first": {"kernels": 36, "network": 12}, "network first": {"kernels": 24, "network": 24}},
...     what="hours saved",
...     title="First come, first served",
...     caption="A run of 72 hours.",
... )
>>> print(figure.alt)
Hours saved. kernels first: kernels 36.0, network 12.0. network first: kernels 24.0, network 24.0.
"""

from collections.abc import Mapping
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure

ROW = 44  # pixels a bar
ROOM = 0.07  # a piece shorter than this share of the longest bar has no room for its number


def credit_bars(rows: Mapping[str, Mapping[str, float]], *, what: str, title: str, caption: str) -> Figure:
    """One bar per way to divide, its pieces in the order given, each with its number where there is room.

    Raises:   ValueError without rows, or for a row without pieces
    """
    if not rows or not all(rows.values()):
        raise ValueError("rows needs at least one bar with at least one piece, like {'first': {'kernels': 36}}")
    names = list(dict.fromkeys(name for pieces in rows.values() for name in pieces))
    longest = max(sum(pieces.values()) for pieces in rows.values())
    drawn: list[dict[str, Any]] = []
    for row, pieces in rows.items():
        checks.non_negative(**{f"{row}[{name}]": value for name, value in pieces.items()})
        start = 0.0
        for name, value in pieces.items():
            drawn.append(
                {
                    "row": row,
                    "piece": name,
                    "start": start,
                    "end": start + value,
                    "middle": start + value / 2,
                    "number": f"{value:.1f}" if value >= ROOM * longest else "",
                    "words": f"{row}, {name}: {value:.1f} {what}",
                }
            )
            start += value
    x = quantitative(scale={"domain": [0, longest], "nice": False})
    y = nominal("row", sort=list(rows), title=None, axis={"labelLimit": 260})
    colours = {"domain": names, "range": [look.SERIES_COLOURS[place % 5] for place in range(len(names))]}
    told = " ".join(
        f"{row}: {', '.join(f'{name} {value:.1f}' for name, value in pieces.items())}." for row, pieces in rows.items()
    )
    return Figure(
        title=title,
        caption=caption,
        alt=f"{what[:1].upper()}{what[1:]}. {told}",
        body={
            "data": {"values": drawn},
            "width": look.PLOT_WIDTH - 110,
            "height": ROW * len(rows),
            "layer": [
                layer(
                    {"type": "bar", "stroke": look.PAPER, "height": ROW - 14},
                    x={**x, "field": "start", "title": what, "axis": {"tickCount": 6}},
                    x2="end",
                    y=y,
                    color=nominal("piece", scale=colours, legend={"columns": 2, "labelLimit": 300}),
                    **WORDS,
                ),
                layer(
                    {"type": "text", "color": look.PAPER, "fontWeight": "bold", "aria": False},
                    x={**x, "field": "middle"},
                    y=y,
                    text="number",
                ),
            ],
        },
    )

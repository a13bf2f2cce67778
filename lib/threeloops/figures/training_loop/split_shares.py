"""Split shares: which part of its time a GPU calculates, over the number of GPUs that one layer is cut over, for each
kind of link between them.

>>> figure = split_shares({"one box": [(1, 1.0), (8, 0.76)]}, title="Cutting costs", caption="One layer.")
>>> print(figure.alt)
Share of a layer's time in which a GPU calculates, over tensor-parallel GPUs. one box: 1 GPU 100 %, 8 GPUs 76.0 %.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import counted, fmt_percent


def split_shares(curves: Mapping[str, Sequence[tuple[int, float]]], *, title: str, caption: str) -> Figure:
    """One line per kind of link, of (tensor-parallel GPUs, share from 0 to 1).

    Raises:   ValueError for no curve, or for more than there are colours
    """
    if not 0 < len(curves) <= len(look.SERIES_COLOURS):
        raise ValueError(f"{len(curves)} curves; draw 1 to {len(look.SERIES_COLOURS)}")
    for tp, share in (point for points in curves.values() for point in points):
        checks.count(tp=tp)
        checks.fraction(share=share)
    names = list(curves)
    rows = [
        {"link": name, "tp": tp, "share": share, "words": f"{name}: {_at(tp, share)}"}
        for name, points in curves.items()
        for tp, share in points
    ]
    x = quantitative(
        "tp",
        scale={"type": "log", "base": 2, "nice": False},
        axis={
            "title": "GPUs that one layer is cut over (tp)",
            "values": sorted({row["tp"] for row in rows}),
            "format": "d",
            "grid": False,
        },
    )
    y = quantitative(
        "share", scale={"domain": [0, 1]}, axis={"title": "share of the time spent calculating", "format": ".0%"}
    )

    def told(scale: Sequence[Any]) -> dict[str, Any]:
        scaled = {"domain": names, "range": list(scale[: len(names)])}
        return nominal("link", sort=names, scale=scaled, legend={"columns": 1, "labelLimit": look.PLOT_WIDTH})

    dashes = [list(one) for one in look.SERIES_DASHES]
    lines = {"x": x, "y": y, "color": told(look.SERIES_COLOURS), "strokeDash": told(dashes)}
    points = {"x": x, "y": y, "color": told(look.SERIES_COLOURS), "shape": told(look.SERIES_SHAPES)}
    words = {"tooltip": {"field": "words"}, "description": {"field": "words"}}
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(curves),
        body={
            "width": look.PLOT_WIDTH,
            "height": look.PLOT_HEIGHT - 60,
            "layer": [
                {
                    "data": {"values": rows},
                    "mark": {"type": "line", "strokeWidth": 2, "aria": False},
                    "encoding": lines,
                },
                layer({"type": "point", "filled": True, "size": 70, "opacity": 1}, rows, **points, **words),
            ],
        },
    )


def _alt(curves: Mapping[str, Sequence[tuple[int, float]]]) -> str:
    said = " ".join(f"{name}: {', '.join(_at(tp, share) for tp, share in points)}." for name, points in curves.items())
    return f"Share of a layer's time in which a GPU calculates, over tensor-parallel GPUs. {said}"


def _at(tp: int, share: float) -> str:
    return f"{counted(tp, 'GPU')} {fmt_percent(share)}"

"""Bound bars: for each load, how many GPUs each bound asks for; the longest bar is the answer.

>>> figure = bound_bars(
...     {"chat": {"memory": 1.5, "rate": 4.2}}, what="GPUs", title="The rate decides", caption="One load."
... )
>>> print(figure.alt)
GPUs by bound. chat: memory 1.5, rate 4.2; rate is the largest.
"""

from collections.abc import Mapping
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure

ROW = 24  # pixels a bar
THOUSAND = 1000  # from here on without a digit after the point, for which there is no room


def bound_bars(rows: Mapping[str, Mapping[str, float]], *, what: str, title: str, caption: str) -> Figure:
    """One group of bars a load, one bar a bound, its number at its end; the largest is written in full ink.

    Raises:   ValueError if there is no load, or one without bounds
    """
    if not rows or not all(rows.values()):
        raise ValueError("rows needs at least one load with at least one bound, like {'chat': {'memory': 1.5}}")
    for load, bounds in rows.items():
        checks.non_negative(**{f"{load}[{bound}]": value for bound, value in bounds.items()})
    names = list(dict.fromkeys(bound for bounds in rows.values() for bound in bounds))
    values: list[dict[str, Any]] = [
        {
            "load": load,
            "bound": bound,
            "value": value,
            "number": (f"{value:.1f}" if value < THOUSAND else f"{value:,.0f}")
            + (" ← decides" if value == max(bounds.values()) else ""),
            "words": f"{load}, {bound}: {value:.1f} {what}",
        }
        for load, bounds in rows.items()
        for bound, value in bounds.items()
    ]
    most = max(one["value"] for one in values)
    x = quantitative("value", title=what, scale={"domain": [0, most * 1.18]}, axis={"tickCount": 6})
    y = nominal("bound", sort=names, title=None, axis={"ticks": False})
    bars = layer(
        {"type": "bar", "height": ROW - 6},
        x=x,
        y=y,
        color=nominal("bound", scale={"domain": names, "range": list(look.SERIES_COLOURS[: len(names)])}, legend=None),
        **WORDS,
    )
    numbers = layer(
        {"type": "text", "align": "left", "dx": 5, "fontSize": look.TEXT, "aria": False}, x=x, y=y, text="number"
    )
    header = {"labelAngle": 0, "labelAlign": "left", "labelFontSize": look.TEXT, "title": None, "labelOrient": "top"}
    told = " ".join(
        f"{load}: {', '.join(f'{bound} {value:.1f}' for bound, value in bounds.items())};"
        f" {max(bounds, key=lambda name: bounds[name])} is the largest."
        for load, bounds in rows.items()
    )
    return Figure(
        title=title,
        caption=caption,
        alt=f"{what} by bound. {told}",
        narrow_px=254,  # beside the names of the bounds
        body={
            "data": {"values": values},
            "facet": {"row": nominal("load", sort=list(rows), header=header | {"labelAnchor": "start"})},
            "spec": {"width": look.PLOT_WIDTH - 40, "height": ROW * len(names), "layer": [bars, numbers]},
            "spacing": 6,
        },
    )

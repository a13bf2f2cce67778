"""Plain lines: measured or computed points joined by lines, and one place marked.

>>> figure = plain_lines(
...     {"one scale": [(8, 0.97), (3, 0.84)]},
...     x="bits",
...     y="share read correctly",
...     percent=True,
...     low=0.7,
...     title="Three bits are too few for one scale",
...     caption="A small network.",
... )
>>> print(figure.alt)
Share read correctly against bits. one scale: 97.0 % at 8, 84.0 % at 3.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, ordinal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import fmt_percent

Points = Sequence[tuple[float, float]]
HEIGHT = 270


def plain_lines(
    lines: Mapping[str, Points],
    *,
    x: str,
    y: str,
    title: str,
    caption: str,
    percent: bool = False,
    low: float = 0.0,
    high: float | None = None,
    level: float | None = None,
    here: tuple[float, float] | None = None,
    spaced: bool = False,
) -> Figure:
    """One line per name over an axis that has a place for every x that occurs, in the order of the first line, or with
    `spaced` over an axis on which x is measured. What lies below `low` is not drawn, and said in the words. level: a
    dashed line across; here: a diamond.

    Raises:   ValueError without lines, with more than colours can tell apart, or for an empty one
    """
    if not 0 < len(lines) <= len(look.SERIES_COLOURS) or not all(lines.values()):
        raise ValueError(f"{len(lines)} lines; draw 1 to {len(look.SERIES_COLOURS)}, each with a point at least")
    order = list(dict.fromkeys(f"{at:g}" for points in lines.values() for at, _ in points))
    rows: list[dict[str, Any]] = [
        {
            "line": name,
            "at": at if spaced else f"{at:g}",
            "value": value,
            "order": order.index(f"{at:g}"),
            "words": f"{name}, {at:g}: {_number(value, percent)}",
        }
        for name, points in lines.items()
        for at, value in points
        if value >= low
    ]
    top = high if high is not None else max([float(row["value"]) for row in rows] + [low]) * (1 if percent else 1.05)
    place = _measured_axis(lines, x) if spaced else _places(order, x)
    height = quantitative(
        "value",
        title=y,
        scale={"domain": [low, top], "nice": False},
        axis={"format": ".0%" if percent else "~g", "tickCount": 6},
    )
    layers = _drawn(rows, list(lines), place, height)
    if level is not None:
        layers.append(_level(level, height))
    if here is not None and here[1] >= low:
        layers.append(_here(here, place, height, spaced=spaced))
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(lines, x, y, percent),
        body={"width": look.PLOT_WIDTH - 40, "height": HEIGHT, "layer": layers},
    )


def _places(order: list[str], x: str) -> dict[str, Any]:
    return ordinal("at", scale={"domain": order}, title=x, axis={"labelAngle": 0})


def _measured_axis(lines: Mapping[str, Points], x: str) -> dict[str, Any]:
    """From the whole number below the least x to the one above the largest."""
    every = [at for points in lines.values() for at, _ in points]
    scale = {"domain": [math.floor(min(every)), math.ceil(max(every))], "nice": False}
    return quantitative("at", scale=scale, title=x, axis={"tickMinStep": 1})


def _coded(names: list[str]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Colour, dash and shape of each line."""
    legend = {"columns": 2, "labelLimit": 260, "symbolSize": 90}
    field = nominal("line", legend=legend)
    kinds = len(names)
    return (
        {**field, "scale": {"domain": names, "range": list(look.SERIES_COLOURS[:kinds])}},
        {
            **field,
            "scale": {"domain": names, "range": [list(one) for one in look.SERIES_DASHES[:kinds]]},
            "legend": None,
        },
        {**field, "scale": {"domain": names, "range": list(look.SERIES_SHAPES[:kinds])}},
    )


def _drawn(
    rows: list[dict[str, Any]], names: list[str], place: dict[str, Any], height: dict[str, Any]
) -> list[dict[str, Any]]:
    colour, dash, shape = _coded(names)
    words = {"description": {"field": "words"}, "tooltip": {"field": "words"}}
    return [
        layer(
            {"type": "line", "strokeWidth": 2, "aria": False},
            rows,
            x=place,
            y=height,
            color=colour,
            strokeDash=dash,
            order="order",
        ),
        layer(
            {"type": "point", "filled": True, "size": 60, "opacity": 1},
            rows,
            x=place,
            y=height,
            color=colour,
            shape=shape,
            **words,
        ),
    ]


def _level(level: float, height: dict[str, Any]) -> dict[str, Any]:
    return layer(
        {"type": "rule", "color": look.GREY, "strokeDash": [6, 4], "aria": False}, [{"value": level}], y=height
    )


def _here(here: tuple[float, float], place: dict[str, Any], height: dict[str, Any], *, spaced: bool) -> dict[str, Any]:
    at = here[0] if spaced else f"{here[0]:g}"
    return layer(
        {"type": "point", "shape": "diamond", "size": 260, "strokeWidth": 3, "color": look.INK},
        [{"at": at, "value": here[1], "words": f"here: {here[0]:g}"}],
        x=place,
        y=height,
        description="words",
    )


def _alt(lines: Mapping[str, Points], x: str, y: str, percent: bool) -> str:
    told = " ".join(
        f"{name}: {', '.join(f'{_number(value, percent)} at {at:g}' for at, value in points)}."
        for name, points in lines.items()
    )
    return f"{y[:1].upper()}{y[1:]} against {x}. {told}"


def _number(value: float, percent: bool) -> str:
    return fmt_percent(value) if percent else f"{value:.3g}"

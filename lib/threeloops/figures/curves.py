"""Curves: one quantity against another or over time; several lines, named points where somebody measured or chose, and
dashed levels to compare with.

>>> figure = curves(
...     {"p50": [(0.5, 1.4), (0.9, 6.9)], "p99": [(0.5, 9.2), (0.9, 46.0)]},
...     x="share of time busy",
...     y=Axis(title="seconds", log=True),
...     title="The tail grows with the rest",
...     caption="One server.",
... )
>>> print(figure.alt)
Seconds against share of time busy. p50: from 1.4 at 0.5 to 6.9 at 0.9. p99: from 9.2 at 0.5 to 46 at 0.9.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure

HEIGHT = 270

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What an axis says, and how it is divided."""

    title: str
    log: bool = False
    ticks: tuple[float, ...] = ()
    format: str = ""  # Vega's: "~s" writes 1k and 2M, ",d" 1,000; left empty, plain numbers
    low: float | None = None
    high: float | None = None

    def encoding(self, field: str, *, zero: bool) -> dict[str, Any]:
        """The axis and its scale, as Vega-Lite wants them."""
        scale: dict[str, Any] = {"type": "log", "nice": False} if self.log else {"nice": False, "zero": zero}
        if self.low is not None:
            scale |= {"domainMin": self.low} if self.log else {"domainMin": self.low, "zero": False}
        if self.high is not None:
            scale["domainMax"] = self.high
        axis: dict[str, Any] = {"format": self.format or ("~g" if self.log else "~r"), "tickCount": 6}
        if self.ticks:
            axis["values"] = list(self.ticks)
        return quantitative(field, title=self.title, scale=scale, axis=axis)


def curves(
    lines: Mapping[str, Points],
    *,
    x: Axis | str,
    y: Axis | str,
    title: str,
    caption: str,
    levels: Mapping[str, float] | None = None,
    marks: Mapping[str, tuple[float, float]] | None = None,
    steps: bool = False,
    dots: bool = False,
    apart: bool = False,
) -> Figure:
    """One line per name, told apart by colour and dash. A bare title is an axis that fits the points.

    `levels` are named dashed lines across, `marks` named points; with `steps` a value holds until the next one; with
    `dots` the points stand alone, for things that happen one by one; `apart` gives every name a panel of its own.

    Raises:   ValueError for no line, an empty one, or more lines or marks than can be told apart
    """
    levels, marks = levels or {}, marks or {}
    if not 1 <= len(lines) <= len(look.SERIES_COLOURS) or len(marks) > len(look.SERIES_SHAPES):
        raise ValueError(
            f"{len(lines)} lines and {len(marks)} marks; draw 1 to {len(look.SERIES_COLOURS)} lines and at most"
            f" {len(look.SERIES_SHAPES)} marks"
        )
    for name, points in lines.items():
        checks.count(**{f"points of {name}": len(points)})
    across, up = (Axis(title=axis) if isinstance(axis, str) else axis for axis in (x, y))
    places = {"x": across.encoding("x", zero=False), "y": up.encoding("y", zero=True)}
    rows = [{"line": name, "x": at, "y": value} for name, points in lines.items() for at, value in points]
    layers = [_lines(list(lines), places, steps=steps, dots=dots, named=len(lines) > 1 and not apart)]
    layers += [*_levels(levels, places["y"]), *_marks(marks, places)]
    if apart:
        body = _panels(layers, rows, list(lines))
    else:
        body = {"width": look.PLOT_WIDTH, "height": HEIGHT, "data": {"values": rows}, "layer": layers}
    return Figure(title=title, caption=caption, alt=_alt(lines, levels, marks, x=across.title, y=up.title), body=body)


def _lines(names: list[str], places: Mapping[str, Any], *, steps: bool, dots: bool, named: bool) -> dict[str, Any]:
    """Lines told apart by colour and dash, or dots by colour and shape."""
    kinds = len(names)

    def told_apart(choices: Sequence[object]) -> dict[str, Any]:
        return nominal(
            "line",
            scale={"domain": names, "range": list(choices[:kinds])},
            legend={"columns": 2, "labelLimit": 300, "symbolSize": 40 if dots else 300} if named else None,
        )

    encoding = {**places, "color": told_apart(look.SERIES_COLOURS)}
    if dots:
        mark: dict[str, Any] = {"type": "point", "filled": True, "size": 22, "opacity": 0.7}
        encoding["shape"] = told_apart(look.SERIES_SHAPES)
    else:
        mark = {"type": "line", "strokeWidth": 2, "clip": True} | ({"interpolate": "step-after"} if steps else {})
        encoding["strokeDash"] = told_apart(look.SERIES_DASHES)
    return {"mark": {**mark, "aria": False}, "encoding": encoding}


def _panels(layers: list[dict[str, Any]], rows: Sequence[Mapping[str, Any]], names: list[str]) -> dict[str, Any]:
    """A panel a line, one below the other, on common axes."""
    header = {"labelAngle": 0, "labelAlign": "left", "labelFontSize": look.TEXT, "title": None}
    return {
        "data": {"values": rows},
        "facet": {"row": nominal("line", sort=names, header=header)},
        "spec": {"width": look.PLOT_WIDTH - 20, "height": HEIGHT // 2, "layer": layers},
    }


def _levels(levels: Mapping[str, float], up: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A dashed line across for each level, its name above it at the left."""
    values = [{"y": value, "name": name} for name, value in levels.items()]
    if not values:
        return []
    text = {"type": "text", "align": "left", "baseline": "bottom", "dx": 4, "dy": -2, "color": look.GREY}
    return [
        layer({"type": "rule", "strokeDash": [3, 3], "color": look.GREY, "aria": False}, values, y=up),
        layer({**text, "fontSize": look.TEXT, "aria": False}, values, x={"value": 0}, y=up, text="name"),
    ]


def _marks(marks: Mapping[str, tuple[float, float]], places: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A named point for each mark, told apart by shape."""
    values = [
        {"mark": name, "x": at, "y": value, "words": f"{name}: {_short(value)} at {_short(at)}"}
        for name, (at, value) in marks.items()
    ]
    if not values:
        return []
    shapes = {"domain": list(marks), "range": list(look.SERIES_SHAPES[: len(marks)])}
    return [
        layer(
            {"type": "point", "filled": True, "size": 120, "color": look.INK},
            values,
            **places,
            shape=nominal("mark", scale=shapes),
            **WORDS,
        )
    ]


def _alt(
    lines: Mapping[str, Points],
    levels: Mapping[str, float],
    marks: Mapping[str, tuple[float, float]],
    *,
    x: str,
    y: str,
) -> str:
    begins = y if y.split()[0] in ("µs", "ms", "s") else y[:1].upper() + y[1:]  # a unit is not a word
    said = [f"{begins} against {x}."]
    for name, points in lines.items():
        (first, low), (last, high) = points[0], points[-1]
        top_at, top = max(points, key=lambda point: point[1])
        peak = f" over {_short(top)} at {_short(top_at)}" if top > max(low, high) else ""
        said.append(f"{name}: from {_short(low)} at {_short(first)}{peak} to {_short(high)} at {_short(last)}.")
    if marks:
        named = (f"{name}: {_short(value)} at {_short(at)}" for name, (at, value) in marks.items())
        said.append(f"Marked: {'; '.join(named)}.")
    said += [f"Dashed: {name}." for name in levels]
    return " ".join(said)


def _short(value: float) -> str:
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded == int(rounded) else f"{rounded:,g}"

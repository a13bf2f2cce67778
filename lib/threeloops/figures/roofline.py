"""Roofline: operations as points under the slopes of the memories and the flat roofs of the arithmetic units.

>>> point = Point(name="row by matrix", arithmetic_intensity=1.0, flops_per_s=3.35e12, bound="memory")
>>> figure = roofline([point], roofs={"bf16": 989.4e12}, memory_bytes_per_s=3.35e12, title="One row waits for its matrix", caption="An H100.")
>>> print(figure.alt)
Roofline. Memory 3.35 TB/s; bf16 peak 989 TFLOP/s, ridge point 295 FLOP/B. row by matrix: memory-bound, 1 FLOP/B, 3.35 TFLOP/s.

Source: Williams, Waterman, Patterson, CACM 52(4), 2009, doi:10.1145/1498765.1498785
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from threeloops import checks
from threeloops import roofline as model
from threeloops.figures import labels, look
from threeloops.figures.figure import Figure
from threeloops.forward_step import MATRIX, VECTOR, Op
from threeloops.units import fmt, fmt_si

INTENSITIES = (0.05, 20_000.0)  # FLOP/B: from an addition in fp32 to the largest products in 4 bits
DECADES = 6  # of FLOP/s, downwards from the first power of ten that leaves room above the highest roof; more where a point lies lower
HEADROOM = 2.5
GAP = 8  # pixels between a point and its name


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One operation on the chart."""

    name: str
    arithmetic_intensity: float
    flops_per_s: float  # attained, or attainable
    bound: str  # "compute", "memory" or "overhead"

    def __post_init__(self) -> None:
        checks.positive(arithmetic_intensity=self.arithmetic_intensity, flops_per_s=self.flops_per_s)
        checks.one_of(model.BOUNDS, bound=self.bound)
        low, high = INTENSITIES
        if not low <= self.arithmetic_intensity <= high:
            raise ValueError(f"arithmetic_intensity={self.arithmetic_intensity!r} of {self.name!r} must lie on the chart, between {low} and {high:.0f} FLOP/B")

    @property
    def sentence(self) -> str:
        rate, intensity = fmt(self.flops_per_s, "FLOP/s"), fmt(self.arithmetic_intensity, "FLOP/B")
        return f"{self.name}: {self.bound}-bound, {intensity}, {rate}"


def op_points(
    ops: Iterable[Op], *, matrix_flops_per_s: float, vector_flops_per_s: float, memory_bytes_per_s: float, launch_overhead_s: float = 0.0
) -> tuple[Point, ...]:
    """Each operation at the rate that its roof allows; those that fall on the same point share it, those without FLOPs have none.

    Assumes:  one launch each; the matrix units' peak for matrix products, the vector units' for the rest
    """
    peaks = {MATRIX: matrix_flops_per_s, VECTOR: vector_flops_per_s}
    found: dict[tuple[float, float, str], Point] = {}
    for op in ops:
        if op.work.flops == 0:
            continue
        time = model.time(op.work, peak_flops_per_s=peaks[op.unit], memory_bytes_per_s=memory_bytes_per_s, launch_overhead_s=launch_overhead_s)
        name, place = op.name.replace("_", " "), (op.work.arithmetic_intensity, op.work.flops / time.lower_bound_s, time.bound)
        if place in found:
            found[place] = replace(found[place], name=f"{found[place].name}, {name}")
        else:
            found[place] = Point(name=name, arithmetic_intensity=place[0], flops_per_s=place[1], bound=place[2])
    return tuple(found.values())


def roofline(
    points: Sequence[Point],
    *,
    roofs: Mapping[str, float],
    memory_bytes_per_s: float,
    title: str,
    caption: str,
    slopes: Mapping[str, float] | None = None,
    memory: str = "memory",
    under: Mapping[str, str] | None = None,
) -> Figure:
    """The chart. `roofs` are peaks in FLOP/s by name: the first is drawn through, the others dashed. `memory` is what the slope is called.

    `slopes` are further memories, by name, with their bytes/s: caches, or the same memory as measured. They are dashed, and lead up to the first roof.
    A slope on which a point of the same name stands is named by that point alone.
    `under` pairs a roof with one of them, where both belong to another machine: the slope ends in that roof, and the roof begins at that slope.

    Raises:   ValueError if `under` names a roof or a slope that is not there
    """
    if not roofs:
        raise ValueError("roofs is empty; a roofline needs at least one peak, like {'bf16': 989.4e12}")
    more, pairs, named = slopes or {}, under or {}, {point.name for point in points}
    for roof, slope in pairs.items():
        checks.one_of(roofs, roof=roof)
        checks.one_of(more, slope=slope)
    checks.positive(memory_bytes_per_s=memory_bytes_per_s, **{f"roofs[{name!r}]": peak for name, peak in roofs.items()})
    checks.positive(**{f"slopes[{name!r}]": rate for name, rate in more.items()})
    top = math.ceil(math.log10(HEADROOM * max(roofs.values())))
    lowest = min((math.floor(math.log10(point.flops_per_s)) for point in points), default=top)
    scale = _Scale(top=10.0**top, decades=max(DECADES, top - lowest))
    feeds = {name: more.get(pairs.get(name, ""), memory_bytes_per_s) for name in roofs}
    tops = {name: next((roofs[roof] for roof, slope in pairs.items() if slope == name), next(iter(roofs.values()))) for name in more}
    layers = [_roof(name, peak, feeds[name], scale, dashed=index > 0) for index, (name, peak) in enumerate(roofs.items())]
    taken = [(scale.y(peak) - labels.ROW - 3, scale.y(peak) + 2) for peak in list(roofs.values())[1:]]
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(points, roofs, feeds, {memory: memory_bytes_per_s, **more}),
        body={
            "width": look.PLOT_WIDTH,
            "height": look.PLOT_HEIGHT,
            "encoding": {
                "x": _axis("x", "arithmetic intensity (FLOP/B)", INTENSITIES, form=",~r"),
                "y": _axis("y", "rate (FLOP/s)", (scale.bottom, scale.top), form="~s"),
            },
            "layer": [
                *(layer for group in layers for layer in group),
                *(_dashed_slope(rate, tops[name], scale) for name, rate in more.items()),
                *(_slope(name, rate, scale) for name, rate in {memory: memory_bytes_per_s, **more}.items() if name not in named),
                *_names(points, scale, taken),
                _marks(points),
            ],
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """From data to pixels and back, as Vega will draw it."""

    top: float
    decades: int

    @property
    def bottom(self) -> float:
        return float(self.top / 10**self.decades)

    def x(self, intensity: float) -> float:
        low, high = INTENSITIES
        return look.PLOT_WIDTH * math.log(intensity / low) / math.log(high / low)

    def y(self, flops_per_s: float) -> float:
        return look.PLOT_HEIGHT * math.log10(self.top / flops_per_s) / self.decades

    def rate(self, y: float) -> float:
        return float(self.top / 10 ** (self.decades * y / look.PLOT_HEIGHT))


def _axis(name: str, title: str, domain: tuple[float, float], *, form: str) -> dict[str, Any]:
    first, last = math.ceil(math.log10(domain[0])), math.floor(math.log10(domain[1]))
    axis = {"values": [10.0**power for power in range(first, last + 1)], "format": form}
    return {"field": name, "type": "quantitative", "title": title, "scale": {"type": "log", "domain": list(domain), "nice": False}, "axis": axis}


def _data(rows: Iterable[Mapping[str, object]]) -> dict[str, Any]:
    return {"values": list(rows)}


def _roof(name: str, peak: float, memory_bytes_per_s: float, scale: _Scale, *, dashed: bool) -> list[dict[str, Any]]:
    """A flat roof from its ridge point to the right, the slope that leads up to it, and its name above its end."""
    low, high = INTENSITIES
    ridge = model.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=memory_bytes_per_s)
    foot = max(low, scale.bottom / memory_bytes_per_s)
    corners = [{"x": x, "y": min(peak, x * memory_bytes_per_s)} for x in (foot, min(max(ridge, foot), high), high)]
    line = {"type": "line", "color": look.INK, "strokeWidth": 1.5, "aria": False, **({"strokeDash": [5, 4]} if dashed else {})}
    text = {"type": "text", "align": "right", "baseline": "bottom", "dy": -4, "color": look.GREY, "aria": False}
    words = f"{name} {fmt_si(peak, 'FLOP/s')}" + ("" if dashed else f", ridge point {ridge:,.0f} FLOP/B")
    return [
        {"data": _data(corners[dashed:]), "mark": line},
        {"data": _data([{"x": high, "y": peak, "text": words}]), "mark": text, "encoding": {"text": {"field": "text"}}},
    ]


def _dashed_slope(bytes_per_s: float, peak: float, scale: _Scale) -> dict[str, Any]:
    """The slope of another memory, from the foot of the chart to where it meets the first roof."""
    low, high = INTENSITIES
    foot = max(low, scale.bottom / bytes_per_s)
    ends = [{"x": x, "y": min(peak, x * bytes_per_s)} for x in (foot, min(max(peak / bytes_per_s, foot), high))]
    mark = {"type": "line", "color": look.BLUE, "strokeWidth": 1.2, "strokeDash": [3, 3], "aria": False}
    return {"data": _data(ends), "mark": mark}


def _slope(name: str, memory_bytes_per_s: float, scale: _Scale) -> dict[str, Any]:
    """The bandwidth, written along the slope."""
    low, high = INTENSITIES
    foot = max(low, scale.bottom / memory_bytes_per_s)
    pixels_up = look.PLOT_HEIGHT / scale.decades
    pixels_right = look.PLOT_WIDTH / math.log10(high / low)
    mark = {"type": "text", "align": "left", "baseline": "bottom", "dx": 24, "dy": -5, "color": look.GREY, "aria": False}
    mark["angle"] = 360 - math.degrees(math.atan2(pixels_up, pixels_right))
    row = {"x": foot, "y": foot * memory_bytes_per_s, "text": f"{name} {fmt_si(memory_bytes_per_s, 'B/s')}"}
    return {"data": _data([row]), "mark": mark, "encoding": {"text": {"field": "text"}}}


def _names(points: Sequence[Point], scale: _Scale, taken: Sequence[tuple[float, float]]) -> list[dict[str, Any]]:
    """Every name on a line of its own, with a thin line down to it from its point; to the left of points that are far to the right."""

    def away(point: Point) -> int:
        return -1 if scale.x(point.arithmetic_intensity) > 0.7 * look.PLOT_WIDTH else 1

    # Of points at one height, the one nearest to where its name ends comes first: no name crosses another's line.
    ordered = sorted(points, key=lambda point: (scale.y(point.flops_per_s), -away(point) * point.arithmetic_intensity))
    lines = labels.rows([scale.y(point.flops_per_s) + GAP for point in ordered], lowest=look.PLOT_HEIGHT - GAP, taken=taken)
    rows: list[dict[str, Any]] = [
        {"x": point.arithmetic_intensity, "y": point.flops_per_s, "row": scale.rate(line), "name": point.name, "away": away(point)}
        for point, line in zip(ordered, lines, strict=True)
    ]
    leader = {"type": "rule", "color": look.GREY, "strokeWidth": 0.7, "aria": False}
    layers: list[dict[str, Any]] = [{"data": _data(rows), "mark": leader, "encoding": {"y2": {"field": "row"}}}]
    for side, align in ((1, "left"), (-1, "right")):
        text = {"type": "text", "align": align, "baseline": "middle", "dx": side * GAP, "aria": False}
        halo = {**text, "stroke": look.PAPER, "strokeWidth": 4, "strokeJoin": "round"}
        place = {"y": {"field": "row", "type": "quantitative"}, "text": {"field": "name"}}
        layers += [{"data": _data(row for row in rows if row["away"] == side), "mark": mark, "encoding": place} for mark in (halo, text)]
    return layers


def _marks(points: Sequence[Point]) -> dict[str, Any]:
    """The points themselves: their bound by colour and by shape, their words for a screen reader and under the mouse."""
    shown = [bound for bound in model.BOUNDS if bound != "overhead" or any(point.bound == bound for point in points)]
    rows = [{"x": point.arithmetic_intensity, "y": point.flops_per_s, "bound": point.bound, "words": point.sentence} for point in points]
    key = {"labelExpr": "datum.label + '-bound'"}
    colour = {"domain": shown, "range": [look.BOUND_COLOURS[bound] for bound in shown]}
    shape = {"domain": shown, "range": [look.BOUND_SHAPES[bound] for bound in shown]}
    return {
        "data": _data(rows),
        "mark": {"type": "point", "filled": True, "opacity": 0.85, "size": 100, "stroke": look.PAPER, "strokeWidth": 0.5},
        "encoding": {
            "color": {"field": "bound", "type": "nominal", "scale": colour, "legend": key},
            "shape": {"field": "bound", "type": "nominal", "scale": shape, "legend": key},
            "tooltip": {"field": "words"},
            "description": {"field": "words"},
        },
    }


def _alt(points: Sequence[Point], roofs: Mapping[str, float], feeds: Mapping[str, float], memories: Mapping[str, float]) -> str:
    ridges = {name: model.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=feeds[name]) for name, peak in roofs.items()}
    over = "; ".join(f"{name} peak {fmt_si(peak, 'FLOP/s')}, ridge point {ridges[name]:,.0f} FLOP/B" for name, peak in roofs.items())
    slopes = ", ".join(f"{name} {fmt_si(rate, 'B/s')}" for name, rate in memories.items())
    return f"Roofline. {slopes[:1].upper()}{slopes[1:]}; {over}. " + "; ".join(point.sentence for point in points) + "."

"""Roofline: operations as points under the slopes of the memories and the flat roofs of the arithmetic units.

>>> point = Point(name="row by matrix", arithmetic_intensity=1.0, flops_per_s=3.35e12, bound="memory")
>>> figure = roofline([point], roofs={"bf16": 989.4e12}, memory_bytes_per_s=3.35e12, title="One row waits for its matrix", caption="An H100.")
>>> print(figure.alt)
Roofline. Memory 3.35 TB/s; bf16 peak 989 TFLOP/s, ridge point 295 FLOP/B. row by matrix: memory-bound, 1 FLOP/B, 3.35 TFLOP/s.

Source: Williams, Waterman, Patterson, CACM 52(4), 2009, doi:10.1145/1498765.1498785
"""

import itertools
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
HEADROOM = 2.5  # from the highest roof to the top of the chart, at least
PARTS = 6  # boxes that cover the words on a slope
LEVEL_COLOURS, LEVEL_SHAPES = (look.PINK, look.INK), ("diamond", "cross")  # of points bound by a level of memory that is named

Place = tuple[float, float]  # FLOP/B, FLOP/s


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One operation on the chart."""

    name: str
    arithmetic_intensity: float
    flops_per_s: float  # attained, or attainable
    bound: str  # "compute", "memory" or "overhead"
    level: str = ""  # which memory "memory" is, where it is not the one that the chart's slope belongs to

    def __post_init__(self) -> None:
        checks.positive(arithmetic_intensity=self.arithmetic_intensity, flops_per_s=self.flops_per_s)
        checks.one_of(model.BOUNDS, bound=self.bound)
        low, high = INTENSITIES
        if not low <= self.arithmetic_intensity <= high:
            raise ValueError(f"arithmetic_intensity={self.arithmetic_intensity!r} of {self.name!r} must lie on the chart, between {low} and {high:.0f} FLOP/B")

    @property
    def binds(self) -> str:
        """What binds, in the words of the key."""
        return self.level if self.level and self.bound == "memory" else self.bound

    @property
    def sentence(self) -> str:
        rate, intensity = fmt(self.flops_per_s, "FLOP/s"), fmt(self.arithmetic_intensity, "FLOP/B")
        return f"{self.name}: {self.binds}-bound, {intensity}, {rate}"


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
    `under` pairs a roof with one of them, where both belong to another machine: the slope ends in that roof, and the roof begins at that slope.

    Raises:   ValueError if `under` names a roof or a slope that is not there
    """
    if not roofs:
        raise ValueError("roofs is empty; a roofline needs at least one peak, like {'bf16': 989.4e12}")
    more, pairs = slopes or {}, under or {}
    for roof, slope in pairs.items():
        checks.one_of(roofs, roof=roof)
        checks.one_of(more, slope=slope)
    checks.positive(memory_bytes_per_s=memory_bytes_per_s, **{f"roofs[{name!r}]": peak for name, peak in roofs.items()})
    checks.positive(**{f"slopes[{name!r}]": rate for name, rate in more.items()})
    top = math.ceil(math.log10(HEADROOM * max(roofs.values())))
    memories = {memory: memory_bytes_per_s, **more}
    rates = [*(point.flops_per_s for point in points), *(INTENSITIES[0] * rate for rate in memories.values())]  # every point, every slope's foot
    scale = _Scale(top=10.0**top, decades=top - math.floor(math.log10(min(rates))))
    feeds = {name: more.get(pairs.get(name, ""), memory_bytes_per_s) for name in roofs}
    tops = {name: next((roofs[roof] for roof, slope in pairs.items() if slope == name), next(iter(roofs.values()))) for name in more}
    signs = _signs(roofs, feeds, points, scale)
    names = {name: _along(name, rate, tops.get(name, max(roofs.values())), points, scale) for name, rate in memories.items()}
    corners = {name: _corners(peak, feeds[name], scale) for name, peak in roofs.items()}
    feet = {name: _foot(rate, tops[name], scale) for name, rate in more.items()}
    lines = [scale.line(*pair) for places in [*corners.values(), *feet.values()] for pair in itertools.pairwise(places)]
    taken = [*(sign.box for sign in signs.values()), *(box for found in names.values() for box in found.boxes)]
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(points, roofs, feeds, memories),
        body={
            "width": look.PLOT_WIDTH,
            "height": look.PLOT_HEIGHT,
            "encoding": {
                "x": _axis("x", "arithmetic intensity (FLOP/B)", INTENSITIES, form=",~r"),
                "y": _axis("y", "rate (FLOP/s)", (scale.bottom, scale.top), form="~s"),
            },
            "layer": [
                *(_roof(corners[name], dashed=index > 0) for index, name in enumerate(roofs)),
                *(_dashed_slope(ends) for ends in feet.values()),
                *(layer for sign in signs.values() for layer in _sign(sign, scale)),
                *(_slope(found, scale) for found in names.values()),
                *_names(points, scale, taken, lines),
                *([_marks(points)] if points else []),
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

    def mark(self, point: Point) -> labels.Mark:
        return labels.Mark(x=self.x(point.arithmetic_intensity), y=self.y(point.flops_per_s), name=point.name)

    def line(self, begin: Place, end: Place) -> labels.Line:
        return labels.Line(self.x(begin[0]), self.y(begin[1]), self.x(end[0]), self.y(end[1]))

    def intensity(self, x: float) -> float:
        low, high = INTENSITIES
        return float(low * (high / low) ** (x / look.PLOT_WIDTH))

    @property
    def slant(self) -> float:
        """Radians between a slope and the ground: as many decades up as sideways."""
        low, high = INTENSITIES
        return math.atan2(look.PLOT_HEIGHT / self.decades, look.PLOT_WIDTH / math.log10(high / low))

    def rate(self, y: float) -> float:
        return float(self.top / 10 ** (self.decades * y / look.PLOT_HEIGHT))


def _axis(name: str, title: str, domain: tuple[float, float], *, form: str) -> dict[str, Any]:
    first, last = math.ceil(math.log10(domain[0])), math.floor(math.log10(domain[1]))
    axis = {"values": [10.0**power for power in range(first, last + 1)], "format": form}
    return {"field": name, "type": "quantitative", "title": title, "scale": {"type": "log", "domain": list(domain), "nice": False}, "axis": axis}


def _data(rows: Iterable[Mapping[str, object]]) -> dict[str, Any]:
    return {"values": list(rows)}


def _corners(peak: float, memory_bytes_per_s: float, scale: _Scale) -> list[Place]:
    """A roof's slope from the left edge to the ridge point, and the roof from there to the right edge."""
    low, high = INTENSITIES
    foot = max(low, scale.bottom / memory_bytes_per_s)
    ridge = model.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=memory_bytes_per_s)
    return [(x, min(peak, x * memory_bytes_per_s)) for x in (foot, min(max(ridge, foot), high), high)]


def _foot(bytes_per_s: float, peak: float, scale: _Scale) -> list[Place]:
    """The slope of another memory, from the left edge to where it meets its roof."""
    return _corners(peak, bytes_per_s, scale)[:2]


def _rows(places: Iterable[Place]) -> list[dict[str, float]]:
    return [{"x": x, "y": y} for x, y in places]


def _roof(corners: Sequence[Place], *, dashed: bool) -> dict[str, Any]:
    """A flat roof; of the first one also the slope that leads up to it."""
    line = {"type": "line", "color": look.INK, "strokeWidth": 1.5, "aria": False, **({"strokeDash": [5, 4]} if dashed else {})}
    return {"data": _data(_rows(corners[dashed:])), "mark": line}


def _dashed_slope(ends: Sequence[Place]) -> dict[str, Any]:
    return {"data": _data(_rows(ends)), "mark": {"type": "line", "color": look.BLUE, "strokeWidth": 1.2, "strokeDash": [3, 3], "aria": False}}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sign:
    """The name of a roof: its words, its box on the chart, and whether it stands in a gap of its line instead of above it."""

    words: str
    box: labels.Box
    inside: bool


def _signs(roofs: Mapping[str, float], feeds: Mapping[str, float], points: Sequence[Point], scale: _Scale) -> dict[str, _Sign]:
    """Every roof's name at its right end: above it, or in the line itself, clear of the points, where another roof or its name is close above."""
    found: dict[str, _Sign] = {}
    marks = [scale.mark(point).box for point in points]
    first, lines = next(iter(roofs)), [scale.y(peak) for peak in roofs.values()]
    for name, peak in sorted(roofs.items(), key=lambda roof: -roof[1]):
        short, line = f"{name} {fmt_si(peak, 'FLOP/s')}", scale.y(peak)
        ridge = model.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=feeds[name])
        above = _box(f"{short}, ridge point {ridge:,.0f} FLOP/B" if name == first else short, line - 11)
        free = not any(above.top < other < line for other in lines) and not any(above.meets(sign.box) for sign in found.values())
        if free:
            found[name] = _Sign(words=f"{short}, ridge point {ridge:,.0f} FLOP/B" if name == first else short, box=above, inside=False)
            continue
        right = float(look.PLOT_WIDTH)
        while any(_box(short, line, right).meets(box) for box in [*marks, *(sign.box for sign in found.values())]) and right > look.PLOT_WIDTH / 2:
            right -= 10
        found[name] = _Sign(words=short, box=_box(short, line, right), inside=True)
    return found


def _box(words: str, middle: float, right: float = look.PLOT_WIDTH) -> labels.Box:
    """The box of a line of text that ends at `right`."""
    return labels.Box(left=right - labels.LETTER * len(words), top=middle - 7, right=right, bottom=middle + 7)


def _sign(sign: _Sign, scale: _Scale) -> list[dict[str, Any]]:
    row = {"x": scale.intensity(sign.box.right), "y": scale.rate((sign.box.top + sign.box.bottom) / 2), "text": sign.words}
    text = {"type": "text", "align": "right", "baseline": "middle", "color": look.GREY, "aria": False}
    ends = {"x": scale.intensity(sign.box.left - 5), "x2": row["x"], "y": scale.rate(sign.box.top), "y2": scale.rate(sign.box.bottom)}
    gap = {"data": _data([ends]), "mark": {"type": "rect", "color": look.PAPER, "aria": False}, "encoding": {"x2": {"field": "x2"}, "y2": {"field": "y2"}}}
    return [*([gap] if sign.inside else []), {"data": _data([row]), "mark": text, "encoding": {"text": {"field": "text"}}}]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Along:
    """The name of a slope: its words, where along the slope they begin (pixels from the left), the slope's bytes/s, and boxes that cover the words."""

    words: str
    begin: float
    bytes_per_s: float
    boxes: tuple[labels.Box, ...]


def _along(name: str, bytes_per_s: float, peak: float, points: Sequence[Point], scale: _Scale) -> _Along:
    """The bandwidth, written along the slope: as near its foot as no point is in the way, without the number where there is room for the name alone."""
    end = scale.x(min(max(peak / bytes_per_s, INTENSITIES[0]), INTENSITIES[1]))
    full = f"{name} {fmt_si(bytes_per_s, 'B/s')}"
    marks = [(scale.x(point.arithmetic_intensity), math.log10(point.arithmetic_intensity * bytes_per_s / point.flops_per_s)) for point in points]
    decade = look.PLOT_HEIGHT / scale.decades
    near = [x for x, below in marks if -26 < below * decade < labels.MARK]  # points no higher above the slope than the words reach
    for words in (full, name):
        length = labels.LETTER * len(words) * math.cos(scale.slant)
        for begin in (24, *range(12, max(13, int(end - length)), 6)):
            if begin + length <= end and not any(begin - 8 < x < begin + length + 8 for x in near):
                return _written(words, begin, length, bytes_per_s, scale)
    return _written(full, 24, labels.LETTER * len(full) * math.cos(scale.slant), bytes_per_s, scale)


def _written(words: str, begin: float, length: float, bytes_per_s: float, scale: _Scale) -> _Along:
    """Words on their slope, covered by small boxes."""
    boxes = []
    for part in range(PARTS):
        left, right = (begin + length * place / PARTS for place in (part, part + 1))
        y = scale.y(scale.intensity((left + right) / 2) * bytes_per_s) - 13 * math.cos(scale.slant)
        boxes.append(labels.Box(left=left - 4, top=y - 7, right=right + 4, bottom=y + 7))
    return _Along(words=words, begin=begin, bytes_per_s=bytes_per_s, boxes=tuple(boxes))


def _slope(found: _Along, scale: _Scale) -> dict[str, Any]:
    mark = {"type": "text", "align": "left", "baseline": "bottom", "dy": -5, "color": look.GREY, "aria": False}
    mark["angle"] = 360 - math.degrees(scale.slant)
    foot = scale.intensity(found.begin)
    return {"data": _data([{"x": foot, "y": foot * found.bytes_per_s, "text": found.words}]), "mark": mark, "encoding": {"text": {"field": "text"}}}


def _names(points: Sequence[Point], scale: _Scale, taken: Sequence[labels.Box], lines: Sequence[labels.Line]) -> list[dict[str, Any]]:
    """Every name where it covers nothing, with a thin line to it from its point."""
    ordered = sorted(points, key=lambda point: (scale.y(point.flops_per_s), point.arithmetic_intensity))
    spots = labels.beside([scale.mark(point) for point in ordered], width=look.PLOT_WIDTH, height=look.PLOT_HEIGHT, taken=taken, lines=lines)
    rows: list[dict[str, Any]] = [
        {"x": point.arithmetic_intensity, "y": point.flops_per_s, "row": scale.rate(spot.row), "name": point.name, "away": spot.side}
        for point, spot in zip(ordered, spots, strict=True)
    ]
    leader = {"type": "rule", "color": look.GREY, "strokeWidth": 0.7, "aria": False}
    layers: list[dict[str, Any]] = [{"data": _data(rows), "mark": leader, "encoding": {"y2": {"field": "row"}}}] if rows else []
    for side, align in ((1, "left"), (-1, "right")):
        here = [row for row in rows if row["away"] == side]
        text = {"type": "text", "align": align, "baseline": "middle", "dx": side * labels.GAP, "aria": False}
        halo = {**text, "stroke": look.PAPER, "strokeWidth": 4, "strokeJoin": "round"}
        place = {"y": {"field": "row", "type": "quantitative"}, "text": {"field": "name"}}
        layers += [{"data": _data(here), "mark": mark, "encoding": place} for mark in (halo, text) if here]
    return layers


def _key(points: Sequence[Point]) -> dict[str, tuple[str, str]]:
    """What binds any of the points -> its colour and shape; what binds none is not there."""
    found = {bound: (look.BOUND_COLOURS[bound], look.BOUND_SHAPES[bound]) for bound in model.BOUNDS if any(point.binds == bound for point in points)}
    levels = dict.fromkeys(point.binds for point in points if point.binds not in model.BOUNDS)
    if len(levels) > len(LEVEL_COLOURS):
        raise ValueError(f"levels {sorted(levels)} bind points; a chart tells {len(LEVEL_COLOURS)} apart")
    return found | dict(zip(levels, zip(LEVEL_COLOURS, LEVEL_SHAPES, strict=True), strict=False))


def _marks(points: Sequence[Point]) -> dict[str, Any]:
    """The points themselves: their bound by colour and by shape, their words for a screen reader and under the mouse."""
    shown = _key(points)
    rows = [{"x": point.arithmetic_intensity, "y": point.flops_per_s, "bound": point.binds, "words": point.sentence} for point in points]
    key = {"labelExpr": "datum.label + '-bound'"}
    colour, shape = ({"domain": list(shown), "range": [found[which] for found in shown.values()]} for which in (0, 1))
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

"""Roofline: operations as points under the slopes of the memories and the flat roofs of the arithmetic units.

>>> point = Point(name="row by matrix", arithmetic_intensity=1.0, flops_per_s=3.35e12, bound="memory")
>>> figure = roofline(
...     [point],
...     roofs={"bf16": 989.4e12},
...     memory_bytes_per_s=3.35e12,
...     title="One row waits for its matrix",
...     caption="An H100.",
... )
>>> print(figure.alt)
Roofline. Memory 3.35 TB/s; bf16 peak 989 TFLOP/s, ridge point 295 FLOP/B. row by matrix: memory-bound, 1 FLOP/B, 3.35 TFLOP/s.

Source: Williams, Waterman, Patterson, CACM 52(4), 2009, doi:10.1145/1498765.1498785
"""  # noqa: E501

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal
from threeloops.figures.figure import Figure
from threeloops.figures.inner_loop import roofline_names, roofline_scale
from threeloops.figures.inner_loop.roofline_scale import INTENSITIES, Place, Scale, axis, data
from threeloops.models.forward_step import MATRIX, VECTOR, Op
from threeloops.operations import roofline as model
from threeloops.units import fmt, fmt_si

HEADROOM = 2.5  # from the highest roof to the top of the chart, at least
SLIM = 345  # pixels of the plot on a phone
# of points bound by a level of memory that is named
LEVEL_COLOURS, LEVEL_SHAPES = (look.PINK, look.INK), ("diamond", "cross")


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
            raise ValueError(
                f"arithmetic_intensity={self.arithmetic_intensity!r} of {self.name!r} must lie on the chart, between"
                f" {low} and {high:.0f} FLOP/B"
            )

    @property
    def place(self) -> Place:
        return self.arithmetic_intensity, self.flops_per_s

    @property
    def binds(self) -> str:
        """What binds, in the words of the key."""
        return self.level if self.level and self.bound == "memory" else self.bound

    @property
    def sentence(self) -> str:
        rate, intensity = fmt(self.flops_per_s, "FLOP/s"), fmt(self.arithmetic_intensity, "FLOP/B")
        return f"{self.name}: {self.binds}-bound, {intensity}, {rate}"


def at_its_roof(name: str, work: model.Work, *, peak_flops_per_s: float, memory_bytes_per_s: float) -> Point:
    """An operation at the rate that its roof allows."""
    time = model.time(work, peak_flops_per_s=peak_flops_per_s, memory_bytes_per_s=memory_bytes_per_s)
    return Point(
        name=name,
        arithmetic_intensity=work.arithmetic_intensity,
        flops_per_s=work.flops / time.lower_bound_s,
        bound=time.bound,
    )


def op_points(
    ops: Iterable[Op],
    *,
    matrix_flops_per_s: float,
    vector_flops_per_s: float,
    memory_bytes_per_s: float,
    launch_overhead_s: float = 0.0,
) -> tuple[Point, ...]:
    """Each operation at the rate that its roof allows; those that fall on the same point share it, those without
    FLOPs have none.

    Assumes:  one launch each; the tensor cores' peak for matmuls, the CUDA cores' for the rest
    """
    peaks = {MATRIX: matrix_flops_per_s, VECTOR: vector_flops_per_s}
    found: dict[tuple[float, float, str], Point] = {}
    for op in ops:
        if op.work.flops == 0:
            continue
        time = model.time(
            op.work,
            peak_flops_per_s=peaks[op.unit],
            memory_bytes_per_s=memory_bytes_per_s,
            launch_overhead_s=launch_overhead_s,
        )
        name, place = (
            op.name.replace("_", " "),
            (op.work.arithmetic_intensity, op.work.flops / time.lower_bound_s, time.bound),
        )
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
    measured: Sequence[Place] = (),
) -> Figure:
    """The chart. `roofs` are peaks in FLOP/s by name: the first is drawn through, the others dashed. `memory` is what
    the slope is called.

    `slopes` are further memories, by name, with their bytes/s: caches, or the same memory as measured. They are
    dashed, and lead up to the first roof. `under` pairs a roof with one of them, where both belong to another
    machine: the slope ends in that roof, and the roof begins at that slope. `measured` are many calls, (FLOP/B,
    FLOP/s) each: small dots without names.

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
    # every point, every slope's foot
    rates = [rate for _, rate in (*(point.place for point in points), *measured)]
    rates += [INTENSITIES[0] * rate for rate in memories.values()]
    decades = top - math.floor(math.log10(min(rates)))
    feeds = {name: more.get(pairs.get(name, ""), memory_bytes_per_s) for name in roofs}
    tops = {
        name: next((roofs[roof] for roof, slope in pairs.items() if slope == name), next(iter(roofs.values())))
        for name in more
    }
    scales = (Scale(top=10.0**top, decades=decades, width=width) for width in (look.PLOT_WIDTH, SLIM))
    body, slim = (_body(points, roofs, feeds, memories, tops, measured, scale) for scale in scales)
    alt = _alt(points, roofs, feeds, memories, measured)
    return Figure(title=title, caption=caption, alt=alt, body=body, slim=slim)


def _body(
    points: Sequence[Point],
    roofs: Mapping[str, float],
    feeds: Mapping[str, float],
    memories: Mapping[str, float],
    tops: Mapping[str, float],
    measured: Sequence[Place],
    scale: Scale,
) -> dict[str, Any]:
    """The view on that scale: names stand where they have room there."""
    places = [point.place for point in points]
    signs = roofline_names.signs(roofs, feeds, places, scale)
    names: dict[str, roofline_names.Along] = {}
    for name, rate in memories.items():
        written = [box for found in names.values() for box in found.boxes]
        names[name] = roofline_names.along(name, rate, tops.get(name, max(roofs.values())), places, scale, written)
    corners = {name: roofline_scale.corners(peak, feeds[name], scale) for name, peak in roofs.items()}
    feet = {name: roofline_scale.foot(memories[name], peak, scale) for name, peak in tops.items()}
    lines = [scale.line(*pair) for bends in [*corners.values(), *feet.values()] for pair in itertools.pairwise(bends)]
    taken = [*(sign.box for sign in signs.values()), *(box for found in names.values() for box in found.boxes)]
    named = [(point.name, point.place) for point in points]
    return {
        "width": scale.width,
        "height": look.PLOT_HEIGHT,
        "encoding": {
            "x": axis("x", "arithmetic intensity (FLOP/B)", INTENSITIES, form=",~r"),
            "y": axis("y", "rate (FLOP/s)", (scale.bottom, scale.top), form="~s"),
        },
        "layer": [
            *(roofline_scale.roof(corners[name], dashed=index > 0) for index, name in enumerate(roofs)),
            *(roofline_scale.dashed_slope(ends) for ends in feet.values()),
            *(one for sign in signs.values() for one in roofline_names.sign_layers(sign, scale)),
            *(one for found in names.values() for one in roofline_names.along_layers(found, scale)),
            *([_dots(measured)] if measured else []),
            *roofline_names.point_layers(named, scale, taken, lines),
            *([_marks(points)] if points else []),
        ],
    }


def _key(points: Sequence[Point]) -> dict[str, tuple[str, str]]:
    """What binds any of the points -> its colour and shape; what binds none is not there."""
    found = {
        bound: (look.BOUND_COLOURS[bound], look.BOUND_SHAPES[bound])
        for bound in model.BOUNDS
        if any(point.binds == bound for point in points)
    }
    levels = dict.fromkeys(point.binds for point in points if point.binds not in model.BOUNDS)
    if len(levels) > len(LEVEL_COLOURS):
        raise ValueError(f"levels {sorted(levels)} bind points; a chart tells {len(LEVEL_COLOURS)} apart")
    return found | dict(zip(levels, zip(LEVEL_COLOURS, LEVEL_SHAPES, strict=True), strict=False))


def _marks(points: Sequence[Point]) -> dict[str, Any]:
    """The points themselves: their bound by colour and by shape, their words for a screen reader and under the
    mouse.
    """
    shown = _key(points)
    rows = [
        {"x": point.arithmetic_intensity, "y": point.flops_per_s, "bound": point.binds, "words": point.sentence}
        for point in points
    ]
    key = {"labelExpr": "datum.label + '-bound'"}
    colour, shape = ({"domain": list(shown), "range": [found[which] for found in shown.values()]} for which in (0, 1))
    return {
        "data": data(rows),
        **layer(
            {"type": "point", "filled": True, "opacity": 0.85, "size": 100, "stroke": look.PAPER, "strokeWidth": 0.5},
            color=nominal("bound", scale=colour, legend=key),
            shape=nominal("bound", scale=shape, legend=key),
            **WORDS,
        ),
    }


def _dots(measured: Sequence[Place]) -> dict[str, Any]:
    rows = [{"x": intensity, "y": rate} for intensity, rate in measured]
    mark = {"type": "point", "filled": True, "size": 22, "opacity": 0.6, "color": look.INK, "aria": False}
    return {"data": data(rows), "mark": mark}


def _alt(
    points: Sequence[Point],
    roofs: Mapping[str, float],
    feeds: Mapping[str, float],
    memories: Mapping[str, float],
    measured: Sequence[Place],
) -> str:
    ridges = {
        name: model.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=feeds[name]) for name, peak in roofs.items()
    }
    over = "; ".join(
        f"{name} peak {fmt_si(peak, 'FLOP/s')}, ridge point {ridges[name]:,.0f} FLOP/B" for name, peak in roofs.items()
    )
    slopes = ", ".join(f"{name} {fmt_si(rate, 'B/s')}" for name, rate in memories.items())
    said = [point.sentence for point in points]
    if measured:
        rates = [rate for _, rate in measured]
        many = f"{len(measured)} measured calls, from {fmt(min(rates), 'FLOP/s')} to {fmt(max(rates), 'FLOP/s')}"
        said.append(many)
    return f"Roofline. {slopes[:1].upper()}{slopes[1:]}; {over}. " + "; ".join(said) + "."

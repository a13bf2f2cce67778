"""The names of a roofline chart: each roof's at its right end, each slope's along it, clear of
the points, and those of the points, clear of them all.

>>> scale = Scale(top=1e16, decades=5)
>>> [sign.words for sign in signs({"bf16": 989.4e12}, {"bf16": 3.35e12}, [], scale).values()]
['bf16 989 TFLOP/s, ridge point 295 FLOP/B']
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threeloops.figures import labels, look
from threeloops.figures.channels import layer, quantitative
from threeloops.figures.inner_loop.roofline_scale import INTENSITIES, Place, Scale, data
from threeloops.operations import roofline as model
from threeloops.units import fmt_si

PARTS = 6  # boxes that cover the words on a slope


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """The name of a roof: its words, its box on the chart, and whether it stands in a gap of its line instead of
    above it.
    """

    words: str
    box: labels.Box
    inside: bool


def signs(
    roofs: Mapping[str, float], feeds: Mapping[str, float], places: Sequence[Place], scale: Scale
) -> dict[str, Sign]:
    """Every roof's name at its right end: above it, or in the line itself, clear of the points, where another roof or
    its name is close above.
    """
    found: dict[str, Sign] = {}
    marks = [scale.mark(place).box for place in places]
    first, lines = next(iter(roofs)), [scale.y(peak) for peak in roofs.values()]
    for name, peak in sorted(roofs.items(), key=lambda roof: -roof[1]):
        short, line = f"{name} {fmt_si(peak, 'FLOP/s')}", scale.y(peak)
        ridge = model.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=feeds[name])
        above = _box(f"{short}, ridge point {ridge:,.0f} FLOP/B" if name == first else short, line - 11, scale.width)
        free = not any(above.top < other < line for other in lines) and not any(
            above.meets(sign.box) for sign in found.values()
        )
        if free:
            found[name] = Sign(
                words=f"{short}, ridge point {ridge:,.0f} FLOP/B" if name == first else short, box=above, inside=False
            )
            continue
        right = float(scale.width)
        while (
            any(_box(short, line, right).meets(box) for box in [*marks, *(sign.box for sign in found.values())])
            and right > scale.width / 2
        ):
            right -= 10
        found[name] = Sign(words=short, box=_box(short, line, right), inside=True)
    return found


def _box(words: str, middle: float, right: float) -> labels.Box:
    """The box of a line of text that ends at `right`."""
    return labels.Box(left=right - labels.LETTER * len(words), top=middle - 7, right=right, bottom=middle + 7)


def sign_layers(sign: Sign, scale: Scale) -> list[dict[str, Any]]:
    row = {
        "x": scale.intensity(sign.box.right),
        "y": scale.rate((sign.box.top + sign.box.bottom) / 2),
        "text": sign.words,
    }
    text = {"type": "text", "align": "right", "baseline": "middle", "color": look.GREY, "aria": False}
    ends = {
        "x": scale.intensity(sign.box.left - 5),
        "x2": row["x"],
        "y": scale.rate(sign.box.top),
        "y2": scale.rate(sign.box.bottom),
    }
    gap = {"data": data([ends]), **layer({"type": "rect", "color": look.PAPER, "aria": False}, x2="x2", y2="y2")}
    return [
        *([gap] if sign.inside else []),
        {"data": data([row]), **layer(text, text="text")},
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Along:
    """The name of a slope: its words, where along the slope they begin (pixels from the left), the slope's bytes/s,
    and boxes that cover the words.
    """

    words: str
    begin: float
    bytes_per_s: float
    boxes: tuple[labels.Box, ...]


def along(
    name: str,
    bytes_per_s: float,
    peak: float,
    places: Sequence[Place],
    scale: Scale,
    written: Sequence[labels.Box] = (),
) -> Along:
    """The bandwidth, written along the slope: as near its foot as no point and no other slope's name is in the way,
    without the number where there is room for the name alone.
    """
    end = scale.x(min(max(peak / bytes_per_s, INTENSITIES[0]), INTENSITIES[1]))
    full = f"{name} {fmt_si(bytes_per_s, 'B/s')}"
    marks = [
        (scale.x(intensity), math.log10(intensity * bytes_per_s / flops_per_s)) for intensity, flops_per_s in places
    ]
    decade = look.PLOT_HEIGHT / scale.decades
    # points no higher above the slope than the words reach
    near = [x for x, below in marks if -26 < below * decade < labels.MARK]
    for words in (full, name):
        length = labels.LETTER * len(words) * math.cos(scale.slant)
        for begin in (24, *range(12, max(13, int(end - length)), 6)):
            if begin + length > end or any(begin - 8 < x < begin + length + 8 for x in near):
                continue
            found = _written(words, begin, length, bytes_per_s, scale)
            if not any(box.meets(other) for box in found.boxes for other in written):
                return found
    return _written(full, 24, labels.LETTER * len(full) * math.cos(scale.slant), bytes_per_s, scale)


def _written(words: str, begin: float, length: float, bytes_per_s: float, scale: Scale) -> Along:
    """Words on their slope, covered by small boxes."""
    boxes = []
    for part in range(PARTS):
        left, right = (begin + length * end / PARTS for end in (part, part + 1))
        y = scale.y(scale.intensity((left + right) / 2) * bytes_per_s) - 13 * math.cos(scale.slant)
        boxes.append(labels.Box(left=left - 4, top=y - 7, right=right + 4, bottom=y + 7))
    return Along(words=words, begin=begin, bytes_per_s=bytes_per_s, boxes=tuple(boxes))


def along_layers(found: Along, scale: Scale) -> list[dict[str, Any]]:
    """The words on a pale ground, so that a steeper line behind them does not cross the letters."""
    mark = {"type": "text", "align": "left", "baseline": "bottom", "dy": -5, "color": look.GREY, "aria": False}
    mark["angle"] = 360 - math.degrees(scale.slant)
    foot = scale.intensity(found.begin)
    halo = {**mark, "stroke": look.PAPER, "strokeWidth": 4, "strokeJoin": "round"}
    row = data([{"x": foot, "y": foot * found.bytes_per_s, "text": found.words}])
    return [{"data": row, **layer(drawn, text="text")} for drawn in (halo, mark)]


def point_layers(
    points: Sequence[tuple[str, Place]], scale: Scale, taken: Sequence[labels.Box], lines: Sequence[labels.Line]
) -> list[dict[str, Any]]:
    """Every point's name where it covers nothing, with a thin line to it from its point."""
    ordered = sorted(points, key=lambda point: (scale.y(point[1][1]), point[1][0]))
    spots = labels.beside(
        [scale.mark(place, name) for name, place in ordered],
        width=scale.width,
        height=look.PLOT_HEIGHT,
        taken=taken,
        lines=lines,
    )
    rows: list[dict[str, Any]] = [
        {"x": intensity, "y": rate, "row": scale.rate(spot.row), "name": name, "away": spot.side}
        for (name, (intensity, rate)), spot in zip(ordered, spots, strict=True)
    ]
    leader = {"type": "rule", "color": look.GREY, "strokeWidth": 0.7, "aria": False}
    layers: list[dict[str, Any]] = [{"data": data(rows), **layer(leader, y2="row")}] if rows else []
    for side, align in ((1, "left"), (-1, "right")):
        here = [row for row in rows if row["away"] == side]
        text = {"type": "text", "align": align, "baseline": "middle", "dx": side * labels.GAP, "aria": False}
        halo = {**text, "stroke": look.PAPER, "strokeWidth": 4, "strokeJoin": "round"}
        place = {"y": quantitative("row"), "text": {"field": "name"}}
        layers += [{"data": data(here), "mark": mark, "encoding": place} for mark in (halo, text) if here]
    return layers

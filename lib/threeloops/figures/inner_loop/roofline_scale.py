"""The ground of a roofline chart: its scales, from data to pixels and back, and the lines of its roofs and slopes.

>>> scale = Scale(top=1e16, decades=5)
>>> round(scale.intensity(scale.x(295.0))), scale.y(1e16), scale.y(scale.bottom) == look.PLOT_HEIGHT
(295, 0.0, True)
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threeloops.figures import labels, look
from threeloops.figures.channels import quantitative
from threeloops.operations import roofline as model

INTENSITIES = (0.05, 20_000.0)  # FLOP/B: from an addition in fp32 to the largest products in 4 bits

Place = tuple[float, float]  # FLOP/B, FLOP/s


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From data to pixels and back, as Vega will draw it."""

    top: float
    decades: int
    width: int = look.PLOT_WIDTH

    @property
    def bottom(self) -> float:
        return float(self.top / 10**self.decades)

    def x(self, intensity: float) -> float:
        low, high = INTENSITIES
        return self.width * math.log(intensity / low) / math.log(high / low)

    def y(self, flops_per_s: float) -> float:
        return look.PLOT_HEIGHT * math.log10(self.top / flops_per_s) / self.decades

    def mark(self, place: Place, name: str = "") -> labels.Mark:
        return labels.Mark(x=self.x(place[0]), y=self.y(place[1]), name=name)

    def line(self, begin: Place, end: Place) -> labels.Line:
        return labels.Line(self.x(begin[0]), self.y(begin[1]), self.x(end[0]), self.y(end[1]))

    def intensity(self, x: float) -> float:
        low, high = INTENSITIES
        return float(low * (high / low) ** (x / self.width))

    @property
    def slant(self) -> float:
        """Radians between a slope and the ground: as many decades up as sideways."""
        low, high = INTENSITIES
        return math.atan2(look.PLOT_HEIGHT / self.decades, self.width / math.log10(high / low))

    def rate(self, y: float) -> float:
        return float(self.top / 10 ** (self.decades * y / look.PLOT_HEIGHT))


def axis(name: str, title: str, domain: tuple[float, float], *, form: str) -> dict[str, Any]:
    first, last = math.ceil(math.log10(domain[0])), math.floor(math.log10(domain[1]))
    ticks = {"values": [10.0**power for power in range(first, last + 1)], "format": form}
    return quantitative(name, title=title, scale={"type": "log", "domain": list(domain), "nice": False}, axis=ticks)


def data(rows: Iterable[Mapping[str, object]]) -> dict[str, Any]:
    return {"values": list(rows)}


def corners(peak: float, memory_bytes_per_s: float, scale: Scale) -> list[Place]:
    """A roof's slope from the left edge to the ridge point, and the roof from there to the right edge."""
    low, high = INTENSITIES
    foot = max(low, scale.bottom / memory_bytes_per_s)
    ridge = model.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=memory_bytes_per_s)
    return [(x, min(peak, x * memory_bytes_per_s)) for x in (foot, min(max(ridge, foot), high), high)]


def foot(bytes_per_s: float, peak: float, scale: Scale) -> list[Place]:
    """The slope of another memory, from the left edge to where it meets its roof."""
    return corners(peak, bytes_per_s, scale)[:2]


def _rows(places: Iterable[Place]) -> list[dict[str, float]]:
    return [{"x": x, "y": y} for x, y in places]


def roof(corners: Sequence[Place], *, dashed: bool) -> dict[str, Any]:
    """A flat roof; of the first one also the slope that leads up to it."""
    line = {
        "type": "line",
        "color": look.INK,
        "strokeWidth": 1.5,
        "aria": False,
        **({"strokeDash": [5, 4]} if dashed else {}),
    }
    return {"data": data(_rows(corners[dashed:])), "mark": line}


def dashed_slope(ends: Sequence[Place]) -> dict[str, Any]:
    return {
        "data": data(_rows(ends)),
        "mark": {"type": "line", "color": look.BLUE, "strokeWidth": 1.2, "strokeDash": [3, 3], "aria": False},
    }

"""Processor history: clocks over fifty years, and what grew when they no longer did.

>>> figure = processor_history(
...     [Point(series="clock (GHz)", year=2004.9, value=3.65)], title="Clocks stopped", caption="One point."
... )
>>> print(figure.alt)
Over the years, on a logarithmic axis. clock (GHz): 1 point, from 3.65 in 2004 to 3.65 in 2004.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.facts import clock_history, hardware
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import GB, counted

TALL, LOW = 190, 110  # pixels: of a panel that spans powers of ten, and of one that spans powers of two


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One processor in one respect."""

    series: str
    year: float
    value: float
    name: str = ""

    def __post_init__(self) -> None:
        checks.positive(year=self.year, value=self.value)


def catalogue_points(servers: Sequence[str]) -> list[Point]:
    """Every clock of the catalogue's history, and cores and FP64 operations per cycle of these processors.

    >>> [point.value for point in catalogue_points(["epyc-7742"])[-2:]]
    [64, 16]
    """
    clocks = [
        Point(series="clock (GHz)", year=point.year, value=point.clock_hz / GB)
        for point in clock_history.clock_points()
    ]
    wanted = {"cores": "cores", "FLOP per cycle": "flops_per_cycle_per_core_fp64"}
    return clocks + [
        Point(series=series, year=part["year"], value=part[fact], name=part.name)
        for series, fact in wanted.items()
        for part in map(hardware.part, servers)
    ]


def processor_history(points: Sequence[Point], *, title: str, caption: str) -> Figure:
    """One panel per series, below each other, each on a logarithmic axis of its own; the years are common.

    Raises:   ValueError without points, or for more series than there are shapes
    """
    names = list(dict.fromkeys(point.series for point in points))
    if not 0 < len(names) <= len(look.SERIES_SHAPES):
        raise ValueError(f"{len(names)} series were given; 1 to {len(look.SERIES_SHAPES)} can be told apart")
    years = [min(point.year for point in points) - 1, max(point.year for point in points) + 1]
    panels = [
        _panel([point for point in points if point.series == name], place, years, last=name == names[-1])
        for place, name in enumerate(names)
    ]
    body = {"vconcat": panels, "spacing": 12}
    return Figure(title=title, caption=caption, alt=_alt(points, names), body=body)


def _panel(points: Sequence[Point], place: int, years: list[float], *, last: bool) -> dict[str, Any]:
    name, highest, lowest = points[0].series, max(p.value for p in points), min(p.value for p in points)
    rows = [
        {"year": p.year, "value": p.value, "words": f"{name} {p.name}, {p.year:.0f}: {p.value:.3g}"} for p in points
    ]
    ticks = [10.0**power for power in range(-3, 3)] if highest > 100 * lowest else [2.0**power for power in range(8)]
    return {
        "width": look.PLOT_WIDTH,
        "height": TALL if highest > 100 * lowest else LOW,
        **layer(
            {
                "type": "point",
                "filled": True,
                "size": 60,
                "opacity": 0.85,
                "color": look.SERIES_COLOURS[place],
                "shape": look.SERIES_SHAPES[place],
            },
            rows,
            x=quantitative(
                "year",
                scale={"domain": years, "nice": False},
                axis={"title": "year" if last else None, "format": "d", "labels": last},
            ),
            y=quantitative(
                "value",
                scale={"type": "log", "domain": [lowest / 1.5, highest * 1.5], "nice": False},
                axis={
                    "title": name,
                    "values": [tick for tick in ticks if lowest / 1.5 <= tick <= highest * 1.5],
                    "format": "~r",
                },
            ),
            **WORDS,
        ),
    }


def _alt(points: Sequence[Point], names: Sequence[str]) -> str:
    said = []
    for name in names:
        held = sorted((point for point in points if point.series == name), key=lambda point: point.year)
        first, last = held[0], held[-1]
        said.append(
            f"{name}: {counted(len(held), 'point')}, from {first.value:.3g} in {int(first.year)} to {last.value:.3g} in"
            f" {int(last.year)}."
        )
    return "Over the years, on a logarithmic axis. " + " ".join(said)

"""Processor history: clocks over fifty years, and what grew when they no longer did.

>>> figure = processor_history(
...     [Point(series="clock (GHz)", year=2004.9, value=3.65)], title="Clocks stopped", caption="One point."
... )
>>> print(figure.alt)
Over the years, on a logarithmic axis. clock (GHz): 1 point, from 3.65 in 2004 to 3.65 in 2004.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.figure import Figure
from threeloops.units import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One processor in one respect."""

    series: str
    year: float
    value: float
    name: str = ""

    def __post_init__(self) -> None:
        checks.positive(year=self.year, value=self.value)


def processor_history(points: Sequence[Point], *, title: str, caption: str) -> Figure:
    """One series per respect, told apart by colour and shape, on a logarithmic axis that all share.

    Raises:   ValueError without points, or for more series than there are shapes
    """
    names = list(dict.fromkeys(point.series for point in points))
    if not 0 < len(names) <= len(look.SERIES_SHAPES):
        raise ValueError(f"{len(names)} series were given; 1 to {len(look.SERIES_SHAPES)} can be told apart")
    rows = [
        {
            "year": p.year,
            "value": p.value,
            "series": p.series,
            "words": f"{p.series} {p.name}".strip() + f", {p.year:.0f}: {p.value:.3g}",
        }
        for p in points
    ]
    series = {"field": "series", "type": "nominal", "sort": names}
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(points, names),
        body={
            "width": look.PLOT_WIDTH,
            "height": look.PLOT_HEIGHT,
            "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 0.85},
            "encoding": {
                "x": {
                    "field": "year",
                    "type": "quantitative",
                    "scale": {"zero": False},
                    "axis": {"title": "year", "format": "d"},
                },
                "y": {
                    "field": "value",
                    "type": "quantitative",
                    "scale": {"type": "log"},
                    "axis": {
                        "title": "GHz, cores, FLOP per cycle",
                        "values": [0.001, 0.01, 0.1, 1, 10, 100],
                        "format": "~r",
                    },
                },
                "color": {
                    **series,
                    "scale": {"domain": names, "range": list(look.SERIES_COLOURS[: len(names)])},
                    "legend": {"labelLimit": 260},
                },
                "shape": {
                    **series,
                    "scale": {"domain": names, "range": list(look.SERIES_SHAPES[: len(names)])},
                    "legend": {"labelLimit": 260},
                },
                "description": {"field": "words"},
                "tooltip": {"field": "words"},
            },
        },
    )


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

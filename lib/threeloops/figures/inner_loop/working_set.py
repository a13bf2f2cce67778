"""Working set: what a core gets from its memories, over the size of what it works on; every cache is a step.

>>> curve = Curve(name="one core reads", unit="B/s", readings=((2**15, 60e9), (2**24, 20e9)))
>>> figure = working_set([curve], marks={"L1": 49152}, title="Caches are steps", caption="Read again and again.")
>>> print(figure.alt)
Over the size of the working set; marked: L1 48.0 KiB. one core reads: 32.0 KiB 60.0 GB/s, 16.0 MiB 20.0 GB/s.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.facts import recorded
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import GB, fmt, fmt_bytes, ns

HEIGHT = look.PLOT_HEIGHT - 60
ROW = 16  # pixels from one row of marks' names to the next
LETTER = 7  # pixels, with room to spare
# What stands beside the axis, and by how much its numbers are divided.
AXIS = {
    "B/s": ("rate (GB/s)", GB),
    "s": ("time of a step (ns)", ns),
    "": ("misses per pass and line", 1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One quantity at several sizes, from the smallest."""

    name: str
    unit: str  # a key of AXIS
    readings: tuple[tuple[float, float], ...]  # (bytes, value)

    def __post_init__(self) -> None:
        checks.one_of(AXIS, unit=self.unit)
        if not self.readings or list(self.readings) != sorted(self.readings):
            raise ValueError(f"readings of {self.name!r} must be given from the smallest size, at least one")
        checks.positive(**{f"size of {self.name!r}": self.readings[0][0]})
        checks.non_negative(**{f"reading {size:g} of {self.name!r}": value for size, value in self.readings})


def recorded_reads() -> list[Curve]:
    """What whole GPUs read in a second of arrays that they read again and again, past the L1s: a curve for each that
    was recorded.

    >>> [curve.name for curve in recorded_reads()]
    ['NVIDIA H100 80GB HBM3', 'NVIDIA H200']
    """
    found = []
    for one in recorded.shipped():
        reads = [row for row in one.measured.values() if row.case.kind == "reread"]
        rates = sorted((row.case.sizes["bytes"], row.case.sizes["read_bytes"] / row.median) for row in reads)
        if rates:
            found.append(Curve(name=one.stamp.hardware, unit="B/s", readings=tuple(rates)))
    return found


def working_set(curves: Sequence[Curve], *, marks: Mapping[str, float], title: str, caption: str) -> Figure:
    """Curves of one unit over a logarithmic axis of bytes; `marks` are level names with sizes, drawn as upright
    lines.

    Raises:   ValueError for curves of different units, or for more of them than there are line styles
    """
    if not 0 < len(curves) <= len(look.SERIES_COLOURS) or len({curve.unit for curve in curves}) != 1:
        raise ValueError(
            f"{len(curves)} curves of units {sorted({curve.unit for curve in curves})}; give 1 to"
            f" {len(look.SERIES_COLOURS)} of one unit"
        )
    checks.positive(**{f"marks[{name!r}]": size for name, size in marks.items()})
    sizes = sorted({size for curve in curves for size, _ in curve.readings})
    inside = {name: size for name, size in marks.items() if sizes[0] <= size <= sizes[-1]}
    placed = _placed(inside, sizes[0], sizes[-1])
    names = [curve.name for curve in curves]
    rows = [
        {"size": s, "value": v, "curve": c.name, "words": f"{c.name}: {_words(c, s, v)}"}
        for c in curves
        for s, v in c.readings
    ]
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(curves, inside),
        body={
            "width": look.PLOT_WIDTH,
            "height": HEIGHT,
            "layer": [
                *_rules(inside),
                *_lines(rows, names, sizes, curves[0].unit, 1 + max((place.row for place in placed), default=-1)),
                *_names(placed),
            ],
        },
    )


def _lines(
    rows: list[dict[str, Any]], names: list[str], sizes: list[float], unit: str, name_rows: int
) -> list[dict[str, Any]]:
    ticks = [size for size in sizes if size in {float(2**power) for power in range(0, 60, 3)}]
    label = (
        "datum.value >= 1048576 ? format(datum.value / 1048576, ',') + ' MiB' : format(datum.value / 1024, ',') + '"
        " KiB'"
    )
    x = quantitative(
        "size",
        scale={"type": "log", "base": 2, "domain": [sizes[0], sizes[-1]], "nice": False},
        axis={"title": "working set", "values": ticks, "labelExpr": label, "grid": False},
    )
    title, part = AXIS[unit]
    highest = max(row["value"] for row in rows) or 1.0
    top = highest * HEIGHT / (HEIGHT - 12 - ROW * name_rows)  # the marks' names stand above every curve
    y = quantitative(
        "value",
        axis={"title": title, "labelExpr": f"format(datum.value / {part:g}, ',~r')"},
        scale={"domain": [0, top], "nice": False},
    )
    series = nominal("curve", sort=names, scale={"domain": names, "range": list(look.SERIES_COLOURS[: len(names)])})
    series["legend"] = {} if len(names) > 1 else None
    dash = {**series, "scale": {"domain": names, "range": list(look.SERIES_DASHES[: len(names)])}}
    shape = {**series, "scale": {"domain": names, "range": list(look.SERIES_SHAPES[: len(names)])}}
    return [
        layer({"type": "line", "strokeWidth": 2, "aria": False}, rows, x=x, y=y, color=series, strokeDash=dash),
        layer(
            {"type": "point", "filled": True, "size": 70, "opacity": 1},
            rows,
            x=x,
            y=y,
            color=series,
            shape=shape,
            **WORDS,
        ),
    ]


def _rules(inside: Mapping[str, float]) -> list[dict[str, Any]]:
    """An upright line at every marked size."""
    rule = {"type": "rule", "color": look.GREY, "strokeDash": [4, 4], "aria": False}
    return [layer(rule, [{"size": size}], x=quantitative("size")) for size in inside.values()]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a mark's name stands: its row from the top, and on which side of its line."""

    size: float
    text: str
    row: int
    side: str  # "left" or "right" of the line


def _placed(inside: Mapping[str, float], lowest: float, highest: float) -> list[_Place]:
    """Every name to the left of its line, or to the right where it would leave the plot, on the first row on which it
    touches no other.
    """
    places: list[_Place] = []
    ends: list[float] = []  # of each row, in pixels
    for name, size in sorted(inside.items(), key=lambda mark: mark[1]):
        text = f"{name} {fmt_bytes(size, base=2)}"
        line = look.PLOT_WIDTH * math.log(size / lowest) / math.log(highest / lowest) if highest > lowest else 0.0
        side = "left" if line > LETTER * len(text) + 8 else "right"
        begin = line - LETTER * len(text) - 8 if side == "left" else line
        row = next((row for row, end in enumerate(ends) if end <= begin), len(ends))
        ends[row : row + 1] = [begin + LETTER * len(text) + 8]
        places.append(_Place(size=size, text=text, row=row, side=side))
    return places


def _names(placed: Sequence[_Place]) -> list[dict[str, Any]]:
    """The marks' names beside their lines, above the curves, on a pale ground, so that no grid line crosses the
    letters.
    """
    layers = []
    for place in placed:
        data = {"values": [{"size": place.size, "text": place.text}]}
        align, away = ("right", -5) if place.side == "left" else ("left", 5)
        text = {"type": "text", "align": align, "baseline": "middle", "dx": away, "color": look.GREY, "aria": False}
        halo = {**text, "stroke": look.PAPER, "strokeWidth": 4, "strokeJoin": "round"}
        where = {"x": quantitative("size"), "y": {"value": ROW * (place.row + 0.5)}, "text": {"field": "text"}}
        layers += [{"data": data, "mark": mark, "encoding": where} for mark in (halo, text)]
    return layers


def _words(curve: Curve, size: float, value: float) -> str:
    return f"{fmt_bytes(size, base=2)} {fmt(value, curve.unit)}"


def _alt(curves: Sequence[Curve], inside: Mapping[str, float]) -> str:
    marked = ", ".join(f"{name} {fmt_bytes(size, base=2)}" for name, size in inside.items())
    lines = " ".join(
        f"{curve.name}: {', '.join(_words(curve, size, value) for size, value in curve.readings)}." for curve in curves
    )
    return f"Over the size of the working set{'; marked: ' + marked if marked else ''}. {lines}"

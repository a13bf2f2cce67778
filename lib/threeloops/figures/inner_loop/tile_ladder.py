"""Tile ladder: kernels of one product as rungs, the intensity of each at every level of memory, the ridge point that
it has to reach there, and the rate at which it was timed.

>>> rungs = [
...     Rung(kernel=kernel, level="device memory", intensity=found, ridge=9.6)
...     for kernel, found in (("naive", 0.25), ("tiled", 8.0))
... ]
>>> print(tile_ladder(rungs, title="Not there yet", caption="fp32.").alt)
device memory: naive 0.25 of 9.6, short by 38 times; tiled 8 of 9.6, short by 1.2 times.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import TFLOP, fmt_si

ROW, WIDTH, NARROW = 38, 380, 205  # pixels: of a kernel's row, with the stroke's number above the stroke; of a panel
NAMES = 165  # pixels that the names of kernels take in every panel
LINES = {"labelExpr": "split(datum.label, '\\n')"}  # a name in two lines
VERDICTS = ("short of the ridge point", "beyond it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One kernel at one level of memory."""

    kernel: str  # its name; a line break sets what it does in a step under it
    level: str
    intensity: float  # FLOP per byte that comes from this level
    ridge: float  # FLOP per byte at which this level keeps the kernel's arithmetic units busy

    def __post_init__(self) -> None:
        checks.positive(intensity=self.intensity, ridge=self.ridge)

    @property
    def verdict(self) -> str:
        return VERDICTS[self.intensity >= self.ridge]

    @property
    def words(self) -> str:
        found = "reaches it" if self.intensity >= self.ridge else f"short by {self.ridge / self.intensity:.2g} times"
        return f"{_one_line(self.kernel)} {self.intensity:.3g} of {self.ridge:.3g}, {found}"


def _one_line(kernel: str) -> str:
    return kernel.replace("\n", ", ")


def tile_ladder(rungs: Sequence[Rung], *, title: str, caption: str, timed: Mapping[str, float] | None = None) -> Figure:
    """A panel per level, a row per kernel: a point at its intensity, and an upright stroke, with its number above it,
    at the ridge point of the units that it runs on. With `timed`, the FLOP/s at which kernels ran, one panel more.
    """
    if not rungs:
        raise ValueError("rungs is empty; a ladder needs at least one Rung")
    levels, kernels = (list(dict.fromkeys(names)) for names in ((r.level for r in rungs), (r.kernel for r in rungs)))
    reach = [value for rung in rungs for value in (rung.intensity, rung.ridge)]
    domain = (min(reach) / 12, max(reach) * 2)  # room for a number to the left of the lowest point
    panels = [
        _panel(level, [rung for rung in rungs if rung.level == level], kernels, domain, last=level == levels[-1])
        for level in levels
    ]
    if timed:
        panels.append(_timed_panel({kernel: rate for kernel, rate in timed.items() if kernel in kernels}))
    alt = " ".join(f"{level}: {'; '.join(rung.words for rung in rungs if rung.level == level)}." for level in levels)
    if timed:
        told = ", ".join(f"{_one_line(name)} at {fmt_si(rate, 'FLOP/s')}" for name, rate in timed.items())
        alt += f" Timed: {told}."
    return Figure(title=title, caption=caption, alt=alt, body={"vconcat": panels, "spacing": 8}, narrow_px=NARROW)


def _panel(
    level: str, rungs: Sequence[Rung], kernels: Sequence[str], domain: tuple[float, float], *, last: bool
) -> dict[str, Any]:
    values = [
        {
            "kernel": r.kernel,
            "intensity": r.intensity,
            "ridge": r.ridge,
            "needed": f"{r.ridge:.3g}",
            "text": f"{r.intensity:.3g}",
            "verdict": r.verdict,
            "words": r.words,
        }
        for r in rungs
    ]
    ticks = [value for value in (0.25, 1, 4, 16, 64, 256) if domain[0] <= value <= domain[1]]
    x = quantitative(scale={"type": "log", "base": 2, "domain": list(domain), "nice": False})
    axis = {"title": "FLOP per byte" if last else None, "values": ticks, "format": "~r"}
    names = {"title": None, "ticks": False, "domain": False, "labelLimit": 220, "minExtent": NAMES, **LINES}
    here_too = [kernel for kernel in kernels if any(rung.kernel == kernel for rung in rungs)]
    y = nominal("kernel", sort=here_too, scale={"domain": here_too}, axis=names)
    colour = nominal("verdict", scale={"domain": list(VERDICTS), "range": [look.ORANGE, look.BLUE]})
    shape = nominal("verdict", scale={"domain": list(VERDICTS), "range": ["circle", "square"]})
    here, there = {**x, "field": "intensity", "axis": axis}, {**x, "field": "ridge", "axis": axis}
    return {
        "title": {"text": level, "anchor": "start", "fontSize": look.TEXT, "fontWeight": "normal", "color": look.INK},
        "width": WIDTH,
        "height": ROW * len(here_too),
        "data": {"values": values},
        "encoding": {"y": y},
        "layer": [
            layer({"type": "rule", "color": look.RULE, "strokeWidth": 2, "aria": False}, x=here, x2="ridge"),
            layer({"type": "tick", "color": look.INK, "size": 20, "thickness": 2.5, "aria": False}, x=there),
            layer(
                {"type": "point", "filled": True, "size": 110, "opacity": 1}, x=here, color=colour, shape=shape, **WORDS
            ),
            layer(
                {"type": "text", "baseline": "bottom", "dy": -11, "color": look.GREY, "aria": False},
                x=there,
                text="needed",
            ),
            *(_numbers(verdict, side, here) for verdict, side in zip(VERDICTS, ("right", "left"), strict=True)),
        ],
    }


def _timed_panel(timed: Mapping[str, float]) -> dict[str, Any]:
    """A point per kernel at the rate that it reached, with the rate beside it."""
    values = [
        {
            "kernel": name,
            "rate": rate / TFLOP,
            "text": f"{rate / TFLOP:.3g}",
            "words": f"{_one_line(name)} {fmt_si(rate, 'FLOP/s')}",
        }
        for name, rate in timed.items()
    ]
    rates = [rate / TFLOP for rate in timed.values()]
    domain = [min(rates) / 2, max(rates) * 5]
    ticks = [tick for tick in (1, 10, 100, 1000) if domain[0] <= tick <= domain[1]]
    names = {"title": None, "ticks": False, "domain": False, "labelLimit": 220, "minExtent": NAMES, **LINES}
    scale = {"type": "log", "domain": domain, "nice": False}
    axis = {"title": "TFLOP/s", "values": ticks, "format": "~r"}
    dot = {"type": "point", "filled": True, "size": 110, "opacity": 1, "color": look.INK, "shape": "diamond"}
    word = {"type": "text", "align": "left", "baseline": "middle", "dx": 9, "aria": False}
    return {
        "title": {"text": "timed", "anchor": "start", "fontSize": look.TEXT, "fontWeight": "normal", "color": look.INK},
        "width": WIDTH,
        "height": ROW * len(values),
        "data": {"values": values},
        "encoding": {
            "y": nominal("kernel", sort=list(timed), axis=names),
            "x": quantitative("rate", scale=scale, axis=axis),
        },
        "layer": [layer(dot, **WORDS), layer(word, text="text")],
    }


def _numbers(verdict: str, align: str, x: dict[str, Any]) -> dict[str, Any]:
    """The intensities beside their points, on the side away from the stroke."""
    mark = {"type": "text", "align": align, "baseline": "middle", "dx": 9 if align == "left" else -9, "aria": False}
    return {"transform": [{"filter": {"field": "verdict", "equal": verdict}}], **layer(mark, x=x, text="text")}

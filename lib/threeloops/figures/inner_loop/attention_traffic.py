"""Attention's traffic against the size of the fast memory: what was counted, what is predicted, and the two lines it
moves between.

>>> counted = [Counted(fast_bytes=2**14, moved_bytes=40e6), Counted(fast_bytes=2**16, moved_bytes=6e6)]
>>> predicted = [(2**14, 40e6), (2**16, 6e6)]
>>> figure = attention_traffic(
...     counted,
...     predicted=predicted,
...     unfused_bytes=18e6,
...     once_bytes=1e6,
...     title="Memory buys traffic",
...     caption="One head.",
... )
>>> print(figure.alt.split(". ")[1])
Fast memory of 16.0 KiB: 40.0 MB counted
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import MB, KiB, fmt_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """One walk through attention in a fast memory of this size."""

    fast_bytes: float
    moved_bytes: float

    def __post_init__(self) -> None:
        checks.positive(fast_bytes=self.fast_bytes, moved_bytes=self.moved_bytes)

    @property
    def sentence(self) -> str:
        return f"Fast memory of {fmt_bytes(self.fast_bytes, base=2)}: {fmt_bytes(self.moved_bytes, base=10)} counted"


def attention_traffic(
    counted: Sequence[Counted],
    *,
    predicted: Sequence[tuple[float, float]],
    unfused_bytes: float,
    once_bytes: float,
    title: str,
    caption: str,
) -> Figure:
    """Counted walks as points on the predicted curve of (fast bytes, moved bytes); two level lines for unfused
    attention and for every tensor once.
    """
    if not counted or not predicted:
        raise ValueError("counted and predicted need at least one entry each; without them there is no curve to draw")
    checks.positive(unfused_bytes=unfused_bytes, once_bytes=once_bytes)
    sizes = [fast / KiB for fast, _ in predicted]
    levels = [("scores written out", unfused_bytes), ("every tensor once", once_bytes)]
    highest = max(unfused_bytes, *(moved for _, moved in predicted))
    scale = {"type": "log", "domain": [once_bytes / MB / 2, highest / MB * 2], "nice": False}
    y = quantitative(
        "moved",
        scale=scale,
        axis={"title": "bytes moved (MB)", "values": [1, 2, 5, 10, 20, 50, 100, 200, 500], "format": "~r"},
    )
    ticks = {
        "title": "fast memory (KiB)",
        "values": [point.fast_bytes / KiB for point in counted],
        "format": ",~r",
        "grid": False,
    }
    x = quantitative("fast", scale={"type": "log", "base": 2, "domain": [min(sizes), max(sizes)]}, axis=ticks)
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(counted, levels),
        body={
            "width": look.PLOT_WIDTH,
            "height": look.PLOT_HEIGHT,
            "encoding": {"x": x, "y": y},
            "layer": [
                *_level(*levels[0], look.SERIES_DASHES[1], align="right"),
                *_level(*levels[1], look.SERIES_DASHES[2], align="left"),
                {
                    "data": {"values": [{"fast": fast / KiB, "moved": moved / MB} for fast, moved in predicted]},
                    "mark": {"type": "line", "color": look.BLUE, "strokeWidth": 2, "aria": False},
                },
                layer(
                    {
                        "type": "point",
                        "filled": True,
                        "size": 90,
                        "color": look.ORANGE,
                        "shape": "circle",
                        "opacity": 1,
                    },
                    [{"fast": p.fast_bytes / KiB, "moved": p.moved_bytes / MB, "words": p.sentence} for p in counted],
                    **WORDS,
                ),
            ],
        },
    )


def _level(name: str, moved_bytes: float, dash: Sequence[int], *, align: str) -> list[dict[str, Any]]:
    """A level line across the plot, and its name at one end."""
    data = {"values": [{"moved": moved_bytes / MB}]}
    rule = {"type": "rule", "color": look.GREY, "strokeDash": list(dash), "strokeWidth": 1.5, "aria": False}
    text = {"type": "text", "align": align, "baseline": "bottom", "dy": -4, "text": name, "aria": False}
    end = {"left": 6, "right": look.PLOT_WIDTH - 4}[align]
    return [
        {"data": data, **layer(rule, x={"value": 0}, x2={"value": look.PLOT_WIDTH})},
        {"data": data, **layer(text, x={"value": end})},
    ]


def _alt(counted: Sequence[Counted], levels: Sequence[tuple[str, float]]) -> str:
    lines = ", ".join(f"{name} {fmt_bytes(moved, base=10)}" for name, moved in levels)
    first, last = counted[0], counted[-1]
    ends = " to ".join(fmt_bytes(point.moved_bytes, base=10) for point in (first, last))
    sizes = " to ".join(fmt_bytes(point.fast_bytes, base=2) for point in (first, last))
    return f"From {sizes} of fast memory, bytes moved go from {ends}; level lines: {lines}. " + " ".join(
        f"{point.sentence}." for point in counted
    )

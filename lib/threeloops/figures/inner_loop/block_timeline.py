"""Block timeline: when each block of a grid ran, one row per place on a multiprocessor.

>>> ran = [
...     Bar(block=0, row="SM 0", start_s=0.0, end_s=1.0),
...     Bar(block=1, row="SM 1", start_s=0.0, end_s=1.0),
...     Bar(block=2, row="SM 0", start_s=1.0, end_s=2.0),
... ]
>>> print(block_timeline(ran, title="One block too many", caption="Two multiprocessors.").alt)
3 blocks on 2 places. Without a gap until 1 block-time, the last block ends at 2; then 1 place runs and 1 waits. Of all the time offered, 75.0 % is used.
"""  # noqa: E501

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import counted, fmt_percent

ROW = 34  # pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One block: where it ran, and from when to when in units of a block's time."""

    block: int
    row: str
    start_s: float
    end_s: float

    def __post_init__(self) -> None:
        checks.non_negative(start_s=self.start_s)
        checks.positive(length_s=self.end_s - self.start_s)


def block_timeline(bars: Sequence[Bar], *, title: str, caption: str) -> Figure:
    """One bar per block with its number; bars that run while some place has no work left are drawn in another colour,
    with a dashed edge.
    """
    if not bars:
        raise ValueError("bars is empty; a timeline needs at least one block")
    full_until, end = _full_until(bars), max(bar.end_s for bar in bars)
    rows = [
        {
            "row": bar.row,
            "start": bar.start_s,
            "end": bar.end_s,
            "middle": (bar.start_s + bar.end_s) / 2,
            "block": str(bar.block),
            "kind": "beside idle places" if bar.end_s > full_until else "all places busy",
            "words": f"block {bar.block} on {bar.row} from {bar.start_s:.3g} to {bar.end_s:.3g}",
        }
        for bar in bars
    ]
    places = list(dict.fromkeys(bar.row for bar in sorted(bars, key=lambda bar: bar.row)))
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(bars, full_until, end, len(places)),
        body={
            "width": look.PLOT_WIDTH,
            "height": ROW * len(places),
            "data": {"values": rows},
            "encoding": {"y": nominal("row", title=None, sort=places)},
            "layer": [_bars(end), _numbers()],
        },
    )


def _full_until(bars: Sequence[Bar]) -> float:
    """The first moment at which a place has run its last block."""
    last = dict.fromkeys((bar.row for bar in bars), 0.0)
    for bar in bars:
        last[bar.row] = max(last[bar.row], bar.end_s)
    return min(last.values())


def _bars(end: float) -> dict[str, Any]:
    kinds = ["all places busy", "beside idle places"]
    return layer(
        {"type": "bar", "height": ROW - 8, "stroke": look.INK, "strokeWidth": 1.2},
        x=quantitative(
            "start",
            title="time (times of one block)",
            scale={"domain": [0, end], "nice": False},
            axis={"values": list(range(math.ceil(end) + 1)), "format": "d"},
        ),
        x2="end",
        color=nominal("kind", scale={"domain": kinds, "range": ["#cfe3f1", "#f6d9c5"]}),
        strokeDash=nominal("kind", scale={"domain": kinds, "range": [[1, 0], [5, 3]]}),
        **WORDS,
    )


def _numbers() -> dict[str, Any]:
    return layer({"type": "text", "aria": False}, x=quantitative("middle"), text="block")


def _alt(bars: Sequence[Bar], full_until: float, end: float, places: int) -> str:
    late = len({bar.row for bar in bars if bar.end_s > full_until})
    used = sum(bar.end_s - bar.start_s for bar in bars) / (end * places)
    tail = (
        ""
        if end == full_until
        else (
            f"; then {counted(late, 'place')} {'runs' if late == 1 else 'run'} and {places - late}"
            f" {'waits' if places - late == 1 else 'wait'}"
        )
    )
    until = counted(int(full_until), "block-time") if full_until == int(full_until) else f"{full_until:.2f} block-times"
    where = f"{counted(len(bars), 'block')} on {counted(places, 'place')}"
    return (
        f"{where}. Without a gap until {until}, the last block ends at {end:.3g}{tail}. Of all the time offered,"
        f" {fmt_percent(used)} is used."
    )

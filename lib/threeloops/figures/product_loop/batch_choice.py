"""Batch choice: what each request feels against what all of them get, for growing numbers of slots.

>>> figure = batch_choice([(1, 0.005, 200.0), (8, 0.008, 1000.0)], limit_s=0.01, title="a", caption="b")
>>> print(figure.alt)
Output tokens/s against TPOT: 1 slot 5.00 ms, 200 tokens/s; 8 slots 8.00 ms, 1,000 tokens/s. The limit is 10.0 ms.
"""

from collections.abc import Sequence

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import counted, fmt_seconds, ms

Point = tuple[int, float, float]  # slots, TPOT in seconds, tokens/s of all


def batch_choice(points: Sequence[Point], *, limit_s: float, title: str, caption: str) -> Figure:
    """A line through (slots, TPOT in seconds, tokens/s), each point with its number of slots, and an upright limit."""
    if len(points) < 2:
        raise ValueError(f"{counted(len(points), 'point')}; a line needs two")
    checks.positive(limit_s=limit_s)
    rows = [{"slots": str(slots), "gap": gap / ms, "rate": rate} for slots, gap, rate in points]
    x = quantitative("gap", axis={"title": "TPOT (ms), median of the requests"})
    y = quantitative("rate", axis={"title": "output tokens/s, all requests"})
    place = {"x": x, "y": y}
    layers = [
        {"mark": {"type": "line", "color": look.BLUE, "strokeWidth": 2, "aria": False}, "encoding": place},
        {"mark": {"type": "point", "filled": True, "size": 60, "color": look.BLUE}, "encoding": place},
        layer({"type": "text", "dy": 16, "dx": 10, "aria": False}, **place, text="slots"),
        layer(
            {"type": "rule", "color": look.ORANGE, "strokeDash": [6, 4], "strokeWidth": 2, "aria": False},
            [{"gap": limit_s / ms, "text": f"limit {fmt_seconds(limit_s)}"}],
            x=x,
        ),
        layer(
            {"type": "text", "align": "left", "dx": 6, "aria": False},
            [{"gap": limit_s / ms, "text": f"limit {fmt_seconds(limit_s)}"}],
            x=x,
            y={"value": 266},
            text="text",
        ),
    ]
    told = "; ".join(
        f"{counted(slots, 'slot')} {fmt_seconds(gap)}, {rate:,.0f} tokens/s" for slots, gap, rate in points
    )
    return Figure(
        title=title,
        caption=caption,
        alt=f"Output tokens/s against TPOT: {told}. The limit is {fmt_seconds(limit_s)}.",
        body={"width": look.PLOT_WIDTH, "height": 280, "data": {"values": rows}, "layer": layers},
    )

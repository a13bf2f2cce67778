"""Predicted and measured: a few times, each twice on one logarithmic scale.

>>> figure = predicted_measured({"TTFT p50": (0.010, 0.020)}, title="Twice as long", caption="One metric.")
>>> print(figure.alt)
TTFT p50: predicted 10.0 ms, measured 20.0 ms.
"""

from collections.abc import Mapping

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import fmt_seconds, ms

ROW = 46  # pixels
WAYS = ("predicted", "measured")


def predicted_measured(times: Mapping[str, tuple[float, float]], *, title: str, caption: str) -> Figure:
    """Name -> (predicted, measured) seconds, one row each, joined by a line."""
    if not times:
        raise ValueError("times is empty; give at least one pair")
    checks.positive(**{f"{name} {way}": s for name, pair in times.items() for way, s in zip(WAYS, pair, strict=True)})
    points = [
        {"name": name, "ms": seconds / ms, "way": way, "label": fmt_seconds(seconds)}
        for name, pair in times.items()
        for way, seconds in zip(WAYS, pair, strict=True)
    ]
    lines = [{"name": name, "ms": pair[0] / ms, "to": pair[1] / ms} for name, pair in times.items()]
    values = [point["ms"] for point in points]
    domain = [min(values) / 1.8, max(values) * 1.8]  # type: ignore[type-var,operator]
    x = quantitative(
        "ms",
        scale={"type": "log", "domain": domain, "nice": False},
        axis={"title": "milliseconds (log scale)", "tickCount": 6},
    )
    y = nominal("name", sort=list(times), axis={"title": None, "ticks": False})
    way = {
        "color": nominal("way", scale={"domain": list(WAYS), "range": [look.BLUE, look.ORANGE]}),
        "shape": nominal("way", scale={"domain": list(WAYS), "range": ["square", "circle"]}),
    }
    alt = " ".join(
        f"{name}: predicted {fmt_seconds(pair[0])}, measured {fmt_seconds(pair[1])}." for name, pair in times.items()
    )
    body = {
        "width": look.PLOT_WIDTH - 60,
        "height": ROW * len(times),
        "layer": [
            layer({"type": "rule", "color": look.GREY, "aria": False}, lines, x=x, x2="to", y=y),
            layer({"type": "point", "filled": True, "size": 110, "opacity": 1}, points, x=x, y=y, **way),
            *(
                layer(
                    {"type": "text", "dy": below, "aria": False},
                    [point for point in points if point["way"] == which],
                    x=x,
                    y=y,
                    text="label",
                )
                for which, below in zip(WAYS, (-14, 16), strict=True)
            ),
        ],
    }
    return Figure(title=title, caption=caption, alt=alt, body=body)

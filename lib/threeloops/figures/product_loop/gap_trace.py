"""Gap trace: how long one running request waits for each of its tokens, under different policies.

>>> figure = gap_trace({"whole": [(0.01, 0.01), (0.31, 0.3)]}, title="A stall", caption="One request.")
>>> print(figure.alt)
Gaps between the tokens of one request against time. whole: median 155 ms, longest 300 ms at 310 ms.
"""

import statistics
from collections.abc import Mapping, Sequence

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import fmt_seconds, ms


def gap_trace(traces: Mapping[str, Sequence[tuple[float, float]]], *, title: str, caption: str) -> Figure:
    """One line per policy through its (moment of a token in s, gap before it in s), level while a token is waited
    for; gaps on a log scale.
    """
    if not 0 < len(traces) <= len(look.SERIES_COLOURS):
        raise ValueError(f"{len(traces)} traces; draw 1 to {len(look.SERIES_COLOURS)}")
    for points in traces.values():
        for moment, gap in points:
            checks.non_negative(moment_s=moment)
            checks.positive(gap_s=gap)
    names = list(traces)
    rows = [
        {"policy": name, "moment": moment, "gap": gap / ms} for name, points in traces.items() for moment, gap in points
    ]

    def by(scale: Sequence[object]) -> dict[str, object]:
        return nominal("policy", scale={"domain": names, "range": list(scale[: len(names)])})

    x = quantitative("moment", scale={"zero": False}, axis={"title": "time (s)", "grid": False})
    y = quantitative(
        "gap",
        scale={"type": "log", "nice": False, "padding": 12},
        axis={"title": "gap before the token (ms)", "tickCount": 5},
    )
    line = layer(
        {"type": "line", "interpolate": "step-before", "strokeWidth": 1.5, "aria": False},
        x=x,
        y=y,
        color=by(look.SERIES_COLOURS),
        strokeDash=by(look.SERIES_DASHES),
    )
    dots = layer(
        {"type": "point", "filled": True, "size": 26, "aria": False},
        x=x,
        y=y,
        color=by(look.SERIES_COLOURS),
        shape=by(look.SERIES_SHAPES),
    )
    body = {"width": look.PLOT_WIDTH, "height": 260, "data": {"values": rows}, "layer": [line, dots]}
    return Figure(title=title, caption=caption, alt=_alt(traces), body=body)


def _alt(traces: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    said = ["Gaps between the tokens of one request against time."]
    for name, points in traces.items():
        moment, longest = max(points, key=lambda point: point[1])
        median = statistics.median(gap for _, gap in points)
        said.append(f"{name}: median {fmt_seconds(median)}, longest {fmt_seconds(longest)} at {fmt_seconds(moment)}.")
    return " ".join(said)

"""Price of speed: every way of running a network as a point: how long a frame takes, and what score is left.

>>> figure = price_of_speed(
...     {"as trained": (0.030, 0.90), "INT8": (0.012, 0.89)},
...     score="AP at 0.5 m",
...     title="Less than half the time",
...     caption="One network.",
... )
>>> print(figure.alt)
Less than half the time. AP at 0.5 m against time: as trained 30.0 ms, 90.0 %; INT8 12.0 ms, 89.0 %.
"""

import itertools
from collections.abc import Mapping
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import fmt_percent, fmt_seconds, ms

HEIGHT = 260
TELLING, CLOSE = 0.005, 0.03  # differences of score that are seen; of time, as a share of the axis, that are not
ROOM = 0.05  # of score above and below: a difference of noise shall look like one


def price_of_speed(
    ways: Mapping[str, tuple[float, float]],
    *,
    score: str,
    title: str,
    caption: str,
) -> Figure:
    """Way -> (seconds of a frame, score from 0 to 1).

    Raises:   ValueError if there is no way
    """
    if not ways:
        raise ValueError("ways is empty; give at least one, like {'INT8': (0.012, 0.89)}")
    for name, (seconds, share) in ways.items():
        checks.positive(**{f"{name}: seconds": seconds})
        checks.fraction(**{f"{name}: score": share})
    above = _above(ways)
    points = [
        {
            "ms": seconds / ms,
            "score": share,
            "number": str(place),
            "way": f"{place} {name}",
            "words": f"{name}: {fmt_seconds(seconds)}, {fmt_percent(share)}",
            "above": above[name],
        }
        for place, (name, (seconds, share)) in enumerate(ways.items(), 1)
    ]
    longest = max(seconds for seconds, _ in ways.values())
    low, high = min(share for _, share in ways.values()), max(share for _, share in ways.values())
    room = max(ROOM, 0.15 * (high - low))
    x = quantitative(
        "ms",
        title="milliseconds a frame",
        scale={"domain": [0, 1.08 * longest / ms], "nice": False},
        axis={"tickCount": 8},
    )
    y = quantitative(
        "score",
        title=score,
        scale={"domain": [max(0.0, low - room), min(1.0, high + room)], "nice": False},
        axis={"format": ".0%", "tickCount": 6},
    )
    names = [str(point["way"]) for point in points]
    legend = {"columns": 2, "labelLimit": 290, "symbolSize": 0, "symbolStrokeWidth": 0, "labelOffset": -12}
    way = nominal("way", scale={"domain": names, "range": [look.BLUE] * len(names)})
    layers: list[dict[str, Any]] = [
        layer(
            {"type": "circle", "size": 130, "opacity": 1}, points, x=x, y=y, color={**way, "legend": legend}, **WORDS
        ),
        *[
            layer(
                {"type": "text", "dy": -16 if side else 18, "fontWeight": "bold", "aria": False},
                [point for point in points if point["above"] == side],
                x=x,
                y=y,
                text="number",
            )
            for side in (True, False)
        ],
    ]
    told = "; ".join(f"{name} {fmt_seconds(seconds)}, {fmt_percent(share)}" for name, (seconds, share) in ways.items())
    return Figure(
        title=title,
        caption=caption,
        alt=f"{title}. {score} against time: {told}.",
        body={"width": look.PLOT_WIDTH - 30, "height": HEIGHT, "layer": layers},
    )


def _above(ways: Mapping[str, tuple[float, float]]) -> dict[str, bool]:
    """Whether a way's number stands above its point: neighbours in time may lie on one another, their numbers may
    not. Of two the better one has its number above; of equals each second.
    """
    order = sorted(ways, key=lambda name: ways[name][0])
    sides = {order[0]: True}
    for before, name in itertools.pairwise(order):
        better = ways[name][1] - ways[before][1]
        if abs(better) < TELLING:
            sides[name] = not sides[before]
        else:
            sides[name] = better > 0
            if ways[name][0] - ways[before][0] < CLOSE * ways[order[-1]][0]:
                sides[before] = better < 0
    return sides

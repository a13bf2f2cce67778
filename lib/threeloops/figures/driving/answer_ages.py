"""Answer ages: how old the newest answer is, over time, for several ways of working on the same frames.

>>> figure = answer_ages(
...     {"one at a time": [(0.0, 0.09), (0.1, 0.19)]}, until_s=0.3, title="Saw teeth", caption="Computed."
... )
>>> print(figure.alt)
Age of the newest answer over 0.3 s. one at a time: 2 answers, between 90.0 ms and 200 ms old, mean 143 ms.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import fmt_seconds, ms

Answers = Sequence[tuple[float, float]]  # (exposure, ready) of each answered picture, in order
HEIGHT = 260


def answer_ages(ways: Mapping[str, Answers], *, until_s: float, title: str, caption: str) -> Figure:
    """A saw tooth for each way: down to the latency when an answer arrives, up by a second per second until the next.

    Raises:   ValueError without ways, with more than colours can tell apart, or for one without an answer
    """
    if not 0 < len(ways) <= len(look.SERIES_COLOURS) or not all(ways.values()):
        raise ValueError(f"{len(ways)} ways; draw 1 to {len(look.SERIES_COLOURS)}, each with an answer at least")
    rows, told = [], []
    for name, answers in ways.items():
        corners = _corners(answers, until_s)
        rows += [
            {"way": name, "at": at / ms, "age": age / ms, "order": order} for order, (at, age) in enumerate(corners)
        ]
        ages = [age for _, age in corners]
        count = sum(ready < until_s for _, ready in answers)
        told.append(
            f"{name}: {count} answers, between {fmt_seconds(min(ages))} and {fmt_seconds(max(ages))} old, mean"
            f" {fmt_seconds(_mean(corners))}."
        )
    return Figure(
        title=title,
        caption=caption,
        alt=f"Age of the newest answer over {until_s:.3g} s. {' '.join(told)}",
        body={"width": look.PLOT_WIDTH - 20, "height": HEIGHT, "layer": [_lines(rows, list(ways), until_s)]},
    )


def _corners(answers: Answers, until_s: float) -> list[tuple[float, float]]:
    """(moment, age) at both ends of every tooth."""
    corners: list[tuple[float, float]] = []
    newest = None
    for exposure, ready in answers:
        if ready >= until_s:
            break
        if newest is not None:
            corners.append((ready, ready - newest))
        corners.append((ready, ready - exposure))
        newest = exposure
    return [*corners, (until_s, until_s - newest)] if newest is not None else []


def _mean(corners: list[tuple[float, float]]) -> float:
    area = sum((b - a) * (one + other) / 2 for (a, one), (b, other) in itertools.pairwise(corners))
    return area / (corners[-1][0] - corners[0][0])


def _lines(rows: list[dict[str, Any]], names: list[str], until_s: float) -> dict[str, Any]:
    field = nominal("way")
    legend = {"columns": 3, "labelLimit": 260, "symbolType": "stroke", "symbolSize": 200}
    return layer(
        {"type": "line", "strokeWidth": 2, "aria": False},
        rows,
        x=quantitative("at", title="time in ms", scale={"domain": [0, until_s / ms], "nice": False}),
        y=quantitative("age", title="age of the newest answer in ms"),
        color={**field, "scale": {"domain": names, "range": list(look.SERIES_COLOURS[: len(names)])}, "legend": legend},
        strokeDash={
            **field,
            "scale": {"domain": names, "range": [list(one) for one in look.SERIES_DASHES[: len(names)]]},
            "legend": legend,
        },
        order="order",
    )

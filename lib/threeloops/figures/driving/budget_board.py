"""Budget board: stages one after the other on a clock, against the line that they have to stay left of.

>>> figure = budget_board({"network": 0.020, "plan": 0.005}, deadline_s=0.033, title="In time", caption="Invented.")
>>> print(figure.alt)
Stages in order: network 20.0 ms, plan 5.0 ms; together 25.0 ms, deadline 33.0 ms.
"""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, ordinal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import ms

ROW = 30


def budget_board(stages_s: Mapping[str, float], *, deadline_s: float, title: str, caption: str) -> Figure:
    """Each stage begins where the one before ends.

    Raises:   ValueError without stages
    """
    checks.positive(deadline_s=deadline_s)
    if not stages_s:
        raise ValueError("stages_s is empty; give at least one stage")
    ends = list(accumulate(seconds / ms for seconds in stages_s.values()))
    rows: list[dict[str, Any]] = [
        {
            "stage": name, "begin": end - seconds / ms, "end": end,
            "label": f"{seconds / ms:.1f}", "words": f"{name}: {seconds / ms:.1f} ms, done at {end:.1f} ms",
        }
        for (name, seconds), end in zip(stages_s.items(), ends, strict=True)
    ]  # fmt: skip
    deadline = deadline_s / ms
    told = ", ".join(f"{row['stage']} {row['label']} ms" for row in rows)
    scale = {"domain": [0, max(ends[-1], deadline) * 1.12], "nice": False}
    x = quantitative("begin", title="ms after the pictures arrived", scale=scale)
    y = ordinal("stage", sort=None, title=None, axis={"grid": False, "ticks": False})
    return Figure(
        title=title,
        caption=caption,
        alt=f"Stages in order: {told}; together {ends[-1]:.1f} ms, deadline {deadline:.1f} ms.",
        body={
            "width": look.PLOT_WIDTH - 60,
            "height": ROW * len(rows),
            "layer": _layers(rows, x, y, deadline),
        },
    )


def _layers(rows: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any], deadline: float) -> list[dict[str, Any]]:
    line = {"data": {"values": [{"begin": deadline, "label": f"{deadline:.1f} ms"}]}}
    return [
        layer({"type": "bar", "height": ROW * 0.6, "color": look.BLUE}, rows, x=x, x2="end", y=y, description="words"),
        layer(
            {"type": "text", "align": "left", "dx": 5, "aria": False}, rows, x={**x, "field": "end"}, y=y, text="label"
        ),
        {**line, **layer({"type": "rule", "color": look.ORANGE, "strokeWidth": 2, "strokeDash": [6, 4]}, x=x)},
        {
            **line,
            **layer(
                {"type": "text", "align": "right", "dx": -5, "baseline": "top", "color": look.ORANGE, "aria": False},
                x=x,
                y={"value": 2},
                text="label",
            ),
        },
    ]

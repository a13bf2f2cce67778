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
from threeloops.figures.figure import Figure
from threeloops.units import ms

ROW = 30


def budget_board(
    stages_s: Mapping[str, float],
    *,
    deadline_s: float,
    title: str,
    caption: str,
    kinds: Mapping[str, str] | None = None,
) -> Figure:
    """Each stage begins where the one before ends. kinds: what a stage's time is bound by, for colours ("compute",
    "memory", "overhead").

    Raises:   ValueError without stages
    """
    checks.positive(deadline_s=deadline_s)
    if not stages_s:
        raise ValueError("stages_s is empty; give at least one stage")
    kinds = kinds or {}
    ends = list(accumulate(seconds / ms for seconds in stages_s.values()))
    rows: list[dict[str, Any]] = [
        {
            "stage": name, "begin": end - seconds / ms, "end": end, "kind": kinds.get(name, "compute"),
            "label": f"{seconds / ms:.1f}", "words": f"{name}: {seconds / ms:.1f} ms, done at {end:.1f} ms",
        }
        for (name, seconds), end in zip(stages_s.items(), ends, strict=True)
    ]  # fmt: skip
    deadline = deadline_s / ms
    told = ", ".join(f"{row['stage']} {row['label']} ms" for row in rows)
    x = {
        "field": "begin", "type": "quantitative", "title": "ms after the pictures arrived",
        "scale": {"domain": [0, max(ends[-1], deadline) * 1.12], "nice": False},
    }  # fmt: skip
    y = {"field": "stage", "type": "ordinal", "sort": None, "title": None, "axis": {"grid": False, "ticks": False}}
    return Figure(
        title=title,
        caption=caption,
        alt=f"Stages in order: {told}; together {ends[-1]:.1f} ms, deadline {deadline:.1f} ms.",
        body={
            "width": look.PLOT_WIDTH - 60,
            "height": ROW * len(rows),
            "layer": _layers(rows, x, y, deadline, coloured=bool(kinds)),
        },
    )


def _layers(
    rows: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any], deadline: float, *, coloured: bool
) -> list[dict[str, Any]]:
    names = [kind for kind in look.BOUND_COLOURS if any(row["kind"] == kind for row in rows)]
    colour: dict[str, Any] = {"value": look.BLUE}
    if coloured:
        domain = {"domain": names, "range": [look.BOUND_COLOURS[name] for name in names]}
        colour = {"field": "kind", "type": "nominal", "scale": domain}
    line = {"data": {"values": [{"begin": deadline, "label": f"{deadline:.1f} ms"}]}}
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "bar", "height": ROW * 0.6},
            "encoding": {"x": x, "x2": {"field": "end"}, "y": y, "color": colour, "description": {"field": "words"}},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "text", "align": "left", "dx": 5, "aria": False},
            "encoding": {"x": {**x, "field": "end"}, "y": y, "text": {"field": "label"}},
        },
        {
            **line,
            "mark": {"type": "rule", "color": look.ORANGE, "strokeWidth": 2, "strokeDash": [6, 4]},
            "encoding": {"x": x},
        },
        {
            **line,
            "mark": {
                "type": "text",
                "align": "right",
                "dx": -5,
                "baseline": "top",
                "color": look.ORANGE,
                "aria": False,
            },
            "encoding": {"x": x, "y": {"value": 2}, "text": {"field": "label"}},
        },
    ]

"""Boxes: a plan of something built of parts, drawn to no scale, each part a rectangle with its name in it.

>>> plan = [
...     Box(x=0, y=0, width=200, height=60, text="memory", kind="memory"),
...     Box(x=0, y=80, width=200, height=60, text="unit", kind="compute"),
... ]
>>> figure = boxes(
...     plan,
...     arrows=[Arrow(x=100, y=60, to_x=100, to_y=80)],
...     title="A unit below its memory",
...     caption="A sketch.",
...     alt="Memory above, unit below.",
... )
>>> figure.body["width"], figure.body["height"]
(200, 140)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure

# Fill, border and text of a box, by what it is.
KINDS = {
    "compute": (look.BLUE, look.PAPER, look.PAPER),
    "memory": (look.ORANGE, look.PAPER, look.PAPER),
    "control": (look.GREEN, look.PAPER, look.PAPER),
    "frame": (look.PAPER, look.GREY, look.INK),
    "off": (look.PAPER, look.RULE, look.GREY),
    "bare": (look.PAPER, look.PAPER, look.INK),
}
LINE = 16  # pixels from one line of a box's text to the next


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle, in pixels from the upper left corner; lines of text are separated by a line break."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    text: str = ""
    at_top: bool = False  # the text in the first line, not in the middle: for a box that holds others

    def __post_init__(self) -> None:
        checks.non_negative(x=self.x, y=self.y)
        checks.positive(width=self.width, height=self.height)
        checks.one_of(KINDS, kind=self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    x: float
    y: float
    to_x: float
    to_y: float


def boxes(
    plan: Sequence[Box],
    *,
    title: str,
    caption: str,
    alt: str,
    arrows: Sequence[Arrow] = (),
    to_scale: tuple[float, float] | None = None,
) -> Figure:
    """The plan; later boxes lie over earlier ones. to_scale: between which places across widths are quantities, which a
    phone is shown in the same proportions.
    """
    if not plan:
        raise ValueError("plan is empty; give at least one Box")
    width, height = (
        math.ceil(max(box.x + box.width for box in plan)),
        math.ceil(max(box.y + box.height for box in plan)),
    )
    kinds = [kind for kind in KINDS if any(box.kind == kind for box in plan)]
    rectangles = [
        {"x": b.x, "x2": b.x + b.width, "y": b.y, "y2": b.y + b.height, "kind": b.kind, "order": i}
        for i, b in enumerate(plan)
    ]
    x, y = _place("x", width), _place("y", height, reverse=True)
    spread = {"x": x, "x2": {"field": "x2"}, "y": y, "y2": {"field": "y2"}}

    def colours(column: int) -> dict[str, Any]:
        return nominal("kind", legend=None, scale={"domain": kinds, "range": [KINDS[kind][column] for kind in kinds]})

    return Figure(
        title=title,
        caption=caption,
        alt=alt,
        to_scale=to_scale,
        body={
            "width": width,
            "height": height,
            "layer": [
                layer(
                    {"type": "rect", "strokeWidth": 1.2, "aria": False},
                    rectangles,
                    **spread,
                    fill=colours(0),
                    stroke=colours(1),
                ),
                layer(
                    {"type": "text", "baseline": "middle", "aria": False},
                    [row for box in plan for row in _lines(box)],
                    x=x,
                    y=y,
                    text="text",
                    color=colours(2),
                ),
                layer({"type": "rule", "color": look.INK, "aria": False}, [_shaft(one) for one in arrows], **spread),
                layer(
                    {
                        "type": "point",
                        "shape": "wedge",
                        "filled": True,
                        "size": 200,
                        "color": look.INK,
                        "opacity": 1,
                        "aria": False,
                    },
                    [{"x": a.to_x, "y": a.to_y, "angle": _angle(a)} for a in arrows],
                    x=x,
                    y=y,
                    angle=quantitative("angle", scale=None),
                ),
            ],
        },
    )


def _place(name: str, size: int, *, reverse: bool = False) -> dict[str, Any]:
    return quantitative(name, axis=None, scale={"domain": [0, size], "nice": False, "reverse": reverse})


def _lines(box: Box) -> list[dict[str, Any]]:
    lines = box.text.split("\n") if box.text else []
    first = box.y + 12 if box.at_top else box.y + box.height / 2 - LINE * (len(lines) - 1) / 2
    return [
        {"x": box.x + box.width / 2, "y": first + LINE * row, "text": line, "kind": box.kind}
        for row, line in enumerate(lines)
    ]


def _shaft(arrow: Arrow) -> dict[str, float]:
    return {"x": arrow.x, "y": arrow.y, "x2": arrow.to_x, "y2": arrow.to_y}


def _angle(arrow: Arrow) -> float:
    """Degrees by which a wedge that points up is turned to point along the arrow."""
    return math.degrees(math.atan2(arrow.to_x - arrow.x, arrow.y - arrow.to_y))

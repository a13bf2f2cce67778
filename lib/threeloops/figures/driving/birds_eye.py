"""Bird's eye: what stands around a vehicle, seen from above, the vehicle in the middle and its front up.

>>> car = Outline(x_m=10, y_m=2, length_m=4, width_m=2, yaw_rad=0)
>>> figure = birds_eye(road=[(0, 0)], outlines={"true": [car]}, title="A car ahead", caption="Generated.")
>>> print(figure.alt)
Seen from above, 32 m in each direction. true: 1 box at (10, 2) m ahead and to the left.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import counted

SIZE, REACH_M, CELL_M = 420, 32, 1.0
ROAD = "#e3e3e3"
Place = tuple[float, float]  # metres ahead and to the left
OWN = (4.6, 1.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """One box, and how far it moves in a second."""

    x_m: float
    y_m: float
    length_m: float
    width_m: float
    yaw_rad: float
    velocity: Place = (0.0, 0.0)

    def corners(self) -> list[Place]:
        cosine, sine = math.cos(self.yaw_rad), math.sin(self.yaw_rad)
        along, across = self.length_m / 2, self.width_m / 2
        signs = ((1, 1), (1, -1), (-1, -1), (-1, 1), (1, 1))
        return [
            (
                self.x_m + a * along * cosine - b * across * sine,
                self.y_m + a * along * sine + b * across * cosine,
            )
            for a, b in signs
        ]


def birds_eye(
    *,
    road: Sequence[Place],
    outlines: Mapping[str, Sequence[Outline]],
    title: str,
    caption: str,
    points: Sequence[Place] = (),
    path: Sequence[Place] = (),
) -> Figure:
    """road: the middles of the grid's cells that are road. outlines: boxes by what they are, each kind in its own
    colour and dash, moving ones with a line to where they are a second later. points: of a LiDAR. path: the plan.

    Raises:   ValueError with more kinds than colours can tell apart
    """
    if not 0 < len(outlines) <= len(look.SERIES_COLOURS) - 1:
        raise ValueError(f"{len(outlines)} kinds of boxes; draw 1 to {len(look.SERIES_COLOURS) - 1}")
    layers = [_cells(road), *_boxes(outlines), _dots(points, look.INK, 5), _arrows(outlines), _own()]
    if path:
        layers.append(_path(path))
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(outlines, path),
        body={"width": SIZE, "height": SIZE, "layer": layers},
    )


def _axis(field: str, *, left: bool) -> dict[str, Any]:
    """Metres ahead run up, metres to the left run left."""
    return quantitative(
        field,
        title="metres to the left" if left else "metres ahead",
        scale={"domain": [-REACH_M, REACH_M], "nice": False, "reverse": left},
        axis={"values": [-30, -20, -10, 0, 10, 20, 30], "grid": False},
    )


def _at() -> dict[str, Any]:
    return {"x": _axis("left", left=True), "y": _axis("ahead", left=False)}


def _rows(places: Sequence[Place]) -> list[dict[str, Any]]:
    return [
        {"ahead": round(ahead, 2), "left": round(left, 2)}
        for ahead, left in places
        if max(abs(ahead), abs(left)) <= REACH_M
    ]


def _cells(road: Sequence[Place]) -> dict[str, Any]:
    side = SIZE * CELL_M / (2 * REACH_M) + 0.4  # a little over a cell, so that no seams show
    return {
        "data": {"values": _rows(road)},
        "mark": {"type": "point", "shape": "square", "filled": True, "size": side**2, "color": ROAD, "opacity": 1}
        | {"aria": False},
        "encoding": _at(),
    }


def _dots(points: Sequence[Place], colour: str, size: float) -> dict[str, Any]:
    return {
        "data": {"values": _rows(points)},
        "mark": {"type": "circle", "size": size, "color": colour, "opacity": 1, "aria": False},
        "encoding": _at(),
    }


def _boxes(outlines: Mapping[str, Sequence[Outline]]) -> list[dict[str, Any]]:
    names = list(outlines)
    field = nominal("what")
    rows = [
        {"ahead": ahead, "left": left, "what": what, "box": f"{what} {number}", "order": order}
        for what, boxes in outlines.items()
        for number, box in enumerate(boxes)
        for order, (ahead, left) in enumerate(box.corners())
    ]
    colour = {**field, "scale": {"domain": names, "range": list(look.SERIES_COLOURS[: len(names)])}}
    dashes = [list(dash) for dash in look.SERIES_DASHES[: len(names)]]
    return [
        layer(
            {"type": "line", "strokeWidth": 2, "aria": False, "clip": True},
            rows,
            **_at(),
            color=colour,
            strokeDash={**field, "scale": {"domain": names, "range": dashes}},
            detail="box",
            order="order",
        )
    ]


def _arrows(outlines: Mapping[str, Sequence[Outline]]) -> dict[str, Any]:
    names = list(outlines)
    rows = [
        {
            "ahead": box.x_m, "left": box.y_m, "what": what,
            "to_ahead": box.x_m + box.velocity[0], "to_left": box.y_m + box.velocity[1],
        }
        for what, boxes in outlines.items()
        for box in boxes
        if math.hypot(*box.velocity) > 0.5
    ]  # fmt: skip
    colour = nominal("what")
    return layer(
        {"type": "rule", "strokeWidth": 1.6, "aria": False, "clip": True},
        rows,
        **_at(),
        x2="to_left",
        y2="to_ahead",
        color={**colour, "scale": {"domain": names, "range": list(look.SERIES_COLOURS[: len(names)])}},
    )


def _own() -> dict[str, Any]:
    corners = Outline(x_m=0, y_m=0, length_m=OWN[0], width_m=OWN[1], yaw_rad=0).corners()
    rows = [{"ahead": ahead, "left": left, "order": order} for order, (ahead, left) in enumerate(corners)]
    return layer({"type": "line", "strokeWidth": 2.5, "color": look.INK, "aria": False}, rows, **_at(), order="order")


def _path(path: Sequence[Place]) -> dict[str, Any]:
    rows = [{"ahead": ahead, "left": left, "order": order} for order, (ahead, left) in enumerate([(0.0, 0.0), *path])]
    return layer(
        {"type": "line", "strokeWidth": 2, "color": look.INK, "aria": False, "clip": True}
        | {"point": {"filled": True, "size": 28, "color": look.INK}},
        rows,
        **_at(),
        order="order",
    )


def _alt(outlines: Mapping[str, Sequence[Outline]], path: Sequence[Place]) -> str:
    told = [
        f"{what}: {_boxes_in_words(len(boxes))} at {', '.join(f'({box.x_m:.0f}, {box.y_m:.0f})' for box in boxes)} m"
        " ahead and to the left."
        for what, boxes in outlines.items()
        if boxes
    ]
    way = f" The plan ends {path[-1][0]:.0f} m ahead and {path[-1][1]:.0f} m to the left." if path else ""
    return f"Seen from above, {REACH_M} m in each direction. {' '.join(told)}{way}"


def _boxes_in_words(number: int) -> str:
    return counted(number, "box") if number == 1 else f"{number} boxes"

"""Drawn curve: points that a reader has drawn, joined by lines, and once they want to see it the curve as it is.

>>> at = (0.5, 0.9)
>>> axes = {"x": Axis(title="load"), "y": Axis(title="wait", log=True, low=0.1, high=100)}
>>> lines = {"drawn": (0.5, 0.9), "as it is": (1, 9)}
>>> print(drawn_curve(at, lines, **axes, unit=str, title="Draw it", caption="").alt)
Wait against load. drawn: 0.5 at 0.5, 0.9 at 0.9. as it is: 1 at 0.5, 9 at 0.9.
>>> print(drawn_curve(at, {"drawn": (0.1, 0.1)}, **axes, unit=str, title="", caption="", empty=True).alt)
Wait against load. Nothing is drawn yet, at 0.5, 0.9.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from threeloops.figures import look
from threeloops.figures.channels import layer
from threeloops.figures.curves import HEIGHT, Axis, curves
from threeloops.figures.figure import Figure

SIZE = 110  # square pixels of a point: large enough to be taken hold of
FROM_LEFT = 60  # pixels to the request
EMPTY = "Your curve goes here; on paper, with a pencil."


def drawn_curve(
    at: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    *,
    x: Axis,
    y: Axis,
    unit: Callable[[float], str],
    title: str,
    caption: str,
    empty: bool = False,
) -> Figure:
    """The first line has a handle on each of its points; all lines have a value at every place of `at`. `unit` writes a
    value out, in the words beside the picture. `empty` leaves the first line's handles alone, with a request to draw
    where the line will be: at the end of an axis nobody has claimed anything.

    Raises:   ValueError for a line that is not as long as `at`
    """
    points = {name: list(zip(at, values, strict=True)) for name, values in lines.items()}
    plain = curves(points, x=x, y=y, title=title, caption=caption)
    handles = layer(
        {"type": "point", "filled": True, "size": SIZE, "color": look.SERIES_COLOURS[0], "aria": False},
        [{"x": place, "y": value} for place, value in next(iter(points.values()))],
        x=x.encoding("x", zero=False),
        y=y.encoding("y", zero=True),
    )
    request = layer(
        {"type": "text", "align": "left", "color": look.GREY, "aria": False},
        [{"words": EMPTY}] if empty else [],
        x={"value": FROM_LEFT},
        y={"value": HEIGHT / 2},
        text="words",
    )
    first = next(iter(points))
    seen = {name: line for name, line in points.items() if not (empty and name == first)}
    rows = {"values": [row for row in plain.body["data"]["values"] if row["line"] in seen]}
    told = [
        f"{name}: {', '.join(f'{unit(value)} at {place:,.6g}' for place, value in line)}" for name, line in seen.items()
    ]
    nothing = f"Nothing is drawn yet, at {', '.join(f'{place:,.6g}' for place in at)}"
    said = ". ".join(([nothing] if empty else []) + told)
    alt = f"{y.title[0].upper()}{y.title[1:]} against {x.title}. {said}."
    return replace(plain, alt=alt, body={**plain.body, "data": rows, "layer": [*plain.body["layer"], handles, request]})

"""Drawn curve: points that a reader has drawn, joined by lines, and once they want to see it the curve as it is.

>>> at = (0.5, 0.9)
>>> axes = {"x": Axis(title="load"), "y": Axis(title="wait", log=True, low=0.1, high=100)}
>>> lines = {"drawn": (0.5, 0.9), "as it is": (1, 9)}
>>> print(drawn_curve(at, lines, **axes, unit=str, title="Draw it", caption="").alt)
Wait against load. drawn: 0.5 at 0.5, 0.9 at 0.9. as it is: 1 at 0.5, 9 at 0.9.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from threeloops.figures import look
from threeloops.figures.curves import Axis, curves
from threeloops.figures.figure import Figure

SIZE = 110  # square pixels of a point: large enough to be taken hold of


def drawn_curve(
    at: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    *,
    x: Axis,
    y: Axis,
    unit: Callable[[float], str],
    title: str,
    caption: str,
) -> Figure:
    """The first line has a handle on each of its points; all lines have a value at every place of `at`. `unit` writes a
    value out, in the words beside the picture.

    Raises:   ValueError for a line that is not as long as `at`
    """
    points = {name: list(zip(at, values, strict=True)) for name, values in lines.items()}
    plain = curves(points, x=x, y=y, title=title, caption=caption)
    handles = {
        "data": {"values": [{"x": place, "y": value} for place, value in next(iter(points.values()))]},
        "mark": {"type": "point", "filled": True, "size": SIZE, "color": look.SERIES_COLOURS[0], "aria": False},
        "encoding": {"x": x.encoding("x", zero=False), "y": y.encoding("y", zero=True)},
    }
    told = (
        f"{name}: {', '.join(f'{unit(value)} at {place:,.6g}' for place, value in line)}"
        for name, line in points.items()
    )
    alt = f"{y.title[0].upper()}{y.title[1:]} against {x.title}. {'. '.join(told)}."
    return replace(plain, alt=alt, body={**plain.body, "layer": [*plain.body["layer"], handles]})

"""Matrix map: a drawing before and after each of some 2 x 2 matrices has moved every one of its points.

>>> figure = matrix_map({"quarter turn": ((0, -1), (1, 0))}, title="A matrix moves points", caption="The letter F.")
>>> print(figure.alt)
A letter F with its foot at (0, 0), before and after. quarter turn: (1, 0) goes to (0, 1) and (0, 1) goes to (-1, 0).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from threeloops.figures import look
from threeloops.figures.channels import layer, quantitative
from threeloops.figures.figure import Figure

Matrix = tuple[tuple[float, float], tuple[float, float]]
Span = tuple[float, float]

# The letter F has no symmetry, so that a turn, a mirror and a shear all look different.
LETTER = (
    (0.0, 0.0),
    (0.0, 1.5),
    (1.0, 1.5),
    (1.0, 1.2),
    (0.3, 1.2),
    (0.3, 0.9),
    (0.8, 0.9),
    (0.8, 0.6),
    (0.3, 0.6),
    (0.3, 0.0),
    (0.0, 0.0),
)
REACH = 2.2  # no point may go further from the foot than this, along an axis
MARGIN = 0.25  # beyond the outermost points, in the units of the axes
WIDTH, GAP = 590, 16  # pixels of all panels together, and between two


def matrix_map(matrices: Mapping[str, Matrix], *, title: str, caption: str) -> Figure:
    """One panel per matrix: the letter as it is, dashed, and where the matrix puts it.

    Raises:   ValueError without matrices, or where a point would leave the panel
    """
    if not matrices:
        raise ValueError("matrices is empty; give at least one, like {'quarter turn': ((0, -1), (1, 0))}")
    side = min(190, (WIDTH - GAP * (len(matrices) - 1)) // len(matrices))
    view = _view(matrices)
    return Figure(
        title=title,
        caption=caption,
        alt="A letter F with its foot at (0, 0), before and after. "
        + " ".join(_sentence(name, matrix) for name, matrix in matrices.items()),
        body={
            "hconcat": [
                _panel(name, matrix, view, side, first=not place)
                for place, (name, matrix) in enumerate(matrices.items())
            ],
            "spacing": GAP,
        },
    )


def moved(matrix: Matrix, point: tuple[float, float]) -> tuple[float, float]:
    """The matrix times the point: each row's dot product with it.

    >>> moved(((1, 2), (3, 4)), (10, 1))
    (12, 34)
    """
    (a, b), (c, d) = matrix
    x, y = point
    return a * x + b * y, c * x + d * y


def _view(matrices: Mapping[str, Matrix]) -> tuple[Span, Span]:
    """From where to where the axes of all panels go: round the letter, before and after."""
    for name, matrix in matrices.items():
        if max(abs(part) for point in LETTER for part in moved(matrix, point)) > REACH:
            raise ValueError(f"{name!r} moves the letter beyond {REACH}; take smaller entries")
    points = [*LETTER, *(moved(matrix, point) for matrix in matrices.values() for point in LETTER)]
    across, up = ([point[axis] for point in points] for axis in (0, 1))
    return (min(across) - MARGIN, max(across) + MARGIN), (min(up) - MARGIN, max(up) + MARGIN)


def _panel(name: str, matrix: Matrix, view: tuple[Span, Span], side: int, *, first: bool) -> dict[str, Any]:
    after = [moved(matrix, point) for point in LETTER]
    (left, right), (low, high) = view
    return {
        "width": side,
        "height": round(side * (high - low) / (right - left)),  # a unit is as long upwards as sideways
        "title": {"text": name, "fontSize": look.TEXT, "anchor": "middle", "fontWeight": "normal", "color": look.INK},
        "layer": [
            _outline(LETTER, view, first, {"stroke": look.GREY, "strokeDash": [4, 3], "strokeWidth": 1.5}),
            _outline(
                after, view, first, {"stroke": look.BLUE, "strokeWidth": 2.5, "fill": look.BLUE, "fillOpacity": 0.15}
            ),
        ],
    }


def _outline(
    points: Sequence[tuple[float, float]], view: tuple[Span, Span], first: bool, style: dict[str, Any]
) -> dict[str, Any]:
    rows = [{"x": x, "y": y, "order": order} for order, (x, y) in enumerate(points)]

    def axis(field: str, span: Span, *, labels: bool = True) -> dict[str, Any]:
        ticks = {"values": [-2, -1, 0, 1, 2], "format": "d", "labels": labels}
        return quantitative(field, title=None, scale={"domain": list(span), "nice": False}, axis=ticks)

    return layer(
        {"type": "line", "aria": False, **style},
        rows,
        x=axis("x", view[0]),
        y=axis("y", view[1], labels=first),
        order="order",
    )


def _sentence(name: str, matrix: Matrix) -> str:
    (a, b), (c, d) = matrix
    return f"{name}: (1, 0) goes to ({a:.3g}, {c:.3g}) and (0, 1) goes to ({b:.3g}, {d:.3g})."

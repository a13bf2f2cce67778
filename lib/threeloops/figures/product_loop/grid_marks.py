"""Grid marks: weights as dots on a line and the grid that they are rounded to as ticks below, one row for each grid.

>>> figure = grid_marks(
...     {"its own scale": ([0.1, -0.2], 0.1), "shared with 2.0": ([0.1, -0.2], 1.0)},
...     title="One large weight takes the grid from the others",
...     caption="Two bits.",
... )
>>> print(figure.alt)
One large weight takes the grid from the others. its own scale: 2 weights on a grid of step 0.1, which become 2 different values. shared with 2.0: 2 weights on a grid of step 1, which become 1 different value.
"""  # noqa: E501

from collections.abc import Mapping, Sequence

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import counted

ROW = 74


def grid_marks(rows: Mapping[str, tuple[Sequence[float], float]], *, title: str, caption: str) -> Figure:
    """Every row: its weights, and the step of the symmetric grid they are rounded to. All rows have one axis, as wide
    as the largest weight.

    Raises:   ValueError without rows or for a row without weights
    """
    if not rows or not all(weights for weights, _ in rows.values()):
        raise ValueError("rows is empty or has a row without weights; give at least one weight each")
    checks.positive(**{f"step of {name}": step for name, (_, step) in rows.items()})
    edge = 1.06 * max(abs(weight) for weights, _ in rows.values() for weight in weights)
    names = list(rows)
    dots = [{"row": name, "value": weight} for name, (weights, _) in rows.items() for weight in weights]
    ticks = [
        {"row": name, "value": place * step}
        for name, (weights, step) in rows.items()
        for place in _places(weights, step)
    ]
    x = quantitative("value", title="weight", scale={"domain": [-edge, edge]})
    y = nominal("row", sort=names, title=None, axis={"labelLimit": 190})
    return Figure(
        title=title,
        caption=caption,
        alt=f"{title}. " + " ".join(_told(name, weights, step) for name, (weights, step) in rows.items()),
        body={
            "width": look.PLOT_WIDTH - 120,
            "height": ROW * len(rows),
            "layer": [
                layer({"type": "tick", "color": look.GREY, "thickness": 1, "size": 26, "yOffset": 12}, ticks, x=x, y=y),
                layer(
                    {"type": "point", "filled": True, "size": 34, "color": look.BLUE, "yOffset": -12}, dots, x=x, y=y
                ),
            ],
        },
    )


def _told(name: str, weights: Sequence[float], step: float) -> str:
    values = len({round(weight / step) for weight in weights})
    return (
        f"{name}: {counted(len(weights), 'weight')} on a grid of step {step:.3g}, which become"
        f" {counted(values, 'different value')}."
    )


def _places(weights: Sequence[float], step: float) -> range:
    """The grid's whole numbers, as far as the largest weight reaches."""
    last = round(max(map(abs, weights)) / step)
    return range(-last, last + 1)

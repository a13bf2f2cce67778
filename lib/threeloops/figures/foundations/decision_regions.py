"""Decision regions: what small nets answer over the plane of their two inputs, with the line at which each hidden
unit switches.

>>> nets = xor_nets.train(nets=3, hidden=2, steps=10, learning_rate=0.1, activation="relu", seed=1)
>>> figure = decision_regions(nets, {"first": 0}, title="One net", caption="What to see.")
>>> print(figure.alt.split(": ")[0])
Answers over the plane of both inputs. first

Source: none, the answers are the nets' own
"""

from collections.abc import Mapping
from typing import Any

import numpy

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.simulate.foundations import xor_nets
from threeloops.units import counted

LOW, HIGH, CELLS = -0.5, 1.5, 24
WIDTH, GAP = 590, 16  # pixels of all panels together, and between two
LIGHT_BLUE, LIGHT_ORANGE = "#bfdcec", "#f5cdb3"  # pale, so that the words upon them can be read
NEITHER = 0.05  # an answer this close to 1/2 is no answer: white


def decision_regions(nets: xor_nets.Nets, which: Mapping[str, int], *, title: str, caption: str) -> Figure:
    """One panel per named net: pale orange where it answers above 1/2, blue below, white between, its answer in
    figures at each of the four rows of XOR.

    Raises:   ValueError if no net is named, or one that does not exist
    """
    if not which:
        raise ValueError("which is empty; name at least one net, like {'solved': 0}")
    for name, net in which.items():
        checks.count(at_least=0, **{f"which[{name!r}]": net})
        if net >= len(nets.inner):
            raise ValueError(f"which[{name!r}]={net} must be below {len(nets.inner)}, the number of nets")
    side = min(190, (WIDTH - GAP * (len(which) - 1)) // len(which))
    return Figure(
        title=title,
        caption=caption,
        alt="Answers over the plane of both inputs. "
        + " ".join(_sentence(nets, name, net) for name, net in which.items()),
        body={"hconcat": [_panel(nets, name, net, side) for name, net in which.items()], "spacing": GAP},
    )


def switching_line(weights: tuple[float, float, float]) -> list[tuple[float, float]]:
    """Where w1 * x1 + w2 * x2 + b = 0 enters and leaves the drawn square; no points where it passes by.

    >>> switching_line((1, 1, -0.5))
    [(-0.5, 1.0), (1.0, -0.5)]
    >>> switching_line((1, 0, -9))
    []
    """
    w1, w2, bias = weights
    found = [(edge, -(w1 * edge + bias) / w2) for edge in (LOW, HIGH) if w2] + [
        (-(w2 * edge + bias) / w1, edge) for edge in (LOW, HIGH) if w1
    ]
    inside = {(round(x, 9), round(y, 9)) for x, y in found if LOW <= x <= HIGH and LOW <= y <= HIGH}
    return sorted(inside)[:: max(1, len(inside) - 1)] if len(inside) > 1 else []


def _panel(nets: xor_nets.Nets, name: str, net: int, side: int) -> dict[str, Any]:
    step = (HIGH - LOW) / CELLS
    middles = [LOW + (place + 0.5) * step for place in range(CELLS)]
    points = numpy.array([(x, y) for x in middles for y in middles])
    field = nets.answers(points)[net]
    cells = [
        {"x": x - step / 2, "x2": x + step / 2, "y": y - step / 2, "y2": y + step / 2, "side": _side(value)}
        for (x, y), value in zip(points.tolist(), field, strict=True)
    ]
    corners = [
        {"x": x, "y": y, "says": _figure(value)}
        for (x, y), value in zip(xor_nets.CORNERS.tolist(), nets.answers(xor_nets.CORNERS)[net], strict=True)
    ]
    lines = [
        {"x": x, "y": y, "unit": unit}
        for unit, (w1, w2, bias) in enumerate(nets.inner[net].tolist())
        for x, y in switching_line((w1, w2, bias))
    ]
    x, y = _axis("x", "x1"), _axis("y", "x2")
    colour = nominal(
        "side", legend=None, scale={"domain": ["0", "neither", "1"], "range": [LIGHT_BLUE, look.PAPER, LIGHT_ORANGE]}
    )
    return {
        "width": side,
        "height": side,
        "title": {"text": name, "fontSize": look.TEXT, "anchor": "middle", "fontWeight": "normal", "color": look.INK},
        "view": {"stroke": look.GREY},
        "layer": [
            layer({"type": "rect", "aria": False}, cells, x=x, x2="x2", y=y, y2="y2", color=colour),
            layer(
                {"type": "line", "color": look.INK, "strokeDash": [5, 3], "strokeWidth": 1.5, "aria": False},
                lines,
                x=x,
                y=y,
                detail="unit",
            ),
            layer({"type": "point", "filled": True, "size": 30, "color": look.INK}, corners, x=x, y=y),
            # a pale rim, so that lines do not run through the figures
            _said(corners, x, y, {"stroke": look.PAPER, "strokeWidth": 3}),
            _said(corners, x, y, {}),
        ],
    }


def _said(corners: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any], style: dict[str, Any]) -> dict[str, Any]:
    mark = {
        "type": "text",
        "dy": -12,
        "fontSize": look.TEXT,
        "fontWeight": "bold",
        "color": look.INK,
        "aria": False,
        **style,
    }
    return layer(mark, corners, x=x, y=y, text="says")


def _figure(value: float) -> str:
    """Two decimals, without a minus sign before a zero."""
    return f"{round(float(value), 2) + 0.0:.2f}"


def _side(value: float) -> str:
    return "neither" if abs(value - 0.5) <= NEITHER else "1" if value > 0.5 else "0"


def _axis(field: str, what: str) -> dict[str, Any]:
    scale = {"domain": [LOW, HIGH], "nice": False, "zero": False}
    return quantitative(field, title=what, scale=scale, axis={"values": [0, 1], "format": "d", "grid": False})


def _sentence(nets: xor_nets.Nets, name: str, net: int) -> str:
    said = ", ".join(_figure(value) for value in nets.answers(xor_nets.CORNERS)[net])
    crossing = sum(bool(switching_line((w1, w2, bias))) for w1, w2, bias in nets.inner[net].tolist())
    return (
        f"{name}: answers {said} at (0, 0), (0, 1), (1, 0), (1, 1); {counted(crossing, 'switching line')} in the"
        " picture."
    )

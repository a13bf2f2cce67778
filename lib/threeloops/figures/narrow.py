"""Narrow: a drawing's form for a phone. Its plots become narrower and its letters stay as large as they are; views that
stood side by side stand one below the other.

A plan, whose places are pixels and whose boxes have words in them, has no such form: see plans.py.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any

NEAR = 10  # pixels before the right edge where its words stand
PLOT = 322  # pixels; beside it stand the labels of an axis
ABREAST = 2  # names of a legend for which a phone always has room, one beside the other
OF_MARKS = ("mark", "data", "transform")  # what has a width that is no plot's
BELOW = {"hconcat": "vconcat"}


def is_plan(node: Any) -> bool:
    """Whether a view's axis is its own width, pixel by pixel.

    >>> is_plan({"width": 554, "layer": [{"encoding": {"x": {"field": "x", "scale": {"domain": [0, 554]}}}}]})
    True
    >>> is_plan({"width": 554, "layer": [{"encoding": {"x": {"field": "x", "scale": {"domain": [0, 8]}}}}]})
    False
    >>> is_plan({"width": 554, "layer": [{"encoding": {"x": {"field": "x", "scale": None}}}]})  # places are pixels
    True
    """
    if isinstance(node, Mapping):
        width = node.get("width")
        return any(map(is_plan, node.values())) or (isinstance(width, int | float) and _in_pixels(node, width))
    return isinstance(node, list | tuple) and any(map(is_plan, node))


def _in_pixels(node: Any, width: float) -> bool:
    if isinstance(node, Mapping):
        x = node.get("x")
        scale = x.get("scale") if isinstance(x, Mapping) else None
        domain = scale.get("domain") if isinstance(scale, Mapping) else None
        own = isinstance(domain, list | tuple) and len(domain) == 2 and tuple(domain) == (0, width)
        own = own or (isinstance(x, Mapping) and "field" in x and x.get("scale", x) is None)
        return own or any(_in_pixels(one, width) for one in node.values())
    return isinstance(node, list | tuple) and any(_in_pixels(one, width) for one in node)


def narrowed(node: Any, widest: int = PLOT) -> Any:
    """The same views, none wider than that.

    >>> narrowed({"hconcat": [{"width": 400}, {"width": 190, "mark": {"type": "bar", "width": 400}}]})
    {'vconcat': [{'width': 322}, {'width': 190, 'mark': {'type': 'bar', 'width': 400}}]}
    >>> narrowed({"width": 550, "encoding": {"x": {"value": 550}}})  # the right edge
    {'width': 322, 'encoding': {'x': {'value': 322}}}
    >>> narrowed({"legend": {"columns": 3, "labelLimit": 220}})
    {'legend': {'columns': 2, 'labelLimit': 220}}
    """
    if isinstance(node, list | tuple):
        return [narrowed(one, widest) for one in node]
    if not isinstance(node, Mapping):
        return node
    made = {BELOW.get(key, key): value if key in OF_MARKS else narrowed(value, widest) for key, value in node.items()}
    if "concat" in node:
        made["columns"] = 1
    legend = made.get("legend")
    if isinstance(legend, Mapping) and legend.get("columns", 0) > ABREAST:  # its names take two lines
        made["legend"] = {**legend, "columns": ceil(legend["columns"] / 2)}
    width = node.get("width")
    if isinstance(width, int | float) and width > widest:
        made = {**_moved(made, width, widest), "width": widest}
    # two legends, one beside the other
    return stacked(made) if "shape" in node.get("resolve", {}).get("scale", {}) else made


def stacked(node: Any) -> Any:
    """A view whose legends stand one name below the other: side by side they would be wider than its plot.

    >>> stacked({"color": {"legend": {"orient": "top", "columns": 3}}, "x": {"legend": None}})
    {'color': {'legend': {'orient': 'top', 'columns': 1}}, 'x': {'legend': None}}
    """
    if isinstance(node, Mapping):
        return {
            key: {**value, "columns": 1} if key == "legend" and isinstance(value, Mapping) else stacked(value)
            for key, value in node.items()
        }
    return [stacked(one) for one in node] if isinstance(node, list | tuple) else node


def _at(place: Any, edge: float) -> bool:
    """Whether a place is a view's right edge, or a few pixels before it."""
    at = place["value"] if isinstance(place, Mapping) and place.keys() == {"value"} else None
    return isinstance(at, int | float) and edge - NEAR <= at <= edge


def _moved(node: Any, edge: float, to: int) -> Any:
    """What stood at the right edge, at the new one."""
    if isinstance(node, Mapping):
        return {
            key: value
            if key in OF_MARKS
            else {"value": to + value["value"] - edge}
            if key in ("x", "x2") and _at(value, edge)
            else _moved(value, edge, to)
            for key, value in node.items()
        }
    return [_moved(one, edge, to) for one in node] if isinstance(node, list | tuple) else node

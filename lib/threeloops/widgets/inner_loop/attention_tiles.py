"""Attention tiles: the matrix of scores as blocks that meet one after another, and the bytes of both ways beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative

SIDE, BARS = 290, 190  # pixels: of the matrix, and of the longest bar
KINDS = {"done": "#a9cfe6", "now": look.ORANGE, "waits": look.PAPER, "never": look.RULE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A block of queries against a block of keys."""

    queries: range
    keys: range
    kind: str  # one of KINDS


def matrix(tiles: Sequence[Tile], tokens: int) -> dict[str, Any]:
    """The blocks where they stand: queries downwards, keys to the right."""
    words = {"done": "has met", "now": "meets now", "waits": "waits", "never": "masked, never loaded"}
    rows = [
        {
            "top": tile.queries.start,
            "bottom": tile.queries.stop,
            "left": tile.keys.start,
            "right": tile.keys.stop,
            "shade": KINDS[tile.kind],
            "words": f"queries {span(tile.queries)} and keys {span(tile.keys)}: {words[tile.kind]}",
        }
        for tile in tiles
    ]
    axis = {"grid": False, "domain": False, "tickMinStep": 1, "titleFontSize": look.TEXT}
    whole = quantitative(scale={"domain": [0, tokens], "nice": False})
    return {
        "width": SIDE,
        "height": SIDE,
        **layer(
            {"type": "rect", "stroke": look.GREY, "strokeWidth": 0.7},
            rows,
            x={"field": "left", **whole, "axis": {**axis, "title": "keys and values", "orient": "top"}},
            x2="right",
            y={
                "field": "top",
                **whole,
                "scale": {"domain": [tokens, 0], "nice": False},
                "axis": {**axis, "title": "queries"},
            },
            y2="bottom",
            color=nominal("shade", scale=None),
            **WORDS,
        ),
    }


def bars(moved: Sequence[tuple[str, float, float]], most: float) -> dict[str, Any]:
    """(name, bytes so far, bytes in the end) of each way: what is there in blue, what will come as an outline."""
    rows = [{"name": name, "bytes": now, "end": end} for name, now, end in moved]
    axis = {"title": "bytes moved", "grid": False, "tickCount": 3, "format": "~s", "titleFontSize": look.TEXT}
    x = quantitative(scale={"domain": [0, most], "nice": False}, axis=axis)
    y = nominal("name", sort=None, axis={"title": None, "ticks": False, "domain": False})
    return {
        "width": BARS,
        "height": SIDE / 2,
        "data": {"values": rows},
        "layer": [
            layer(
                {"type": "bar", "fill": None, "stroke": look.GREY, "strokeWidth": 1, "aria": False},
                x={"field": "end", **x},
                y=y,
            ),
            layer({"type": "bar", "color": look.BLUE}, x={"field": "bytes", **x}, y=y),
        ],
    }


def span(tokens: range) -> str:
    """ "4 to 7", or "4" alone."""
    return f"{tokens.start}" if len(tokens) == 1 else f"{tokens.start} to {tokens.stop - 1}"

"""Sharding map: for each GPU, which part of a model it keeps, and how many bytes of each kind; equal areas are equal
bytes. Beside each row stand its letter and its height in bytes per parameter.

>>> piece = Piece(gpu=0, kind="weights", left=0, right=0.25, height=2, words="GPU 1: a quarter of the weights")
>>> figure = sharding_map(
...     [piece],
...     slots={"weights": 2},
...     names=["GPU 1: 4.00 GB"],
...     title="A quarter each",
...     caption="A sketch.",
...     alt="GPU 1 holds a quarter.",
... )
>>> figure.body["height"]
238
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure

# What a piece is: its colour; dashed where it stands there only for a moment.
KINDS = {
    "weights": look.BLUE,
    "gradients": look.ORANGE,
    "optimiser state": look.GREEN,
    "activations": look.PINK,
    "weights gathered for a moment": "#9ecae8",
}
COLUMNS = 2
WIDTH, SLIM, HEIGHT = 250, 155, 200  # of one GPU's map, in pixels; how wide it is on a phone
LEFT, HEAD, GAP = 46, 26, 12  # for letters and heights, for the GPU's name, and between maps
LETTER_ROOM = 11  # a slot lower than this has no room for its letter


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A rectangle: part of the model by bytes kept per parameter."""

    gpu: int
    kind: str
    left: float  # 0 is the first layer
    right: float  # 1 is the last
    height: float  # bytes per parameter of that part
    words: str

    def __post_init__(self) -> None:
        checks.one_of(KINDS, kind=self.kind)
        checks.fraction(left=self.left, right=self.right)
        checks.non_negative(height=self.height)


def sharding_map(
    pieces: Sequence[Piece], *, slots: Mapping[str, float], names: Sequence[str], title: str, caption: str, alt: str
) -> Figure:
    """Maps of all GPUs, two in a row; `slots` are the heights reserved for each kind, from the top, and `names` what
    stands above each map.
    """
    checks.positive(**{f"slots[{kind}]": height for kind, height in slots.items()})
    for kind in slots:
        checks.one_of(KINDS, kind=kind)
    body, slim = (
        _maps(pieces, slots, names, map_px=across, in_a_line=many) for across, many in ((WIDTH, 3), (SLIM, 2))
    )
    return Figure(title=title, caption=caption, alt=alt, body=body, slim=slim)


def _maps(
    pieces: Sequence[Piece], slots: Mapping[str, float], names: Sequence[str], *, map_px: int, in_a_line: int
) -> dict[str, Any]:
    """The view with maps of that width, and so many names of kinds in a line."""
    scale, tops, top = HEIGHT / sum(slots.values()), {}, 0.0
    for kind, height in slots.items():
        tops[kind] = top
        top += height * scale
    rows = -(-len(names) // COLUMNS)
    width, height = COLUMNS * (LEFT + map_px) + GAP // 2, rows * (HEAD + HEIGHT + GAP)
    drawn = [_drawn(piece, tops, scale, map_px) for piece in pieces]
    corners = [_corner(gpu, map_px) for gpu in range(len(names))]
    frames = [
        {"x": x, "x2": x + map_px, "y": y + tops[kind], "y2": y + tops[kind] + slots[kind] * scale}
        for x, y in corners
        for kind in slots
    ]
    tallest: dict[tuple[int, str], float] = {}
    for piece in pieces:
        if piece.kind in slots:
            tallest[piece.gpu, piece.kind] = max(piece.height, tallest.get((piece.gpu, piece.kind), 0.0))
    letters = [
        {
            "x": corners[gpu][0] - 6,
            "y": corners[gpu][1] + tops[kind] + max(height * scale, LETTER_ROOM) / 2,  # beside what is drawn
            "text": f"{kind[0].upper()} {height:.2g}",
        }
        for (gpu, kind), height in tallest.items()
        if slots[kind] * scale >= LETTER_ROOM
    ]
    headings = [{"x": x, "y": y - 8, "text": name} for (x, y), name in zip(corners, names, strict=True)]
    spread = {
        "x": _axis("x", width),
        "x2": {"field": "x2"},
        "y": _axis("y", height, reverse=True),
        "y2": {"field": "y2"},
    }
    place = {"x": spread["x"], "y": spread["y"], "text": {"field": "text"}}
    colour = nominal(
        "kind",
        scale={"domain": list(KINDS), "range": list(KINDS.values())},
        legend={"columns": in_a_line, "labelLimit": 300},
    )
    return {
        "width": width,
        "height": height,
        "layer": [
            {
                "data": {"values": frames},
                "mark": {"type": "rect", "fill": None, "stroke": look.RULE, "aria": False},
                "encoding": spread,
            },
            layer({"type": "rect", "stroke": look.PAPER, "strokeWidth": 0.6}, drawn, **spread, fill=colour, **WORDS),
            {
                "data": {"values": letters},
                "mark": {"type": "text", "align": "right", "baseline": "middle", "aria": False},
                "encoding": place,
            },
            {
                "data": {"values": headings},
                "mark": {"type": "text", "align": "left", "fontWeight": "bold", "aria": False},
                "encoding": place,
            },
        ],
    }


def _corner(gpu: int, map_px: int) -> tuple[float, float]:
    """Upper left corner of a GPU's map."""
    row, column = divmod(gpu, COLUMNS)
    return LEFT + column * (map_px + LEFT), HEAD + row * (HEAD + HEIGHT + GAP)


def _drawn(piece: Piece, tops: Mapping[str, float], scale: float, map_px: int) -> dict[str, Any]:
    x, y = _corner(piece.gpu, map_px)
    # what is gathered stands in the row of the weights
    y += tops["weights" if piece.kind not in tops else piece.kind]
    return {
        "x": x + piece.left * map_px,
        "x2": x + piece.right * map_px,
        "y": y,
        "y2": y + piece.height * scale,
        "kind": piece.kind,
        "words": piece.words,
    }


def _axis(name: str, size: float, *, reverse: bool = False) -> dict[str, Any]:
    return quantitative(name, axis=None, scale={"domain": [0, size], "nice": False, "reverse": reverse})

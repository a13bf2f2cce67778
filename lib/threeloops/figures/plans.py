"""Plans: a plan's form for a phone. Its places move together across and apart down; its words stay as large as they are
and are broken anew, to the boxes that they stand in.

A plan is a view whose axes are its own pixels. Places keep their proportions where its words fit so; else what is
between the boxes gives way first. A part that is drawn to scale stays to scale, with words turned where they are too
long.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threeloops.figures.channels import quantitative

WIDEST = 409  # pixels: with its margins 423, and shown in 358, letters of 13 are 11
LINE, PAD = 16, 4  # pixels from line to line; that words keep from the edges of their box
MOST_STRETCHED = 3.0
LEAST = 5.0  # pixels that a gap keeps
# Shares of the size that letters of Helvetica take, by the font's own table of widths; others take as much as a digit.
WIDTHS = {
    **dict.fromkeys("ijl'", 0.222),
    **dict.fromkeys("ft.,:;/!| ·", 0.278),
    **dict.fromkeys("r()-", 0.333),
    **dict.fromkeys("cksvxyzJ", 0.5),
    **dict.fromkeys("+=<>−×", 0.584),
    **dict.fromkeys("ABEKPSVXY&", 0.667),
    **dict.fromkeys("CDHNRUw", 0.722),
    **dict.fromkeys("GOQ", 0.778),
    **dict.fromkeys("mM", 0.833),
    **dict.fromkeys("W→…", 1.0),
}
DIGIT = 0.556


def length(words: str, size: float) -> float:
    """Pixels that a line takes.

    >>> round(length("WWWWW", 13)), round(length("iiiii", 13))
    (65, 14)
    """
    return size * sum(WIDTHS.get(letter, DIGIT) for letter in words)


def broken(words: str, room: float, size: float) -> list[str]:
    """Words in lines of at most so many pixels; a word that is longer has a line of its own.

    >>> broken("tensor cores", 50, 13), broken("tensor cores", 100, 13)
    (['tensor', 'cores'], ['tensor cores'])
    """
    lines: list[str] = []
    for word in words.split():
        if lines and length(f"{lines[-1]} {word}", size) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def is_boxes(view: Mapping[str, Any]) -> bool:
    """Whether a view is a plan of boxes with words in them (figures/boxes.py), and perhaps lines between them.

    >>> is_boxes({"width": 300, "layer": [{"mark": {"type": "rect"}, "encoding": {}}]})
    False
    """
    across = [layer.get("encoding", {}).get("x", {}) for layer in view.get("layer", ())]
    ends = [x.get("scale") for x in across if x.get("field") == "x"]
    placed = len(ends) == len(across) and all(isinstance(one, Mapping) for one in ends)
    return placed and bool(ends) and all(one.get("domain") == [0, view["width"]] for one in ends) and _is_written(view)


def _is_written(view: Mapping[str, Any]) -> bool:
    """Whether all words stand in the middle of a box."""
    if not all("values" in layer.get("data", {}) for layer in view["layer"]):
        return False
    rects = [_Rect.of(row) for row in _rows(view, "rect")]
    return all(any(one.carries(row) for one in rects) for row in _rows(view, "text"))


@dataclass(frozen=True, slots=True)
class _Rect:
    x: float
    x2: float
    y: float
    y2: float

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "_Rect":
        return cls(row["x"], row["x2"], row["y"], row["y2"])

    def carries(self, words: Mapping[str, Any]) -> bool:
        """Whether words stand in its middle, seen across."""
        x, y = float(words["x"]), float(words["y"])
        return self.y <= y <= self.y2 and abs(self.x + self.x2 - 2 * x) < 1

    @property
    def area(self) -> float:
        return (self.x2 - self.x) * (self.y2 - self.y)

    def holds(self, other: "_Rect") -> bool:
        return self != other and self.x <= other.x and other.x2 <= self.x2 and self.y <= other.y and other.y2 <= self.y2


@dataclass(frozen=True, slots=True)
class _Words:
    """Lines of one box, and how they stand in it."""

    rows: Sequence[Mapping[str, Any]]
    box: _Rect
    at_top: bool
    room: float  # down, before anything else stands in the box

    @property
    def text(self) -> str:
        return " ".join(str(row["text"]) for row in self.rows)


@dataclass(frozen=True, slots=True)
class _Across:
    """Where places across come to lie: each piece between two edges has a new size."""

    edges: Sequence[float]
    sizes: Sequence[float]

    def __call__(self, x: float) -> float:
        begin = 0.0
        for (low, high), size in zip(itertools.pairwise(self.edges), self.sizes, strict=True):
            if x <= high:
                return begin + (x - low) / (high - low) * size
            begin += size
        return begin


def slim(
    view: Mapping[str, Any], *, size: float, to_scale: tuple[float, float] | None = None, widest: float = WIDEST
) -> dict[str, Any] | None:
    """The view for a phone, with letters of that size; None where its words do not fit. What lies between the two
    places of `to_scale` keeps its proportions.
    """
    width = float(view["width"])
    rects = sorted({_Rect.of(row) for row in _rows(view, "rect")}, key=_area)
    groups = list(_groups(_rows(view, "text"), rects))
    plain = _Across((0.0, width), (widest,))
    if to_scale:
        ways = [(_squeezed(rects, groups, width, size, widest, to_scale), True)]
    else:
        free = _squeezed(rects, groups, width, size, widest, None)
        ways = [(plain, False), (free, False), (plain, True)]
    for across, turns in ways:
        made = across and _fitted(view, groups, across, size, turns=turns)
        if made:
            return made
    return None


def _area(rect: _Rect) -> float:
    return rect.area


def _rows(view: Mapping[str, Any], mark: str) -> list[Mapping[str, Any]]:
    return [row for layer in view["layer"] if layer["mark"]["type"] == mark for row in layer["data"]["values"]]


def _groups(rows: Sequence[Mapping[str, Any]], rects: Sequence[_Rect]) -> Iterator[_Words]:
    """Lines of text by the smallest box in whose middle they stand."""
    boxed: dict[_Rect, list[Mapping[str, Any]]] = {}
    for row in rows:
        boxed.setdefault(next(one for one in rects if one.carries(row)), []).append(row)
    for box, lines in boxed.items():
        at_top = abs(lines[0]["y"] + lines[-1]["y"] - box.y - box.y2) > 2
        inner = min([one.y for one in rects if box.holds(one)], default=box.y2) if at_top else box.y2
        yield _Words(lines, box, at_top, inner - box.y)


def _squeezed(
    rects: Sequence[_Rect],
    groups: Sequence[_Words],
    width: float,
    size: float,
    widest: float,
    to_scale: tuple[float, float] | None,
) -> _Across | None:
    """Every box as wide as its longest word at least; what is left over goes to all of them."""
    low, high = to_scale or (width, 0.0)
    ends = {0.0, width, *(rect.x for rect in rects), *(rect.x2 for rect in rects)}
    edges = sorted({edge for edge in ends if not low < edge < high} | ({low, high} if to_scale else set()))
    pieces = list(itertools.pairwise(edges))
    least = [min(end - begin, LEAST) for begin, end in pieces]
    for group in groups:
        box, word = group.box, max(length(word, size) for word in group.text.split()) + 2 * PAD
        for place, (begin, end) in enumerate(pieces):
            if box.x <= begin and end <= box.x2:
                least[place] = max(least[place], word * (end - begin) / (box.x2 - box.x))
    wanted = [max(0.0, end - begin - small) for (begin, end), small in zip(pieces, least, strict=True)]
    spare = widest - sum(least)
    if spare < 0 or not sum(wanted):
        return None
    sizes = [small + spare * more / sum(wanted) for small, more in zip(least, wanted, strict=True)]
    return _Across(edges, sizes)


def _fitted(
    view: Mapping[str, Any], groups: Sequence[_Words], across: _Across, size: float, *, turns: bool
) -> dict[str, Any] | None:
    """The view with its places moved, and stretched until all words fit; None where they do not."""
    down, written = 1.0, []
    for group in groups:
        room = across(group.box.x2) - across(group.box.x) - PAD
        lines = [line for row in group.rows for line in broken(str(row["text"]), room, size)]
        turned = any(length(line, size) > room for line in lines)
        if turned and not turns:
            return None
        if turned and room < LINE - 2 * PAD:
            continue  # as everywhere: a box that is narrower than a line has no words
        lines = [group.text] if turned else lines
        down = max(down, (length(group.text, size) + 2 * PAD if turned else LINE * len(lines) + PAD) / group.room)
        written.append((group, lines, turned))
    if down > MOST_STRETCHED:
        return None
    words = []
    for group, lines, turned in written:
        middle = (group.box.y + group.box.y2) / 2 - LINE * (len(lines) - 1) / 2 / down
        top = group.box.y + 12 / down if group.at_top else middle
        about = {**group.rows[0], "x": across((group.box.x + group.box.x2) / 2), "turned": -90 if turned else 0}
        words += [{**about, "y": top + LINE * place / down, "text": line} for place, line in enumerate(lines)]
    return _moved(view, across, down, words)


def _moved(view: Mapping[str, Any], across: _Across, down: float, words: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The view with every row at its new place across; a height is a matter of the scale."""
    layers = []
    for layer in view["layer"]:
        rows = [{k: across(v) if k in ("x", "x2") else v for k, v in row.items()} for row in layer["data"]["values"]]
        turned = {"angle": quantitative("turned", scale=None)}
        is_text = layer["mark"]["type"] == "text"
        encoding = {**layer["encoding"], **(turned if is_text else {})}
        layers.append({**layer, "data": {"values": words if is_text else rows}, "encoding": encoding})
    old, new = view["width"], across(view["width"])
    return {**view, "width": new, "height": view["height"] * down, "layer": [_ends(one, old, new) for one in layers]}


def _ends(layer: Mapping[str, Any], old: float, new: float) -> dict[str, Any]:
    """A layer whose axis across ends at the new width."""
    x = layer["encoding"]["x"]
    return {**layer, "encoding": {**layer["encoding"], "x": {**x, "scale": {**x["scale"], "domain": [0, new]}}}}

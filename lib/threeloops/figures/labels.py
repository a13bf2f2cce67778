"""Labels: names of points, each beside or below its point, so that none covers another, a point, or a line that was
there before it.

All places are in pixels from the left and from the top.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

ROW = 15  # from one line of text to the next
LETTER = 6.6  # width of a letter, on average
GAP = 8  # between a point and its name
MARK = 6  # from the middle of a point to its edge
STEP, ABOVE, BELOW = 5, 30, 150  # rows that are tried: how far apart, and how far from the point
ROUNDS = 3  # how often at most every name is placed, each time knowing where all the others are

# What it costs to cover something, in pixels of distance between a point and its name.
OUTSIDE, TEXT, POINT, LEADER, LINE = 10_000.0, 3000.0, 400.0, 300.0, 110.0  # a text costs more than many leaders
EDGE = 4  # pixels by which a name may cross the edge of the plot


class Box(NamedTuple):
    """An upright rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def crossed(self, line: "Line") -> bool:
        """Whether any of a straight line lies inside.

        >>> box = Box(left=0, top=0, right=10, bottom=10)
        >>> box.crossed(Line(-5, 5, 15, 5)), box.crossed(Line(-5, 12, 15, 12)), box.crossed(Line(-5, 8, 2, 15))
        (True, False, False)
        """
        if (
            line.y1 < self.top > line.y2
            or line.y1 > self.bottom < line.y2
            or line.x1 < self.left > line.x2
            or line.x1 > self.right < line.x2
        ):
            return False
        begin, end = 0.0, 1.0  # the part of the line that is inside so far
        for start, run, low, high in (
            (line.x1, line.x2 - line.x1, self.left, self.right),
            (line.y1, line.y2 - line.y1, self.top, self.bottom),
        ):
            if run == 0:
                if not low < start < high:
                    return False
                continue
            enter, leave = sorted(((low - start) / run, (high - start) / run))
            begin, end = max(begin, enter), min(end, leave)
        return begin < end


class Line(NamedTuple):
    """A straight line that a name had better not cover."""

    x1: float
    y1: float
    x2: float
    y2: float


class Mark(NamedTuple):
    """A point and its name."""

    x: float
    y: float
    name: str

    @property
    def box(self) -> Box:
        return Box(left=self.x - MARK, top=self.y - MARK, right=self.x + MARK, bottom=self.y + MARK)


class Spot(NamedTuple):
    """Where a name stands: the middle of its line of text, and the side of its point (1 right, -1 left)."""

    row: float
    side: int

    def text(self, mark: Mark) -> Box:
        near, far = mark.x + self.side * GAP, mark.x + self.side * (GAP + LETTER * len(mark.name))
        return Box(left=min(near, far), top=self.row - ROW / 2, right=max(near, far), bottom=self.row + ROW / 2)

    def leader(self, mark: Mark) -> Box:
        return Box(left=mark.x - 1, top=min(mark.y, self.row), right=mark.x + 1, bottom=max(mark.y, self.row))


def beside(
    marks: Sequence[Mark], *, width: float, height: float, taken: Sequence[Box] = (), lines: Sequence[Line] = ()
) -> list[Spot]:
    """A spot for every mark, in the order given: close to its point, inside the plot, clear of everything else as far
    as there is room.

    `taken` are texts, `lines` strokes that were there before. What must be covered is covered in this order: lines,
    leaders, points, texts.

    >>> near, far = Mark(x=100, y=50, name="near"), Mark(x=100, y=52, name="far")
    >>> [(spot.row, spot.side) for spot in beside([near, far], width=550, height=330)]
    [(50, 1), (52, -1)]
    """
    spots: list[Spot] = []
    inside = Box(left=-EDGE, top=0, right=width + EDGE, bottom=height)
    for _ in range(ROUNDS):
        worst = 0.0
        for place, mark in enumerate(marks):
            others = [(other, spot) for n, (other, spot) in enumerate(zip(marks, spots, strict=False)) if n != place]
            texts = [*taken, *(spot.text(other) for other, spot in others)]
            # nearer points cover each other anyway
            points = [other.box for other in marks if abs(other.x - mark.x) > MARK or abs(other.y - mark.y) > MARK]
            leaders = [spot.leader(other) for other, spot in others]
            best, cost = _best(mark, inside, texts, points, leaders, lines)
            spots[place : place + 1] = [best]
            worst = max(worst, cost)
        if worst < LEADER:  # no name covers another
            break
    return spots


def _best(
    mark: Mark, inside: Box, texts: Sequence[Box], points: Sequence[Box], leaders: Sequence[Box], lines: Sequence[Line]
) -> tuple[Spot, float]:
    """The spot that costs least, and what it costs. Spots are tried from the nearest, until distance alone costs more
    than the best so far.
    """
    # a name so close to a point would seem its own
    near = [Box(box.left - GAP, box.top, box.right + GAP, box.bottom) for box in points]
    name = {side: Spot(mark.y, side).text(mark) for side in (1, -1)}
    out = {side: OUTSIDE * (box.left < inside.left or box.right > inside.right) for side, box in name.items()}
    beside = {
        side: _level(box.left, box.right, ((texts, TEXT), (near, POINT), (leaders, LEADER)))
        for side, box in name.items()
    }
    under = _level(mark.x - 1, mark.x + 1, ((texts, LEADER), (points, LEADER)))
    best, least = Spot(mark.y, 1), math.inf
    for distance, row, side in _TRIED:
        if distance >= least:
            break
        top, bottom = mark.y + row - ROW / 2, mark.y + row + ROW / 2
        cost = (
            distance
            + out[side]
            + OUTSIDE * (top < inside.top or bottom > inside.bottom)
            + _covered(top, bottom, beside[side])
        )
        if cost < least and row:
            cost += _covered(min(mark.y, mark.y + row), max(mark.y, mark.y + row), under)
        if cost < least:
            text = Box(name[side].left, top, name[side].right, bottom)
            cost += LINE * sum([text.crossed(line) for line in lines])
        if cost < least:
            best, least = Spot(mark.y + row, side), cost
    return best, least


def _level(left: float, right: float, costs: Sequence[tuple[Sequence[Box], float]]) -> list[tuple[float, float, float]]:
    """Top, bottom and cost of every box that something between left and right can cover, at some height."""
    return [
        (box.top, box.bottom, cost) for boxes, cost in costs for box in boxes if box.left < right and left < box.right
    ]


def _covered(top: float, bottom: float, level: Sequence[tuple[float, float, float]]) -> float:
    return sum([cost for high, low, cost in level if high < bottom and top < low])


def _distances() -> list[tuple[float, float, int]]:
    """Every place of a name that is tried: what its distance costs, its row below the point, its side. Below and to
    the right is a little better.
    """
    rows = [*range(0, BELOW + 1, STEP), *range(-STEP, -ABOVE - 1, -STEP)]
    return sorted((abs(row) + (row < 0) + 2 * (side < 0), row, side) for row in rows for side in (1, -1))


_TRIED = _distances()

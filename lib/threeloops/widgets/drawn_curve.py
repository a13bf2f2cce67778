"""A curve that the reader draws before it appears: by pointer across the chart, or point by point with sliders. What
was drawn is compared with the curve as it is, and with the curves that usual mistakes would draw.

The questions are in inner_loop/drawn_rate.py, inner_loop/drawn_speedup.py and product_loop/drawn_wait.py.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

from threeloops.figures.curves import Axis
from threeloops.figures.drawn_curve import drawn_curve
from threeloops.widgets.controls import Control, Drag, menu, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.view import View

POINTS, HEIGHTS = 6, 61
CLOSE, LIKE = 1.25, 1.5  # so many times off at most: as good as right; and: the same mistake
MINE, TRUE = "drawn", "as it is"
COLUMNS = ("at", MINE, TRUE)

Curve = Callable[[float], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be drawn: a positive quantity over six places, on a logarithmic axis."""

    asked: str  # the title while nothing is shown
    about: str  # the caption
    answer: str  # the title once the curve is shown
    at: tuple[float, ...]
    x: Axis
    y: Axis
    unit: Callable[[float], str]  # a height in words
    truth: Curve
    slips: Mapping[str, Curve]  # what to tell whoever drew this curve

    def __post_init__(self) -> None:
        if len(self.at) != POINTS or self.y.low is None or self.y.high is None:
            raise ValueError(f"{len(self.at)} places; a question has {POINTS}, and an axis with both its ends")

    @property
    def heights(self) -> tuple[float, ...]:
        """Where a point can stand: from the lower end of the axis to the upper."""
        low, high = float(self.y.low or 0), float(self.y.high or 0)
        return tuple(low * (high / low) ** (step / (HEIGHTS - 1)) for step in range(HEIGHTS))

    def values(self, curve: Curve) -> tuple[float, ...]:
        """A curve at the places that are asked for."""
        return tuple(curve(place) for place in self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the points stand, and whether the curve is shown beside them."""

    p1: float
    p2: float
    p3: float
    p4: float
    p5: float
    p6: float
    shown: bool = False

    @property
    def drawn(self) -> tuple[float, ...]:
        return (self.p1, self.p2, self.p3, self.p4, self.p5, self.p6)


NAMES = tuple(field.name for field in fields(State))[:POINTS]


def flat(question: Question) -> State:
    """Nothing drawn yet: every point at the lower end."""
    low = question.heights[0]
    return State(p1=low, p2=low, p3=low, p4=low, p5=low, p6=low)


def untouched(question: Question, drawn: Sequence[float]) -> bool:
    """Whether every point is where it began."""
    return set(drawn) == {question.heights[0]}


def farthest(one: Sequence[float], other: Sequence[float]) -> float:
    """How many times apart two curves are at the worst place.

    >>> farthest((1, 2), (1, 8))
    4.0
    """
    return max(math.exp(abs(math.log(a / b))) for a, b in zip(one, other, strict=True))


def verdict(question: Question, drawn: Sequence[float]) -> str:
    """What to say of a drawn curve."""
    if untouched(question, drawn):
        return "You have drawn nothing yet."
    truth = question.values(question.truth)
    off = farthest(drawn, truth)
    if off <= CLOSE:
        return f"Right: within {math.ceil(100 * (off - 1))} % everywhere."
    apart = {told: farthest(drawn, question.values(curve)) for told, curve in question.slips.items()}
    told = min(apart, key=lambda one: apart[one])
    if apart[told] < min(LIKE, off):
        return told
    worst = max(range(POINTS), key=lambda place: farthest(drawn[place : place + 1], truth[place : place + 1]))
    more = "much" if drawn[worst] > truth[worst] else "little"
    return (
        f"Farthest off at {question.at[worst]:g}: you drew {question.unit(drawn[worst])}, it is"
        f" {question.unit(truth[worst])}. That is {off:.2g} times too {more}."
    )


def view(question: Question, state: State) -> View:
    """What to show for a state."""
    truth = question.values(question.truth)
    lines = {MINE: state.drawn} | ({TRUE: truth} if state.shown else {})
    title = question.answer if state.shown else question.asked
    figure = drawn_curve(
        question.at,
        lines,
        x=question.x,
        y=question.y,
        unit=question.unit,
        title=title,
        caption=question.about,
        empty=untouched(question, state.drawn),
    )
    said = verdict(question, state.drawn) if state.shown else "Draw across the chart, or turn the sliders; then look."
    rows = tuple(
        (f"{at:g}", question.unit(mine), question.unit(real) if state.shown else "…")
        for at, mine, real in zip(question.at, state.drawn, truth, strict=True)
    )
    return View(columns=COLUMNS, figure=figure, summary=said, rows=rows)


def controls(question: Question) -> tuple[Control, ...]:
    """A slider for each point, and what shows the curve."""
    heights = tuple((question.unit(height), height) for height in question.heights)
    points = (slider(name, f"at {at:g}", heights) for name, at in zip(NAMES, question.at, strict=True))
    return (*points, menu("shown", "the curve", {"not yet": False, "show it beside mine": True}))


def drags(question: Question, state: State) -> tuple[Drag, ...]:
    """Every point can be drawn over."""
    return tuple(
        Drag(control=name, along="y", places=question.heights, hold=((at, height),), drawn=True)
        for name, at, height in zip(NAMES, question.at, state.drawn, strict=True)
    )


def drawing(question: Question) -> Explorer[State]:
    """The explorer of a question, with nothing drawn: so it stands as a picture, too, which gives nothing away."""
    return Explorer(
        flat(question),
        view=lambda state: view(question, state),
        controls=lambda state: controls(question),
        drags=lambda state: drags(question, state),
    )

"""Lines: functions w * x + b, what their sums, products and compositions are, and when the result is a line again.

>>> f, g = Line(3, -1), Line(1, 2)
>>> summed(f, g), composed(f, g)
(Line(slope=4, intercept=1), Line(slope=3, intercept=5))
>>> product(f, g)
Parabola(square=3, slope=5, intercept=-2)
"""

from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True)
class Line:
    """A linear model of one input: the parameters are slope and intercept, the variable is x."""

    slope: float
    intercept: float

    def __post_init__(self) -> None:
        checks.number(slope=self.slope, intercept=self.intercept)

    def __call__(self, x: float) -> float:
        return self.slope * x + self.intercept


@dataclass(frozen=True, slots=True)
class Parabola:
    """square * x^2 + slope * x + intercept; a line where square is 0."""

    square: float
    slope: float
    intercept: float

    def __call__(self, x: float) -> float:
        return self.square * x**2 + self.slope * x + self.intercept

    @property
    def bends(self) -> bool:
        """False where it is a line after all."""
        return self.square != 0


def summed(f: Line, g: Line) -> Line:
    """f(x) + g(x): slopes add, intercepts add."""
    return Line(f.slope + g.slope, f.intercept + g.intercept)


def composed(outer: Line, inner: Line) -> Line:
    """outer(inner(x)), always a line.

    Formula:  slope = outer.slope * inner.slope; intercept = outer.slope * inner.intercept + outer.intercept
    Source:   by definition of a composition
    Counted:  tests.foundations.test_foundations_formulas.test_combined_lines_answer_as_their_functions_do
    """
    return Line(outer.slope * inner.slope, outer.slope * inner.intercept + outer.intercept)


def product(f: Line, g: Line) -> Parabola:
    """f(x) * g(x).

    Formula:  square = f.slope * g.slope; slope = f.slope * g.intercept + f.intercept * g.slope; intercept =
              f.intercept * g.intercept
    Assumes:  nothing; a parabola that bends only if both slopes differ from 0
    Source:   by definition of a product of functions
    Counted:  tests.foundations.test_foundations_formulas.test_combined_lines_answer_as_their_functions_do

    >>> product(Line(3, -1), Line(0, 2)).bends
    False
    """
    return Parabola(f.slope * g.slope, f.slope * g.intercept + f.intercept * g.slope, f.intercept * g.intercept)

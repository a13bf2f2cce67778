"""How exact an answer has to be. What is measured is right within a tolerance. What is counted is right or it is not:
with 70 of 71 replicas the queue grows, and of 133 requests where 132 fit one is out of memory.

>>> measured, replicas = Exactness(tolerance=0.02), Exactness(whole="up", tolerance=0.02)
>>> measured.takes(70, 71), replicas.takes(70, 71), replicas.takes(71, 71)
(True, False, True)
>>> replicas.beside(70, 71).slip
'too-few'
"""

import math
from dataclasses import dataclass

from threeloops.units import MB

WHOLE = ("up", "down", "exact")  # what is needed, what there is room for, what simply is so many
LOOSE = ("", "bound", "digits")
DIGITS = (4, 5, 6)  # to which a long count may be rounded
_HALF_A_DIGIT = 0.0005  # of four digits
_LAST = 1e-9  # what a float may be off by and still be a whole number


@dataclass(frozen=True, slots=True)
class Beside:
    """A count that is not the one: which mistake that is, and what is said of it."""

    slip: str
    story: str


TOO_FEW = Beside("too-few", "Too few: less than what is needed is not enough, so it is rounded up.")
TOO_MANY = Beside("too-many", "Too many: there is no room for a part of the next one, so it is rounded down.")
ONE_MORE = Beside("one-too-many", "More than are needed: one less is enough.")
ONE_LESS = Beside("one-too-few", "Fewer than there is room for: one more still fits.")
OFF_BY_ONE = Beside("off-by-one", "Beside it by one: is a first or a last one left out, or counted twice?")
NOT_WHOLE = Beside("not-whole", "These come whole: an answer with a fraction is none.")
NEAR = Beside("not-exact", "Close, but these are counted, and a count has to be exact.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exactness:
    """What counts as right beside the answer itself.

    `whole` says that the answer counts things, and how it is rounded (WHOLE). A count is exact, unless it is `loose`:
    a bound may be met from the safe side within the tolerance (more than is needed, less than there is room for), and
    a count with many digits may be rounded to four of them.
    """

    tolerance: float
    whole: str = ""
    loose: str = ""

    def span(self, target: float) -> tuple[float, float]:
        """The lowest and the highest number that are right.

        >>> Exactness(whole="up", loose="bound", tolerance=0.02).span(1000)
        (1000.0, 1020.0)
        """
        less, more = self._margins()
        low, high = sorted((target * (1 - less), target * (1 + more)))
        return float(low), float(high)

    def _margins(self) -> tuple[float, float]:
        """How much smaller and how much larger than the answer, as shares of it."""
        if not self.whole:
            return self.tolerance, self.tolerance
        if self.loose == "digits":
            return _HALF_A_DIGIT, _HALF_A_DIGIT
        beyond = self.tolerance if self.loose == "bound" else 0.0
        return beyond * (self.whole == "down"), beyond * (self.whole == "up")

    def takes(self, value: float, target: float) -> bool:
        """Whether it is right. Of a count with many digits only what is rounded may be beside it: who writes all of
        them out means each.
        """
        if not self.whole:
            return abs(value - target) <= self.tolerance * abs(target)
        if math.isclose(value, target, rel_tol=_LAST):
            return True
        if self.loose == "digits":
            rounded = any(value == float(f"{target:.{digits}g}") for digits in DIGITS)
            return target >= MB and rounded and abs(value - target) > 1
        low, high = self.span(target)
        return is_whole(value) and low <= value <= high

    def beside(self, value: float, target: float) -> Beside | None:
        """What a count is that is nearly the one: by one, or within the tolerance."""
        by_one = math.isclose(abs(value - target), 1, rel_tol=1e-6)
        if not self.whole or not (by_one or abs(value - target) <= self.tolerance * abs(target)):
            return None
        if not is_whole(value):
            return NOT_WHOLE
        if self.whole == "exact":
            return OFF_BY_ONE if by_one else NEAR
        if value < target:
            return TOO_FEW if self.whole == "up" else ONE_LESS if by_one else NEAR
        return TOO_MANY if self.whole == "down" else ONE_MORE if by_one else NEAR

    @property
    def told(self) -> str:
        """The same in words, for the question.

        >>> Exactness(tolerance=0.02).told, Exactness(whole="exact", tolerance=0.02).told
        ('within 2 % counts as right', 'it has to be exact')
        """
        percent = f"{100 * self.tolerance:g} %"
        if not self.whole:
            return f"within {percent} counts as right"
        if self.loose == "digits":
            return "it has to be exact; from a million on four digits are enough"
        if self.loose and self.whole != "exact":
            more, less = ("more", "less") if self.whole == "up" else ("less", "more")
            return f"up to {percent} {more} counts as right, {less} does not"
        return "it has to be exact"


def is_whole(value: float) -> bool:
    """Whether nothing is left over but what a float forgets."""
    return math.isclose(value, round(value), rel_tol=_LAST)

"""Bit patterns, read one bit after the other: every number of a small format by enumeration, and rounding by looking
for the nearest.

Knows no formula for a format's range, spacing or rounding. Numbers are exact fractions until they are handed out.

>>> [float(number.value) for number in numbers(exponent_bits=2, mantissa_bits=1, specials="none")[:8]]
[0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One pattern and what it says: a fraction, or None for infinity and NaN."""

    pattern: str  # sign, exponent, mantissa, as zeros and ones
    value: Fraction | None


def read(pattern: str, *, exponent_bits: int, specials: str) -> Number:
    """What one pattern says, bit by bit.

    >>> float(read("01111110", exponent_bits=4, specials="nan").value)
    448.0
    """
    sign, exponent, mantissa = pattern[0], pattern[1 : 1 + exponent_bits], pattern[1 + exponent_bits :]
    if "0" not in exponent and (specials == "infinity" or (specials == "nan" and "0" not in mantissa)):
        return Number(pattern=pattern, value=None)
    stored = 0
    for bit in exponent:
        stored = stored + stored + int(bit)
    middle = sum(1 << place for place in range(exponent_bits - 1))  # 0111…1 stands for the power 0
    leading = 1 if "1" in exponent else 0
    digits = leading  # read as a whole number first, the point moved afterwards
    for bit in mantissa:
        digits = digits + digits + int(bit)
    power = (stored - middle if leading else 1 - middle) - len(mantissa)
    value = Fraction(digits << power) if power >= 0 else Fraction(digits, 1 << -power)
    return Number(pattern=pattern, value=-value if sign == "1" else value)


def numbers(*, exponent_bits: int, mantissa_bits: int, specials: str) -> list[Number]:
    """Every pattern of a format, in the order of the patterns."""
    patterns = ("".join(bits) for bits in product("01", repeat=1 + exponent_bits + mantissa_bits))
    return [read(pattern, exponent_bits=exponent_bits, specials=specials) for pattern in patterns]


class Grid:
    """All finite numbers of a format at zero or above, in order, and a rounding that only looks for the nearest of
    them.
    """

    def __init__(self, found: Sequence[Number]) -> None:
        finite = sorted(
            (number.value, number.pattern) for number in found if number.value is not None and number.pattern[0] == "0"
        )
        self.values = [value for value, _ in finite]
        self.patterns = [pattern for _, pattern in finite]

    def nearest(self, value: float | Fraction) -> Fraction:
        """The nearest number, the last one beyond the end; halfway between two, the one whose pattern ends in 0."""
        size = abs(Fraction(value))
        place = bisect_left(self.values, size)
        around = [near for near in (place - 1, place) if 0 <= near < len(self.values)]
        best = min(around, key=lambda near: (abs(self.values[near] - size), self.patterns[near][-1]))
        return self.values[best] if value >= 0 else -self.values[best]

    def pattern(self, value: float | Fraction) -> str:
        """The bits of the nearest number."""
        bits = self.patterns[self.values.index(abs(self.nearest(value)))]
        return ("1" if value < 0 else "0") + bits[1:]

    def running_sum(self, terms: Sequence[float]) -> float:
        """Terms added one by one, each sum put back on the grid."""
        total = Fraction(0)
        for term in terms:
            total = self.nearest(total + self.nearest(term))
        return float(total)

"""Number formats: what a sign, an exponent and a mantissa can and cannot say.

A format of e exponent and m mantissa bits writes a number as ±1.mmm × 2^exponent. The exponent bits buy range, the
mantissa bits buy precision, and between two powers of two the representable numbers stand evenly, 2^m of them,
whatever the powers are.

>>> BF16.largest, FP16.largest, E4M3.largest
(3.3895313892515355e+38, 65504.0, 448.0)
>>> rounded(256 + 1, BF16, overflow="special")
256.0

Source: IEEE 754-2019 (fp64, fp32, fp16); Kalamkar et al., 2019, arXiv:1905.12322 (bf16); Micikevicius et al., 2022,
        arXiv:2209.05433 (E4M3, E5M2);
OCP Microscaling Formats (MX) v1.0, 2023, section 5.3 (E3M2, E2M3, E2M1)
"""

import math
from dataclasses import dataclass

from threeloops import checks

# What the patterns with the largest exponent mean: infinity and NaN as in IEEE 754; one NaN and otherwise numbers;
# numbers only.
SPECIALS = ("infinity", "nan", "none")
# What becomes of a number that is too large: the format's infinity (or NaN), or its largest number. Libraries and
# chips differ, and so do their versions.
OVERFLOWS = ("special", "saturate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A binary floating-point format: one sign bit, then the exponent, then the mantissa."""

    name: str
    exponent_bits: int
    mantissa_bits: int  # as stored; the 1 before the point is not stored
    specials: str = "infinity"

    def __post_init__(self) -> None:
        checks.count(exponent_bits=self.exponent_bits, at_least=2)
        checks.count(mantissa_bits=self.mantissa_bits)
        checks.one_of(SPECIALS, specials=self.specials)

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def bias(self) -> int:
        """What is subtracted from the stored exponent, so that it can say negative powers too."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def largest_exponent(self) -> int:
        """The power of two below the largest number; IEEE gives one exponent away to infinity and NaN."""
        return (1 << self.exponent_bits) - 1 - self.bias - (self.specials == "infinity")

    @property
    def largest(self) -> float:
        """The largest finite number: all ones, or one step less where all ones mean NaN."""
        steps_below_two = 2 if self.specials == "nan" else 1
        return (2 - steps_below_two * self.epsilon) * 2.0**self.largest_exponent

    @property
    def smallest_normal(self) -> float:
        """Below this the leading 1 is gone, and every halving costs a bit of precision."""
        return 2.0 ** (1 - self.bias)

    @property
    def smallest_subnormal(self) -> float:
        """The smallest number above zero; half of it, and all below, rounds to zero."""
        return self.smallest_normal * self.epsilon

    @property
    def epsilon(self) -> float:
        """The gap between 1 and the next number."""
        return 2.0**-self.mantissa_bits

    @property
    def decimal_digits(self) -> float:
        """Significant decimal digits, the leading 1 counted as a bit: log10 of 2^(mantissa bits + 1)."""
        return (self.mantissa_bits + 1) * math.log10(2)


FP64 = Format(name="FP64", exponent_bits=11, mantissa_bits=52)
FP32 = Format(name="FP32", exponent_bits=8, mantissa_bits=23)
TF32 = Format(name="TF32", exponent_bits=8, mantissa_bits=10)  # inside tensor cores only: stored and moved as FP32
BF16 = Format(name="BF16", exponent_bits=8, mantissa_bits=7)
FP16 = Format(name="FP16", exponent_bits=5, mantissa_bits=10)
E5M2 = Format(name="E5M2", exponent_bits=5, mantissa_bits=2)
E4M3 = Format(name="E4M3", exponent_bits=4, mantissa_bits=3, specials="nan")
E3M2 = Format(name="E3M2", exponent_bits=3, mantissa_bits=2, specials="none")
E2M3 = Format(name="E2M3", exponent_bits=2, mantissa_bits=3, specials="none")
E2M1 = Format(name="E2M1", exponent_bits=2, mantissa_bits=1, specials="none")
FORMATS = {form.name: form for form in (FP64, FP32, TF32, BF16, FP16, E5M2, E4M3, E3M2, E2M3, E2M1)}


def _gap(value: float, form: Format) -> float:
    """The gap above |value| on a grid that never ends, so that overflow can be told from rounding."""
    exponent = math.frexp(abs(value))[1] - 1 if value else 1 - form.bias
    return math.ldexp(1.0, max(exponent, 1 - form.bias) - form.mantissa_bits)


def spacing(value: float, form: Format) -> float:
    """The gap between |value| and the next larger number of the format.

    Formula:  2^(exponent of value - mantissa bits), and never less than the smallest subnormal
    Raises:   ValueError beyond the largest number
    Counted:  simulate.inner_loop.bit_patterns.numbers

    >>> spacing(1.0, BF16), spacing(255.0, BF16), spacing(256.0, BF16)
    (0.0078125, 1.0, 2.0)
    """
    checks.number(value=value)
    if abs(value) > form.largest:
        raise ValueError(f"value={value!r} lies beyond {form.name}, which ends at {form.largest!r}")
    return _gap(value, form)


def numbers_up_to(value: float, form: Format) -> int:
    """How many numbers of the format lie above zero and not above a value.

    Formula:  (exponent - smallest exponent) × 2^(mantissa bits) + floor(value / spacing): every power of two brings
              the same number of them
    Raises:   ValueError below zero, or beyond the largest number
    Counted:  simulate.inner_loop.bit_patterns.numbers

    >>> numbers_up_to(2.0, E4M3) - numbers_up_to(1.0, E4M3), numbers_up_to(448.0, E4M3)
    (8, 126)
    """
    checks.non_negative(value=value)
    gap = spacing(value, form)
    powers = round(math.log2(gap / form.smallest_subnormal))
    return (powers << form.mantissa_bits) + math.floor(value / gap)


def number_at(place: int, form: Format) -> float:
    """The format's number at that place, counted upwards from zero: numbers_up_to read backwards.

    >>> [number_at(place, E2M1) for place in range(8)]
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    """
    checks.count(place=place, at_least=0)
    if place > numbers_up_to(form.largest, form):
        raise ValueError(
            f"place={place!r} lies beyond {form.name}, which has {numbers_up_to(form.largest, form):,} numbers above"
            " zero"
        )
    powers = max(0, (place >> form.mantissa_bits) - 1)
    return math.ldexp(form.smallest_subnormal, powers) * (place - (powers << form.mantissa_bits))


def rounded(value: float, form: Format, *, overflow: str) -> float:
    """The format's nearest number; halfway between two, the one whose last bit is 0.

    Assumes:  the value is exact in fp64. overflow="special" is IEEE 754's rule (from half a gap beyond the largest
              number on), "saturate" keeps the largest
    Raises:   ValueError for "special" in a format that has neither infinity nor NaN
    Source:   IEEE 754-2019, sections 4.3.1 (roundTiesToEven) and 7.4 (overflow); Micikevicius et al., 2022,
              arXiv:2209.05433, section 3.1

    >>> (
    ...     rounded(0.1, E4M3, overflow="special"),
    ...     rounded(65520, FP16, overflow="special"),
    ...     rounded(65520, FP16, overflow="saturate"),
    ... )
    (0.1015625, inf, 65504.0)
    """
    checks.number(value=value)
    checks.one_of(OVERFLOWS, overflow=overflow)
    gap = _gap(value, form)
    nearest = round(value / gap) * gap  # Python rounds halves to even, as IEEE 754 does
    if abs(nearest) > form.largest:
        nearest = form.largest if overflow == "saturate" else _beyond(value, form)
    return math.copysign(nearest, value)


def _beyond(value: float, form: Format) -> float:
    if form.specials == "none":
        raise ValueError(
            f"value={value!r} lies beyond {form.name}, which ends at {form.largest!r} and has no infinity; use"
            " overflow='saturate'"
        )
    return math.inf if form.specials == "infinity" else math.nan


def added(one: float, other: float, form: Format, *, overflow: str) -> float:
    """The sum as the format keeps it: exact, then rounded once.

    Assumes:  two numbers of the format, and a format of at most 24 significant bits: then the way over fp64 rounds to
              the same number as one step would
    Source:   Figueroa, "When is double rounding innocuous?", ACM SIGNUM Newsletter 30(3), 1995,
              doi:10.1145/221332.221334

    >>> added(1.0, 0.001, BF16, overflow="special")
    1.0
    """
    return rounded(one + other, form, overflow=overflow)


def swallowed_below(weight: float, form: Format) -> float:
    """Updates smaller than this, away from zero, leave the weight as it was.

    Formula:  spacing(weight) / 2
    Assumes:  round to nearest. Towards zero from a power of two the limit is half of this, because the gap below is
              half as wide
    Measured: measure.inner_loop.number_formats.running_sum

    >>> swallowed_below(0.01, BF16)
    3.0517578125e-05
    """
    return spacing(weight, form) / 2


def swallowed_from(update: float, form: Format) -> float:
    """The power of two from which on no weight notices an update of this size.

    Formula:  2^(exponent of the update + mantissa bits + 2): the first gap that is more than twice the update
    Assumes:  round to nearest, an update away from zero, and weights inside the normal range
    Measured: measure.inner_loop.number_formats.cast

    >>> swallowed_from(0.001, BF16), swallowed_from(0.001, FP16)
    (0.5, 4.0)
    """
    checks.positive(update=update)
    return 2.0 ** (math.frexp(update)[1] + 1 + form.mantissa_bits)


def counting_limit(form: Format) -> float:
    """Where a sum of ones stops growing: the first whole number whose successor is missing.

    Formula:  2^(mantissa bits + 1)
    Assumes:  one addition at a time, each rounded to nearest even
    Raises:   ValueError for a format that ends before (E2M3)
    Counted:  simulate.inner_loop.bit_patterns.numbers
    Measured: measure.inner_loop.number_formats.running_sum

    >>> counting_limit(BF16), counting_limit(FP16), counting_limit(FP32)
    (256.0, 2048.0, 16777216.0)
    """
    limit = 2.0 ** (form.mantissa_bits + 1)
    if limit > form.largest:
        raise ValueError(
            f"{form.name} ends at {form.largest!r}, before its counting limit of {limit!r}; a sum in it overflows first"
        )
    return limit


def stochastically_rounded(value: float, form: Format, *, draw: float) -> float:
    """One of the two neighbours, each with the probability that makes the average right; `draw` is a uniform random
    number from [0, 1).

    Formula:  up if draw < (value - lower) / gap, so that the mean over draws is the value itself
    Raises:   ValueError beyond the largest number: scale first
    Source:   Gupta et al., 2015, arXiv:1502.02551, section 3.1
    Counted:  tests.inner_loop.test_number_formats.test_stochastic_rounding_keeps_the_mean_and_the_format

    >>> [stochastically_rounded(1.002, BF16, draw=draw) for draw in (0.1, 0.25, 0.3, 0.9)]
    [1.0078125, 1.0078125, 1.0, 1.0]
    """
    gap = spacing(value, form)
    if not 0 <= draw < 1:
        raise ValueError(f"draw={draw!r} must be at least 0 and below 1")
    lower = math.floor(value / gap)
    return (lower + (draw < value / gap - lower)) * gap


def move_chance(*, update: float, weight: float, form: Format) -> float:
    """The chance that an update moves a weight under stochastic rounding; of many weights, the share that moves on
    average.

    Formula:  min(1, update / spacing(weight))
    Assumes:  a weight that is a number of the format, an update away from zero
    Raises:   ValueError for an update that is not positive, or a weight beyond the largest number
    Source:   Gupta et al., 2015, arXiv:1502.02551, section 3.1
    Counted:  tests.inner_loop.test_number_formats.test_as_many_coins_move_a_weight_as_the_chance_says

    >>> move_chance(update=0.001, weight=3.0, form=BF16)
    0.064
    """
    checks.positive(update=update)
    return min(1.0, update / spacing(weight, form))

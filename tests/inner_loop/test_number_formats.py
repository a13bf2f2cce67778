"""Formats against enumeration of every pattern, and both against torch's own dtypes."""

import itertools
import math
import random
from fractions import Fraction
from functools import cache

import pytest

from threeloops.inner_loop import number_formats as formats
from threeloops.measure.inner_loop import number_formats as torch_formats
from threeloops.simulate.inner_loop import bit_patterns

SMALL = [formats.E5M2, formats.E4M3, formats.E3M2, formats.E2M3, formats.E2M1]
ENUMERATED = [formats.BF16, formats.FP16, *SMALL]
IN_TORCH = [formats.BF16, formats.FP16, formats.E5M2, formats.E4M3]
by_name = {"ids": lambda form: form.name}


@cache
def enumerated(form: formats.Format) -> list[bit_patterns.Number]:
    return bit_patterns.numbers(
        exponent_bits=form.exponent_bits, mantissa_bits=form.mantissa_bits, specials=form.specials
    )


@cache
def positive(form: formats.Format) -> list[Fraction]:
    return sorted(number.value for number in enumerated(form) if number.value is not None and number.value > 0)


@pytest.mark.parametrize(
    ("form", "largest", "normal", "subnormal"),
    [
        # 2209.05433, table 1: E4M3 largest 448 = 1.75 × 2^8, normal 2^-6, subnormal 2^-9; E5M2 57,344 = 1.75 × 2^15,
        # 2^-14, 2^-16
        (formats.E4M3, 448, 2**-6, 2**-9),
        (formats.E5M2, 57344, 2**-14, 2**-16),
        # OCP MX v1.0, tables 3 to 5: 28, 7.5 and 6; normals 0.25, 1 and 1; subnormals 0.0625, 0.125 and 0.5
        (formats.E3M2, 28, 0.25, 0.0625),
        (formats.E2M3, 7.5, 1, 0.125),
        (formats.E2M1, 6, 1, 0.5),
        # IEEE 754 binary16: 65,504 = 2047 × 2^5, normal 2^-14, subnormal 2^-24
        (formats.FP16, 65504, 2**-14, 2**-24),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_published_ends_of_the_range(form: formats.Format, largest: float, normal: float, subnormal: float) -> None:
    assert (form.largest, form.smallest_normal, form.smallest_subnormal) == (largest, normal, subnormal)


@pytest.mark.parametrize("form", ENUMERATED, **by_name)
def test_ends_of_the_range_are_those_of_the_enumeration(form: formats.Format) -> None:
    line = positive(form)
    assert line[0] == form.smallest_subnormal
    assert line[-1] == form.largest
    assert min(b for a, b in itertools.pairwise(line) if a == 1) - 1 == form.epsilon


@pytest.mark.parametrize("form", [formats.FP64, formats.FP32], **by_name)
def test_wide_formats_are_those_of_the_machine(form: formats.Format) -> None:
    torch = pytest.importorskip("torch", exc_type=ModuleNotFoundError)
    known = torch.finfo(torch_formats.DTYPES[form.name.lower()])
    assert (form.largest, form.smallest_normal, form.epsilon) == (known.max, known.smallest_normal, known.eps)
    assert form.smallest_subnormal == (math.ulp(0.0) if form is formats.FP64 else 2.0**-149)


@pytest.mark.parametrize("form", ENUMERATED, **by_name)
def test_spacing_is_the_distance_to_the_next_number(form: formats.Format) -> None:
    for value, following in itertools.pairwise([Fraction(0), *positive(form)]):
        assert formats.spacing(float(value), form) == following - value


@pytest.mark.parametrize("form", ENUMERATED, **by_name)
def test_places_are_those_of_the_enumeration(form: formats.Format) -> None:
    line = positive(form)
    assert [formats.number_at(place, form) for place in range(len(line) + 1)] == [0.0, *map(float, line)]
    for place in range(0, len(line), max(1, len(line) // 500)):
        assert formats.numbers_up_to(float(line[place]), form) == place + 1
    assert formats.numbers_up_to(form.largest, form) == len(line)
    assert formats.numbers_up_to(0.9 * form.smallest_subnormal, form) == 0


@pytest.mark.parametrize("form", SMALL, **by_name)
def test_rounding_finds_the_nearest_of_all_numbers(form: formats.Format) -> None:
    grid, rng = bit_patterns.Grid(enumerated(form)), random.Random(3)
    line = [0.0, *map(float, positive(form))]
    halves = [(one + other) / 2 for one, other in itertools.pairwise(line)]
    for value in (
        *line,
        *halves,
        *(rng.uniform(0, 1.1 * form.largest) for _ in range(500)),
        *(form.largest * 2.0 ** -rng.uniform(0, 20) for _ in range(200)),
    ):
        for signed in (value, -value):
            assert formats.rounded(signed, form, overflow="saturate") == grid.nearest(signed), signed


@pytest.mark.parametrize("form", IN_TORCH, **by_name)
def test_torch_reads_every_pattern_as_the_enumeration_does(form: formats.Format) -> None:
    read = torch_formats.every_number(form.name.lower())
    for number, value in zip(enumerated(form), read, strict=True):
        assert not math.isfinite(value) if number.value is None else number.value == value


@pytest.mark.parametrize("form", [*IN_TORCH, formats.FP32], **by_name)
def test_torch_rounds_as_the_formula_does(form: formats.Format) -> None:
    rng = random.Random(5)
    top, bottom = math.log2(form.largest), math.log2(form.smallest_subnormal) - 2
    drawn = [rng.choice((-1, 1)) * 2.0 ** max(-140, min(rng.uniform(bottom, top - 0.5), 126)) for _ in range(2000)]
    exact = torch_formats.cast(drawn, "fp32")  # torch's casts to 8 and 16 bits begin there
    assert torch_formats.cast(exact, form.name.lower()) == [
        formats.rounded(value, form, overflow="special") for value in exact
    ]


@pytest.mark.parametrize("form", ENUMERATED, **by_name)
def test_decimal_digits_count_what_a_binary_place_can_tell_apart(form: formats.Format) -> None:
    """Of all numbers from 1 to 2, those that the significand tells apart within a factor of two."""
    told_apart = sum(1 <= value < 2 for value in positive(form))
    assert 10**form.decimal_digits == pytest.approx(2 * told_apart)


def test_overflow_begins_half_a_gap_beyond_the_largest() -> None:
    # IEEE 754, section 7.4. In binary16 the gap at the top is 32: 65,504 + 16 is the first that overflows
    assert torch_formats.cast([65519, 65520], "fp16") == [65504, math.inf]
    assert [formats.rounded(value, formats.FP16, overflow="special") for value in (65519, 65520, -65520)] == [
        65504,
        math.inf,
        -math.inf,
    ]
    # in E4M3 the tie, 464, goes to the even pattern of 448; what follows would be NaN's place
    assert formats.rounded(464, formats.E4M3, overflow="special") == 448
    assert math.isnan(formats.rounded(464.1, formats.E4M3, overflow="special"))
    assert formats.rounded(1e9, formats.E4M3, overflow="saturate") == 448


@pytest.mark.parametrize("form", IN_TORCH[:2], **by_name)
def test_a_count_of_ones_stops_where_the_formula_says(form: formats.Format) -> None:
    limit = formats.counting_limit(form)
    assert torch_formats.running_sum(1.0, int(limit) + 300, form.name.lower()) == limit
    assert torch_formats.running_sum(1.0, int(limit) - 1, form.name.lower()) == limit - 1


@pytest.mark.parametrize("form", [formats.E5M2, formats.E4M3, formats.E3M2, formats.E2M1], **by_name)
def test_small_formats_stop_counting_there_too(form: formats.Format) -> None:
    grid = bit_patterns.Grid(enumerated(form))
    assert grid.running_sum([1.0] * 40) == formats.counting_limit(form)


def test_sums_are_rounded_once_as_torch_does() -> None:
    import torch

    rng = random.Random(11)
    for form, name in ((formats.BF16, "bf16"), (formats.FP16, "fp16"), (formats.FP32, "fp32")):
        ones = torch_formats.cast([rng.uniform(-4, 4) * 2.0 ** rng.randrange(-9, 9) for _ in range(500)], name)
        others = torch_formats.cast([rng.uniform(-4, 4) * 2.0 ** rng.randrange(-9, 9) for _ in range(500)], name)
        dtype = torch_formats.DTYPES[name]
        sums = (
            (torch.tensor(ones, dtype=torch.float64).to(dtype) + torch.tensor(others, dtype=torch.float64).to(dtype))
            .to(torch.float64)
            .tolist()
        )
        assert sums == [
            formats.added(one, other, form, overflow="special") for one, other in zip(ones, others, strict=True)
        ]


def test_a_swallowed_update_leaves_the_weight_alone_and_one_above_the_limit_does_not() -> None:
    for weight in torch_formats.cast([0.01, 0.3, 1.0, 77.0], "bf16"):
        limit = formats.swallowed_below(weight, formats.BF16)
        assert torch_formats.running_sum(0.999 * limit, 1, "bf16", start=weight) == weight
        assert torch_formats.running_sum(1.02 * limit, 1, "bf16", start=weight) > weight


@pytest.mark.parametrize("update", [0.001, 0.0009765625, 3e-4, 0.07])
def test_from_some_power_of_two_on_weights_do_not_notice(update: float) -> None:
    for form, name in ((formats.BF16, "bf16"), (formats.FP16, "fp16")):
        start = formats.swallowed_from(update, form)
        (step,) = torch_formats.cast([update], name)
        for weight in (start, 1.25 * start, 2 * start, 3 * start):
            assert torch_formats.running_sum(step, 1, name, start=weight) == weight
        # the largest number below, whose last bit is 1: even a tie moves it
        last = start - formats.spacing(start / 2, form)
        assert torch_formats.running_sum(step, 1, name, start=last) > last


def test_stochastic_rounding_keeps_the_mean_and_the_format() -> None:
    rng = random.Random(7)
    for value in (1.002, -0.3, 0.01 - 1e-5, 2.0**-134):
        draws = [formats.stochastically_rounded(value, formats.BF16, draw=rng.random()) for _ in range(20_000)]
        gap = formats.spacing(value, formats.BF16)
        assert len(set(draws)) <= 2
        # a draw differs from the mean by at most a gap, so the mean of 20,000 by 5 × gap / 2 / sqrt(20,000) = 0.018
        # gap in all but one case in a million
        assert sum(draws) / len(draws) == pytest.approx(value, abs=0.018 * gap)
    assert {formats.stochastically_rounded(1.5, formats.BF16, draw=rng.random()) for _ in range(50)} == {1.5}
    # 1.125 lies a quarter of the way from 1 to 1.5, so that a draw of just a quarter stays below
    assert formats.stochastically_rounded(1.125, formats.E2M1, draw=0.25) == 1.0


@pytest.mark.parametrize("form", [formats.E4M3, formats.E5M2, formats.BF16], **by_name)
def test_as_many_coins_move_a_weight_as_the_chance_says(form: formats.Format) -> None:
    coins = [toss / 400 for toss in range(400)]
    for weight, update in ((1.0, 0.0017), (5.0, 0.011), (0.375, 0.013), (12.0, 40.0)):
        moved = sum(formats.stochastically_rounded(weight + update, form, draw=coin) != weight for coin in coins)
        chance = formats.move_chance(update=update, weight=weight, form=form)
        assert moved / len(coins) == pytest.approx(chance, abs=1 / len(coins))
    with pytest.raises(ValueError, match="update=0 must be greater than 0"):
        formats.move_chance(update=0, weight=1.0, form=form)


def test_doubling_a_number_doubles_everything_about_it() -> None:
    for form in (formats.FP32, formats.BF16, formats.E4M3):
        assert formats.spacing(2 * 1.3, form) == 2 * formats.spacing(1.3, form)
        assert formats.rounded(2 * 1.3, form, overflow="special") == 2 * formats.rounded(1.3, form, overflow="special")
        assert formats.swallowed_below(2 * 1.3, form) == 2 * formats.swallowed_below(1.3, form)


def test_refusals() -> None:
    assert formats.Format(name="E2M5", exponent_bits=2, mantissa_bits=5).bits == 8
    assert formats.spacing(448, formats.E4M3) == 32
    with pytest.raises(ValueError, match=r"value=449 lies beyond E4M3, which ends at 448.0"):
        formats.spacing(449, formats.E4M3)
    assert formats.rounded(6.9, formats.E2M1, overflow="saturate") == 6
    with pytest.raises(
        ValueError, match=r"value=9 lies beyond E2M1, which ends at 6.0 and has no infinity; use overflow='saturate'"
    ):
        formats.rounded(9, formats.E2M1, overflow="special")
    with pytest.raises(ValueError, match=r"overflow='clip' is not known.*special, saturate"):
        formats.rounded(1, formats.E2M1, overflow="clip")
    assert formats.number_at(7, formats.E2M1) == 6
    with pytest.raises(ValueError, match=r"place=8 lies beyond E2M1, which has 7 numbers above zero"):
        formats.number_at(8, formats.E2M1)
    assert formats.counting_limit(formats.E3M2) == 8
    with pytest.raises(ValueError, match=r"E2M3 ends at 7.5, before its counting limit of 16.0"):
        formats.counting_limit(formats.E2M3)
    with pytest.raises(ValueError, match=r"draw=1.0 must be at least 0 and below 1"):
        formats.stochastically_rounded(1, formats.BF16, draw=1.0)
    with pytest.raises(ValueError, match=r"mantissa_bits=0 must be a whole number of at least 1"):
        formats.Format(name="E8M0", exponent_bits=8, mantissa_bits=0)
    with pytest.raises(ValueError, match=r"name='fp32' has 32 bits: too many patterns to list"):
        torch_formats.every_number("fp32")

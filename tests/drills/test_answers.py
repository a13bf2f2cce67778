"""What a learner may type, and what is said to everything else."""

import contextlib
import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as some

from threeloops.drills.engine.answers import EXAMPLES, UnreadableError, parse


@pytest.mark.parametrize(
    ("written", "like", "value"),
    [
        ("24.5 GB", "B", 24.5e9),
        ("24.5e9 bytes", "B", 24.5e9),
        ("24.5GB", "B", 24.5e9),
        ("  6 GiB ", "B", 6 * 2**30),
        ("1,234,567 B", "B", 1234567),
        ("64 KB", "B", 64e3),
        ("1 Tbit", "B", 1.25e11),
        ("1960 ms", "s", 1.96),
        ("1,960 ms", "s", 1.96),
        ("12 µs", "s", 12e-6),
        ("12 us", "s", 12e-6),
        ("2 min", "s", 120),
        ("400 Gbit/s", "B/s", 50e9),
        ("50 GB per s", "B/s", 50e9),
        ("50 GBps", "B/s", 50e9),
        ("295 FLOP/byte", "FLOP/B", 295),
        ("0.295 kFLOP/B", "FLOP/B", 295),
        ("128 KiB/token", "B/token", 131072),
        ("1200 tok/s", "token/s", 1200),
        ("$0.35", "dollar", 0.35),
        ("US$ 1,250.50", "dollar", 1250.5),
        ("$12k", "dollar", 12e3),
        ("$.5", "dollar", 0.5),
        ("0.35 dollars", "dollar", 0.35),
        ("35 cents", "dollar", 0.35),
        ("1.2 USD", "dollar", 1.2),
        ("46 %", "", 0.46),
        ("8x", "", 8),
        ("8×", "", 8),
        ("59", "", 59),
        (59, "", 59),
        (numpy.float32(0.5), "", 0.5),
        (".5 s", "s", 0.5),
        ("-3 s", "s", -3),
    ],
)
def test_answers_are_read_into_base_units(written: object, like: str, value: float) -> None:
    assert parse(written, like=like).value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("written", "like", "told"),
    [
        ("6.44", "B", "6.44 of what"),
        (6.44, "B", "6.44 of what"),
        ("GB", "B", "is not a number with a unit"),
        ("", "B", "is not a number with a unit"),
        ("24,5 GB", "B", "write a decimal point"),
        ("0.35", "dollar", "0.35 of what"),
        ("$", "dollar", "is not a number with a unit"),
        ("$3", "s", "does not measure what was asked"),
        ("$0,35", "dollar", "is not a number with a unit"),
        ("3 bananas", "B", "is not a unit that this book knows"),
        ("3 s", "B", "does not measure what was asked"),
        ("400 Gb/s", "B/s", "bits or bytes"),
        ("400 Gbps", "B/s", "bits or bytes"),
        ("989 TFLOPS", "FLOP/s", "a count or a rate"),
        ("nan GB", "B", "is not a number with a unit"),
        ("inf s", "s", "is not a number with a unit"),
        ("1e999 s", "s", "finite"),
        (math.nan, "", "no number at all"),
        (math.inf, "", "no number at all"),
        (None, "B", "not a NoneType"),
        (True, "", "not a bool"),
        ([1, 2], "B", "not a list"),
        (numpy.zeros(3), "B", "not a ndarray"),
        (1j, "", "not a complex"),
        ("9" * 5000, "B", "too long"),
        ("__import__('os')", "B", "is not a number with a unit"),
        ("2**99999 s", "s", "is not a number with a unit"),
    ],
)
def test_everything_else_is_asked_again_in_one_sentence(written: object, like: str, told: str) -> None:
    with pytest.raises(UnreadableError, match=told) as refusal:
        parse(written, like=like)
    assert "\n" not in str(refusal.value)


def test_a_number_too_long_to_print_is_refused_too() -> None:
    with pytest.raises(UnreadableError, match="as large as this"):
        parse(10**5000, like="")


@given(some.text(max_size=60), some.sampled_from(sorted(EXAMPLES)))
def test_no_text_gets_past_as_anything_but_a_number(text: str, like: str) -> None:
    with contextlib.suppress(UnreadableError):
        assert math.isfinite(parse(text, like=like).value)


@given(some.floats(1e-6, 1e15), some.sampled_from(["GB", "GiB", "MB", "kB", "B"]))
def test_what_is_written_with_a_unit_is_read_back(number: float, unit: str) -> None:
    scale = {"GB": 1e9, "GiB": 2**30, "MB": 1e6, "kB": 1e3, "B": 1}[unit]
    assert parse(f"{number!r} {unit}", like="B").value == pytest.approx(number * scale)

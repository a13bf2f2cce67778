"""Units: constants against their definitions, formatters against hand-written text."""

import math

import pytest

from threeloops import units


def test_the_two_gigabytes_differ_by_what_everybody_forgets() -> None:
    # IEC 80000-13: 1 GiB = 1,073,741,824 bytes.
    assert units.GiB == 1_073_741_824
    assert units.GiB / units.GB == pytest.approx(1.0737, abs=5e-5)
    assert units.TiB / units.TB == pytest.approx(1.0995, abs=5e-5)


@pytest.mark.parametrize(
    ("num_bytes", "base", "text"),
    [
        (0, 2, "0 B"),
        (1, 10, "1.00 B"),
        (999, 10, "999 B"),
        (999.6, 10, "1.00 kB"),
        (9.999, 10, "10.0 B"),
        (1023, 2, "1,023 B"),
        (1024, 2, "1.00 KiB"),
        (85_520_809_984, 2, "79.6 GiB"),
        (85_520_809_984, 10, "85.5 GB"),
        (2.1e12, 10, "2.10 TB"),
    ],
)
def test_bytes_are_shown_in_the_base_that_was_asked_for(num_bytes: float, base: int, text: str) -> None:
    assert units.fmt_bytes(num_bytes, base=base) == text


def test_bytes_have_no_default_base() -> None:
    with pytest.raises(TypeError):
        units.fmt_bytes(1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match=r"base=8 must be 10 .* or 2"):
        units.fmt_bytes(1, base=8)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (1e-9, "1.00 ns"),
        (5e-6, "5.00 µs"),
        (0.033, "33.0 ms"),
        (90, "90.0 s"),
        (600, "10.0 min"),
        (54 * 86_400, "54.0 days"),
        (math.inf, "forever"),
    ],
)
def test_durations_come_in_the_unit_a_person_would_choose(seconds: float, text: str) -> None:
    assert units.fmt_seconds(seconds) == text


def test_percent_exists_only_here() -> None:
    assert units.fmt_percent(0.5186) == "51.9 %"

"""A start and a rate from two timings: held against a clock that starts, and then counts bytes."""

import pytest

from threeloops.operations.two_timings import line_through_timings


def clocked(size: int, *, start: float, per_byte: float) -> float:
    clock = start
    for _ in range(size):
        clock += per_byte
    return clock


@pytest.mark.parametrize(
    ("start", "per_byte", "few", "many"), [(5.0, 0.25, 8, 40), (0.5, 2.0, 3, 7), (90.0, 0.5, 1, 100)]
)
def test_both_come_back_and_a_third_size_is_as_the_clock_says(
    start: float, per_byte: float, few: int, many: int
) -> None:
    few_s, many_s = (clocked(size, start=start, per_byte=per_byte) for size in (few, many))
    line = line_through_timings(few_bytes=few, few_s=few_s, many_bytes=many, many_s=many_s)
    assert line.startup_s == pytest.approx(start)
    assert line.steady_bytes_per_s == pytest.approx(1 / per_byte)
    assert line.seconds(3 * many) == pytest.approx(clocked(3 * many, start=start, per_byte=per_byte))


def test_at_the_half_rate_size_the_bytes_take_as_long_as_the_start() -> None:
    line = line_through_timings(few_bytes=8, few_s=7.0, many_bytes=40, many_s=15.0)
    sent, clock = 0, 0.0
    while clock < line.startup_s:
        sent, clock = sent + 1, clock + 0.25
    assert line.half_rate_bytes == pytest.approx(sent)
    assert line.half_rate_bytes / line.seconds(line.half_rate_bytes) == pytest.approx(line.steady_bytes_per_s / 2)


@pytest.mark.parametrize(("few", "many", "few_s", "many_s"), [(8, 8, 1.0, 2.0), (8, 4, 1.0, 2.0), (4, 8, 2.0, 2.0)])
def test_two_timings_that_do_not_rise_are_refused(few: int, many: int, few_s: float, many_s: float) -> None:
    with pytest.raises(ValueError, match="must be larger in both"):
        line_through_timings(few_bytes=few, few_s=few_s, many_bytes=many, many_s=many_s)

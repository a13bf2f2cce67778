"""Two timings: what a call costs before its first byte, and how fast its bytes then go, from two of its times.

>>> line = line_through_timings(few_bytes=1e6, few_s=30e-6, many_bytes=9e6, many_s=70e-6)
>>> f"{line.startup_s * 1e6:.0f} µs, then {line.steady_bytes_per_s / 1e9:.0f} GB/s"
'25 µs, then 200 GB/s'
>>> round(line.half_rate_bytes)
5000000

Source: Hockney, Parallel Computing 20(3), 1994, pp. 389-398 (start-up and asymptotic rate)
"""

from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAndRate:
    """A fixed time, and a rate for what comes after it."""

    startup_s: float  # below 0 where the larger call was the more efficient one by more than a start-up explains
    steady_bytes_per_s: float

    @property
    def half_rate_bytes(self) -> float:
        """The size at which the bytes take as long as the start-up: half of the rate is reached there."""
        return self.startup_s * self.steady_bytes_per_s

    def seconds(self, size_bytes: float) -> float:
        """What a call of this size takes on the same line."""
        checks.positive(size_bytes=size_bytes)
        return self.startup_s + size_bytes / self.steady_bytes_per_s


def line_through_timings(*, few_bytes: float, few_s: float, many_bytes: float, many_s: float) -> StartAndRate:
    """The straight line through the times of one call at two sizes.

    Formula:  rate: (many_bytes - few_bytes) / (many_s - few_s); start-up: few_s - few_bytes / rate
    Assumes:  the same kernel, algorithm and rate at both sizes
    Raises:   ValueError unless few_bytes < many_bytes and few_s < many_s
    Source:   Hockney, Parallel Computing 20(3), 1994, pp. 389-398
    Counted:  tests.operations.test_two_timings.test_both_come_back_and_a_third_size_is_as_the_clock_says

    >>> line_through_timings(few_bytes=100, few_s=3, many_bytes=300, many_s=5).seconds(500)
    7.0
    """
    checks.positive(few_bytes=few_bytes, few_s=few_s, many_bytes=many_bytes, many_s=many_s)
    if not (few_bytes < many_bytes and few_s < many_s):
        raise ValueError(
            f"few_bytes={few_bytes:g} in few_s={few_s:g} and many_bytes={many_bytes:g} in many_s={many_s:g}: the larger"
            " call must be larger in both"
        )
    rate = (many_bytes - few_bytes) / (many_s - few_s)
    return StartAndRate(startup_s=few_s - few_bytes / rate, steady_bytes_per_s=rate)

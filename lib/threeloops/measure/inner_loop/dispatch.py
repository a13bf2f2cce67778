"""Dispatch: what the host spends on one operation, whatever the operation computes.

Time for n operations is a straight line in n. Its slope is the cost of one; what is left at n = 0 is the cost of
looking at the clock.

>>> slope = per_call(lambda: None, counts=(100, 400, 1600), repeats=3)
>>> 0 < slope.per_call_s < 1e-4
True
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from threeloops import checks
from threeloops.measure.timing import timed


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """A straight line through fastest times."""

    per_call_s: float
    fixed_s: float
    counts: tuple[int, ...]
    fastest_s: tuple[float, ...]


def per_call(operation: Callable[[], object], *, counts: Sequence[int], repeats: int = 5) -> Slope:
    """Host seconds per call, from the slope of fastest time against the number of calls.

    Formula:  least squares through (count, fastest of `repeats` times)
    Assumes:  a call is done when it returns, as on a processor; on a GPU this is the time to issue it
    Raises:   ValueError for fewer than two counts, or two that are equal
    """
    if len(set(counts)) < max(2, len(counts)):
        raise ValueError(f"counts={tuple(counts)} must be at least two different numbers")
    checks.count(**{f"counts[{place}]": count for place, count in enumerate(counts)})
    called = [partial(_called, operation, count) for count in counts]
    fastest = [timed(one, repeats=repeats, warmup=1).fastest_s for one in called]
    line = statistics.linear_regression(counts, fastest)
    return Slope(per_call_s=line.slope, fixed_s=line.intercept, counts=tuple(counts), fastest_s=tuple(fastest))


def _called(operation: Callable[[], object], count: int) -> None:
    for _ in range(count):
        operation()

"""Clock history: how fast the clocks of notable processors ticked, since 1971.

>>> first, last = clock_points()[0], clock_points()[-1]
>>> first.clock_hz, last.clock_hz
(704000.0, 3200000000.0)

Source: K. Rupp, Microprocessor Trend Data, 2022 (CC BY 4.0); see catalog/clock_history.toml
"""

import functools
from dataclasses import dataclass

from threeloops import checks
from threeloops.facts.fact import catalogue_files


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockPoint:
    """One processor: when it came out, and its clock."""

    year: float  # with its fraction
    clock_hz: float

    def __post_init__(self) -> None:
        checks.positive(year=self.year, clock_hz=self.clock_hz)


@functools.cache
def clock_points() -> tuple[ClockPoint, ...]:
    """Every point, from the oldest."""
    (table,) = [content["clock_history"] for _, content in catalogue_files() if "clock_history" in content]
    return tuple(ClockPoint(year=year, clock_hz=clock_hz) for year, clock_hz in table["year_and_hz"])

"""Roofline by level: one slope for every memory that a byte has to come through, and the one that binds.

A kernel asks its nearest memory for bytes; what is not there is asked of the next. Each level moves its own bytes at
its own rate, all at the same time.

>>> kernel = level_times(
...     flops=2e12,
...     moved_bytes={"L2": 40e9, "memory": 8e9},
...     peak_flops_per_s=312e12,
...     bytes_per_s={"L2": 7.2e12, "memory": 2.04e12},
... )
>>> kernel.bound, round(kernel.lower_bound_s * 1e3, 2)
('compute', 6.41)

Source: Ilic, Pratas, Sousa, "Cache-aware Roofline model", IEEE Computer Architecture Letters 13(1), 2014,
        doi:10.1109/L-CA.2013.6; Yang, Kurth, Williams,
"Hierarchical Roofline analysis for GPUs", CCPE 32(20), 2020, doi:10.1002/cpe.5547
"""

from collections.abc import Mapping
from dataclasses import dataclass

from threeloops import checks


def on_chip_bytes_per_s(*, units: int, bytes_per_cycle: float, clock_hz: float) -> float:
    """Bytes/s of memories that answer in every cycle, all of them together.

    Formula:  units * bytes_per_cycle * clock_hz
    Assumes:  no bank conflicts, every unit asking in every cycle
    Counted:  tests.inner_loop.test_roofline_levels.test_memories_that_answer_in_every_cycle_hand_over_byte_by_byte

    >>> on_chip_bytes_per_s(units=108, bytes_per_cycle=128, clock_hz=1.41e9)
    19491840000000.0
    """
    checks.count(units=units)
    checks.positive(bytes_per_cycle=bytes_per_cycle, clock_hz=clock_hz)
    return units * bytes_per_cycle * clock_hz


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelTimes:
    """Seconds for the arithmetic and for the bytes of every level; everything overlaps, so the longest of them is the
    shortest possible time.
    """

    compute_s: float
    level_s: Mapping[str, float]

    @property
    def lower_bound_s(self) -> float:
        return max(self.compute_s, *self.level_s.values())

    @property
    def bound(self) -> str:
        """ "compute", or the name of the level that takes longest; compute where they are equal."""
        slowest = max(self.level_s, key=lambda name: self.level_s[name])
        return slowest if self.level_s[slowest] > self.compute_s else "compute"


def level_times(
    *, flops: float, moved_bytes: Mapping[str, float], peak_flops_per_s: float, bytes_per_s: Mapping[str, float]
) -> LevelTimes:
    """The time that each level leaves a kernel.

    Formula:  flops / peak_flops_per_s; for every level: moved_bytes[level] / bytes_per_s[level]
    Assumes:  arithmetic and the traffic of all levels overlap perfectly
    Raises:   ValueError if the two tables do not name the same levels
    Counted:  simulate.foundations.processor_cache.read_through

    >>> level_times(
    ...     flops=0,
    ...     moved_bytes={"L2": 10e9, "memory": 2e9},
    ...     peak_flops_per_s=1e12,
    ...     bytes_per_s={"L2": 4e12, "memory": 2e12},
    ... ).bound
    'L2'
    """
    checks.non_negative(flops=flops)
    checks.positive(peak_flops_per_s=peak_flops_per_s)
    if not moved_bytes or set(moved_bytes) != set(bytes_per_s):
        raise ValueError(
            f"moved_bytes names {sorted(moved_bytes)} and bytes_per_s names {sorted(bytes_per_s)}; name the same levels"
            " in both, at least one"
        )
    checks.non_negative(**{f"moved_bytes[{name!r}]": moved for name, moved in moved_bytes.items()})
    checks.positive(**{f"bytes_per_s[{name!r}]": rate for name, rate in bytes_per_s.items()})
    return LevelTimes(
        compute_s=flops / peak_flops_per_s,
        level_s={name: moved / bytes_per_s[name] for name, moved in moved_bytes.items()},
    )

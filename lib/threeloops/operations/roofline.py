"""Roofline: is this work limited by arithmetic, by memory traffic, or by launching it?

Two rates bound every kernel: how fast the machine calculates and how fast it moves bytes. Their ratio, the ridge
point, says which of the two binds. A third bound appears when kernels are so short that the processor which launches
them cannot keep up.

Where the peaks come from: `facts/hardware.py` has what makers print, `inner_loop/peak_rates.py` puts a printed peak
together again from units, clock, bus and pins (FLOPS_PER_FMA = 2 is there).

>>> gemv = Work(flops=2 * 4096 * 4096, moved_bytes=2 * 4096 * 4096 + 2 * 2 * 4096)
>>> round(gemv.arithmetic_intensity, 3)
1.0
>>> time(gemv, peak_flops_per_s=989.4e12, memory_bytes_per_s=3.35e12, launches=1, launch_overhead_s=5e-6).bound
'memory'

Source: Williams, Waterman, Patterson, CACM 52(4), 2009, doi:10.1145/1498765.1498785
"""

from collections.abc import Iterable
from dataclasses import dataclass

from threeloops import checks

BOUNDS = ("compute", "memory", "overhead")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a kernel does, whatever machine it runs on. Two pieces of work add up to what they do together."""

    flops: float  # operations; one multiply-add counts as 2; 0 for a pure copy
    moved_bytes: float  # bytes read plus bytes written, device memory only
    conventions: tuple[str, ...] = ()  # how it was counted, where counts differ: "causal=half", "fused=True"

    def __post_init__(self) -> None:
        checks.non_negative(flops=self.flops)
        checks.positive(moved_bytes=self.moved_bytes)

    @property
    def arithmetic_intensity(self) -> float:
        """FLOP per byte moved."""
        return self.flops / self.moved_bytes

    def __add__(self, other: "Work") -> "Work":
        return Work(
            flops=self.flops + other.flops,
            moved_bytes=self.moved_bytes + other.moved_bytes,
            conventions=tuple(dict.fromkeys(self.conventions + other.conventions)),
        )

    def times(self, count: int) -> "Work":
        """The same work done `count` times."""
        checks.count(count=count)
        return Work(flops=self.flops * count, moved_bytes=self.moved_bytes * count, conventions=self.conventions)


def ridge_point(*, peak_flops_per_s: float, memory_bytes_per_s: float) -> float:
    """Arithmetic intensity, in FLOP/byte, above which a kernel can be compute-bound.

    Formula:  peak_flops_per_s / memory_bytes_per_s
    Assumes:  the dense peak of the number format in use: a machine has one ridge point per format
    Source:   Williams, Waterman, Patterson, 2009, doi:10.1145/1498765.1498785
    Counted:  drills.roofline.intensity.RIDGE

    >>> round(ridge_point(peak_flops_per_s=989.4e12, memory_bytes_per_s=3.35e12), 1)
    295.3
    """
    checks.positive(peak_flops_per_s=peak_flops_per_s, memory_bytes_per_s=memory_bytes_per_s)
    return peak_flops_per_s / memory_bytes_per_s


def attainable_flops_per_s(*, arithmetic_intensity: float, peak_flops_per_s: float, memory_bytes_per_s: float) -> float:
    """The roof over a kernel of this intensity, in FLOP/s.

    Formula:  min(peak_flops_per_s, arithmetic_intensity * memory_bytes_per_s)
    Assumes:  arithmetic and memory traffic overlap perfectly
    Source:   Williams, Waterman, Patterson, 2009, doi:10.1145/1498765.1498785
    Counted:  drills.roofline.times.NORM

    >>> attainable_flops_per_s(arithmetic_intensity=1.0, peak_flops_per_s=989.4e12, memory_bytes_per_s=3.35e12)
    3350000000000.0
    """
    checks.non_negative(arithmetic_intensity=arithmetic_intensity)
    checks.positive(peak_flops_per_s=peak_flops_per_s, memory_bytes_per_s=memory_bytes_per_s)
    return min(peak_flops_per_s, arithmetic_intensity * memory_bytes_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Time:
    """The three times that a piece of work needs, and what they bound.

    Lower bound: calculating, moving bytes and launching overlap completely, so the longest of them is the time.
    Launching can overlap because a launch is asynchronous: the processor queues kernels ahead while the device works,
    and costs time only when it falls behind. Upper bound: nothing overlaps, and the three add up.
    """

    compute_s: float
    memory_s: float
    overhead_s: float  # launches times the time of one launch

    def __post_init__(self) -> None:
        checks.non_negative(compute_s=self.compute_s, memory_s=self.memory_s, overhead_s=self.overhead_s)

    @property
    def lower_bound_s(self) -> float:
        return max(self.compute_s, self.memory_s, self.overhead_s)

    @property
    def upper_bound_s(self) -> float:
        return self.compute_s + self.memory_s + self.overhead_s

    @property
    def bound(self) -> str:
        """The name of the longest of the three; of equals, the first in the order compute, memory, overhead (at the
        ridge point: compute).
        """
        seconds = (self.compute_s, self.memory_s, self.overhead_s)
        return BOUNDS[seconds.index(max(seconds))]


def time(
    work: Work, *, peak_flops_per_s: float, memory_bytes_per_s: float, launches: int = 1, launch_overhead_s: float = 0.0
) -> Time:
    """Seconds that a piece of work takes for its arithmetic, its memory traffic and its launches.

    Formula:  flops / peak_flops_per_s;  moved_bytes / memory_bytes_per_s;  launches * launch_overhead_s
    Assumes:  every FLOP could run at the peak given, every byte at the bandwidth given (pass measured ceilings to
              derate both); launch_overhead_s is the processor's time to issue one kernel
    Counted:  drills.roofline.times.TIME

    >>> step = time(
    ...     Work(flops=1e9, moved_bytes=1e6),
    ...     peak_flops_per_s=1e15,
    ...     memory_bytes_per_s=1e12,
    ...     launches=50,
    ...     launch_overhead_s=5e-6,
    ... )
    >>> step.bound, step.lower_bound_s, step.upper_bound_s
    ('overhead', 0.00025, 0.000252)
    """
    checks.positive(peak_flops_per_s=peak_flops_per_s, memory_bytes_per_s=memory_bytes_per_s)
    checks.count(at_least=0, launches=launches)
    checks.non_negative(launch_overhead_s=launch_overhead_s)
    return Time(
        compute_s=work.flops / peak_flops_per_s,
        memory_s=work.moved_bytes / memory_bytes_per_s,
        overhead_s=launches * launch_overhead_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SerialTime:
    """Kernels that wait for one another: each overlaps its own arithmetic and traffic, none overlaps the next.

    Launches still overlap with the kernels before them, so all of them together are one bound beside the kernels'
    own.
    """

    parts: tuple[Time, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("parts is empty; a series needs at least one Time")

    @property
    def compute_bound_s(self) -> float:
        """Lower-bound time of the kernels that arithmetic binds."""
        return sum(part.compute_s for part in self.parts if part.compute_s >= part.memory_s)

    @property
    def memory_bound_s(self) -> float:
        """Lower-bound time of the kernels that memory traffic binds."""
        return sum(part.memory_s for part in self.parts if part.compute_s < part.memory_s)

    @property
    def overhead_s(self) -> float:
        return sum(part.overhead_s for part in self.parts)

    @property
    def lower_bound_s(self) -> float:
        return max(self.compute_bound_s + self.memory_bound_s, self.overhead_s)

    @property
    def upper_bound_s(self) -> float:
        return sum(part.upper_bound_s for part in self.parts)

    @property
    def bound(self) -> str:
        """overhead when launching takes longer than all kernels; else what binds the larger share of the kernels'
        time.
        """
        if self.overhead_s > self.compute_bound_s + self.memory_bound_s:
            return "overhead"
        return "compute" if self.compute_bound_s >= self.memory_bound_s else "memory"


def serial_time(parts: Iterable[Time]) -> SerialTime:
    """The time of kernels run one after another.

    >>> gemm, norm = (
    ...     Time(compute_s=3.0, memory_s=1.0, overhead_s=0.5),
    ...     Time(compute_s=0.0, memory_s=2.0, overhead_s=0.5),
    ... )
    >>> serial_time([gemm, norm]).lower_bound_s, serial_time([gemm, norm]).upper_bound_s
    (5.0, 7.0)
    """
    return SerialTime(parts=tuple(parts))

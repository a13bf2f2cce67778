"""Trace: what a profiler writes down, as data. Named intervals in rows, and readings of counters.

>>> trace = Trace(
...     intervals=(
...         Interval(row="GPU", name="gemm", start_s=1.0, end_s=3.0),
...         Interval(row="CPU", name="launch", start_s=0.0, end_s=0.5),
...     )
... )
>>> trace.start_s, trace.end_s, trace.rows
(0.0, 3.0, ('GPU', 'CPU'))
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from threeloops import checks

# The rows that this book's traces use, from top to bottom. A trace of another tool may have others.
LOADER, HOST, COMPUTE, COPY, COMMUNICATION, STEP = "loader", "CPU", "GPU", "copies", "network", "step"
# Names in the row of the CPU for when it waits; whatever else stands there is work.
BATCH_WAIT, SYNC, QUEUE_FULL = "wait for batch", "sync", "queue full"
# Counters: shares of what the part could do, and bytes.
TENSOR_CORES, MEMORY_BUS, ALLOCATED, RESERVED = "tensor cores", "memory bus", "allocated", "reserved"

Span = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Something that took from one moment to another."""

    row: str
    name: str
    start_s: float
    end_s: float

    def __post_init__(self) -> None:
        checks.number(start_s=self.start_s, end_s=self.end_s)
        if self.end_s < self.start_s:
            raise ValueError(f"end_s={self.end_s!r} of {self.name!r} must not lie before start_s={self.start_s!r}")

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s

    def cut(self, start_s: float, end_s: float) -> "Interval":
        """The part of the interval that lies in a window."""
        return replace(self, start_s=max(self.start_s, start_s), end_s=min(self.end_s, end_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a counter said at a moment: a share from 0 to 1, or bytes."""

    counter: str
    at_s: float
    value: float

    def __post_init__(self) -> None:
        checks.number(at_s=self.at_s)
        checks.non_negative(value=self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Everything that was recorded."""

    intervals: tuple[Interval, ...]
    readings: tuple[Reading, ...] = ()

    def __post_init__(self) -> None:
        if not self.intervals:
            raise ValueError("intervals is empty; a trace holds at least one interval")

    @property
    def start_s(self) -> float:
        return min(interval.start_s for interval in self.intervals)

    @property
    def end_s(self) -> float:
        return max(interval.end_s for interval in self.intervals)

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of the rows, in the order in which they first appear."""
        return tuple(dict.fromkeys(interval.row for interval in self.intervals))

    @property
    def counters(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(reading.counter for reading in self.readings))

    def of(self, *rows: str, name: str | None = None) -> tuple[Interval, ...]:
        """Intervals of these rows, if asked for only those of one name, by their start."""
        found = (interval for interval in self.intervals if interval.row in rows and name in (None, interval.name))
        return tuple(sorted(found, key=lambda interval: interval.start_s))

    def read(self, counter: str) -> tuple[Reading, ...]:
        """Readings of one counter, by their time."""
        return tuple(
            sorted(
                (reading for reading in self.readings if reading.counter == counter), key=lambda reading: reading.at_s
            )
        )

    def between(self, start_s: float, end_s: float) -> "Trace":
        """The same record cut to a window; what crosses an edge is cut there."""
        if not end_s > start_s:
            raise ValueError(f"end_s={end_s!r} must lie behind start_s={start_s!r}")
        inside = (interval for interval in self.intervals if interval.end_s > start_s and interval.start_s < end_s)
        cut = tuple(
            interval if start_s <= interval.start_s and interval.end_s <= end_s else interval.cut(start_s, end_s)
            for interval in inside
        )
        return Trace(
            intervals=cut, readings=tuple(reading for reading in self.readings if start_s <= reading.at_s < end_s)
        )


def covered(intervals: Iterable[Interval]) -> tuple[Span, ...]:
    """The moments at which at least one of the intervals runs, as separate spans in order.

    >>> covered(Interval(row="GPU", name="k", start_s=a, end_s=b) for a, b in ((0, 2), (1, 3), (5, 6)))
    ((0, 3), (5, 6))
    """
    return merged((interval.start_s, interval.end_s) for interval in intervals)


def merged(pairs: Iterable[Span]) -> tuple[Span, ...]:
    """Spans in any order, overlapping or not, as separate spans in order; those without length are left out.

    >>> merged([(5, 6), (0, 2), (1, 3), (4, 4)])
    ((0, 3), (5, 6))
    """
    spans: list[Span] = []
    given = (pair for pair in pairs if pair[1] > pair[0])
    for start, end in given:
        if spans and start < spans[-1][0]:  # out of order: what is left has to be sorted
            return merged(sorted([*spans, (start, end), *given]))
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        else:
            spans.append((start, end))
    return tuple(spans)

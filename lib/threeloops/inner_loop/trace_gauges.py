"""Trace gauges: from a timeline to a handful of numbers. How much of the time does the device compute, and what is it
waiting for when it does not?

>>> from threeloops.inner_loop.trace import Interval, Trace
>>> kernels = [Interval(row="GPU", name="kernel", start_s=a, end_s=b) for a, b in ((0, 4), (6, 10))]
>>> reduce = Interval(row="network", name="all-reduce", start_s=3, end_s=5)
>>> read = gauges(Trace(intervals=(*kernels, reduce)))
>>> read.busy, round(read.idle, 3), read.exposed_communication
(0.8, 0.2, 0.1)
"""

import bisect
import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from threeloops.inner_loop.trace import (
    ALLOCATED,
    BATCH_WAIT,
    COMMUNICATION,
    COMPUTE,
    COPY,
    HOST,
    MEMORY_BUS,
    QUEUE_FULL,
    STEP,
    SYNC,
    TENSOR_CORES,
    Span,
    Trace,
    covered,
    merged,
)

Columns = tuple[Sequence[float], Sequence[float]]  # when a counter was read, and what it said
CAUSES = ("communication", "copies", "loader", "sync", "launches", "other")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """Shares of the time on the clock; `idle` is the sum of the causes."""

    span_s: float
    busy: float  # at least one kernel runs
    exposed_communication: float  # no kernel, but bytes on the network
    exposed_copies: float  # no kernel, but a copy to or from the device
    loader_wait: float  # no kernel, and the CPU waits for a batch
    after_sync: float  # no kernel in a pause that began while the CPU waited for the device
    launches: float  # no kernel, and the CPU is at work: the next one has not been asked for
    unexplained: float
    num_syncs: int
    median_kernel_s: float
    tensor_cores: float | None  # mean reading over all of the time; None if the trace has no such counter
    memory_bus: float | None
    growth_bytes_per_step: float | None  # of the lowest allocation within a step; None without steps or readings

    @property
    def idle(self) -> float:
        return 1 - self.busy

    @property
    def causes(self) -> dict[str, float]:
        """Idle time by what it was spent on, as shares of the time on the clock."""
        values = (
            self.exposed_communication,
            self.exposed_copies,
            self.loader_wait,
            self.after_sync,
            self.launches,
            self.unexplained,
        )
        return dict(zip(CAUSES, values, strict=True))


def gauges(trace: Trace) -> Gauges:
    """What a trace says about its device, whatever made the trace.

    Formula:  busy = length of the union of the kernels / length of the trace; every moment without a kernel goes to
              the first cause that fits, in the order of the fields; a pause belongs to a sync if it began while the
              CPU was in one
    Assumes:  one device; rows and names as in threeloops.inner_loop.trace; a moment with several causes counts for
              the first only, so that causes add up to the idle time
    Raises:   ValueError for a trace without kernels
    Source:   the breakdown into computation, communication and idle time by cause follows Holistic Trace Analysis
              (Meta, 2023, github.com/facebookresearch/HolisticTraceAnalysis)
    Counted:  simulate.inner_loop.training_timeline.play
    """
    kernels = trace.of(COMPUTE)
    if not kernels:
        raise ValueError(f"the trace has no interval in its row {COMPUTE!r}; gauges need at least one kernel")
    when = moments(trace)
    readings = {counter: _columns(trace, counter) for counter in (TENSOR_CORES, MEMORY_BUS, ALLOCATED)}
    return gauged(
        {cause: length(spans) for cause, spans in blamed(when).items()},
        computes_s=length(when.compute),
        span_s=trace.end_s - trace.start_s,
        num_syncs=len(trace.of(HOST, name=SYNC)),
        median_kernel_s=sorted(kernel.length_s for kernel in kernels)[len(kernels) // 2],
        steps=[(step.start_s, step.end_s) for step in trace.of(STEP)],
        readings=readings,
    )


def gauged(
    idle_s: Mapping[str, float],
    *,
    computes_s: float,
    span_s: float,
    num_syncs: int,
    median_kernel_s: float,
    steps: Sequence[Span],
    readings: Mapping[str, Columns],
) -> Gauges:
    """The same from seconds: idle ones by cause, and those that compute; `readings` are of counters, by their time."""
    share = {cause: idle_s[cause] / span_s for cause in CAUSES}
    return Gauges(
        span_s=span_s,
        busy=computes_s / span_s,
        exposed_communication=share["communication"],
        exposed_copies=share["copies"],
        loader_wait=share["loader"],
        after_sync=share["sync"],
        launches=share["launches"],
        unexplained=share["other"],
        num_syncs=num_syncs,
        median_kernel_s=median_kernel_s,
        tensor_cores=_mean(readings.get(TENSOR_CORES)),
        memory_bus=_mean(readings.get(MEMORY_BUS)),
        growth_bytes_per_step=_growth(steps, readings.get(ALLOCATED)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """When what ran, as separate spans in order."""

    whole: Span
    compute: tuple[Span, ...]
    communication: tuple[Span, ...]
    copies: tuple[Span, ...]
    host: Mapping[str, tuple[Span, ...]]  # by name

    @property
    def gaps(self) -> tuple[Span, ...]:
        """When nothing is computed."""
        return complement(self.compute, self.whole)

    def on_host(self, name: str) -> tuple[Span, ...]:
        return self.host.get(name, ())


def moments(trace: Trace) -> Moments:
    """A trace's rows, what runs at the same time in one of them taken together."""
    host = trace.of(HOST)
    return Moments(
        whole=(trace.start_s, trace.end_s),
        compute=covered(trace.of(COMPUTE)),
        communication=covered(trace.of(COMMUNICATION)),
        copies=covered(trace.of(COPY)),
        host={name: covered(one for one in host if one.name == name) for name in {one.name for one in host}},
    )


def length(spans: Sequence[Span]) -> float:
    """Seconds that separate spans last together."""
    return sum(end - start for start, end in spans)


def complement(spans: Sequence[Span], whole: Span) -> tuple[Span, ...]:
    """What lies between spans within a whole.

    >>> complement(((1, 2), (4, 5)), (0, 6))
    ((0, 1), (2, 4), (5, 6))
    """
    edges = [whole[0], *itertools.chain.from_iterable(spans), whole[1]]
    return tuple((start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if end > start)


def overlap(one: Sequence[Span], other: Sequence[Span]) -> tuple[Span, ...]:
    """The moments that belong to both of two lists of separate spans in order.

    >>> overlap(((0, 3), (5, 9)), ((2, 6),))
    ((2, 3), (5, 6))
    """
    found: list[Span] = []
    ours, theirs = iter(one), iter(other)
    here, there = next(ours, None), next(theirs, None)
    while here and there:  # comparisons rather than max and min: a large trace comes by here millions of times
        start = here[0] if here[0] > there[0] else there[0]
        if here[1] < there[1]:
            if here[1] > start:
                found.append((start, here[1]))
            here = next(ours, None)
        else:
            if there[1] > start:
                found.append((start, there[1]))
            there = next(theirs, None)
    return tuple(found)


def blamed(when: Moments) -> dict[str, tuple[Span, ...]]:
    """Pauses by their cause: each cause takes what the ones before it have left."""
    gaps = when.gaps
    at_work = [spans for name, spans in when.host.items() if name not in (BATCH_WAIT, SYNC, QUEUE_FULL)]
    takers = {
        "communication": when.communication,
        "copies": when.copies,
        "loader": when.on_host(BATCH_WAIT),
        "sync": tuple(gap for gap in gaps if holds(when.on_host(SYNC), gap[0])),
        "launches": at_work[0] if len(at_work) == 1 else merged(itertools.chain(*at_work)),
    }
    left, found = gaps, {}
    for cause, spans in takers.items():
        found[cause] = overlap(left, spans)
        left = overlap(left, complement(spans, when.whole)) if spans else left
    return found | {"other": left}


def holds(spans: Sequence[Span], moment: float) -> bool:
    """Whether a moment lies in one of the spans, ends included."""
    place = bisect.bisect_right(spans, (moment, float("inf"))) - 1
    return place >= 0 and spans[place][0] <= moment <= spans[place][1]


def _columns(trace: Trace, counter: str) -> Columns:
    """Moments and values of a counter's readings."""
    readings = trace.read(counter)
    return [reading.at_s for reading in readings], [reading.value for reading in readings]


def _mean(columns: Columns | None) -> float | None:
    """Mean of a counter's readings."""
    return sum(columns[1]) / len(columns[1]) if columns and columns[1] else None


def _growth(steps: Sequence[Span], columns: Columns | None) -> float | None:
    """Bytes by which the lowest allocation of a step lies above that of the step before, in the median: what is made
    once, like an optimiser's states, is no growth.
    """
    at, values = columns or ((), ())
    within = [slice(*(bisect.bisect_left(at, edge) for edge in step)) for step in steps]
    known = [min(values[part]) for part in within if part.start < part.stop]
    return statistics.median(after - before for before, after in itertools.pairwise(known)) if len(known) > 1 else None

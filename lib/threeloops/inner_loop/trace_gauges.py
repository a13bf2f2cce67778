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
from collections.abc import Sequence
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
)

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
    span = trace.end_s - trace.start_s
    busy = covered(kernels)
    gaps = complement(busy, (trace.start_s, trace.end_s))
    seconds = {cause: length(spans) for cause, spans in blamed(trace, gaps).items()}
    return Gauges(
        span_s=span,
        busy=length(busy) / span,
        exposed_communication=seconds["communication"] / span,
        exposed_copies=seconds["copies"] / span,
        loader_wait=seconds["loader"] / span,
        after_sync=seconds["sync"] / span,
        launches=seconds["launches"] / span,
        unexplained=seconds["other"] / span,
        num_syncs=len(trace.of(HOST, name=SYNC)),
        median_kernel_s=sorted(kernel.length_s for kernel in kernels)[len(kernels) // 2],
        tensor_cores=_mean(trace, TENSOR_CORES),
        memory_bus=_mean(trace, MEMORY_BUS),
        growth_bytes_per_step=_growth(trace),
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


def blamed(trace: Trace, gaps: Sequence[Span]) -> dict[str, tuple[Span, ...]]:
    """Pauses by their cause: each cause takes what the ones before it have left."""
    host = trace.of(HOST)
    waits = {name: covered(interval for interval in host if interval.name == name) for name in (BATCH_WAIT, SYNC)}
    takers = {
        "communication": covered(trace.of(COMMUNICATION)),
        "copies": covered(trace.of(COPY)),
        "loader": waits[BATCH_WAIT],
        "sync": tuple(gap for gap in gaps if holds(waits[SYNC], gap[0])),
        "launches": covered(interval for interval in host if interval.name not in (BATCH_WAIT, SYNC, QUEUE_FULL)),
    }
    left, found, whole = tuple(gaps), {}, (trace.start_s, trace.end_s)
    for cause, spans in takers.items():
        found[cause] = overlap(left, spans)
        left = overlap(left, complement(spans, whole)) if spans else left
    return found | {"other": left}


def holds(spans: Sequence[Span], moment: float) -> bool:
    """Whether a moment lies in one of the spans, ends included."""
    place = bisect.bisect_right(spans, (moment, float("inf"))) - 1
    return place >= 0 and spans[place][0] <= moment <= spans[place][1]


def _mean(trace: Trace, counter: str) -> float | None:
    """Mean of a counter's readings."""
    values = [reading.value for reading in trace.read(counter)]
    return sum(values) / len(values) if values else None


def _growth(trace: Trace) -> float | None:
    """Bytes by which the lowest allocation of a step lies above that of the step before, on average."""
    steps, readings = trace.of(STEP), trace.read(ALLOCATED)
    moments = [reading.at_s for reading in readings]
    within = [slice(*(bisect.bisect_left(moments, edge) for edge in (step.start_s, step.end_s))) for step in steps]
    lows = [min((reading.value for reading in readings[part]), default=None) for part in within]
    known = [low for low in lows if low is not None]
    return (known[-1] - known[0]) / (len(known) - 1) if len(known) > 1 else None

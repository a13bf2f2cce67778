"""Long pauses of a device: what the host did in them, an operator, a function or a call of the driver."""

import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator

from threeloops.inner_loop.profiled.nested_spans import innermost, pairs
from threeloops.inner_loop.profiled.rank_record import RankRecord, Spans
from threeloops.inner_loop.profiled.rank_timeline import LONG_S
from threeloops.inner_loop.trace import COMPUTE, Trace, covered
from threeloops.inner_loop.trace_gauges import complement


def long_host_work(record: RankRecord, trace: Trace) -> tuple[str, float]:
    """What took longest, by itself, in pauses of at least 1 ms: operator, short call, function; its seconds there."""
    called = {name for spans in record.calls.values() for name in spans.name}
    threads = record.launching_threads or record.operators.keys()
    return _longest_in_pauses(
        record,
        trace,
        (
            (start, end, name)
            for thread in threads
            for start, end, name in innermost(record.operators[thread], record.calls[thread], record.python[thread])
            if name not in called or end - start < LONG_S
        ),
    )


def long_driver_call(record: RankRecord, trace: Trace) -> tuple[str, float]:
    """Of the driver's calls of at least 1 ms, by name: what took longest in pauses of at least 1 ms."""
    return _longest_in_pauses(record, trace, (one for spans in record.calls.values() for one in _long_named(spans)))


def _long_named(spans: Spans) -> Iterator[tuple[float, float, int]]:
    return (
        (start, end, name) for (start, end), name in zip(pairs(spans), spans.name, strict=True) if end - start >= LONG_S
    )


def _longest_in_pauses(
    record: RankRecord, trace: Trace, spans: Iterable[tuple[float, float, int]]
) -> tuple[str, float]:
    gaps = complement(covered(trace.of(COMPUTE)), (trace.start_s, trace.end_s))
    long = [gap for gap in gaps if gap[1] - gap[0] >= LONG_S]
    found: dict[int, float] = defaultdict(float)
    for start, end, name in spans:
        place = bisect.bisect_right(long, start, key=lambda gap: gap[1])
        if place < len(long) and end > long[place][0]:
            found[name] += min(end, long[place][1]) - max(start, long[place][0])
    name = max(found, key=found.__getitem__, default=-1)
    return (record.names[name], found[name]) if name >= 0 else ("", 0.0)

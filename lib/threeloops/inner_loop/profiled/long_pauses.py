"""Long pauses of a device: what the host did in them, an operator, a function or a call of the driver."""

import bisect
import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence

from threeloops.inner_loop.profiled.nested_spans import innermost
from threeloops.inner_loop.profiled.rank_record import RankRecord
from threeloops.inner_loop.profiled.rank_timeline import LONG_S
from threeloops.inner_loop.profiled.span_columns import Spans, pairs
from threeloops.inner_loop.trace import Span


def long_host_work(record: RankRecord, long: Sequence[Span]) -> tuple[str, float]:
    """What took longest, by itself, in pauses of at least 1 ms: operator, short call, function; its seconds there."""
    called = {name for spans in record.calls.values() for name in spans.name}
    threads = record.launching_threads or record.operators.keys()
    columns = (record.operators, record.calls, record.python)
    ran = (innermost(*(_beside(some[thread], long) for some in columns)) for thread in threads)
    return _longest_in_pauses(
        record,
        long,
        (
            (start, end, name)
            for start, end, name in itertools.chain.from_iterable(ran)
            if name not in called or end - start < LONG_S
        ),
    )


def long_driver_call(record: RankRecord, long: Sequence[Span]) -> tuple[str, float]:
    """Of the driver's calls of at least 1 ms, by name: what took longest in pauses of at least 1 ms."""
    calls = (one for spans in record.calls.values() for one in zip(spans.start, spans.end, spans.name, strict=True))
    return _longest_in_pauses(record, long, (one for one in calls if one[1] - one[0] >= LONG_S))


def _beside(spans: Spans, long: Sequence[Span]) -> Spans:
    """Those that run in one of the pauses."""
    ends = [end for _, end in long]
    found = []
    for number, (start, end) in enumerate(pairs(spans)):
        place = bisect.bisect_right(ends, start)
        if place < len(long) and end > long[place][0]:
            found.append(number)
    return spans.picked(found)


def _longest_in_pauses(
    record: RankRecord, long: Sequence[Span], spans: Iterable[tuple[float, float, int]]
) -> tuple[str, float]:
    ends = [end for _, end in long]
    found: dict[int, float] = defaultdict(float)
    for start, end, name in spans:
        place = bisect.bisect_right(ends, start)
        while place < len(long) and end > long[place][0]:
            found[name] += min(end, long[place][1]) - max(start, long[place][0])
            place += 1
    name = max(found, key=found.__getitem__, default=-1)
    return (record.names[name], found[name]) if name >= 0 else ("", 0.0)

"""Rank parts: a record as stretches of time, one after the other, so that taking a large one apart needs little memory
beside its columns. It is cut where something computes, so that no pause is cut, and parts add up to the whole.
"""

import itertools
import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from threeloops.inner_loop.profiled.rank_record import DeviceRows, RankRecord
from threeloops.inner_loop.profiled.span_columns import Spans, pairs
from threeloops.inner_loop.trace import Span, merged
from threeloops.inner_loop.trace_gauges import holds
from threeloops.units import us

AT_ONCE = 200_000  # spans of a part, more or less
SAMPLED = 32  # spans of each part that are looked at for a place to cut
BESIDE_S = 100 * us  # a part has what runs so near to it, too: what is joined over so short a pause is joined at a cut


def parts(record: RankRecord, whole: Span, *, device: str, at_once: int = AT_ONCE) -> Iterator[tuple[RankRecord, Span]]:
    """Each part of a record and from when to when it is; a small record is its only part."""
    cuts = _cuts(record, whole, device, at_once)
    if not cuts:
        yield record, whole
        return
    rows = record.devices[device] if device else DeviceRows()
    alone = {name: getattr(record, name) for name in ("waits", "allocations", "loader", "compilations")}
    alone |= {"host_exchanges": record.host_exchanges}
    by_thread = {name: getattr(record, name) for name in ("operators", "python", "calls")}
    of_alone = {name: _places(spans, cuts) for name, spans in alone.items()}
    of_rows = {name: _places(getattr(rows, name), cuts) for name in ("kernels", "exchanges", "copies")}
    of_threads = {
        name: {thread: _places(spans, cuts) for thread, spans in threads.items()} for name, threads in by_thread.items()
    }
    edges = [whole[0], *cuts, whole[1]]
    for place, part in enumerate(itertools.pairwise(edges)):
        told: dict[str, Any] = {name: spans.picked(of_alone[name][place]) for name, spans in alone.items()}
        own = DeviceRows(**{name: getattr(rows, name).picked(of_rows[name][place]) for name in of_rows})
        told |= {
            name: {thread: spans.picked(of_threads[name][thread][place]) for thread, spans in some.items()}
            for name, some in by_thread.items()
        }
        yield replace(record, devices={device: own} if device else {}, **told), part


def _cuts(record: RankRecord, whole: Span, device: str, at_once: int) -> list[float]:
    """Moments at which something computes."""
    of_threads: list[Mapping[str, Spans]] = [record.operators, record.python, record.calls]
    number = sum(len(spans) for some in of_threads for spans in some.values()) + len(record.waits)
    computing = [record.devices[device].kernels] if device else list(record.operators.values())
    number += sum(map(len, computing)) if device else 0
    wanted = math.ceil(number / at_once)
    if wanted < 2:
        return []
    other = () if device else merged((*pairs(record.loader), *pairs(record.compilations)))
    step = max(1, sum(map(len, computing)) // (wanted * SAMPLED))
    sampled = sorted(
        {
            (start + end) / 2
            for spans in computing
            for start, end in zip(spans.start[::step], spans.end[::step], strict=True)
            if whole[0] < start < end < whole[1] and not holds(other, (start + end) / 2)
        }
    )
    every = max(1, len(sampled) // wanted)
    return sampled[every::every]


def _places(spans: Spans, cuts: Sequence[float]) -> list["array[int]"]:
    """For each part, which of the spans run in it or next to it."""
    found = [array("I") for _ in range(len(cuts) + 1)]
    low, high, add = math.inf, -math.inf, found[0].append
    for number, (start, end) in enumerate(pairs(spans)):
        if low <= start and end < high:  # as nearly all are: within the part of the one before
            add(number)
            continue
        first, last = bisect_left(cuts, start - BESIDE_S), bisect_right(cuts, end + BESIDE_S)
        for place in range(first, last + 1):
            found[place].append(number)
        if first == last:
            low = cuts[first - 1] + BESIDE_S if first else -math.inf
            high = cuts[first] - BESIDE_S if first < len(cuts) else math.inf
            add = found[first].append
    return found

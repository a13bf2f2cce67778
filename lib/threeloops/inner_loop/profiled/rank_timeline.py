"""Rank timeline: from what a profiler wrote about a rank to the rows that the gauges of this book read, and its kernels
by family.

>>> from threeloops.inner_loop.profiled.rank_record import recorded
>>> from threeloops.inner_loop.trace_gauges import gauges
>>> bars = [
...     ("kernel", "gemm", 0, 60),
...     ("kernel", "ncclDevKernel_AllReduce", 50, 30),
...     ("gpu_memcpy", "Memcpy HtoD", 90, 10),
... ]
>>> events = [{"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur} for cat, name, ts, dur in bars]
>>> read = gauges(timeline(recorded(events, name="t.json")))
>>> [round(share, 6) for share in (read.busy, read.exposed_communication, read.exposed_copies, read.unexplained)]
[0.6, 0.2, 0.1, 0.1]
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from threeloops.facts.traced_steps import REST, Traced, cause_of
from threeloops.inner_loop.profiled.nested_spans import alone, pairs
from threeloops.inner_loop.profiled.rank_record import GRAPH, DeviceRows, RankRecord, Spans
from threeloops.inner_loop.trace import (
    BATCH_WAIT,
    COMMUNICATION,
    COMPUTE,
    COPY,
    HOST,
    STEP,
    SYNC,
    Interval,
    Reading,
    Span,
    Trace,
    merged,
)
from threeloops.inner_loop.trace_gauges import complement, holds, overlap
from threeloops.units import ms, us

WHOLE_GRAPHS = "whole graphs"  # a family: CUDA graphs of which a report has no kernels
RECORDED = "recorded"  # a row: all of a record in which no step is marked
LAUNCH, ALLOCATE, COMPILE, AT_WORK = "launch", "allocate", "compile", "Python at work"
LONG_CALL = "long call"  # of the driver, that neither waits for the device nor asks for memory
LONG_S = 1 * ms  # what lasts so long is no matter of asking for kernels one by one
# Between two operators Python runs, and no profiler without stacks writes that down. What is shorter than this is
# taken for it; what is longer stays unexplained.
BRIDGED_S = 100 * us
SHORT_S = 10 * us  # a kernel that takes about as long as it takes to ask for it
EXCHANGES = {
    **{"allreduce": "all-reduce", "crossdevicereduce": "all-reduce", "reducescatter": "reduce-scatter"},
    **{"allgather": "all-gather", "alltoall": "all-to-all", "sendrecv": "send and receive", "broadcast": "broadcast"},
}
# What an operator is for, where no kernel says it: from words of its name, in this order.
OPERATORS = {
    "exchanges": ("c10d::",),
    "optimiser": ("Optimizer", "_fused_adam", "_fused_sgd", "_foreach_"),
    "attention": ("attention", "flash"),
    "convolutions": ("conv",),
    "products": ("aten::mm", "addmm", "bmm", "_scaled_mm", "linear", "matmul", "aten::mv", "addmv", "aten::dot"),
    "loss": ("softmax", "nll_loss", "cross_entropy"),
    "norms": ("layer_norm", "rms_norm", "batch_norm", "group_norm"),
    "embeddings": ("embedding", "index_select"),
    "casts and copies": ("copy", "aten::to", "contiguous", "aten::cat", "aten::stack", "clone"),
}


class Pauses(NamedTuple):
    """Moments in which a device does nothing at all, of one order of length."""

    below_s: float
    number: int
    seconds: float


def device_of(record: RankRecord) -> str:
    """The device of a record that computed longest; empty where none did, so that its operators are looked at."""
    busiest = max(record.devices, key=lambda key: record.devices[key].kernels.seconds, default="")
    return busiest if busiest and len(record.devices[busiest].kernels) else ""


def operator_family(name: str) -> str:
    """What an operator of a CPU is for.

    >>> operator_family("aten::addmm"), operator_family("aten::relu")
    ('products', 'other vector work')
    """
    return next((family for family, words in OPERATORS.items() if any(word in name for word in words)), REST)


def window(record: RankRecord) -> Span:
    """From the first step that the profiler marked to the end of the last and of its kernels; without steps, all."""
    device = device_of(record)
    rows = record.devices[device] if device else DeviceRows()
    on_device = (rows.kernels, rows.exchanges, rows.copies)
    ends = [max(spans.end) for spans in on_device if len(spans)]
    if record.steps:
        return min(start for _, start, _ in record.steps), max([end for _, _, end in record.steps] + ends)
    of_host = [*record.operators.values(), *record.calls.values(), record.waits, record.allocations]
    of_host += [record.loader, record.compilations, record.host_exchanges]
    every = [spans for spans in (*on_device, *of_host) if len(spans)]
    return min(min(spans.start) for spans in every), max(max(spans.end) for spans in every)


def timeline(record: RankRecord) -> Trace:
    """The rows of inner_loop.trace: what runs at the same time in a row is one interval there.

    Of a device: kernels, copies over the bus, exchanges, and what the threads that launch were doing. Without a device,
    operators stand for kernels, and a pause of up to 100 µs between them for the asking.
    """
    whole = window(record)
    device = device_of(record)
    rows = _device_rows(record, record.devices[device]) if device else _operator_rows(record, whole)
    intervals = [
        Interval(row=row, name=name, start_s=start, end_s=end) for (row, name), spans in rows for start, end in spans
    ]
    intervals += [Interval(row=STEP, name=f"step {n}", start_s=start, end_s=end) for n, start, end in record.steps]
    if not record.steps:  # what lasts no time, and is no interval, still says from when to when was recorded
        intervals.append(Interval(row=RECORDED, name=record.name, start_s=whole[0], end_s=whole[1]))
    readings = [
        Reading(counter=counter, at_s=at, value=value)
        for counter, columns in record.readings.items()
        for at, value in zip(*columns, strict=True)
        if value >= 0
    ]
    return Trace(intervals=tuple(intervals), readings=tuple(readings)).between(*whole)


Rows = Iterator[tuple[tuple[str, str], Iterable[Span]]]


def _device_rows(record: RankRecord, rows: DeviceRows) -> Rows:
    yield (COMPUTE, "kernel"), merged(pairs(rows.kernels))
    yield (COMMUNICATION, "exchange"), merged(pairs(rows.exchanges))
    yield (COPY, "copy"), merged(pairs(rows.copies))
    yield (HOST, BATCH_WAIT), merged(pairs(record.loader))
    yield (HOST, SYNC), pairs(record.waits)
    yield (HOST, COMPILE), merged(pairs(record.compilations))
    allocating = merged(pairs(record.allocations))
    yield (HOST, ALLOCATE), allocating
    yield (HOST, LONG_CALL), merged(pair for spans in record.calls.values() for pair in long_ones(spans))
    threads = record.launching_threads or record.operators.keys()
    of_threads = [pairs(spans) for thread, spans in record.operators.items() if thread in threads]
    of_threads += map(pairs, (*record.calls.values(), record.compilations))
    of_threads += [pairs(spans) for thread, spans in record.python.items() if thread in threads]
    yield (HOST, LAUNCH), _bridged(merged(itertools.chain(*of_threads, allocating)))


def long_ones(spans: Spans) -> Iterator[Span]:
    """Those of at least 1 ms."""
    return ((start, end) for start, end in pairs(spans) if end - start >= LONG_S)


def _operator_rows(record: RankRecord, whole: Span) -> Rows:
    loading, exchanging, compiling = (
        merged(pairs(spans)) for spans in (record.loader, record.host_exchanges, record.compilations)
    )
    other = merged((*loading, *compiling))
    own = (pair for spans in record.operators.values() for pair in _own(record, spans))
    working = overlap(merged(own), complement(other, whole)) if other else merged(own)
    yield (COMPUTE, "operator"), working
    yield (COMMUNICATION, "exchange"), exchanging
    yield (HOST, BATCH_WAIT), loading
    yield (HOST, COMPILE), compiling
    pauses = complement(merged((*working, *exchanging, *other)), whole)
    yield (HOST, LAUNCH), (pause for pause in pauses if pause[1] - pause[0] <= BRIDGED_S)
    python = merged(
        pair for thread, spans in record.python.items() if thread in record.operators for pair in pairs(spans)
    )
    yield (HOST, AT_WORK), overlap([pause for pause in pauses if pause[1] - pause[0] > BRIDGED_S], python)


def _own(record: RankRecord, spans: Spans) -> Iterator[Span]:
    """Operators that are no asking for an exchange."""
    asking = {number for number, name in enumerate(record.names) if operator_family(name) == "exchanges"}
    return (pair for pair, name in zip(pairs(spans), spans.name, strict=True) if name not in asking)


def _bridged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Spans, and what lies between two that are near to each other."""
    near = ((before[1], after[0]) for before, after in itertools.pairwise(spans) if after[0] - before[1] <= BRIDGED_S)
    return merged((*spans, *near))


def kernels_by_name(record: RankRecord, within: Span) -> dict[str, Traced]:
    """Kernels, or operators without those inside them, that begin in a window: how many and how long, the longest
    first.
    """
    device = device_of(record)
    found: dict[int, list[float]] = defaultdict(lambda: [0, 0.0])
    spans_of = [alone(spans) for spans in record.operators.values()]
    if device:
        kernels = record.devices[device].kernels
        lengths = (end - start for start, end in pairs(kernels))
        spans_of = [zip(kernels.start, kernels.name, lengths, strict=True)]
    other = () if device else merged((*pairs(record.loader), *pairs(record.compilations)))
    for start, name, seconds in itertools.chain(*spans_of):
        if within[0] <= start <= within[1] and not holds(other, start):
            found[name][0] += 1
            found[name][1] += seconds
    longest = sorted(found.items(), key=lambda item: -item[1][1])
    return {record.names[name]: Traced(int(number), seconds) for name, (number, seconds) in longest}


def families(record: RankRecord, by_name: dict[str, Traced]) -> dict[str, Traced]:
    """The same by what they are for, the longest first."""
    family_of = kernel_family if device_of(record) else operator_family
    found: dict[str, Traced] = {}
    for name, (number, seconds) in by_name.items():
        before = found.get(family_of(name), Traced(0, 0.0))
        found[family_of(name)] = Traced(before.kernels + number, before.seconds + seconds)
    return dict(sorted(found.items(), key=lambda item: -item[1].seconds))


def kernel_family(name: str) -> str:
    """What a kernel is for; of a graph that was recorded as a whole it is not known.

    >>> kernel_family("CUDA graph 12"), kernel_family("nvjet_tst_128x256")
    ('whole graphs', 'products')
    """
    return WHOLE_GRAPHS if name.startswith(GRAPH) else cause_of(name)


def exchanges_by_kind(record: RankRecord, within: Span) -> dict[str, Traced]:
    """Exchanges that begin in a window, by what they do, hidden or not: how many and how long, the longest first."""
    device = device_of(record)
    spans = record.devices[device].exchanges if device else record.host_exchanges
    found: dict[str, Traced] = {}
    for start, end, name in zip(spans.start, spans.end, spans.name, strict=True):
        if within[0] <= start <= within[1]:
            kind = exchange_kind(record.names[name])
            before = found.get(kind, Traced(0, 0.0))
            found[kind] = Traced(before.kernels + 1, before.seconds + end - start)
    return dict(sorted(found.items(), key=lambda item: -item[1].seconds))


def exchange_kind(name: str) -> str:
    """What an exchange does, by its kernel's name or its backend's note.

    >>> exchange_kind("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
    'all-reduce'
    >>> exchange_kind("gloo:all_gather"), exchange_kind("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t")
    ('all-gather', 'send and receive')
    """
    plain = name.lower().replace("_", "")
    return next((kind for word, kind in EXCHANGES.items() if word in plain), "other exchanges")


def pauses_by_length(trace: Trace) -> tuple[Pauses, ...]:
    """Pauses in which nothing runs, nothing is copied and nothing exchanged, by powers of ten."""
    working = merged((one.start_s, one.end_s) for one in trace.of(COMPUTE, COPY, COMMUNICATION))
    lengths = [end - start for start, end in complement(working, (trace.start_s, trace.end_s))]
    edges = (0.0, 10 * us, 100 * us, 1 * ms, float("inf"))
    return tuple(
        Pauses(high, len(some), sum(some))
        for low, high in itertools.pairwise(edges)
        for some in ([length for length in lengths if low <= length < high],)
    )


def kernel_lengths(record: RankRecord) -> tuple[float, float]:
    """Median seconds of a device's kernels, and the share of them that are shorter than 10 µs."""
    kernels = record.devices[device_of(record)].kernels
    lengths = [end - start for start, end in pairs(kernels)]
    return median(lengths), sum(length < SHORT_S for length in lengths) / len(lengths)

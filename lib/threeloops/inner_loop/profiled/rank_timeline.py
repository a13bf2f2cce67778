"""Rank timeline: from what a profiler wrote about a rank to the rows that the gauges of this book read, and its kernels
by family.

>>> from threeloops.inner_loop.profiled.rank_record import recorded
>>> from threeloops.inner_loop.trace_gauges import blamed, length
>>> bars = [
...     ("kernel", "gemm", 0, 60),
...     ("kernel", "ncclDevKernel_AllReduce", 50, 30),
...     ("gpu_memcpy", "Memcpy HtoD", 90, 10),
... ]
>>> events = [{"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur} for cat, name, ts, dur in bars]
>>> when = moments_in(record := recorded(events, name="t.json"), window(record))
>>> round(length(when.compute) * 1e6), {cause: round(length(spans) * 1e6) for cause, spans in blamed(when).items()}
(60, {'communication': 20, 'copies': 10, 'loader': 0, 'sync': 0, 'launches': 0, 'other': 10})
"""

import bisect
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from threeloops.facts.traced_steps import REST, Traced, cause_of
from threeloops.inner_loop.profiled.nested_spans import alone
from threeloops.inner_loop.profiled.rank_record import GRAPH, DeviceRows, RankRecord
from threeloops.inner_loop.profiled.span_columns import Spans, pairs
from threeloops.inner_loop.trace import BATCH_WAIT, SYNC, Span, merged
from threeloops.inner_loop.trace_gauges import Moments, complement, holds, overlap
from threeloops.units import ms, ns, us

WHOLE_GRAPHS = "whole graphs"  # a family: CUDA graphs of which a report has no kernels
UNNAMED = "not told by their names"  # a family: what may be anything, a matmul or a pass over memory
# What says of a kernel that it passes over memory: whose it is, or a word of its name; of an operator, its library.
PASSES = re.compile(
    r"at::native|triton_(poi|red|per|for)_|elementwise|vectorized|unrolled|fbgemm|loop_|SubTensorOp|im2d?2?col|kvcache|"
    r"(?<![a-z])(re?duce|reduction|scan|sort|gather|scatter|index|fill|where|topk|dropout|rotary|rope|silu|gelu|relu|act|"
    r"quant|dequant|sampl\w*|argmax|argmin|cumsum|arange|rand\w*|transpose|permute|pool\w*|upsample\w*|cat|concat|add|mul|"
    r"sub|div|clamp|mean|sum|mask|cast|convert|pad|nonzero|unique|sigmoid|tanh|exp|sqrt|compare|memcpy|memset)(?![a-z])",
    re.I,
)
LIBRARIES = re.compile(r"aten::|prims::|torchvision::|torchaudio::|quantized::|.*_fused_")
LAUNCH, ALLOCATE, COMPILE, AT_WORK = "launch", "allocate", "compile", "Python at work"
LONG_CALL = "long call"  # of the driver, that asks for no memory
LONG_S = 1 * ms  # what lasts so long is no matter of asking for kernels one by one
# Between two operators Python runs, and no profiler without stacks writes that down. What is shorter than this is
# taken for it; what is longer stays unexplained.
BRIDGED_S = 100 * us
NAMED = 60  # characters of a kernel's name in a sentence
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
    "matmuls": ("aten::mm", "addmm", "bmm", "_scaled_mm", "linear", "matmul", "aten::mv", "addmv", "aten::dot"),
    "loss": ("softmax", "nll_loss", "cross_entropy"),
    "norms": ("layer_norm", "rms_norm", "batch_norm", "group_norm"),
    "embeddings": ("embedding", "index_select"),
    "casts and copies": ("copy", "aten::to", "contiguous", "aten::cat", "aten::stack", "clone"),
}


def device_of(record: RankRecord) -> str:
    """The device of a record that computed longest; empty where none did, so that its operators are looked at."""
    busiest = max(record.devices, key=lambda key: record.devices[key].kernels.seconds, default="")
    return busiest if busiest and len(record.devices[busiest].kernels) else ""


def operator_family(name: str) -> str:
    """What an operator of a CPU is for.

    >>> operator_family("aten::addmm"), operator_family("aten::relu"), operator_family("mine::step")
    ('matmuls', 'other vector work', 'not told by their names')
    """
    rest = REST if LIBRARIES.match(name) else UNNAMED
    return next((family for family, words in OPERATORS.items() if any(word in name for word in words)), rest)


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


def moments_in(record: RankRecord, part: Span) -> Moments:
    """What ran when, in a part of a record: its rows as inner_loop.trace_gauges reads them.

    Of a device: kernels, copies over the bus, exchanges, and what the threads that launch were doing. Without a device,
    operators stand for kernels, and a pause of up to 100 µs between them for the asking.
    """
    device = device_of(record)
    return _of_device(record, record.devices[device], part) if device else _of_operators(record, part)


def _within(part: Span, spans: Iterable[Span]) -> tuple[Span, ...]:
    """What of separate spans lies in a part."""
    low, high = part
    return tuple(
        (start if start > low else low, end if end < high else high)
        for start, end in spans if end > low and start < high
    )  # fmt: skip


def _of_device(record: RankRecord, rows: DeviceRows, part: Span) -> Moments:
    threads = record.launching_threads or record.operators.keys()
    of_threads = [pairs(spans) for thread, spans in record.operators.items() if thread in threads]
    of_threads += map(pairs, (*record.calls.values(), record.compilations, record.allocations))
    of_threads += [pairs(spans) for thread, spans in record.python.items() if thread in threads]
    calls = itertools.chain(*map(pairs, (*record.calls.values(), record.waits)))
    long_calls = (call for call in calls if call[1] - call[0] >= LONG_S)
    host = {
        BATCH_WAIT: pairs(record.loader),
        SYNC: pairs(record.waits),
        COMPILE: pairs(record.compilations),
        ALLOCATE: pairs(record.allocations),
        LONG_CALL: long_calls,
        LAUNCH: _bridged(merged(itertools.chain(*of_threads))),
    }
    return Moments(
        whole=part,
        compute=_within(part, merged(pairs(rows.kernels))),
        communication=_within(part, merged(pairs(rows.exchanges))),
        copies=_within(part, merged(pairs(rows.copies))),
        host={name: _within(part, spans if name == LAUNCH else merged(spans)) for name, spans in host.items()},
    )


def _of_operators(record: RankRecord, part: Span) -> Moments:
    loading, exchanging, compiling = (
        _within(part, merged(pairs(spans))) for spans in (record.loader, record.host_exchanges, record.compilations)
    )
    other = merged((*loading, *compiling))
    own = _within(part, merged(pair for spans in record.operators.values() for pair in _own(record, spans)))
    working = overlap(own, complement(other, part)) if other else own
    pauses = complement(merged((*working, *exchanging, *other)), part)
    python = merged(
        pair for thread, spans in record.python.items() if thread in record.operators for pair in pairs(spans)
    )
    host = {
        BATCH_WAIT: loading,
        COMPILE: compiling,
        LAUNCH: tuple(pause for pause in pauses if pause[1] - pause[0] <= BRIDGED_S),
        AT_WORK: overlap([pause for pause in pauses if pause[1] - pause[0] > BRIDGED_S], python),
    }
    return Moments(whole=part, compute=working, communication=exchanging, copies=(), host=host)


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


def longest_of(record: RankRecord, by_name: Mapping[str, Traced]) -> dict[str, str]:
    """The name in each family that took longest, as far as a line holds it."""
    family_of = kernel_family if device_of(record) else operator_family
    return {family_of(name): name if len(name) <= NAMED else f"{name[: NAMED - 1]}…" for name in reversed([*by_name])}


def kernel_family(name: str) -> str:
    """What a kernel is for, as far as its name tells; of a graph that was recorded as a whole nothing does.

    >>> kernel_family("CUDA graph 12"), kernel_family("nvjet_tst_128x256")
    ('whole graphs', 'matmuls')
    >>> kernel_family("triton_poi_fused_gelu_2"), kernel_family("kernel_3(float*)")
    ('other vector work', 'not told by their names')
    """
    if name.startswith(GRAPH):
        return WHOLE_GRAPHS
    cause = cause_of(name)
    return UNNAMED if cause == REST and not PASSES.search(name) else cause


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


def pauses_in(when: Moments) -> Iterator[float]:
    """Lengths of the pauses in which nothing runs, nothing is copied and nothing exchanged; what is shorter than half a
    nanosecond, as finely as files say it, is rounding.
    """
    working = merged((*when.compute, *when.copies, *when.communication))
    return (end - start for start, end in complement(working, when.whole) if end - start > ns / 2)


def kernel_lengths(record: RankRecord) -> tuple[float, float]:
    """Median seconds of a device's kernels, to a nanosecond, and the share of them that are shorter than 10 µs."""
    kernels = record.devices[device_of(record)].kernels
    number_of = Counter(round((end - start) / ns) for start, end in pairs(kernels))
    short = sum(number for length, number in number_of.items() if length * ns < SHORT_S)
    return _median(number_of) * ns, short / len(kernels)


def _median(number_of: Mapping[int, int]) -> float:
    """Of values that come so many times each."""
    values = sorted(number_of)
    ends = list(itertools.accumulate(number_of[value] for value in values))
    low, high = (values[bisect.bisect_right(ends, place)] for place in ((ends[-1] - 1) // 2, ends[-1] // 2))
    return (low + high) / 2

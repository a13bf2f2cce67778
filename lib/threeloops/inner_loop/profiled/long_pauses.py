"""Long pauses of a device: what the host did in them, an operator, a function or a call of the driver."""

import bisect
import itertools
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from threeloops.inner_loop.profiled.nested_spans import Row, innermost, rows_in_order
from threeloops.inner_loop.profiled.rank_record import RankRecord
from threeloops.inner_loop.profiled.rank_timeline import LONG_S
from threeloops.inner_loop.profiled.span_columns import Spans
from threeloops.inner_loop.trace import Span

FUNCTION = re.compile(
    r"/?([\w.-]+?)(?:/[^(]*)?(?:\.py)?\(\d+\): "
)  # of a Python file: its outermost folder, or its name
INSTALLED = re.compile(r"(site|dist)-packages/|/lib/python3")
LIBRARIES = {  # whose functions are nobody's own
    *sys.stdlib_module_names,
    *("torch", "torchvision", "torchaudio", "triton", "numpy", "scipy", "pandas", "PIL", "transformers", "datasets"),
    *("accelerate", "peft", "tokenizers", "huggingface_hub", "lightning", "pytorch_lightning", "deepspeed", "vllm"),
}


def long_host_work(record: RankRecord, long: Sequence[Span]) -> tuple[str, float]:
    """What took longest in pauses of at least 1 ms, and its seconds there: the function of the reader's own that ran,
    with what most of it was spent in; where no function was recorded an operator or a short call, by itself.
    """
    called = {name for spans in record.calls.values() for name in spans.name}
    threads = record.launching_threads or record.operators.keys()
    columns = (record.operators, record.calls, record.python)
    own = {number for number, name in enumerate(record.names) if _own(name)}
    ran = (innermost(*(_beside(some[thread], long) for some in columns), own=own) for thread in threads)
    return _longest_in_pauses(
        record,
        long,
        (
            (start, end, name, name if inside < 0 else inside)
            for start, end, name, inside in itertools.chain.from_iterable(ran)
            if name not in called or end - start < LONG_S
        ),
    )


def _own(name: str) -> bool:
    """Whether a function is in a file of the reader's own, and no library's: its path as torch's profiler cuts it.

    >>> [_own(one) for one in ("train.py(12): step", "json/encoder.py(205): iterencode", "<built-in method join>")]
    [True, False, False]
    """
    found = FUNCTION.match(name)
    return found is not None and found[1] not in LIBRARIES and not INSTALLED.search(name)


def long_driver_call(record: RankRecord, long: Sequence[Span]) -> tuple[str, float]:
    """Of the driver's calls of at least 1 ms, by name: what took longest in pauses of at least 1 ms."""
    of_driver = (*record.calls.values(), record.waits)
    calls = (row for spans in of_driver for row in zip(spans.start, spans.end, spans.name, strict=True))
    return _longest_in_pauses(record, long, ((*row, row[2]) for row in calls if row[1] - row[0] >= LONG_S))


def _beside(spans: Spans, long: Sequence[Span]) -> Iterator[Row]:
    """Those that run in one of the pauses, in order."""
    ends = [end for _, end in long]
    for row in rows_in_order(spans):
        place = bisect.bisect_right(ends, row[0])
        if place < len(long) and row[1] > long[place][0]:
            yield row


def _longest_in_pauses(
    record: RankRecord, long: Sequence[Span], spans: Iterable[tuple[float, float, int, int]]
) -> tuple[str, float]:
    """Of spans with two names, the second name that they lasted longest under, and the first that most of it had."""
    ends = [end for _, end in long]
    found: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for start, end, name, under in spans:
        place = bisect.bisect_right(ends, start)
        while place < len(long) and end > long[place][0]:
            found[under][name] += min(end, long[place][1]) - max(start, long[place][0])
            place += 1
    if not found:
        return "", 0.0
    under = max(found, key=lambda name: sum(found[name].values()))
    most = max(found[under], key=found[under].__getitem__)
    said = record.names[under] if most == under else f"{record.names[under]}, most of it in {record.names[most]}"
    return said, sum(found[under].values())

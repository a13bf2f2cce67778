"""Written trace: a trace of this book as a file in the form of torch's profiler, for any viewer and for the reader of
such files.

>>> from threeloops.inner_loop.profiled.rank_record import recorded
>>> from threeloops.inner_loop.trace import COMPUTE, Interval
>>> told = chrome_events(Trace(intervals=(Interval(row=COMPUTE, name="matmul", start_s=0, end_s=1e-3),)))
>>> record = recorded(told, name="t.json")
>>> round(record.devices["0"].kernels.seconds, 9), record.names
(0.001, ['matmul_gemm'])
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from threeloops.inner_loop.profiled.rank_record import CALL, COPY, KERNEL, LOADERS, NOTE, OPERATOR
from threeloops.inner_loop.profiled.rank_record import STEP as STEP_NAME
from threeloops.inner_loop.trace import (
    ALLOCATED,
    BATCH_WAIT,
    COMMUNICATION,
    COMPUTE,
    HOST,
    QUEUE_FULL,
    RESERVED,
    STEP,
    SYNC,
    Interval,
    Trace,
)
from threeloops.inner_loop.trace import COPY as COPIES
from threeloops.units import us

PROGRAM, WORKER, DEVICE = 1, 2, 0  # processes of the file, and the device's number
STREAMS = {COMPUTE: 7, COPIES: 20, COMMUNICATION: 24}
# What a row's names become, so that a reader of the file knows what they are.
KERNELS = {"matmul": "matmul_gemm", "vector": "vector_elementwise", "optimiser": "optimiser_multi_tensor_apply"}
BEGINS = '{"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": ['  # no profiler's file does
CALLS = {SYNC: "cudaDeviceSynchronize", "launch": "cudaLaunchKernel", QUEUE_FULL: "cudaLaunchKernel"}


def chrome_events(trace: Trace) -> Iterator[dict[str, Any]]:
    """A trace's intervals and readings as events, in microseconds."""
    for pid, name in ((DEVICE, "GPU 0"), (PROGRAM, "training program"), (WORKER, "loader's worker")):
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": name}}
    for one in trace.intervals:
        yield {"ph": "X", **_spelt(one), "ts": one.start_s / us, "dur": one.length_s / us}
    reserved = {reading.at_s: reading.value for reading in trace.read(RESERVED)}
    for reading in trace.readings:
        stamp = {"pid": PROGRAM, "tid": PROGRAM, "ts": reading.at_s / us}
        if reading.counter == ALLOCATED:
            told = {
                "Device Type": 1,
                "Total Allocated": reading.value,
                "Total Reserved": reserved.get(reading.at_s, 0.0),
            }
            yield {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", **stamp, "args": told}
        elif reading.counter != RESERVED:
            yield {"ph": "C", "name": reading.counter, **stamp, "args": {"value": reading.value}}


def _spelt(one: Interval) -> dict[str, Any]:
    """Category, name and place of an interval, as torch's profiler would have it."""
    on_device = {"pid": DEVICE, "tid": STREAMS.get(one.row, 0)}
    of_program = {"pid": PROGRAM, "tid": PROGRAM}
    if one.row == COMPUTE:
        return {"cat": KERNEL, "name": KERNELS.get(one.name, one.name), **on_device, "args": {"device": DEVICE}}
    if one.row == COMMUNICATION:
        return {"cat": KERNEL, "name": "ncclDevKernel_AllReduce", **on_device, "args": {"device": DEVICE}}
    if one.row == COPIES:
        return {"cat": COPY, "name": "Memcpy HtoD (Pinned -> Device)", **on_device, "args": {"device": DEVICE}}
    if one.row == STEP:
        return {"cat": NOTE, "name": STEP_NAME + one.name.removeprefix("step "), **of_program}
    if one.row == HOST and one.name == BATCH_WAIT:
        return {"cat": NOTE, "name": LOADERS[0] + "_MultiProcessingDataLoaderIter.__next__", **of_program}
    if one.row == HOST:
        return {"cat": CALL if one.name in CALLS else OPERATOR, "name": CALLS.get(one.name, one.name), **of_program}
    return {"cat": NOTE, "name": one.name, "pid": WORKER, "tid": one.row}


def write_trace(trace: Trace, path: Path) -> None:
    """One event a line; packed if the name ends in .gz.

    Raises:   ValueError for a file that is there, and was not written here: it may be somebody's own
    """
    if path.exists() and not _written_here(path):
        raise ValueError(f"{path} is there already, and holds no simulated job; give a name that is free")
    lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in chrome_events(trace))
    text = f"{BEGINS}\n{lines}\n]}}\n"
    data = text.encode("utf-8")
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def _written_here(path: Path) -> bool:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return file.read(len(BEGINS)) == BEGINS.encode()
    except (OSError, EOFError, zlib.error):
        return False

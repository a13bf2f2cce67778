"""Rank record: what torch's profiler wrote about one rank, as columns: kernels, copies, exchanges, operators, calls of
the driver, steps.

>>> lines = [
...     {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 1, "tid": 1, "ts": 10.0, "dur": 64.0},
...     {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20.0, "dur": 5.0, "args": {"device": 0}},
... ]
>>> record = recorded(lines, name="t.json")
>>> [step for step, _, _ in record.steps], [record.names[one] for one in record.devices["0"].kernels.name]
(['3'], ['gemm'])

Source: PyTorch, torch.profiler, and Kineto, libkineto/src/output_json.cpp (categories, "External id", times in
        microseconds whatever displayTimeUnit says); torch/utils/data/dataloader.py (the name of a loader's wait)
"""

import functools
import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from threeloops.inner_loop.profiled.event_stream import LONGEST_SAID, EventStream
from threeloops.inner_loop.profiled.span_columns import Spans
from threeloops.units import us

# Categories of today, and of traces before torch 1.13; Python's functions where with_stack=True recorded them.
KERNEL, COPY, SET, PYTHON = "kernel", "gpu_memcpy", "gpu_memset", "python_function"
CALL, OPERATOR, NOTE = "cuda_runtime", "cpu_op", "user_annotation"
SPELT = {
    **{name: name for name in (KERNEL, COPY, SET, CALL, OPERATOR, NOTE, PYTHON)},
    **{"Kernel": KERNEL, "Memcpy": COPY, "Memset": SET, "Runtime": CALL, "Operator": OPERATOR, "cuda_driver": CALL},
    **{"hip_runtime": CALL, "xpu_runtime": CALL, "privateuse1_runtime": CALL, "mtia_runtime": CALL},
}
# Meta's MTIA has one category for all that its device does: what is neither a copy nor waits is a kernel.
MTIA, OF_MTIA = "mtia_ccp_events", {"dma_request": COPY, "event_wait": "", "event_record": ""}
# What says nothing that is not said elsewhere: arrows, a note once more on the device.
KNOWN = {
    *("ac2g", "async_cpu_to_gpu", "async_gpu", "fwdbwd", "gpu_user_annotation", "Trace", "overhead"),
    *("cuda_sync", "cpu_instant_event", "cuda_profiler_range", MTIA),
}
ON_HOST = " on the host"  # ends the name of a counter of the host's memory
OF_MEMORY = {1: "", 0: ON_HOST}  # torch's numbers of a GPU and of a CPU
GRAPH = "CUDA graph "  # begins the name of a graph that was recorded as a whole
TORCH = "torch.profiler's Chrome trace (Kineto, libkineto/src/output_json.cpp)"
LARGEST_RANK, LASTS = 10_000_000, "it lasts, from "
STEP, LOADERS = "ProfilerStep#", ("enumerate(DataLoader)#", "enumerate(DataPipe)#")
EXCHANGE = re.compile(
    r"nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|cross_device_reduce|nvshmem|deep_ep|multimem", re.I
)
HOST_EXCHANGE = re.compile(r"(gloo|mpi|ucc):")  # a backend that needs no GPU
COMPILING = re.compile(r"compile_inner.*\(dynamo_timed\)$")  # torch.compile, once for every graph that it makes
BLOCKING = re.compile(r"Synchronize$|^synchronize|^(cuda|hip)Memcpy$|^hipMemcpyWithStream$|^cuMemcpy(HtoD|DtoH)$")
ALLOCATING = re.compile(r"Malloc|Free|HostAlloc|HostRegister|^cuMem(Create|Map|Unmap|Release|SetAccess|AddressReserve)")
LAUNCHING = re.compile(r"Launch|^runFunction")
ON_DEVICE = re.compile(r"DtoD|Device -> Device")
# The operators that are one product, and which of their inputs are its matrices.
PRODUCTS = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1, "aten::_scaled_mm": 0}


@dataclass(slots=True)
class DeviceRows:
    """One device of a rank."""

    kernels: Spans = field(default_factory=Spans)  # with copies within the device, and memory that is set
    exchanges: Spans = field(default_factory=Spans)
    copies: Spans = field(default_factory=Spans)  # to the device or from it

    def of(self, what: str, name: str) -> Spans:
        """Where a kernel, a copy or memory that is set belongs."""
        if what == KERNEL and _exchanges(name):
            return self.exchanges
        return self.copies if what == COPY and not ON_DEVICE.search(name) else self.kernels


@dataclass(frozen=True, slots=True)
class AskedProduct:
    """One product as an operator was asked for it: `batch` times [m, k] x [k, n]."""

    batch: int
    m: int
    n: int
    k: int
    type: str  # of the first matrix, as torch writes it


@dataclass(slots=True, kw_only=True)
class RankRecord:
    """Everything of a file that somebody asks about; seconds since its first event."""

    name: str
    source: str = TORCH
    remarks: tuple[str, ...] = ()  # what the file lacks, and what would record it
    rank: int | None = None
    hardware: str = ""  # as the file names it
    cut: str = ""  # a sentence, where the file ends in the middle
    names: list[str] = field(default_factory=list)
    devices: dict[str, DeviceRows] = field(default_factory=lambda: defaultdict(DeviceRows))
    operators: dict[str, Spans] = field(default_factory=lambda: defaultdict(Spans))  # by thread
    python: dict[str, Spans] = field(default_factory=lambda: defaultdict(Spans))  # functions, by thread
    # calls of the driver that neither wait nor allocate, by thread; linked to what they launch by its correlation
    calls: dict[str, Spans] = field(default_factory=lambda: defaultdict(Spans))
    waits: Spans = field(default_factory=Spans)  # calls that return when the device is done
    allocations: Spans = field(default_factory=Spans)  # calls that ask the driver for memory, or give it back
    loader: Spans = field(default_factory=Spans)
    compilations: Spans = field(default_factory=Spans)
    host_exchanges: Spans = field(default_factory=Spans)
    steps: list[tuple[str, float, float]] = field(default_factory=list)
    products: dict[int, AskedProduct] = field(default_factory=dict)  # by the operator's External id
    with_shapes: bool = False
    launching_threads: set[str] = field(default_factory=set)
    linked_by_call: int = 0  # kernels whose External id is no operator but their correlation, as in older files
    num_launches: int = 0
    unread: Counter[str] = field(default_factory=Counter)  # categories that nobody here knows, and their events
    readings: dict[str, tuple["array[float]", "array[float]"]] = field(
        default_factory=lambda: defaultdict(lambda: (array("d"), array("d")))
    )  # of counters: seconds, values

    def of_call(self, name: str, thread: str) -> tuple[Spans, bool]:
        """Where a call of the driver belongs, and whether it launches; if so its thread is one that launches."""
        blocking, allocating, launching = _does(name)
        if launching:
            self.launching_threads.add(thread)
        return (self.waits if blocking else self.allocations if allocating else self.calls[thread]), launching


class RecordReader:
    """From events to a record, one event after the other."""

    def __init__(self, record: RankRecord, *, origin_us: float = math.nan) -> None:
        self.record, self._numbers, self._origin_us = record, dict[str, int](), origin_us

    def take(self, event: Mapping[str, Any]) -> None:
        kind = event.get("ph")
        if kind == "X":
            category = event.get("cat", "")
            what = OF_MTIA.get(event.get("name", ""), KERNEL) if category == MTIA else SPELT.get(category)
            if what:
                self._span(what, event)
            elif category not in KNOWN:
                self.record.unread[category] += 1
        elif kind in ("i", "C") and event.get("name") and isinstance(event.get("args"), dict):
            self._reading(event["name"], event)

    def _seconds(self, stamp_us: float) -> float:
        if math.isnan(self._origin_us):
            self._origin_us = stamp_us
        return (stamp_us - self._origin_us) * us

    def number(self, name: str) -> int:
        """A name's place among the names."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self.record.names)
            self.record.names.append(name)
        return number

    def _span(self, what: str, event: Mapping[str, Any]) -> None:
        name, record = event["name"], self.record
        start = self._seconds(event["ts"])
        end = start + event.get("dur", 0) * us
        if not -math.inf < start <= end < math.inf:
            raise TypeError(f"{LASTS}{event['ts']} µs on, {event.get('dur', 0)} µs")
        args = event.get("args") or {}
        if what in (KERNEL, COPY, SET):
            rows = record.devices[str(args.get("device", event.get("pid")))]
            spans = rows.of(what, name)
            spans.add(start, end, self.number(name), self._group(args) if spans is rows.exchanges else _link(args))
            record.linked_by_call += args.get("correlation", -1) == _link(args)
        elif what == CALL:
            spans, launching = record.of_call(name, _thread(event))
            spans.add(start, end, self.number(name), args.get("correlation", -1) if launching else -1)
            record.num_launches += launching
        elif what == PYTHON:
            record.python[_thread(event)].add(start, end, self.number(name))
        elif name.startswith(STEP):
            record.steps.append((name.removeprefix(STEP), start, end))
        elif name.startswith(LOADERS):
            record.loader.add(start, end, self.number(name))
        elif COMPILING.search(name):
            record.compilations.add(start, end, self.number(name))
        elif HOST_EXCHANGE.match(name):
            record.host_exchanges.add(start, end, self.number(name))
        elif what == OPERATOR:
            record.operators[_thread(event)].add(start, end, self.number(name), _link(args))
            if "Input Dims" in args:
                record.with_shapes = True
                if name in PRODUCTS and (product := _product(name, args)):
                    record.products[_link(args)] = product

    def _group(self, args: Mapping[str, Any]) -> int:
        """Who takes part in an exchange, as an index into the names; -1 where the file does not say it."""
        said = [str(args[key]) for key in ("Process Group Name", "Process Group Ranks") if key in args]
        return self.number(" ".join(said)) if said else -1

    def _reading(self, name: str, event: Mapping[str, Any]) -> None:
        """Memory of a device as the allocator tells it, or any counter."""
        at, args = self._seconds(event["ts"]), event["args"]
        if name == "[memory]":
            where = OF_MEMORY.get(args.get("Device Type"))
            if where is None:
                return
            told = {f"allocated{where}": args.get("Total Allocated"), f"reserved{where}": args.get("Total Reserved")}
        else:
            told = {name: next(iter(args.values()), None)} if event["ph"] == "C" else {}
        for counter, value in told.items():
            if isinstance(value, int | float):
                seconds, values = self.record.readings[counter]
                seconds.append(at)
                values.append(value)


@functools.lru_cache(maxsize=4096)
def _exchanges(kernel: str) -> bool:
    return bool(EXCHANGE.search(kernel))


@functools.lru_cache(maxsize=4096)
def _does(call: str) -> tuple[bool, bool, bool]:
    """Whether a call of the driver waits, allocates, launches."""
    return bool(BLOCKING.search(call)), bool(ALLOCATING.search(call)), bool(LAUNCHING.search(call))


def _link(args: Mapping[str, Any]) -> int:
    link = args.get("External id", args.get("external id", -1))
    return link if isinstance(link, int) else -1


def _thread(event: Mapping[str, Any]) -> str:
    return f"{event.get('pid')}/{event.get('tid')}"


def _product(name: str, args: Mapping[str, Any]) -> AskedProduct | None:
    """The sizes of a product; None where the file does not give them as torch does."""
    first = PRODUCTS[name]
    try:
        left, right = args["Input Dims"][first : first + 2]
        *batch, m, k = left
        return AskedProduct(batch=math.prod(batch), m=m, n=right[-1], k=k, type=args["Input type"][first])
    except (KeyError, IndexError, TypeError, ValueError):
        return None


def rank_in(name: str) -> int | None:
    """The rank that a file's name states.

    >>> rank_in("node1_rank3.json.gz"), rank_in("run.json")
    (3, None)
    """
    found = re.search(r"rank[-_]?(\d+)", name)
    return int(found[1]) if found else None


def recorded(events: Iterable[Mapping[str, Any]], *, name: str, head: Mapping[str, Any] | None = None) -> RankRecord:
    """Events as columns; `head` is what stands beside them, filled when the last event has come.

    Raises:   ValueError where an event of a known category lacks its name or time, or where there is none
    """
    reader = RecordReader(RankRecord(name=name))
    for number, event in enumerate(events, start=1):
        try:
            reader.take(event)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            shown = str(error) if str(error).startswith(LASTS) else str(event)
            shown = f"it lacks {error}" if isinstance(error, KeyError) else shown
            what = f"{name}: event {number:,} is none that torch's profiler writes ({shown[: 2 * LONGEST_SAID]})"
            raise ValueError(what) from error
    record, head = reader.record, head or {}
    if not (record.devices or record.operators or record.calls):
        what = f"{name} holds no kernel, operator or call of a driver"
        if record.steps:
            what += (
                ", only marks of steps: a schedule without repeat=1 begins again, and what it writes last may be that"
            )
        raise ValueError(f"{what}; export_chrome_trace writes them")
    info = head.get("distributedInfo")
    said = info.get("rank") if isinstance(info, dict) else None
    record.rank = said if type(said) is int and 0 <= said < LARGEST_RANK else rank_in(name)
    devices = head.get("deviceProperties")
    if isinstance(devices, list) and devices and isinstance(devices[0], dict):
        record.hardware = str(devices[0].get("name", ""))
    return record


def read_record(path: str, *, told: Callable[[int], object] | None = None) -> RankRecord:
    """A file, packed with gzip or not.

    Raises:   ValueError for what is no trace of torch's profiler; OSError for what cannot be opened
    """
    name = re.split(r"[/\\]", str(path))[-1]
    with open(path, "rb") as file:
        stream = EventStream(file, name=name, told=told)
        record = recorded(stream, name=name, head=stream.head)
        record.cut = stream.cut
    return record

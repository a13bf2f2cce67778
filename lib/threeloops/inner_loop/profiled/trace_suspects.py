"""Trace suspects: what a record's time went to, the largest first, what a repair could bring at most, and what would
have to be recorded where the record does not decide.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from threeloops.facts.traced_steps import Traced
from threeloops.inner_loop.profiled.long_pauses import long_driver_call, long_host_work
from threeloops.inner_loop.profiled.rank_record import TORCH, RankRecord
from threeloops.inner_loop.profiled.rank_timeline import (
    ALLOCATE,
    AT_WORK,
    COMPILE,
    LAUNCH,
    LONG_CALL,
    LONG_S,
    SHORT_S,
    UNNAMED,
    WHOLE_GRAPHS,
    device_of,
    families,
    kernels_by_name,
    operator_family,
    window,
)
from threeloops.inner_loop.profiled.rank_waits import RankWaits
from threeloops.inner_loop.scaling import amdahl_limit, amdahl_speedup
from threeloops.inner_loop.trace import SYNC, Span, merged
from threeloops.inner_loop.trace_diagnosis import BUSY, BY_CAUSE, FIRST_TRY, findings
from threeloops.inner_loop.trace_gauges import Gauges, Moments, complement, length, overlap
from threeloops.units import counted, fmt_percent, fmt_seconds

WORTH_SAYING = 0.01  # of the time
ONE_PROCESS = "_SingleProcessDataLoaderIter"  # what torch calls a loader with num_workers=0
FEWEST_STEPS = 3  # that a leak has to be seen in
MATRIX = ("matmuls", "convolutions", "experts", "attention")  # families that may use tensor cores; all others move
HOST_WORK, ALLOCATOR, STRAGGLER, VECTORS = "host at work", "allocator calls", "straggling rank", "vector kernels"
BELOW_ROOF, NO_ROOF, OPERATORS = "below the roof", "kernels of unknown roof", "small operators"
COMPILATION, DRIVER_CALLS, UNTOLD = "compilation", "long driver calls", "kernels of unknown kind"
TRY = FIRST_TRY | {
    HOST_WORK: "move that work off the thread that launches: a loader's worker, another process, or the device",
    DRIVER_CALLS: "if in first steps only, leave them out: calls start the device, load kernels; else what holds them",
    ALLOCATOR: "let the caching allocator keep its memory: no empty_cache, shapes that come again, expandable segments",
    STRAGGLER: "look at that rank alone: its data, its clocks, its neighbours; another rank waits in every exchange",
    VECTORS: "fewer bytes and fewer passes: fused kernels (torch.compile), narrower formats, a fused optimiser",
    BELOW_ROOF: "sizes that fill whole tiles, a narrower format, larger batches",
    NO_ROOF: "find out how near to their roof they are; if far, sizes that fill whole tiles, narrower formats",
    UNTOLD: "find out what the longest of them computes: by its source, or by its counters",
    COMPILATION: "shapes that come again: padded, or marked as dynamic; TORCH_LOGS=recompiles says why one is made",
    OPERATORS: "fewer and larger operators: batched calls, torch.compile",
}
UNDECIDED = {
    "unexplained pauses": "with_stack=True, or py-spy beside it: nothing that was recorded ran in these pauses",
    HOST_WORK: "with_stack=True names the line",
    DRIVER_CALLS: "steps after a warm-up, to see whether they come again; a trace of the operating system's calls",
    "exposed communication": "the other ranks' traces, in one folder: alone, a rank cannot tell waiting from sending",
    "starved loader": "the workers are other processes, which this file does not show: time the dataset alone",
}
SHAPES = ", and shapes (record_shapes=True)"
# What would say how far a family is from its roof.
RECORD_FOR_ROOF = {
    "matmuls": f"their roof: --hardware{SHAPES}",
    WHOLE_GRAPHS: "what runs in them: `nsys profile --cuda-graph-trace=node`",
}
# Who reads a kernel's counters, by what a record of that maker holds: calls of its driver, kernels of its library.
COUNTERS = (
    (re.compile(r"hip[A-Z]|Cijk_|.*(AMD|Instinct|Radeon)"), "`rocprof-compute profile`"),
    (re.compile(r"cuda[A-Z]|cu[A-Z]\w+$|sm\d\d_|nvjet|.*NVIDIA"), "`ncu`"),
)
ANY_COUNTERS, OF_PROCESSOR = "the device maker's profiler of single kernels", "`perf stat`, or a profiler of its maker,"
# The same where another profiler than torch's recorded, to whom such options say nothing.
BESIDE_TORCH = {
    UNDECIDED["unexplained pauses"]: "py-spy, or torch's profiler with with_stack=True: nothing recorded ran then",
    UNDECIDED[HOST_WORK]: "py-spy, or torch's profiler with with_stack=True, names the line",
    RECORD_FOR_ROOF["matmuls"]: "their shapes, not in such a file: torch's profiler with record_shapes=True",
}

WHOLE, PAUSE, KERNELS = "the whole job", "a pause", "kernels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """One thing that the time went to."""

    illness: str
    of: str  # WHOLE, PAUSE or KERNELS
    share: float  # of the time on the clock; 0 for a leak, which costs none until it ends the job
    because: str
    # times as fast, if all that a repair can take away is gone; None where the file sets no limit
    at_most: float | None
    record_next: str = ""  # what would decide, where the file does not

    @property
    def first_try(self) -> str:
        return TRY[self.illness]


def idle_seconds(when: Moments, blame: Mapping[str, tuple[Span, ...]], *, operators: bool) -> dict[str, float]:
    """Idle time by illness: the gauges' causes (`blame`), what the host does taken apart once more.

    Formula:  what of a pause of at least 1 ms comes after the read that it began in has returned is not the read's, but
              belongs to launches where the host is at work, and else to nobody. Of what belongs to launches: what lies
              in a compilation is the compiler's; of the rest, what lies in calls for memory is the allocator's; of what
              lies in a pause of at least 1 ms, other calls of the driver of at least 1 ms are the driver's, and the
              rest is the host's own work; what is left waits for kernels to be asked for
              or, where operators stand for kernels, lies between two of them. There a pause of more than 100 µs in
              which a function of Python ran is the host's own work
    Source:   by definition
    Counted:  tests.inner_loop.test_profiled_suspects.looked_at
    """
    long = tuple(gap for gap in when.gaps if gap[1] - gap[0] >= LONG_S)
    long = when.on_host(AT_WORK) if operators else long
    seconds = {BY_CAUSE[cause]: length(spans) for cause, spans in blame.items()}
    beyond = overlap(overlap(blame["sync"], long), complement(when.on_host(SYNC), when.whole))
    working = overlap(beyond, when.on_host(LAUNCH))
    seconds["hidden syncs"] -= length(beyond)
    seconds["unexplained pauses"] += length(beyond) - length(working)
    left = merged((*blame["launches"], *working))
    calling = overlap(when.on_host(LONG_CALL), long)
    for illness, spans in (
        *((COMPILATION, when.on_host(COMPILE)), (ALLOCATOR, when.on_host(ALLOCATE))),
        *((DRIVER_CALLS, calling), (HOST_WORK, long)),
    ):
        seconds[illness] = length(overlap(left, spans))
        left = overlap(left, complement(spans, when.whole)) if spans else left
    del seconds["launch-bound"]
    seconds[OPERATORS if operators else "launch-bound"] = length(left)
    return seconds


def suspects(
    record: RankRecord,
    read: Gauges,
    by_family: Mapping[str, Traced],
    *,
    idle: Mapping[str, float],
    long: Sequence[Span] = (),
    reached: Mapping[str, tuple[float, float]] | None = None,
    longest: Mapping[str, str] | None = None,
) -> tuple[Suspect, ...]:
    """Suspects, the one to look at first in front.

    Assumes:  a device that computes less than 0.8 of the time is looked at for its pauses first, any other for its
              kernels; `idle` has the shares of idle_seconds, the largest first; in the pauses `long` nothing is
              computed for at least 1 ms; `reached` has a family's seconds and the least that its roof allows, where
              shapes and a device are known; `longest` the name in a family that took longest
    """
    found = [*_whole(record, read), *_pauses(record, read, idle, long)]
    small = {} if device_of(record) else small_operators(record)
    found = _with_small(found, read, by_family, small) if small else found
    found += _kernels(read, by_family, reached or {}, small, longest or {}, counters=counters_of(record))
    if record.products:
        found = [replace(one, record_next=one.record_next.replace(SHAPES, "")) for one in found]
    if record.source != TORCH:
        found = [replace(one, record_next=BESIDE_TORCH.get(one.record_next, one.record_next)) for one in found]
    return _in_order(found, read)


def counters_of(record: RankRecord) -> str:
    """What reads the counters of a record's kernels; of operators, those of its processor.

    >>> record = RankRecord(name="t.json", names=["hipLaunchKernel", "kernel"])
    >>> record.devices["0"].kernels.add(0.0, 1.0, 1)
    >>> counters_of(record)
    '`rocprof-compute profile`'
    """
    if not device_of(record):
        return OF_PROCESSOR
    names = (record.hardware, *record.names)
    return next((tool for sign, tool in COUNTERS if any(map(sign.match, names))), ANY_COUNTERS)


def small_operators(record: RankRecord) -> dict[str, Traced]:
    """By family, operators of a CPU that are no products and take less than 10 µs by themselves, in the mean of their
    name: what they take is mostly what asking for them takes, whatever they compute.
    """
    some = {name: one for name, one in kernels_by_name(record, window(record)).items()
            if operator_family(name) not in MATRIX and one.seconds < SHORT_S * one.kernels}  # fmt: skip
    return families(record, some)


def _with_small(
    found: list[Suspect], read: Gauges, by_family: Mapping[str, Traced], small: Mapping[str, Traced]
) -> list[Suspect]:
    """Small operators: what they take, and what lies between them."""
    between = sum(one.share for one in found if one.illness == OPERATORS)
    number, seconds = (sum(values) for values in zip(*small.values(), strict=True))
    own = read.busy * seconds / (sum(one.seconds for one in by_family.values()) or 1.0)
    because = (
        f"{fmt_percent(own)} of the time in {counted(number, 'operator')} of {fmt_seconds(seconds / number)} each,"
    )
    because += f" {fmt_percent(between)} between two"
    of = PAUSE if read.busy < BUSY else KERNELS
    return [one for one in found if one.illness != OPERATORS] + [_suspect(OPERATORS, of, own + between, because)]


def with_waits(found: tuple[Suspect, ...], read: Gauges, waits: RankWaits, rank: int) -> tuple[Suspect, ...]:
    """The same once all ranks were held against each other: what a rank waited for the slowest is no sending.

    Assumes:  of exchanges that hide behind kernels the waiting hides last
    """
    waited = min(waits.shares[rank], read.exposed_communication) if rank != waits.slowest else 0.0
    sent = read.exposed_communication - waited
    because = f"{fmt_percent(waited)} of the time, waited for rank {waits.slowest}"
    because += f", slowest in every step since step {waits.since}" if waits.since else ""
    said = f"{fmt_percent(sent)} of the time, without what was waited for another rank"
    changed = [
        *(one for one in found if one.illness != "exposed communication"),
        _suspect("exposed communication", PAUSE, sent, said),
        _suspect(STRAGGLER, PAUSE, waited, because),
    ]
    return _in_order(changed, read)


def _in_order(found: list[Suspect], read: Gauges) -> tuple[Suspect, ...]:
    order = (WHOLE, PAUSE, KERNELS) if read.busy < BUSY else (WHOLE, KERNELS, PAUSE)
    worth = (one for one in found if one.share >= WORTH_SAYING or one.of == WHOLE)
    return tuple(sorted(worth, key=lambda one: (order.index(one.of), -one.share)))


def _suspect(illness: str, of: str, share: float, because: str, undecided: str = "") -> Suspect:
    """A share that is gone at best."""
    at_most = amdahl_limit(accelerated_share=share) if of != WHOLE and share < 1 else None
    return Suspect(illness=illness, of=of, share=share, because=because, at_most=at_most, record_next=undecided)


def _whole(record: RankRecord, read: Gauges) -> list[Suspect]:
    """What the book's own rule finds beside pauses."""
    found = []
    for one in findings(read):
        if one.illness == "memory leak" and len(record.steps) >= FEWEST_STEPS:
            found.append(_suspect(one.illness, WHOLE, 0.0, one.because))
        elif one.illness == "memory-bound":
            found.append(_suspect(one.illness, WHOLE, read.busy, one.because))
    return found


def _pauses(record: RankRecord, read: Gauges, idle: Mapping[str, float], long: Sequence[Span]) -> list[Suspect]:
    found = []
    no_workers = any(ONE_PROCESS in name for name in record.names)
    for illness, share in idle.items():
        because = f"{fmt_percent(share)} of the time, of {fmt_percent(read.idle)} in which nothing is computed"
        if illness in (HOST_WORK, DRIVER_CALLS) and share >= WORTH_SAYING:
            name, seconds = (long_host_work if illness == HOST_WORK else long_driver_call)(record, long)
            because += f"; longest in {name}, {fmt_seconds(seconds)}" if name else ""
        if illness == COMPILATION:
            because += f"; {counted(len(record.compilations), 'graph')} made"
        undecided = "" if illness == HOST_WORK and record.python else UNDECIDED.get(illness, "")
        if illness == "starved loader" and no_workers:
            because, undecided = f"{because}; the loader has no workers", ""
        found.append(_suspect(illness, PAUSE, share, because, undecided))
    return found


def _kernels(
    read: Gauges,
    by_family: Mapping[str, Traced],
    reached: Mapping[str, tuple[float, float]],
    small: Mapping[str, Traced],
    longest: Mapping[str, str],
    *,
    counters: str,
) -> list[Suspect]:
    """What the device computes: the products and their like, what its name does not tell, and everything else together,
    small operators apart.
    """
    seconds = sum(one.seconds for one in by_family.values()) or 1.0
    share_of = {name: read.busy * one.seconds / seconds for name, one in by_family.items()}
    found = []
    known = (*MATRIX, WHOLE_GRAPHS)
    rest = {name: share for name, share in share_of.items() if name not in known}
    for name, one in small.items():
        rest[name] = max(0.0, rest[name] - read.busy * one.seconds / seconds)
    untold = rest.pop(UNNAMED, 0.0)
    if untold:
        because = f"{fmt_percent(untold)} of the time; their names tell neither a matmul nor a pass over memory"
        undecided = f"{counters} on the longest of them: it counts FLOPs and bytes"
        found.append(_suspect(UNTOLD, KERNELS, untold, because, undecided))
    if rest:
        largest = max(rest, key=rest.__getitem__)
        passes = f"{fmt_percent(sum(rest.values()))} of the time in passes over memory, not in matmuls"
        because = f"{passes}; most in {largest} ({fmt_percent(rest[largest])})"
        because += f", longest in {longest[largest]}" if largest in longest else ""
        undecided = f"{counters} on the longest of them: a trace has no bytes, so that their roof is not known"
        found.append(_suspect(VECTORS, KERNELS, sum(rest.values()), because, undecided))
    for name in (one for one in known if share_of.get(one)):
        share = share_of[name]
        because = f"{name}: {fmt_percent(share)} of the time"
        if name in reached:
            known_s, bound_s = reached[name]
            because += f", at {fmt_percent(bound_s / known_s)} of their roof"
            faster = amdahl_speedup(accelerated_share=share, factor=known_s / bound_s)
            found.append(Suspect(illness=BELOW_ROOF, of=KERNELS, share=share, because=because, at_most=faster))
        else:
            undecided = RECORD_FOR_ROOF.get(name, f"{counters} on them")
            because += "; how far from their roof the file does not say"
            found.append(_suspect(NO_ROOF, KERNELS, share, because, undecided))
    return found

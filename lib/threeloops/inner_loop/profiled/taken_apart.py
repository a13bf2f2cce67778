"""Taken apart: the time of a record, part by part: what computed, what the rest of the time went to, and its pauses.

>>> from threeloops.inner_loop.profiled.rank_record import recorded
>>> from threeloops.inner_loop.profiled.rank_timeline import window
>>> bars = [{"ph": "X", "cat": "kernel", "name": "gemm", "ts": at, "dur": 60} for at in (0, 100)]
>>> time = record_time(record := recorded(bars, name="t.json"), window(record))
>>> round(time.computes_s * 1e6), round(time.idle_s["unexplained pauses"] * 1e6), [one.number for one in time.pauses]
(120, 40, [1])
"""

import bisect
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from threeloops.inner_loop.profiled.rank_parts import AT_ONCE, parts
from threeloops.inner_loop.profiled.rank_record import ON_HOST, RankRecord
from threeloops.inner_loop.profiled.rank_timeline import LONG_S, device_of, moments_in, pauses_in
from threeloops.inner_loop.profiled.span_columns import pairs
from threeloops.inner_loop.profiled.trace_suspects import idle_seconds
from threeloops.inner_loop.trace import Span
from threeloops.inner_loop.trace_gauges import Gauges, blamed, gauged, length
from threeloops.units import ms, us

EDGES_S = (10 * us, 100 * us, 1 * ms, float("inf"))


class Pauses(NamedTuple):
    """Moments in which a device does nothing at all, of one order of length."""

    below_s: float
    number: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTime:
    """Seconds of a record."""

    computes_s: float
    exchanges_s: float  # hidden or not
    copies_s: float
    causes_s: Mapping[str, float]  # in which nothing is computed, by the gauges' causes
    idle_s: Mapping[str, float]  # the same by illness
    long_pauses: tuple[Span, ...]  # in which nothing is computed for at least 1 ms
    pauses: tuple[Pauses, ...]


def record_time(record: RankRecord, whole: Span, *, at_once: int = AT_ONCE) -> RecordTime:
    """The parts of a record, added."""
    device = device_of(record)
    computes = exchanges = copies = 0.0
    causes, idle = defaultdict[str, float](float), defaultdict[str, float](float)
    long: list[Span] = []
    numbers, seconds = [0] * len(EDGES_S), [0.0] * len(EDGES_S)
    for part, stretch in parts(record, whole, device=device, at_once=at_once):
        when = moments_in(part, stretch)
        blame = blamed(when)
        computes += length(when.compute)
        exchanges += length(when.communication)
        copies += length(when.copies)
        for cause, spans in blame.items():
            causes[cause] += length(spans)
        for illness, idle_s in idle_seconds(when, blame, operators=not device).items():
            idle[illness] += idle_s
        long += [gap for gap in when.gaps if gap[1] - gap[0] >= LONG_S]
        for pause in pauses_in(when):
            place = bisect.bisect_right(EDGES_S, pause)
            numbers[place] += 1
            seconds[place] += pause
    rows = zip(EDGES_S, numbers, seconds, strict=True)
    return RecordTime(
        computes_s=computes, exchanges_s=exchanges, copies_s=copies, causes_s=causes,
        idle_s=dict(sorted(idle.items(), key=lambda item: -item[1])), long_pauses=tuple(long),
        pauses=tuple(Pauses(*row) for row in rows if row[1]),
    )  # fmt: skip


def record_gauges(record: RankRecord, whole: Span, time: RecordTime, *, median_kernel_s: float) -> Gauges:
    """The gauges of a record that was taken apart."""
    return gauged(
        time.causes_s,
        computes_s=time.computes_s,
        span_s=whole[1] - whole[0],
        num_syncs=sum(start < whole[1] and end > whole[0] for start, end in pairs(record.waits)),
        median_kernel_s=median_kernel_s,
        steps=sorted((start, end) for _, start, end in record.steps),
        readings={
            counter if device_of(record) else counter.removesuffix(ON_HOST): _in_order(*columns, whole)
            for counter, columns in record.readings.items()
        },
    )  # fmt: skip


def _in_order(at: Sequence[float], values: Sequence[float], whole: Span) -> tuple[list[float], list[float]]:
    """Readings by their time, of a window; those below zero are none."""
    rows = sorted(row for row in zip(at, values, strict=True) if whole[0] <= row[0] < whole[1] and row[1] >= 0)
    return [row[0] for row in rows], [row[1] for row in rows]

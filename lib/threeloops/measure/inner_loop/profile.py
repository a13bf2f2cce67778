"""A profile as data: which operations ran, how often, how long each took by itself, and where on the clock.

torch.profiler records while a function runs; what it recorded comes back as plain numbers and as a trace of named
intervals.

>>> import torch
>>> shown = profiled(lambda: torch.ones(300, 300) @ torch.ones(300, 300), active=2)
>>> mm = shown.op("aten::mm")
>>> mm.calls, mm.self_s <= mm.total_s
(2, True)
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from torch.profiler import ProfilerAction, ProfilerActivity, profile, schedule

from threeloops import checks
from threeloops.inner_loop.trace import Interval, Trace
from threeloops.units import us


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """All calls of one operation."""

    name: str
    calls: int
    self_s: float  # in this operation and not in those that it calls
    total_s: float  # those that it calls included


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What was recorded over a number of steps."""

    ops: tuple[Op, ...]  # by their own time, longest first
    trace: Trace  # ranges named with record_function in a row of their own, operations by depth
    steps: int

    @property
    def self_s(self) -> float:
        """Seconds of all operations: each second counted once, for whoever was innermost."""
        return sum(op.self_s for op in self.ops)

    def op(self, name: str) -> Op:
        """The operation of that name; an unknown one is refused with the nearest."""
        checks.one_of([op.name for op in self.ops], op=name)
        return next(op for op in self.ops if op.name == name)

    def share(self, *words: str) -> float:
        """Share of all time spent in operations whose name contains one of the words."""
        return sum(op.self_s for op in self.ops if any(word in op.name for word in words)) / self.self_s


def profiled(step: Callable[[], object], *, active: int, wait: int = 0, warmup: int = 1) -> Profile:
    """Run `step` wait + warmup + active times and record the last `active`.

    Assumes:  a CPU; the profiler's own cost is part of what it shows (see overhead_s)
    Raises:   ValueError for a count that is none
    Source:   PyTorch documentation, torch.profiler (schedule, key_averages)
    """
    checks.count(active=active)
    checks.count(at_least=0, wait=wait, warmup=warmup)
    # The recorder writes two lines about probes to the process's error stream; a notebook would show them in red.
    with (
        quiet(),
        profile(
            activities=[ProfilerActivity.CPU], schedule=schedule(wait=wait, warmup=warmup, active=active, repeat=1)
        ) as recorder,
    ):
        for _ in range(wait + warmup + active):
            step()
            recorder.step()
    rows = [row for row in recorder.key_averages() if not row.key.startswith("ProfilerStep")]
    ops = (
        Op(name=row.key, calls=row.count, self_s=row.self_cpu_time_total * us, total_s=row.cpu_time_total * us)
        for row in rows
    )
    return Profile(ops=tuple(sorted(ops, key=lambda op: -op.self_s)), trace=_trace(recorder), steps=active)


def phases(*, wait: int, warmup: int, active: int, skip_first: int = 0, steps: int) -> tuple[str, ...]:
    """What a schedule does at each of the first `steps` steps: "idle", "warming up" or "recording", as torch itself
    decides.

    >>> phases(wait=1, warmup=1, active=2, steps=6)
    ('idle', 'warming up', 'recording', 'recording', 'idle', 'warming up')
    """
    said = {
        ProfilerAction.NONE: "idle",
        ProfilerAction.WARMUP: "warming up",
        ProfilerAction.RECORD: "recording",
        ProfilerAction.RECORD_AND_SAVE: "recording",
    }
    decide = schedule(wait=wait, warmup=warmup, active=active, skip_first=skip_first)
    return tuple(said[decide(step)] for step in range(steps))


def overhead_s(step: Callable[[], object], *, repeats: int = 15) -> tuple[float, float]:
    """Seconds of a step without and with a profiler around it: the fastest of `repeats`, taken in turns so that a
    busy machine slows both.
    """
    checks.count(repeats=repeats)
    bare, watched = [], []
    step()
    for _ in range(repeats):
        bare.append(_seconds(step))
        with quiet(), profile(activities=[ProfilerActivity.CPU]):
            watched.append(_seconds(step))
    return min(bare), min(watched)


def _seconds(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


class quiet:
    """The process's error stream, from C++ as from Python, into nothing for a while."""

    def __enter__(self) -> None:
        self._kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 2)
        os.close(nothing)

    def __exit__(self, *raised: object) -> None:
        os.dup2(self._kept, 2)
        os.close(self._kept)


def _trace(recorder: profile) -> Trace:
    """Intervals from the recorder's events: rows "ranges", "inner ranges" and "depth 0", "depth 1", …; the clock
    starts at the first.
    """
    events = [
        event
        for event in recorder.events()
        if not event.name.startswith("ProfilerStep") and event.time_range.elapsed_us() > 0
    ]
    first = min(event.time_range.start for event in events)
    depths: dict[int, int] = {}
    intervals = []
    for event in sorted(events, key=lambda event: (event.time_range.start, -event.time_range.end)):
        user, parent = (
            event.is_user_annotation,
            event.cpu_parent if event.cpu_parent and event.cpu_parent.id in depths else None,
        )
        depths[event.id] = depths.get(parent.id, -1) + (0 if user else 1) if parent else (-1 if user else 0)
        row = ("inner ranges" if parent else "ranges") if user else f"depth {depths[event.id]}"
        intervals.append(
            Interval(
                row=row,
                name=event.name,
                start_s=(event.time_range.start - first) * us,
                end_s=(event.time_range.end - first) * us,
            )
        )
    return Trace(intervals=tuple(intervals))

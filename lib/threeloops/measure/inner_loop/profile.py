"""What torch.profiler recorded, as shares of the time and as a trace of named intervals; and what recording costs.

>>> import torch
>>> with quiet(), torch.profiler.profile(activities=[ProfilerActivity.CPU]) as recorder:
...     product = torch.ones(300, 300) @ torch.ones(300, 300)
>>> share(recorder, "aten::mm", "aten::ones", "aten::fill_") <= 1
True
>>> [matmul.name for matmul in trace(recorder).of("depth 0", name="aten::matmul")]
['aten::matmul']
"""

import os
import time
from collections.abc import Callable

from torch.profiler import ProfilerActivity, profile

from threeloops import checks
from threeloops.inner_loop.trace import Interval, Trace
from threeloops.units import us


def share(recorder: profile, *words: str) -> float:
    """Share of all recorded time that was spent in operations whose name contains one of the words, by themselves:
    each second counted once, for whoever was innermost.

    Source:   PyTorch documentation, torch.profiler, key_averages
    """
    rows = [row for row in recorder.key_averages() if not row.key.startswith("ProfilerStep")]
    named = [row for row in rows if any(word in row.key for word in words)]
    return float(sum(row.self_cpu_time_total for row in named) / sum(row.self_cpu_time_total for row in rows))


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


def trace(recorder: profile) -> Trace:
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

"""A host that issues kernels, a queue of limited length, a device that runs them one after another; every event on a
clock.

Nothing here knows how long the whole will take.

>>> run = play([3.0, 3.0, 3.0], issue_s=1.0, queue=8)
>>> run.finished_s, run.device_idle_s, run.host_waits_s
(10.0, 1.0, 0.0)
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One piece of work: who did it, which kernel, from when to when."""

    where: str  # "host" or "device"
    kernel: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedLaunches:
    """Everything that happened, in the order in which it was issued."""

    spans: tuple[Span, ...]
    host_waits_s: float  # for a place in the queue, or for the device

    @property
    def finished_s(self) -> float:
        return max(span.end_s for span in self.spans)

    @property
    def device_idle_s(self) -> float:
        """Seconds in which the device ran nothing, from the first issue to the last end."""
        return self.finished_s - sum(span.end_s - span.start_s for span in self.spans if span.where == "device")


def play(kernels_s: Sequence[float], *, issue_s: float, queue: int, wait_after: Collection[int] = ()) -> PlayedLaunches:
    """Play one pass. `queue` kernels may wait to be started; after the kernels in `wait_after` the host waits until
    the device has run them.
    """
    if not kernels_s or queue < 1:
        raise ValueError(f"{len(kernels_s)} kernels and queue={queue} must each be at least 1")
    host = device = waited = 0.0
    started: list[float] = []
    spans = []
    for number, seconds in enumerate(kernels_s):
        if number >= queue:
            free = max(host, started[number - queue])  # a place in the queue is given up when its kernel starts
            waited, host = waited + free - host, free
        spans.append(Span(where="host", kernel=number, start_s=host, end_s=host + issue_s))
        host += issue_s
        started.append(max(host, device))
        device = started[-1] + seconds
        spans.append(Span(where="device", kernel=number, start_s=started[-1], end_s=device))
        if number in wait_after:
            waited, host = waited + device - host, device
    return PlayedLaunches(spans=tuple(spans), host_waits_s=waited)


def replay(kernels_s: Sequence[float], *, launch_s: float, gap_s: float) -> PlayedLaunches:
    """Play a recorded graph: one launch by the host, then the device walks the list, with a gap before each
    kernel.

    >>> replay([3.0, 2.0], launch_s=10.0, gap_s=0.5).finished_s
    16.0
    """
    if not kernels_s:
        raise ValueError("kernels_s is empty; a graph needs at least one kernel")
    spans = [Span(where="host", kernel=0, start_s=0.0, end_s=launch_s)]
    device = launch_s
    for number, seconds in enumerate(kernels_s):
        spans.append(Span(where="device", kernel=number, start_s=device + gap_s, end_s=device + gap_s + seconds))
        device = spans[-1].end_s
    return PlayedLaunches(spans=tuple(spans), host_waits_s=0.0)

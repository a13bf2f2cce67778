"""A training job step by step: workers that prepare batches, a queue of limited length, a device that takes one batch
after another.

Every event is played on a clock. Nothing here knows what the steady pace will be.

>>> run = play(num_steps=4, workers=1, batch_s=2.0, queue=1, stages=(0.5, 0.5))
>>> run.finished_s
[3.0, 5.0, 7.0, 9.0]
>>> run.device_idle_s
5.0
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedSteps:
    """When each step ended, and how long the device waited in all."""

    finished_s: list[float]
    device_idle_s: float

    def pace_s(self, *, skip: int) -> float:
        """Mean seconds from step to step after the first `skip` steps, while the pipeline was filling."""
        return (self.finished_s[-1] - self.finished_s[skip]) / (len(self.finished_s) - 1 - skip)


def play(*, num_steps: int, workers: int, batch_s: float, queue: int, stages: Sequence[float]) -> PlayedSteps:
    """Play a job. A worker needs `batch_s` per batch; `queue` finished batches may wait, and each worker may hold one
    more.
    """
    if num_steps < 1 or workers < 1 or queue < 1:
        raise ValueError(f"num_steps={num_steps}, workers={workers} and queue={queue} must each be at least 1")
    under_way: list[float] = []  # when each batch that is being prepared will be ready
    free_at = [0.0] * workers
    heapq.heapify(free_at)
    taken_at: list[float] = []
    now, idle, finished = 0.0, 0.0, []
    started = 0
    for step in range(num_steps):
        while started < num_steps and started - step < queue + workers:
            # A batch may start once a worker is free and the place it will wait in has been given up.
            place = taken_at[started - queue - workers] if started >= queue + workers else 0.0
            begin = max(heapq.heappop(free_at), place)
            heapq.heappush(free_at, begin + batch_s)
            heapq.heappush(under_way, begin + batch_s)
            started += 1
        ready = heapq.heappop(under_way)
        idle += max(0.0, ready - now)
        now = max(now, ready)
        taken_at.append(now)
        for seconds in stages:
            now += seconds
        finished.append(now)
    return PlayedSteps(finished_s=finished, device_idle_s=idle)

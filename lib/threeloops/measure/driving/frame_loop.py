"""Frame loop: the same frame again and again, each one timed, alone or beside a neighbour that wants the same core.

>>> seconds = timed_frames(lambda: sum(range(1000)), frames=50)
>>> len(seconds), min(seconds) > 0
(50, True)
>>> [at_share([4.0, 1.0, 3.0, 2.0], share) for share in (0.5, 0.99)]
[2.0, 4.0]
"""

import contextlib
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import torch

from threeloops import checks
from threeloops.driving import tail_samples

WARM_UP = 20
LONGEST_S = 120  # after which a neighbour ends by itself, whatever became of the one who started it
# A neighbour says that it has begun, then copies 32 MiB again and again: it takes time and memory traffic.
BUSY = f"""
import sys, time
source, target = bytearray(2**25), bytearray(2**25)
end = time.monotonic() + {LONGEST_S}
print("begun", flush=True)
while time.monotonic() < end:
    target[:] = source
"""


def product_frame(*, size: int, boxes: int) -> Callable[[], object]:
    """A frame of fixed work: a few matrix products on one thread, then so many small Python objects, as a tracker makes
    them. Nothing in it depends on data.
    """
    checks.count(size=size, boxes=boxes)
    generator = torch.Generator().manual_seed(0)
    weights, x = (torch.randn(size, size, generator=generator) / size**0.5 for _ in range(2))

    def frame() -> object:
        y = x
        for _ in range(3):
            y = y @ weights
        return [{"box": number, "corners": [number, number + 1], "seen": True} for number in range(boxes)], y

    return frame


def timed_frames(
    frame: Callable[[], object], *, frames: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Seconds of each frame, one after the other, after some that are not counted. With time.process_time as clock only
    what this process computes: without its waits for the core, a quota or others.
    """
    checks.count(frames=frames)
    for _ in range(WARM_UP):
        frame()
    seconds = []
    for _ in range(frames):
        start = clock()
        frame()
        seconds.append(clock() - start)
    return seconds


@contextlib.contextmanager
def neighbour() -> Iterator[None]:
    """Busy processes beside this one: one on the same core where the system lets a process choose its core, else as
    many as there are cores.
    """
    choose = getattr(os, "sched_setaffinity", None)
    cores = os.sched_getaffinity(0) if choose else set()
    if choose:
        choose(0, {min(cores)})
    started = []
    try:
        for _ in range(1 if choose else os.cpu_count() or 1):
            one = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True)
            started.append(one)
            if one.stdout is not None:
                one.stdout.readline()
        yield
    finally:
        for one in started:
            one.kill()
            one.communicate()
        if choose:
            choose(0, cores)


def at_share(seconds: Sequence[float], share: float) -> float:
    """The smallest time that at least this share of the frames did not exceed."""
    checks.fraction(share=share)
    return sorted(seconds)[max(0, math.ceil(share * len(seconds) - 1e-9) - 1)]


def slower_than(seconds: Sequence[float]) -> list[tuple[float, float]]:
    """(N, time that one frame in N exceeds or reaches), from one in two to the slowest of all."""
    every = [n for n in (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000) if n <= len(seconds)]
    return [(float(n), at_share(seconds, 1 - 1 / n)) for n in every]


def at_most(seconds: Sequence[float], *, share: float, confidence: float) -> float | None:
    """What a percentile lies below with this confidence, if the frames are independent and alike; None where there are
    too few of them.
    """
    rank = tail_samples.rank_above(frames=len(seconds), share=share, confidence=confidence)
    return None if rank is None else sorted(seconds)[rank - 1]

"""Neighbour copies: how fast one thread copies memory alone, and how fast while a second one does the same.

The processor's cores stand for the engines of a chip: each has its own arithmetic, and all share one memory.
"""

import statistics
import threading
import time
from dataclasses import dataclass

import torch

from threeloops import checks
from threeloops.units import MB

COPY_BYTES = 64 * MB  # larger than the caches of most processors
TOUCHES = 2  # a copy reads every byte and writes it


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One copy alone and beside another, in the same rounds."""

    alone_bytes_per_s: float
    beside_bytes_per_s: float

    @property
    def share(self) -> float:
        """What is left of a copy's speed beside the other."""
        return self.beside_bytes_per_s / self.alone_bytes_per_s


def compared(*, rounds: int, seconds: float) -> Compared:
    """Medians over rounds, each of one copy alone and then beside another, so that both meet the same machine."""
    checks.count(rounds=rounds)
    found = [tuple(copied_bytes_per_s(neighbours=others, seconds=seconds) for others in (0, 1)) for _ in range(rounds)]
    alone, beside = (statistics.median(rates) for rates in zip(*found, strict=True))
    return Compared(alone_bytes_per_s=alone, beside_bytes_per_s=beside)


def copied_bytes_per_s(*, neighbours: int, seconds: float) -> float:
    """Bytes per second that this thread reads and writes while so many others copy buffers of their own."""
    checks.count(at_least=0, neighbours=neighbours)
    checks.positive(seconds=seconds)
    stop = threading.Event()
    ready = threading.Barrier(neighbours + 1)
    others = [threading.Thread(target=_copy_until, args=(stop, ready), daemon=True) for _ in range(neighbours)]
    for other in others:
        other.start()
    source, target = _buffers()
    ready.wait()
    copies, began = 0, time.perf_counter()
    while copies == 0 or time.perf_counter() - began < seconds:
        target.copy_(source)
        copies += 1
    took = time.perf_counter() - began
    stop.set()
    for other in others:
        other.join()
    return TOUCHES * COPY_BYTES * copies / took


def _copy_until(stop: threading.Event, ready: threading.Barrier) -> None:
    source, target = _buffers()
    ready.wait()
    while not stop.is_set():
        target.copy_(source)


def _buffers() -> tuple[torch.Tensor, torch.Tensor]:
    """Both written once, so that their pages are there before a clock runs."""
    return torch.ones(COPY_BYTES, dtype=torch.uint8), torch.zeros(COPY_BYTES, dtype=torch.uint8)

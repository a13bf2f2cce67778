"""Links: how long gloo's ring all-reduce takes on this machine, and the alpha and bandwidth that explain it.

What is measured is the loopback interface with all its ranks on one machine: memory copies and thread switches, not a
network.
"""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from threeloops import checks
from threeloops.measure.processes.ranks import run_ranks
from threeloops.measure.processes.wire import FLOAT_BYTES
from threeloops.training_loop.network.collectives import collective_time


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLink:
    """The alpha and the one-way rate with which the ring formula gives the measured times of the smallest and the
    largest size.
    """

    ranks: int
    alpha_s: float
    bytes_per_s_one_way: float


def _timed(sizes_bytes: tuple[int, ...], repeats: int) -> list[list[float]]:
    """On each rank: seconds per size and repeat, the first one of each size not counted."""
    seconds = []
    for size_bytes in sizes_bytes:
        vector = torch.zeros(size_bytes // FLOAT_BYTES)
        taken = []
        for _ in range(repeats + 1):
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(vector)
            taken.append(time.perf_counter() - start)
        seconds.append(taken[1:])
    return seconds


def all_reduce_seconds(
    sizes_bytes: Sequence[int], *, ranks: int, repeats: int = 5, timeout_s: float = 60.0
) -> list[float]:
    """Seconds that a gloo all-reduce of each size takes: the median over the repeats of the slowest rank's time."""
    checks.count(ranks=ranks, at_least=2)
    checks.count(repeats=repeats)
    for size_bytes in sizes_bytes:
        checks.count(size_bytes=size_bytes, at_least=FLOAT_BYTES)
    by_rank = run_ranks(_timed, tuple(sizes_bytes), repeats, ranks=ranks, timeout_s=timeout_s)
    return [
        statistics.median(map(max, zip(*(rank[place] for rank in by_rank), strict=True)))
        for place in range(len(sizes_bytes))
    ]


def fitted_link(sizes_bytes: Sequence[int], seconds: Sequence[float], *, ranks: int) -> FittedLink:
    """Alpha and bandwidth from the times of ring all-reduces.

    Formula:  the line through the smallest and the largest size: its slope over the serial bytes gives 1/B, what is
              left at size 0 alpha
    Assumes:  a ring with the same alpha and rate at every size
    Raises:   ValueError when the larger size took no longer, or when the line meets size 0 below zero
    """
    checks.count(ranks=ranks, at_least=2)
    small, large = min(zip(sizes_bytes, seconds, strict=True)), max(zip(sizes_bytes, seconds, strict=True))
    if not (small[0] < large[0] and small[1] < large[1]):
        raise ValueError(
            f"seconds={list(seconds)} must grow from the smallest to the largest of sizes_bytes={list(sizes_bytes)};"
            " try sizes further apart"
        )
    # With alpha_s=1 and one byte per second, the formula's two parts are the number of steps and of serial bytes.
    unit = collective_time(
        op="all_reduce", algorithm="ring", size_bytes=1, ranks=ranks, alpha_s=1, bytes_per_s_one_way=1
    )
    seconds_per_byte = (large[1] - small[1]) / (large[0] - small[0])
    latency_s = small[1] - seconds_per_byte * small[0]
    checks.non_negative(latency_s=latency_s)
    return FittedLink(
        ranks=ranks, alpha_s=latency_s / unit.latency_s, bytes_per_s_one_way=unit.bandwidth_s / seconds_per_byte
    )

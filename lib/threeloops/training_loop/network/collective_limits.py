"""Limits and choices of collectives: the best time possible, the best chunk count, the size at which another
algorithm wins.

Source: Patarasuk, Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69(2), 2009,
        doi:10.1016/j.jpdc.2008.09.002
"""

import math
from dataclasses import dataclass

from threeloops import checks
from threeloops.training_loop.network.collective_algorithms import ceil_log2, is_pipelined
from threeloops.training_loop.network.collectives import CollectiveTime, bus_factor, collective_time


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBound:
    """Two bounds that no algorithm gets below; one algorithm need not reach both."""

    op: str
    ranks: int
    size_bytes: float
    latency_s: float
    bandwidth_s: float

    @property
    def at_least_s(self) -> float:
        """The larger of the two: their sum is not proven to be a bound."""
        return max(self.latency_s, self.bandwidth_s)


def lower_bound(*, op: str, size_bytes: float, ranks: int, alpha_s: float, bytes_per_s_one_way: float) -> LowerBound:
    """The least latency and the least bandwidth time that any algorithm needs.

    Formula:  latency: ceil(log2(n)) * alpha, of a send_recv alpha; bandwidth: bus factor * S / B
    Assumes:  one port per rank, so the ranks that know of one value at most double in a step; no reduction inside the
              switches
    Source:   Patarasuk, Yuan, 2009 (all-reduce: 2(n - 1)/n * S); Thakur et al., 2005; nccl-tests PERFORMANCE.md (the
              other operations)
    Counted:  tests.training_loop.test_collectives.test_the_bounds_are_reached

    >>> bound = lower_bound(op="all_reduce", size_bytes=1e9, ranks=8, alpha_s=5e-6, bytes_per_s_one_way=50e9)
    >>> bound.bandwidth_s, round(bound.latency_s * 1e6)
    (0.035, 15)
    """
    checks.positive(size_bytes=size_bytes, bytes_per_s_one_way=bytes_per_s_one_way)
    checks.non_negative(alpha_s=alpha_s)
    serial_bytes = bus_factor(op=op, ranks=ranks) * size_bytes if ranks > 1 else 0.0
    # A send_recv tells one rank of each value; every other operation has a value that all ranks must know of, or that
    # knows of all ranks.
    steps = min(1, ranks - 1) if op == "send_recv" else ceil_log2(ranks)
    return LowerBound(
        op=op,
        ranks=ranks,
        size_bytes=size_bytes,
        latency_s=steps * alpha_s,
        bandwidth_s=serial_bytes / bytes_per_s_one_way,
    )


def optimal_chunks(
    *, op: str, algorithm: str, size_bytes: float, ranks: int, alpha_s: float, bytes_per_s_one_way: float
) -> int:
    """The chunk count that makes a pipelined algorithm fastest: more chunks fill the pipe sooner, and cost an alpha
    each.

    Formula:  with steps = a * k + b, the time (a * k + b) * (alpha + S / (k * B)) is least at k = sqrt(b * S / (a *
              alpha * B)), or at a whole number beside it
    Assumes:  chunks may be as small as the formula asks; a start-up cost of the call (startup_s) changes nothing here
    Raises:   ValueError for alpha_s=0, where more chunks are always better, and for algorithms that are not pipelined
    Counted:  tests.training_loop.test_collectives.test_no_chunk_count_is_faster_than_the_optimal_one

    >>> optimal_chunks(
    ...     op="broadcast", algorithm="ring", size_bytes=12e6, ranks=5, alpha_s=4e-6, bytes_per_s_one_way=1e9
    ... )
    95
    """
    checks.positive(alpha_s=alpha_s)
    if not is_pipelined(op=op, algorithm=algorithm):
        raise ValueError(f"algorithm={algorithm!r} must be a pipelined one: {algorithm} {op} has no chunks to choose")

    def at(chunks: int) -> CollectiveTime:
        return collective_time(
            op=op,
            algorithm=algorithm,
            size_bytes=size_bytes,
            ranks=ranks,
            alpha_s=alpha_s,
            bytes_per_s_one_way=bytes_per_s_one_way,
            chunks=chunks,
        )

    steps_per_chunk = at(2).steps - at(1).steps
    if not steps_per_chunk:  # one rank: nothing moves
        return 1
    fill_steps = at(1).steps - steps_per_chunk
    best = math.sqrt(max(0, fill_steps) * size_bytes / (steps_per_chunk * alpha_s * bytes_per_s_one_way))
    return min(max(1, math.floor(best)), max(1, math.ceil(best)), key=lambda chunks: at(chunks).total_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """Which of two algorithms is faster below a size, and which above it."""

    op: str
    ranks: int
    below: str
    above: str
    size_bytes: float  # 0 where one of them is never slower: then it stands in `below` and in `above`

    @property
    def one_dominates(self) -> bool:
        return self.below == self.above


def crossover(
    *,
    op: str,
    algorithms: tuple[str, str],
    ranks: int,
    alpha_s: float,
    bytes_per_s_one_way: float,
    chunks: int | None = None,
) -> Crossover:
    """The size at which two algorithms take the same time.

    Formula:  S = (latency_1 - latency_2) / (bandwidth_2 - bandwidth_1), bandwidth in seconds per byte of S; both
              times are affine in S
    Assumes:  as collective_time; a pipelined algorithm keeps its `chunks` at every size; both cost the same to start
    Raises:   ValueError where both cost the same at every size (one rank; ring and halving-doubling of two)
    Counted:  drills.all_reduce.latency.CROSSOVER

    >>> at = crossover(
    ...     op="all_reduce", algorithms=("ring", "binomial-tree"), ranks=8, alpha_s=5e-6, bytes_per_s_one_way=50e9
    ... )
    >>> at.below, at.above, round(at.size_bytes)
    ('binomial-tree', 'ring', 470588)
    """
    checks.positive(bytes_per_s_one_way=bytes_per_s_one_way)
    first, second = (
        collective_time(
            op=op,
            algorithm=algorithm,
            size_bytes=bytes_per_s_one_way,  # so that bandwidth_s is the multiple of S that goes through one port
            ranks=ranks,
            alpha_s=alpha_s,
            bytes_per_s_one_way=bytes_per_s_one_way,
            chunks=chunks if is_pipelined(op=op, algorithm=algorithm) else None,
        )
        for algorithm in algorithms
    )
    quick, frugal = sorted((first, second), key=lambda time: (time.latency_s, time.bandwidth_s))
    if (quick.latency_s, quick.bandwidth_s) == (frugal.latency_s, frugal.bandwidth_s):
        raise ValueError(
            f"algorithms={algorithms} cost the same at every size with ranks={ranks}; there is nothing to choose"
        )
    if quick.bandwidth_s <= frugal.bandwidth_s:
        return Crossover(op=op, ranks=ranks, below=quick.algorithm, above=quick.algorithm, size_bytes=0.0)
    size_bytes = (frugal.latency_s - quick.latency_s) / (quick.bandwidth_s - frugal.bandwidth_s) * bytes_per_s_one_way
    if not size_bytes:  # alpha_s=0: only the bandwidth counts
        return Crossover(op=op, ranks=ranks, below=frugal.algorithm, above=frugal.algorithm, size_bytes=0.0)
    return Crossover(op=op, ranks=ranks, below=quick.algorithm, above=frugal.algorithm, size_bytes=size_bytes)

"""Blocks on multiprocessors: admitted one by one while everything they need is free, then played to the end of the
grid.

The scheduler knows no formula: a block takes its warps, registers and shared memory from what is left, or waits.

>>> [
...     (placed.sm, placed.start_s, placed.end_s)
...     for placed in play(num_sms=2, blocks_per_sm=1, durations_s=[1.0, 1.0, 1.0])
... ]
[(0, 0.0, 1.0), (1, 0.0, 1.0), (0, 1.0, 2.0)]
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Protocol


class Limits(Protocol):
    """What one multiprocessor has: compute_capability.Multiprocessor, or any object like it."""

    max_warps: int
    max_blocks: int
    registers: int
    register_unit: int  # registers are handed to a warp in multiples of this
    register_partitions: int  # each with an equal share of the registers; a warp lives in one of them
    shared_bytes: int
    reserved_shared_bytes_per_block: int


def resident_blocks(
    sm: Limits, *, threads_per_block: int, registers_per_thread: int, shared_bytes_per_block: int
) -> int:
    """Blocks that an empty multiprocessor admits before the first one has to wait."""
    warps_free, blocks_free, shared_free = sm.max_warps, sm.max_blocks, sm.shared_bytes
    registers_free = [sm.registers // sm.register_partitions] * sm.register_partitions
    partition = _round_robin(sm.register_partitions)
    for admitted in count():
        blocks_free -= 1
        shared_free -= shared_bytes_per_block + sm.reserved_shared_bytes_per_block
        for _ in range(0, threads_per_block, 32):
            warps_free -= 1
            home = next(partition)
            for _ in range(0, 32 * registers_per_thread, sm.register_unit):
                registers_free[home] -= sm.register_unit
        if min(blocks_free, shared_free, warps_free, *registers_free) < 0:
            return admitted
    raise AssertionError("a multiprocessor is full at some point")


def _round_robin(partitions: int) -> Iterator[int]:
    return (number % partitions for number in count())


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where and when a block ran."""

    block: int
    sm: int
    slot: int  # which of the places on that multiprocessor
    start_s: float
    end_s: float


def play(*, num_sms: int, blocks_per_sm: int, durations_s: Sequence[float]) -> tuple[Placed, ...]:
    """Every block in the order of its number, on the place that is free first; at the start one to each
    multiprocessor in turn.
    """
    free = [(0.0, slot, sm) for slot in range(blocks_per_sm) for sm in range(num_sms)]
    heapq.heapify(free)
    placed = []
    for block, duration_s in enumerate(durations_s):
        start_s, slot, sm = heapq.heappop(free)
        placed.append(Placed(block=block, sm=sm, slot=slot, start_s=start_s, end_s=start_s + duration_s))
        heapq.heappush(free, (start_s + duration_s, slot, sm))
    return tuple(placed)

"""The two memories of the SIMT machine: global memory in sectors of 32 bytes, a block's shared memory in 32 banks.

Every request of a warp arrives here as the indices of its active lanes. Global memory notes which sectors hold them;
shared memory notes how many turns its busiest bank needs, and whether another warp has touched a word since the last
barrier. Nothing is computed from a stride or a shape.

>>> counts = Counts()
>>> memory = GlobalArray(np.arange(64, dtype=np.float32), first_byte=0, counts=counts)
>>> float(memory.read(np.arange(32) * 2)[-1]), counts.load_sectors  # every second number: 32 lanes, 8 sectors
(62.0, 8)

Source: NVIDIA, CUDA C++ Best Practices Guide 12.9, 10.2.1 (32-byte transactions) and 10.2.3.1 (32 banks of 32-bit
        words)
"""

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

SECTOR_BYTES, LINE_BYTES = 32, 128
BANKS, LANES = 32, 32
WORD_BYTES = 4
NOBODY, SEVERAL = -1, -2

Lanes = NDArray[Any]  # one value per lane of a warp
Numbers = NDArray[np.floating[Any]]


@dataclass(slots=True)
class Counts:
    """Everything the machine counts while it runs a kernel."""

    blocks: int = 0
    warps: int = 0
    issued: int = 0  # warp instructions: one for all lanes that take part
    active_lanes: int = 0  # summed over those instructions
    flops: int = 0  # of active lanes; a multiply-add is 2
    matrix_instructions: int = 0
    loads: int = 0  # requests to global memory
    stores: int = 0
    load_sectors: int = 0
    store_sectors: int = 0
    lines: int = 0
    used_bytes: int = 0  # that lanes asked of global memory, each lane by itself
    shared_requests: int = 0
    shared_passes: int = 0  # turns that shared memory needed to serve them
    branches: int = 0
    divergent_branches: int = 0
    barriers: int = 0
    races: int = 0  # words that two warps of a block touched without a barrier between, one of them writing
    touched_sectors: set[int] = field(default_factory=set)

    @property
    def requests(self) -> int:
        """Loads and stores of global memory."""
        return self.loads + self.stores

    @property
    def sectors(self) -> int:
        return self.load_sectors + self.store_sectors

    @property
    def moved_bytes(self) -> int:
        """If no request finds its sectors in a cache."""
        return self.sectors * SECTOR_BYTES

    @property
    def touched_bytes(self) -> int:
        """If every sector crosses the bus once, however often it is asked for."""
        return len(self.touched_sectors) * SECTOR_BYTES

    @property
    def shared_bytes(self) -> int:
        """That shared memory could have handed out in those turns: a word from each bank."""
        return self.shared_passes * BANKS * WORD_BYTES

    @property
    def bank_conflicts(self) -> int:
        """Turns of shared memory beyond one per request."""
        return self.shared_passes - self.shared_requests

    @property
    def lane_use(self) -> float:
        """Lanes at work per issued instruction, over the 32 there are."""
        return self.active_lanes / (LANES * self.issued)


class GlobalArray:
    """An array in global memory: the caller's own numbers, at a byte address."""

    def __init__(self, numbers: Numbers, *, first_byte: int, counts: Counts) -> None:
        if not numbers.flags.c_contiguous:
            raise ValueError("an array in global memory must be contiguous; pass numpy.ascontiguousarray(...)")
        self.numbers = numbers.reshape(-1)
        self.first_byte = first_byte
        self.counts = counts

    def read(self, index: Lanes) -> Numbers:
        self.counts.loads += 1
        self.counts.load_sectors += self._sectors(index)
        return self.numbers[index]

    def write(self, index: Lanes, values: Numbers) -> None:
        self.counts.stores += 1
        self.counts.store_sectors += self._sectors(index)
        self.numbers[index] = values

    def _sectors(self, index: Lanes) -> int:
        inside(index, self.numbers.size)
        sectors, lines = _touched(index.tobytes(), self.first_byte, self.numbers.itemsize)
        self.counts.lines += lines
        self.counts.used_bytes += index.size * self.numbers.itemsize
        self.counts.touched_sectors |= sectors
        return len(sectors)


class SharedArray:
    """An array of 32-bit words in the shared memory of one block; it starts out as rubbish."""

    def __init__(self, words: int, *, counts: Counts) -> None:
        self.numbers = np.full(words, np.nan, dtype=np.float32)
        self.counts = counts
        self._writer = np.full(words, NOBODY)
        self._reader = np.full(words, NOBODY)

    def read(self, index: Lanes, *, warp: int) -> Numbers:
        self._serve(index)
        self.counts.races += _strangers(self._writer[index], warp)
        before = self._reader[index]
        self._reader[index] = np.where((before == NOBODY) | (before == warp), warp, SEVERAL)
        return self.numbers[index]

    def write(self, index: Lanes, values: Numbers, *, warp: int) -> None:
        self._serve(index)
        self.counts.races += _strangers(self._writer[index], warp) + _strangers(self._reader[index], warp)
        self._writer[index] = warp
        self.numbers[index] = values

    def barrier(self) -> None:
        """All warps have met: what happened before is settled."""
        self._writer[:] = NOBODY
        self._reader[:] = NOBODY

    def _serve(self, index: Lanes) -> None:
        inside(index, self.numbers.size)
        self.counts.shared_requests += 1
        self.counts.shared_passes += _passes(index.tobytes())


# The blocks of a kernel ask for the same places again and again: what was counted once is not counted anew.
@functools.lru_cache(maxsize=1 << 14)
def _ends(index: bytes) -> tuple[int, int]:
    """The first and the last of these places."""
    places = np.frombuffer(index, dtype=np.int64)
    return int(places.min()), int(places.max())


@functools.lru_cache(maxsize=1 << 14)
def _touched(index: bytes, first_byte: int, itemsize: int) -> tuple[frozenset[int], int]:
    """The sectors that hold the elements at these places, and how many lines hold those."""
    places = np.frombuffer(index, dtype=np.int64)
    sectors = frozenset(((first_byte + places * itemsize) // SECTOR_BYTES).tolist())
    return sectors, len({sector * SECTOR_BYTES // LINE_BYTES for sector in sectors})


@functools.lru_cache(maxsize=1 << 14)
def _passes(index: bytes) -> int:
    """A bank hands out one word per turn; lanes that want the same word share it."""
    queues = [0] * BANKS
    for word in set(np.frombuffer(index, dtype=np.int64).tolist()):
        queues[word % BANKS] += 1
    return max(queues)


def _strangers(touched_by: Lanes, warp: int) -> int:
    return int(np.count_nonzero((touched_by != NOBODY) & (touched_by != warp)))


def inside(index: Lanes, size: int) -> None:
    """Refuse an index outside the array, as a memory checker would."""
    low, high = _ends(index.tobytes())
    if low < 0 or high >= size:
        raise ValueError(
            f"index {low if low < 0 else high} lies outside an array of {size} elements; guard it with w.where(...)"
        )

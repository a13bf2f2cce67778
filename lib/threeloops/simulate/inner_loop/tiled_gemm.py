"""A machine with a small fast memory multiplies two matrices, tile by tile, and counts what crosses the boundary to
slow memory.

The machine knows nothing of any formula: it holds blocks in fast memory, fetches one when it is missing, drops the
one unused for longest when it is full, and writes a changed block back when it leaves. Its product is a real product,
so a walk that forgets a tile gives a wrong matrix.

>>> a, b = np.eye(4, dtype=np.float32), np.ones((4, 4), dtype=np.float32)
>>> counted = multiply(a, b, tile_m=2, tile_n=2, tile_k=2, fast_bytes=48, keep_between_tiles=False)
>>> (
...     counted.multiply_adds,
...     counted.loaded_bytes,
...     counted.stored_bytes,
... )  # each operand loaded twice, the product written once
(64, 256, 64)
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.floating[Any]]
Key = tuple[str, int, int]


class FastMemory:
    """A fully associative memory of limited size in front of slow memory, least recently used block out first."""

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self.loaded_bytes = 0
        self.stored_bytes = 0
        self.held_bytes = 0
        self.peak_bytes = 0
        self._blocks: OrderedDict[Key, Matrix] = OrderedDict()
        self._write_back: dict[Key, Matrix] = {}  # changed blocks, and where in slow memory they belong

    def read(self, key: Key, slow: Matrix) -> Matrix:
        """The block, fetched from slow memory if it is missing; now the most recently used."""
        if key in self._blocks:
            self._blocks.move_to_end(key)
        else:
            self._place(key, slow.copy())
            self.loaded_bytes += slow.nbytes
        return self._blocks[key]

    def create(self, key: Key, slow: Matrix) -> Matrix:
        """A new block of zeros that belongs to this place in slow memory; nothing is fetched."""
        self._place(key, np.zeros_like(slow))
        self._write_back[key] = slow
        return self._blocks[key]

    def touch(self, key: Key) -> None:
        """Mark a block that is there as the most recently used."""
        self._blocks.move_to_end(key)

    def flush(self) -> None:
        """Empty the memory, writing changed blocks back."""
        while self._blocks:
            self._evict()

    def _place(self, key: Key, block: Matrix) -> None:
        while self.held_bytes + block.nbytes > self.capacity_bytes:
            self._evict()
        self._blocks[key] = block
        self.held_bytes += block.nbytes
        self.peak_bytes = max(self.peak_bytes, self.held_bytes)

    def _evict(self) -> None:
        key, block = self._blocks.popitem(last=False)
        self.held_bytes -= block.nbytes
        if key in self._write_back:
            self._write_back.pop(key)[...] = block
            self.stored_bytes += block.nbytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedGemm:
    """What the machine did, and the product it made."""

    product: Matrix
    multiply_adds: int
    loaded_bytes: int
    stored_bytes: int
    peak_fast_bytes: int

    @property
    def moved_bytes(self) -> int:
        return self.loaded_bytes + self.stored_bytes


def multiply(
    a: Matrix, b: Matrix, *, tile_m: int, tile_n: int, tile_k: int, fast_bytes: int, keep_between_tiles: bool
) -> CountedGemm:
    """Multiply a [m, k] by b [k, n], one output tile after the other, row by row of tiles.

    keep_between_tiles: True is a cache that all output tiles share; False empties fast memory after each output tile,
    as blocks of threads do that run on different multiprocessors and share nothing.

    Raises:   ValueError if one tile of each matrix does not fit into fast memory together, or the inner sizes differ
    """
    m, k, n = a.shape[0], a.shape[1], b.shape[1]
    if b.shape[0] != k:
        raise ValueError(f"a has {k} columns but b has {b.shape[0]} rows; they must be equal")
    height, width, depth = min(tile_m, m), min(tile_n, n), min(tile_k, k)
    needed = (height * depth + depth * width + height * width) * a.itemsize
    if needed > fast_bytes:
        raise ValueError(
            f"fast_bytes={fast_bytes} must hold one tile of each matrix together, {needed} bytes; use smaller tiles"
        )
    product = np.full((m, n), np.nan, dtype=a.dtype)
    fast, multiply_adds = FastMemory(fast_bytes), 0
    for i in range(0, m, tile_m):
        for j in range(0, n, tile_n):
            out = fast.create(("c", i, j), product[i : i + tile_m, j : j + tile_n])
            for p in range(0, k, tile_k):
                left = fast.read(("a", i, p), a[i : i + tile_m, p : p + tile_k])
                right = fast.read(("b", p, j), b[p : p + tile_k, j : j + tile_n])
                out += left @ right
                fast.touch(("c", i, j))
                multiply_adds += left.shape[0] * left.shape[1] * right.shape[1]
            if not keep_between_tiles:
                fast.flush()
    fast.flush()
    return CountedGemm(
        product=product,
        multiply_adds=multiply_adds,
        loaded_bytes=fast.loaded_bytes,
        stored_bytes=fast.stored_bytes,
        peak_fast_bytes=fast.peak_bytes,
    )

"""A machine with a small fast memory of a fixed size walks attention block by block, in either order of its two
loops, and counts bytes.

The machine refuses to hold more than fits. It knows no formula, and its output is the real one.

>>> rng = np.random.default_rng(1)
>>> q, k, v = (rng.standard_normal((6, 4)) for _ in range(3))
>>> walk = queries_outside(q, k, v, query_block=3, key_block=2, fast_bytes=416)
>>> walk.loaded_bytes, walk.stored_bytes, walk.peak_fast_bytes  # Q once, K and V twice; the output once
(960, 192, 416)
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


class FastMemory:
    """A memory of limited size: what is held counts against it, what crosses to or from slow memory is counted as
    moved.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self.held_bytes = self.peak_bytes = self.loaded_bytes = self.stored_bytes = 0

    def load(self, array: Array) -> Array:
        """Bring a block in from slow memory."""
        self.loaded_bytes += array.nbytes
        return self.make(array.copy())

    def make(self, array: Array) -> Array:
        """Hold a block that was computed here."""
        self.held_bytes += array.nbytes
        self.peak_bytes = max(self.peak_bytes, self.held_bytes)
        if self.held_bytes > self.capacity_bytes:
            raise ValueError(
                f"fast_bytes={self.capacity_bytes} must hold what the walk needs at once, {self.held_bytes} bytes; use"
                " smaller blocks"
            )
        return array

    def store(self, array: Array, slow: Array) -> None:
        """Write a block back to slow memory."""
        self.stored_bytes += array.nbytes
        slow[...] = array

    def drop(self, *arrays: Array) -> None:
        """Forget blocks."""
        self.held_bytes -= sum(array.nbytes for array in arrays)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedAttention:
    """The output [tokens, width] of one head, and what it cost."""

    output: Array
    multiply_adds: int
    loaded_bytes: int
    stored_bytes: int
    peak_fast_bytes: int

    @property
    def moved_bytes(self) -> int:
        return self.loaded_bytes + self.stored_bytes


def queries_outside(
    q: Array, k: Array, v: Array, *, query_block: int, key_block: int, fast_bytes: int
) -> BoundedAttention:
    """A block of queries stays while all keys and values pass by; its output is written once.

    Source:   Dao, FlashAttention-2, 2023, arXiv:2307.08691, algorithm 1
    """
    fast, output, multiply_adds = FastMemory(fast_bytes), np.full_like(q, np.nan), 0
    for i in range(0, len(q), query_block):
        rows = slice(i, i + query_block)
        queries = fast.load(q[rows])
        largest, total = fast.make(np.full(len(queries), -np.inf, q.dtype)), fast.make(np.zeros(len(queries), q.dtype))
        out = fast.make(np.zeros_like(queries))
        for j in range(0, len(k), key_block):
            keys, values = fast.load(k[j : j + key_block]), fast.load(v[j : j + key_block])
            multiply_adds += _meet(fast, queries, keys, values, largest, total, out)
            fast.drop(keys, values)
        fast.store(out / total[:, None], output[rows])
        fast.drop(queries, largest, total, out)
    return _result(fast, output, multiply_adds)


def keys_outside(
    q: Array, k: Array, v: Array, *, query_block: int, key_block: int, fast_bytes: int
) -> BoundedAttention:
    """A block of keys and values stays while all queries pass by, each with its unfinished output, maximum and sum.

    Source:   Dao et al., FlashAttention, 2022, arXiv:2205.14135, algorithm 1
    """
    fast, multiply_adds = FastMemory(fast_bytes), 0
    output, highest, totals = np.zeros_like(q), np.full(len(q), -np.inf, q.dtype), np.zeros(len(q), q.dtype)
    for j in range(0, len(k), key_block):
        keys, values = fast.load(k[j : j + key_block]), fast.load(v[j : j + key_block])
        for i in range(0, len(q), query_block):
            rows = slice(i, i + query_block)
            queries, largest, total, out = (
                fast.load(q[rows]),
                fast.load(highest[rows]),
                fast.load(totals[rows]),
                fast.load(output[rows]),
            )
            multiply_adds += _meet(fast, queries, keys, values, largest, total, out)
            for array, slow in ((largest, highest), (total, totals), (out, output)):
                fast.store(array, slow[rows])
            fast.drop(queries, largest, total, out)
        fast.drop(keys, values)
    return _result(fast, output / totals[:, None], multiply_adds)


def _meet(
    fast: FastMemory, queries: Array, keys: Array, values: Array, largest: Array, total: Array, out: Array
) -> int:
    """One block of queries meets one block of keys: maximum, sum and output move on, in place. Returns the
    multiply-adds.
    """
    scores = fast.make((queries @ keys.T / np.sqrt(queries.shape[1])).astype(queries.dtype))
    higher = np.maximum(largest, scores.max(axis=1))
    shrink = np.exp(largest - higher)
    weights = np.exp(scores - higher[:, None])
    out[...] = out * shrink[:, None] + weights @ values
    total[...] = total * shrink + weights.sum(axis=1)
    largest[...] = higher
    fast.drop(scores)
    return int(scores.size * (queries.shape[1] + values.shape[1]))


def _result(fast: FastMemory, output: Array, multiply_adds: int) -> BoundedAttention:
    return BoundedAttention(
        output=output,
        multiply_adds=multiply_adds,
        loaded_bytes=fast.loaded_bytes,
        stored_bytes=fast.stored_bytes,
        peak_fast_bytes=fast.peak_bytes,
    )

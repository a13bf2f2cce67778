"""A machine walks attention, once with its scores written out and once block by block with a running softmax, and
counts bytes.

Everything that is not on the fast side is counted when it crosses: a slice read from slow memory, a slice written to
it. The output is the real attention output, so a walk that skips work it should not skip gives wrong numbers.

>>> rng = np.random.default_rng(1)
>>> q, k, v = (rng.standard_normal((4, 6, 8)) for _ in range(3))
>>> fused = fused_attention(q, k, v, causal=False, query_block=3, key_block=2)
>>> unfused = unfused_attention(q, k, v, causal=False)
>>> bool(np.allclose(fused.output, unfused.output)), fused.multiply_adds == unfused.multiply_adds
(True, True)
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


@dataclass(slots=True)
class SlowMemory:
    """Counts what is read from it and written to it."""

    loaded_bytes: int = 0
    stored_bytes: int = 0

    def load(self, array: Array) -> Array:
        self.loaded_bytes += array.nbytes
        return array.copy()

    def store(self, array: Array) -> Array:
        self.stored_bytes += array.nbytes
        return array.copy()


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedAttention:
    """The output [num_heads, queries, width], and what it cost."""

    output: Array
    multiply_adds: int
    loaded_bytes: int
    stored_bytes: int

    @property
    def moved_bytes(self) -> int:
        return self.loaded_bytes + self.stored_bytes


def unfused_attention(q: Array, k: Array, v: Array, *, causal: bool) -> CountedAttention:
    """Three kernels: scores to slow memory, softmax there and back, output. q is [num_heads, queries, width], k and v
    [num_kv_heads, keys, width].

    All heads of a group are one kernel's work, so each KV head is loaded once per kernel. The mask is applied when
    the softmax reads.
    """
    slow, multiply_adds = SlowMemory(), 0
    group = q.shape[0] // k.shape[0]
    scores, weights = [], []
    for kv_head in range(k.shape[0]):
        keys = slow.load(k[kv_head])
        for head in range(kv_head * group, (kv_head + 1) * group):
            queries = slow.load(q[head])
            scores.append(slow.store(queries @ keys.T))
            multiply_adds += queries.shape[0] * keys.shape[0] * queries.shape[1]
    for score in scores:
        row = slow.load(score) / np.sqrt(q.shape[-1])
        row = (
            np.where(_visible(row.shape[0], row.shape[1], 0, 0, row.shape[1] - row.shape[0]), row, -np.inf)
            if causal
            else row
        )
        row = np.exp(row - row.max(axis=-1, keepdims=True))
        weights.append(slow.store((row / row.sum(axis=-1, keepdims=True)).astype(q.dtype)))
    outputs = []
    for kv_head in range(v.shape[0]):
        values = slow.load(v[kv_head])
        for head in range(kv_head * group, (kv_head + 1) * group):
            weight = slow.load(weights[head])
            outputs.append(slow.store(weight @ values))
            multiply_adds += weight.shape[0] * weight.shape[1] * values.shape[1]
    return CountedAttention(
        output=np.stack(outputs),
        multiply_adds=multiply_adds,
        loaded_bytes=slow.loaded_bytes,
        stored_bytes=slow.stored_bytes,
    )


def fused_attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    causal: bool,
    query_block: int,
    key_block: int,
) -> CountedAttention:
    """One kernel: each block of queries meets every block of keys and values it can see, keeping a running maximum,
    sum and output.

    A block of queries holds the rows of all heads that share a KV head, so that a group loads each key once per
    block. With causal=True, blocks in which every score is masked are neither loaded nor multiplied.

    Source:   Milakov and Gimelshein, 2018, arXiv:1805.02867 (running softmax); Dao et al., FlashAttention, 2022,
              arXiv:2205.14135
    """
    slow, multiply_adds = SlowMemory(), 0
    group, shift = q.shape[0] // k.shape[0], k.shape[1] - q.shape[1]
    output = np.full((*q.shape[:2], v.shape[-1]), np.nan, dtype=q.dtype)
    for kv_head in range(k.shape[0]):
        heads = slice(kv_head * group, (kv_head + 1) * group)
        for i in range(0, q.shape[1], query_block):
            queries = slow.load(q[heads, i : i + query_block])
            rows = queries.shape[1]
            state = _RunningSoftmax.start(group, rows, v.shape[-1])
            for j in range(0, k.shape[1], key_block):
                if causal and j > i + rows - 1 + shift:
                    break
                keys, values = slow.load(k[kv_head, j : j + key_block]), slow.load(v[kv_head, j : j + key_block])
                scores = queries @ keys.T / np.sqrt(q.shape[-1])
                if causal:
                    scores = np.where(_visible(rows, keys.shape[0], i, j, shift), scores, -np.inf)
                state.add(scores, values)
                multiply_adds += group * rows * keys.shape[0] * (keys.shape[1] + values.shape[1])
            output[heads, i : i + query_block] = slow.store((state.output / state.total[..., None]).astype(q.dtype))
    return CountedAttention(
        output=output, multiply_adds=multiply_adds, loaded_bytes=slow.loaded_bytes, stored_bytes=slow.stored_bytes
    )


@dataclass(slots=True)
class _RunningSoftmax:
    """Per row: the largest score so far, the sum of exponentials relative to it, and the output relative to it."""

    largest: Array
    total: Array
    output: Array = field(repr=False)

    @classmethod
    def start(cls, heads: int, rows: int, width: int) -> "_RunningSoftmax":
        return cls(
            largest=np.full((heads, rows), -np.inf),
            total=np.zeros((heads, rows)),
            output=np.zeros((heads, rows, width)),
        )

    def add(self, scores: Array, values: Array) -> None:
        """Take in a block: everything before it shrinks with the largest score that has been seen."""
        largest = np.maximum(self.largest, scores.max(axis=-1))
        shrink: Array = np.exp(self.largest - largest)
        weights = np.exp(scores - largest[..., None])
        self.output = self.output * shrink[..., None] + weights @ values
        self.total = self.total * shrink + weights.sum(axis=-1)
        self.largest = largest


def _visible(rows: int, columns: int, first_row: int, first_column: int, shift: int) -> NDArray[np.bool_]:
    """Which keys each query may see: itself and all before it; the queries are the last of the context, `shift` keys
    in.
    """
    query = np.arange(rows)[:, None] + first_row + shift
    key = np.arange(columns)[None, :] + first_column
    visible: NDArray[np.bool_] = key <= query
    return visible

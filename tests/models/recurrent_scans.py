"""Recurrent scans counted: one head of gated delta net and one group of Mamba 2, token by token and chunk by chunk.

Both ways must read the same out of the matrix; the first counts what it does to every element of the matrix, the
second the matrix products that it makes. Neither knows a formula for either.

Source: Yang, Kautz, Hatamizadeh, 2024, arXiv:2412.06464, section 3; Dao, Gu, 2024, arXiv:2405.21060, sections 3 and 6
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


@dataclass(slots=True)
class Tally:
    """FLOPs so far."""

    flops: int = 0

    def product(self, left: Array, right: Array) -> Array:
        """A matrix product, multiplication and addition counted for every term."""
        self.flops += 2 * left.shape[0] * left.shape[1] * right.shape[1]
        return left @ right

    def each(self, matrix: Array, times: int) -> Array:
        """The same matrix, noted as touched so many times per element."""
        self.flops += times * matrix.size
        return matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What was read for every token, and what it took."""

    outputs: Array  # a row per token
    flops: int


def delta_by_token(q: Array, k: Array, v: Array, *, decay: Array, write: Array) -> Scan:
    """One head of gated delta net: every token corrects what the matrix holds for its key, then reads.

    >>> one = np.ones((1, 2))
    >>> delta_by_token(one, one, one, decay=np.ones(1), write=np.ones(1)).outputs
    array([[2., 2.]])
    """
    state: Array = np.zeros((k.shape[1], v.shape[1]))
    tally, outputs = Tally(), []
    for t in range(len(q)):
        state = tally.each(decay[t] * state, 1)
        held = k[t] @ tally.each(state, 2)
        state = tally.each(state + np.outer(k[t], write[t] * (v[t] - held)), 2)
        outputs.append(q[t] @ tally.each(state, 2))
    return Scan(outputs=np.array(outputs), flops=tally.flops)


def delta_by_chunk(q: Array, k: Array, v: Array, *, decay: Array, write: Array, chunk: int) -> Scan:
    """The same in products: inside a chunk a triangular system says what each token really writes.

    Assumes:  the inverse of that system is made without being counted, its products with keys and values are counted;
              a last chunk that is not full is filled with zeros
    """
    (q, k, v), decay, write = _filled(chunk, q, k, v), _filled(chunk, decay, with_=1.0)[0], _filled(chunk, write)[0]
    state: Array = np.zeros((k.shape[1], v.shape[1]))
    tally, outputs = Tally(), []
    for start in range(0, len(q), chunk):
        here = slice(start, start + chunk)
        since = np.cumprod(decay[here])[:, None]
        between = np.tril(since / since.T)
        keys = tally.product(write[here, None] * k[here], k[here].T) * np.tril(between, -1)
        inverse = np.linalg.inv(np.eye(chunk) + keys)
        values = tally.product(inverse, write[here, None] * v[here])
        reading = tally.product(inverse, write[here, None] * since * k[here])
        written = values - tally.product(reading, state)
        scores = tally.product(q[here], k[here].T) * between
        outputs.append(tally.product(since * q[here], state) + tally.product(scores, written))
        state = since[-1] * state + tally.product((since[-1] / since * k[here]).T, written)
    return Scan(outputs=np.concatenate(outputs), flops=tally.flops)


def mamba_by_token(c: Array, b: Array, inputs: Array, *, decay: Array) -> Scan:
    """Heads of one group of Mamba 2, side by side in `inputs` [tokens, heads, width]; `decay` is [tokens, heads].

    >>> mamba_by_token(np.ones((1, 2)), np.ones((1, 2)), np.ones((1, 1, 3)), decay=np.ones((1, 1))).outputs
    array([[[2., 2., 2.]]])
    """
    tokens, heads, width = inputs.shape
    state: Array = np.zeros((heads, b.shape[1], width))
    tally, outputs = Tally(), []
    for t in range(tokens):
        state = tally.each(decay[t][:, None, None] * state, 1)
        state = tally.each(state + b[t][None, :, None] * inputs[t][:, None, :], 2)
        outputs.append(np.einsum("n,hnp->hp", c[t], tally.each(state, 2)))
    return Scan(outputs=np.array(outputs), flops=tally.flops)


def mamba_by_chunk(c: Array, b: Array, inputs: Array, *, decay: Array, chunk: int) -> Scan:
    """The same in products: the group's scores are made once, every head weighs them by its own decay.

    Assumes:  a last chunk that is not full is filled with zeros
    """
    (c, b, inputs), decay = _filled(chunk, c, b, inputs), _filled(chunk, decay, with_=1.0)[0]
    _, heads, width = inputs.shape
    states, tally, outputs = np.zeros((heads, b.shape[1], width)), Tally(), np.zeros_like(inputs)
    for start in range(0, len(inputs), chunk):
        here = slice(start, start + chunk)
        scores = tally.product(c[here], b[here].T)
        for head in range(heads):
            since = np.cumprod(decay[here, head])[:, None]
            inside = tally.product(scores * np.tril(since / since.T), inputs[here, head])
            outputs[here, head] = inside + tally.product(since * c[here], states[head])
            fresh = tally.product((since[-1] / since * b[here]).T, inputs[here, head])
            states[head] = since[-1] * states[head] + fresh
    return Scan(outputs=outputs, flops=tally.flops)


def _filled(chunk: int, *arrays: Array, with_: float = 0.0) -> list[Array]:
    """Arrays whose first axis is filled up to whole chunks."""
    return [
        np.concatenate([one, np.full((-len(one) % chunk, *one.shape[1:]), with_)]) if len(one) % chunk else one
        for one in arrays
    ]

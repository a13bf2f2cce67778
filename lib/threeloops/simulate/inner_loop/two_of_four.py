"""Weights pruned two of four, stored as the hardware stores them: the kept values, and two bits each that say where
they stood.

>>> weights = np.array([[0.1, -3.0, 0.0, 2.0, 5.0, 4.0, -6.0, 1.0]], dtype=np.float16)
>>> packed = pack(weights)
>>> packed.values.tolist(), packed.stored_bytes, unpack(packed).tolist()
([[-3.0, 2.0, 5.0, -6.0]], 9, [[0.0, -3.0, 0.0, 2.0, 5.0, 0.0, -6.0, 0.0]])

Source: Mishra et al., "Accelerating Sparse Deep Neural Networks", 2021, arXiv:2104.08378, section 3
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

GROUP, KEPT = 4, 2
Matrix = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A pruned [rows, columns] matrix."""

    values: Matrix  # [rows, columns / 2]
    indices: NDArray[np.uint8]  # two bits per value, four values to the byte
    columns: int

    @property
    def stored_bytes(self) -> int:
        return self.values.nbytes + self.indices.nbytes


def pack(weights: Matrix) -> Packed:
    """Keep the two largest of every four neighbours in a row, whatever they are; the number of weights is a multiple
    of 8.
    """
    groups = weights.reshape(weights.shape[0], -1, GROUP)
    kept = np.sort(np.argsort(-np.abs(groups), axis=-1, kind="stable")[..., :KEPT], axis=-1)
    bits = np.stack([kept >> 1 & 1, kept & 1], axis=-1).astype(np.uint8)
    values = np.take_along_axis(groups, kept, axis=-1).reshape(weights.shape[0], -1)
    return Packed(values=values, indices=np.packbits(bits), columns=weights.shape[1])


def unpack(packed: Packed) -> Matrix:
    """The full matrix, with zeros where weights were pruned."""
    bits = np.unpackbits(packed.indices)[: 2 * packed.values.size].reshape(-1, KEPT, 2)
    groups = np.zeros((packed.values.size // KEPT, GROUP), dtype=packed.values.dtype)
    np.put_along_axis(
        groups, 2 * bits[..., 0].astype(np.int64) + bits[..., 1], packed.values.reshape(-1, KEPT), axis=-1
    )
    return groups.reshape(-1, packed.columns)


def multiply(packed: Packed, x: Matrix) -> tuple[Matrix, int]:
    """The pruned matrix times x [columns, n], and its multiply-adds: each kept value meets the one row of x that its
    index names.
    """
    bits = np.unpackbits(packed.indices)[: 2 * packed.values.size].reshape(packed.values.shape[0], -1, 2)
    column = 2 * bits[..., 0].astype(np.int64) + bits[..., 1] + GROUP * (np.arange(packed.values.shape[1]) // KEPT)
    product, multiply_adds = np.zeros((packed.values.shape[0], x.shape[1])), 0
    for row, (values, chosen) in enumerate(zip(packed.values, column, strict=True)):
        for value, index in zip(values, chosen, strict=True):
            product[row] += value * x[index]
            multiply_adds += x.shape[1]
    return product, multiply_adds

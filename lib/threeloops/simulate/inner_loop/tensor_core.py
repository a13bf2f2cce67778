"""A matrix unit: 32 lanes hand in their registers, and get back theirs of the sum; no lane ever holds a row.

The shape is mma.m16n8k8 for 32-bit words (tf32): a is 16 by 8 in four registers of each lane, b 8 by 8 in two, the
sum 16 by 8 in four.

>>> a, b = np.arange(128.0).reshape(16, 8), np.eye(8)
>>> total, multiply_adds = multiply(fragment(a, "a"), fragment(b, "b"), np.zeros((4, LANES)))
>>> (matrix(total, "c") == a).all(), multiply_adds
(np.True_, 1024)

Assumes:  products are exact; the real unit first rounds words to tf32, with 10 mantissa bits
Source:   NVIDIA, PTX ISA 9.2, 9.7.14.5.7 (fragments of mma.m16n8k8 with .tf32)
"""

import numpy as np
from numpy.typing import NDArray

from threeloops.simulate.inner_loop.simt_memory import LANES, Lanes

SHAPES = {"a": (16, 8), "b": (8, 8), "c": (16, 8)}
REGISTERS = {"a": 4, "b": 2, "c": 4}


def places(operand: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and column of each register of each lane, both [registers, 32]."""
    group, member = np.divmod(np.arange(LANES), 4)
    register = np.arange(REGISTERS[operand])[:, None]
    if operand == "a":
        return group + 8 * (register % 2), member + 4 * (register // 2)
    if operand == "b":
        return member + 4 * register, group + 0 * register
    return group + 8 * (register // 2), 2 * member + register % 2


def fragment(numbers: NDArray[np.floating], operand: str) -> Lanes:
    """What each lane holds of a matrix, [registers, 32]."""
    return numbers[places(operand)]


def matrix(held: Lanes, operand: str) -> NDArray[np.floating]:
    """The matrix that all lanes hold together; an element that no lane holds is NaN."""
    whole = np.full(SHAPES[operand], np.nan, dtype=held.dtype)
    whole[places(operand)] = held
    return whole


def multiply(a: Lanes, b: Lanes, c: Lanes) -> tuple[Lanes, int]:
    """The sum's registers, and how many multiplications were added up: one outer product per step along the inner
    dimension.
    """
    left, right, total = matrix(a, "a"), matrix(b, "b"), matrix(c, "c")
    multiply_adds = 0
    for step in range(left.shape[1]):
        products = np.outer(left[:, step], right[step])
        total = total + products
        multiply_adds += products.size
    return fragment(total.astype(c.dtype), "c"), multiply_adds

"""A machine runs a chain of array operations, each as a kernel of its own or all on one block of rows after the
other, and counts bytes.

>>> chain = [("sum", np.add, ("x", "bias")), ("out", np.tanh, ("sum",))]
>>> arrays = {"x": np.ones((6, 5)), "bias": np.ones(5)}
>>> apart, together = separate_kernels(chain, arrays), one_kernel(chain, arrays, rows=2, needed=("out",))
>>> apart.moved_bytes, together.moved_bytes, bool((apart.results["out"] == together.results["out"]).all())
(1000, 520, True)
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Operation = tuple[str, Callable[..., Array], tuple[str, ...]]  # what it makes, how, out of what


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What lies in slow memory at the end, and what crossed on the way."""

    results: Mapping[str, Array]
    loaded_bytes: int
    stored_bytes: int
    launches: int

    @property
    def moved_bytes(self) -> int:
        return self.loaded_bytes + self.stored_bytes


def separate_kernels(chain: Sequence[Operation], arrays: Mapping[str, Array]) -> Ran:
    """Every operation fetches its inputs and writes its result."""
    slow, loaded, stored = dict(arrays), 0, 0
    for name, function, inputs in chain:
        operands = [slow[key] for key in inputs]
        loaded += sum(operand.nbytes for operand in operands)
        slow[name] = function(*operands)
        stored += slow[name].nbytes
    return Ran(results=slow, loaded_bytes=loaded, stored_bytes=stored, launches=len(chain))


def one_kernel(chain: Sequence[Operation], arrays: Mapping[str, Array], *, rows: int, needed: Collection[str]) -> Ran:
    """All operations on one block of rows, then the next block. A vector that every row uses is fetched once and
    stays.
    """
    height = max(len(array) for array in arrays.values() if array.ndim == 2)
    fast: dict[str, Array] = {}
    pieces: dict[str, list[Array]] = {name: [] for name in needed}
    loaded = stored = 0
    for first in range(0, height, rows):
        fast = {name: array for name, array in fast.items() if array.ndim == 1}
        for name, function, inputs in chain:
            for key in inputs:
                if key not in fast:
                    fast[key] = arrays[key] if arrays[key].ndim == 1 else arrays[key][first : first + rows]
                    loaded += fast[key].nbytes
            fast[name] = function(*(fast[key] for key in inputs))
        for name, done in pieces.items():
            done.append(fast[name])
            stored += fast[name].nbytes
    results = {**arrays, **{name: np.concatenate(done) for name, done in pieces.items()}}
    return Ran(results=results, loaded_bytes=loaded, stored_bytes=stored, launches=1)

"""Tile programs: kernels in Triton's words, run on this machine's processor, and the bytes that they load.

Where Triton is installed (torch for NVIDIA GPUs brings it on Linux), its own interpreter runs them. Its build is
198 MB to download and 0.7 GB on disk, so set-up does not add it; elsewhere a small interpreter runs the same text. It
knows the words of a matmul: program_id, num_programs, arange, zeros, load, store, dot, cdiv.

>>> machine = Small()
>>> tl = machine.tl
>>> @machine.triton.jit
... def double(x_ptr, n, T: tl.constexpr):
...     i = tl.program_id(0) * T + tl.arange(0, T)
...     tl.store(x_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)
>>> numbers = np.arange(100, dtype=np.float32)
>>> machine.loaded_bytes(double[(2,)], numbers, 100, T=64), float(numbers[99])
(400, 198.0)

Assumes:  every load is counted, as if there were no cache. Programs run one after the other, in order.
"""

import importlib
import importlib.util
import itertools
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

INTERPRET = "TRITON_INTERPRET"
Launch = Callable[..., Any]
Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Pointers:
    """Places in an array, counted from its first element."""

    array: Numbers
    places: Numbers

    def __add__(self, steps: Any) -> "Pointers":
        return Pointers(self.array, self.places + steps)

    __radd__ = __add__

    def inside(self, mask: Any) -> Numbers:
        """Which of the places are asked for.

        Raises:   IndexError where one of them lies outside the array: on a GPU that is another array's memory
        """
        asked = np.broadcast_to(True if mask is None else mask, self.places.shape)
        wrong = self.places[asked & ((self.places < 0) | (self.places >= self.array.size))]
        if wrong.size:
            raise IndexError(f"element {wrong[0]} of an array of {self.array.size}: a mask keeps such places out")
        return asked


class Small:
    """An interpreter of our own, for kernels in Triton's words on numpy's arrays."""

    name = "a small interpreter of this book"

    def __init__(self) -> None:
        self._place: tuple[int, ...] = ()
        self._grid: tuple[int, ...] = ()
        self._loaded = 0
        self.triton = SimpleNamespace(jit=self._jit, cdiv=lambda total, part: -(-total // part))
        self.tl = SimpleNamespace(
            constexpr=int,
            float32=np.float32,
            program_id=lambda axis: self._place[axis],
            num_programs=lambda axis: self._grid[axis],
            arange=np.arange,
            zeros=np.zeros,
            load=self._load,
            store=self._store,
            dot=_dot,
        )

    def loaded_bytes(self, launch: Launch, *arguments: Any, **constants: int) -> int:
        """Run all programs of a kernel, `kernel[grid]`; arrays are changed in place.

        Returns:  bytes that their loads asked for; what a mask leaves out is not counted
        """
        self._loaded = 0
        launch(*arguments, **constants)
        return self._loaded

    def _jit(self, kernel: Launch) -> dict[Sequence[int], Launch]:
        return _Kernel(lambda grid, *arguments, **constants: self._run(kernel, grid, arguments, constants))

    def _run(self, kernel: Launch, grid: Sequence[int], arguments: Sequence[Any], constants: dict[str, int]) -> None:
        self._grid = (*grid, *(1,) * (3 - len(grid)))
        pointed = [Pointers(given.reshape(-1), np.array(0)) if np.ndim(given) else given for given in arguments]
        for place in itertools.product(*map(range, self._grid)):
            self._place = place
            kernel(*pointed, **constants)

    def _load(self, pointers: Pointers, mask: Any = None, other: float = 0) -> Numbers:
        asked = pointers.inside(mask)
        self._loaded += int(asked.sum()) * pointers.array.itemsize
        found = np.full(asked.shape, other, dtype=pointers.array.dtype)
        found[asked] = pointers.array[pointers.places[asked]]
        return found

    def _store(self, pointers: Pointers, value: Any, mask: Any = None) -> None:
        asked = pointers.inside(mask)
        pointers.array[pointers.places[asked]] = np.broadcast_to(value, asked.shape)[asked]


class _Kernel(dict[Sequence[int], Launch]):
    """What `jit` returns: `kernel[grid]` is the launch."""

    def __init__(self, run: Launch) -> None:
        super().__init__()
        self._run = run

    def __getitem__(self, grid: Sequence[int]) -> Launch:
        return lambda *arguments, **constants: self._run(grid, *arguments, **constants)


def _dot(left: Numbers, right: Numbers, input_precision: str = "ieee") -> Numbers:
    return left @ right


class Triton:
    """Triton's own interpreter; its loads are counted where it hands them to the processor.

    Importing it here means that no kernel of this process is compiled by Triton any more.
    """

    def __init__(self) -> None:
        os.environ[INTERPRET] = "1"  # read when triton is imported, and by its jit
        self.triton = importlib.import_module("triton")
        self.tl = importlib.import_module("triton.language")
        self._builder = importlib.import_module("triton.runtime.interpreter").interpreter_builder
        self.name = f"Triton {self.triton.__version__}'s interpreter"

    def loaded_bytes(self, launch: Launch, *arguments: Any, **constants: int) -> int:
        """Run all programs of a kernel, `kernel[grid]`; arrays are changed in place.

        Returns:  bytes that their loads asked for; what a mask leaves out is not counted
        """
        import torch

        loaded, plain = 0, self._builder.create_masked_load  # a load without a mask comes here, too

        def counted(pointers: Any, mask: Any, *rest: Any) -> Any:
            nonlocal loaded
            loaded += int(mask.data.sum()) * pointers.get_element_ty().primitive_bitwidth // 8
            return plain(pointers, mask, *rest)

        self._builder.create_masked_load = counted
        try:
            launch(*(torch.from_numpy(given) if np.ndim(given) else given for given in arguments), **constants)
        finally:
            del self._builder.create_masked_load
        return loaded


def here() -> Small | Triton:
    """Triton's interpreter where it is installed, beside torch, and does not compile in this process; else ours."""
    compiling = "triton" in sys.modules and os.environ.get(INTERPRET) != "1"
    installed = all(importlib.util.find_spec(package) for package in ("triton", "torch"))
    return Triton() if installed and not compiling else Small()

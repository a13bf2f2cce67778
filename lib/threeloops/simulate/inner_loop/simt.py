"""A small SIMT machine: it runs kernels written in Python, warp by warp, on real numbers, and counts what the
hardware would be asked for.

A kernel is a function of a warp `w` and its arguments. Values are arrays of 32, one per lane: `w.thread.x` is the
index of each lane's thread in its block. Memory goes through `w.load` and `w.store`, arithmetic that counts through
`w.fma` and `w.add`, branches through `w.where`. A bare `yield` is the barrier `__syncthreads()`. Arrays are numpy's
own and are changed in place, so a kernel that skips work gives a wrong result.

>>> def double(w, n, x):
...     i = w.block.x * w.block_dim.x + w.thread.x
...     with w.where(i < n):
...         w.store(x, i, w.add(w.load(x, i), w.load(x, i)))
>>> numbers = np.arange(100, dtype=np.float32)
>>> run = launch(double, 100, numbers, grid=(2,), block=(64,))
>>> float(numbers[99]), run.warps, run.divergent_branches
(198.0, 4, 1)

Assumes:  no caches: every request is counted, and beside it the sectors that were touched at all, which is what an
          endless cache would fetch. Integer arithmetic of indices is free. Warps of a block take turns at barriers
          only, in order; data races are counted, not played.
Source:   NVIDIA, CUDA C++ Programming Guide (SIMT architecture); Lindholm et al., IEEE Micro 28(2), 2008,
          doi:10.1109/MM.2008.31
"""

import contextlib
import inspect
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from threeloops.simulate.inner_loop import tensor_core
from threeloops.simulate.inner_loop.simt_memory import LANES, Counts, GlobalArray, Lanes, SharedArray

MAX_THREADS_PER_BLOCK = 1024
ALIGNMENT = 256  # bytes: where an allocation begins

Kernel = Callable[..., Generator[None, None, None] | None]


@dataclass(frozen=True, slots=True)
class Index:
    """Two coordinates: whole numbers for blocks and sizes, arrays of 32 for the threads of a warp."""

    x: Any
    y: Any


class Warp:
    """Thirty-two lanes that share one instruction at a time; some may be switched off."""

    def __init__(
        self,
        number: int,
        *,
        block: Index,
        block_dim: Index,
        grid_dim: Index,
        shared: dict[str, SharedArray],
        counts: Counts,
    ) -> None:
        threads = number * LANES + np.arange(LANES)
        self.number, self.block, self.block_dim, self.grid_dim = number, block, block_dim, grid_dim
        self.thread = Index(threads % block_dim.x, threads // block_dim.x)
        self.active = threads < block_dim.x * block_dim.y
        self._shared, self._counts = shared, counts

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which lanes take part."""
        return self._active

    @active.setter
    def active(self, lanes: NDArray[np.bool_]) -> None:
        self._active, self._at_work = lanes, int(np.count_nonzero(lanes))

    def shared(self, name: str, words: int) -> SharedArray:
        """The block's array of that name; all of its warps get the same one."""
        return self._shared.setdefault(name, SharedArray(words, counts=self._counts))

    def load(self, array: GlobalArray | SharedArray, index: object, *, width: int = 1) -> Lanes:
        """One number per active lane, or `width` neighbouring ones in one request; the other lanes get NaN (0 from an
        array of whole numbers).
        """
        got: Lanes = np.empty((width, 0), dtype=array.numbers.dtype)
        if self._issue():
            places = self._places(index, width)
            got = (
                array.read(places[0], warp=self.number)[None] if isinstance(array, SharedArray) else array.read(places)
            )
        if self._at_work < LANES:
            at_work, nothing = got, np.nan if got.dtype.kind == "f" else 0
            got = np.full((width, LANES), nothing, dtype=got.dtype)
            got[:, self.active] = at_work
        return got if width > 1 else got[0]

    def store(self, array: GlobalArray | SharedArray, index: object, values: Lanes, *, width: int = 1) -> None:
        """Write one number per active lane, or `width` neighbouring ones."""
        if self._issue():
            places, sent = self._places(index, width), np.broadcast_to(values, (width, LANES))
            if self._at_work < LANES:
                sent = sent[:, self.active]
            if isinstance(array, SharedArray):
                array.write(places[0], sent[0], warp=self.number)
            else:
                array.write(places, sent)

    def fma(self, a: Any, b: Any, c: Any) -> Lanes:
        """a × b + c in the active lanes; the others keep c."""
        return self._calculated(np.multiply(a, b) + c, keep=c, flops=2)

    def add(self, a: Any, b: Any) -> Lanes:
        """a + b in the active lanes; the others keep a."""
        return self._calculated(np.add(a, b), keep=a, flops=1)

    def mma(self, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        """c + a b on the matrix unit, from and to fragments (tensor_core): one instruction of the whole warp."""
        if not self.active.all():
            raise ValueError(
                "mma needs all 32 lanes of a warp; move it out of w.where(...), and make blocks of whole warps"
            )
        self._issue()
        total, multiply_adds = tensor_core.multiply(a, b, c)
        self._counts.matrix_instructions += 1
        self._counts.flops += 2 * multiply_adds
        return total

    def longest(self, lengths: Lanes) -> int:
        """The largest value among active lanes: how often a loop runs that each lane leaves when it is done."""
        return int(lengths[self.active].max(initial=0))

    def branch(
        self, condition: object
    ) -> tuple[contextlib.AbstractContextManager[None], contextlib.AbstractContextManager[None]]:
        """The two sides of a branch, for two `with` blocks: the lanes that take it, then those that do not."""
        taken = np.broadcast_to(np.asarray(condition, dtype=bool), LANES)
        if self.active.any():
            self._counts.branches += 1
            self._counts.divergent_branches += bool((self.active & taken).any() and (self.active & ~taken).any())
        return self._only(self.active & taken), self._only(self.active & ~taken)

    def where(self, condition: object) -> contextlib.AbstractContextManager[None]:
        """A branch without an else."""
        return self.branch(condition)[0]

    @contextlib.contextmanager
    def _only(self, lanes: NDArray[np.bool_]) -> Iterator[None]:
        outside, self.active = self.active, lanes
        yield
        self.active = outside

    def _places(self, index: object, width: int) -> Lanes:
        places = np.asarray(index, dtype=np.int64)
        if places.shape != (LANES,):
            places = np.broadcast_to(places, LANES)
        if self._at_work < LANES:
            places = places[self.active]
        return places + np.arange(width)[:, None] if width > 1 else places[None]

    def _issue(self, instructions: int = 1) -> bool:
        """Count an instruction; where no lane is active the warp jumps over it."""
        self._counts.issued += instructions * (self._at_work > 0)
        self._counts.active_lanes += instructions * self._at_work
        return self._at_work > 0

    def _calculated(self, result: Lanes, *, keep: Any, flops: int) -> Lanes:
        instructions = max(1, result.size // LANES)
        self._issue(instructions)
        self._counts.flops += flops * instructions * self._at_work
        whole = self._at_work == LANES and result.shape[-1:] == (LANES,)
        return result if whole else np.where(self.active, result, keep)


def launch(kernel: Kernel, *arguments: object, grid: tuple[int, ...], block: tuple[int, ...]) -> Counts:
    """Run a kernel over a grid of blocks; numpy arrays among the arguments are global memory and are changed in
    place.

    Raises:   ValueError for an empty grid, for more than 1,024 threads per block, for an index outside an array, for
              a barrier that not every thread reaches
    """
    grid_dim, block_dim = _two_dimensions("grid", grid), _two_dimensions("block", block)
    threads = block_dim.x * block_dim.y
    if threads > MAX_THREADS_PER_BLOCK:
        raise ValueError(
            f"block={block} has {threads} threads and a block holds at most {MAX_THREADS_PER_BLOCK}; use more blocks"
        )
    warps = -(-threads // LANES)
    num_blocks = grid_dim.x * grid_dim.y
    counts, first_byte = Counts(blocks=num_blocks, warps=num_blocks * warps), 0
    placed: list[object] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            placed.append(GlobalArray(argument, first_byte=first_byte, counts=counts))
            first_byte += -(-argument.nbytes // ALIGNMENT) * ALIGNMENT
        else:
            placed.append(argument)
    for number in range(num_blocks):
        shared: dict[str, SharedArray] = {}
        place = {
            "block": Index(number % grid_dim.x, number // grid_dim.x),
            "block_dim": block_dim,
            "grid_dim": grid_dim,
        }
        _run_block(
            kernel, placed, [Warp(warp, **place, shared=shared, counts=counts) for warp in range(warps)], shared, counts
        )
    return counts


def _two_dimensions(name: str, sizes: tuple[int, ...]) -> Index:
    if not 1 <= len(sizes) <= 2 or min(sizes) < 1:
        raise ValueError(f"{name}={sizes} must be one or two whole numbers of at least 1, like (4,) or (4, 2)")
    return Index(sizes[0], sizes[1] if len(sizes) == 2 else 1)


def _run_block(
    kernel: Kernel, arguments: list[Any], warps: list[Warp], shared: dict[str, SharedArray], counts: Counts
) -> None:
    """All warps of a block, each up to its next barrier, until all have returned."""
    if not inspect.isgeneratorfunction(kernel):
        for warp in warps:
            kernel(warp, *arguments)
        return
    everyone = [warp.active for warp in warps]
    running = [kernel(warp, *arguments) for warp in warps]
    while True:
        waiting = [next(course, "returned") is None for course in running]
        if not any(waiting):
            return
        if not all(waiting):
            raise ValueError(
                f"warp {waiting.index(True)} waits at a barrier that warp {waiting.index(False)} never reaches; a"
                " barrier is for all threads"
            )
        if any((warp.active != all_lanes).any() for warp, all_lanes in zip(warps, everyone, strict=True)):
            raise ValueError("a barrier stands inside a branch that not all threads take; move it out of w.where(...)")
        counts.barriers += 1
        for array in shared.values():
            array.barrier()

"""Toy kernels for the SIMT machine, each the twin of a few lines of CUDA C++: one thread per number, and what that
costs.

>>> from threeloops.simulate.inner_loop import simt
>>> x, y = np.ones(64, dtype=np.float32), np.ones(64, dtype=np.float32)
>>> run = simt.launch(saxpy, 64, 3.0, x, y, grid=(1,), block=(64,))
>>> float(y.sum()), run.requests, run.sectors
(256.0, 6, 24)

Shapes:   matrices are row by row in flat arrays: element (row, column) of an [m, n] matrix stands at row × n + column
Source:   NVIDIA, CUDA C++ Best Practices Guide 12.9, chapter 10; Harris, "Optimizing Parallel Reduction in CUDA",
          2007 (the three reductions)
"""

from collections.abc import Generator
from typing import Any

import numpy as np

from threeloops.simulate.inner_loop.simt import Warp
from threeloops.simulate.inner_loop.simt_memory import LANES

Barriers = Generator[None, None, None]
TILE = 32  # side of a transposed tile; its blocks have 32 by 8 threads
Array = Any  # the kernel sees GlobalArray where the caller passed numpy's


def saxpy(w: Warp, n: int, a: float, x: Array, y: Array) -> None:
    """y = a x + y, one number per thread."""
    i = w.block.x * w.block_dim.x + w.thread.x
    with w.where(i < n):
        w.store(y, i, w.fma(a, w.load(x, i), w.load(y, i)))


def saxpy_wide(w: Warp, n: int, a: float, x: Array, y: Array) -> None:
    """y = a x + y, four neighbouring numbers per thread in one 128-bit request; n is a multiple of 4."""
    i = 4 * (w.block.x * w.block_dim.x + w.thread.x)
    with w.where(i < n):
        w.store(y, i, w.fma(a, w.load(x, i, width=4), w.load(y, i, width=4)), width=4)


def gather(w: Warp, n: int, stride: int, offset: int, x: Array, y: Array) -> None:
    """y[i] = x[offset + stride i]: neighbours in y come from places `stride` apart."""
    i = w.block.x * w.block_dim.x + w.thread.x
    with w.where(i < n):
        w.store(y, i, w.load(x, offset + stride * i))


def two_recipes(w: Warp, group: int, steps: int, x: Array) -> None:
    """Groups of threads take turns between two recipes of equal length: multiply by 2, or by 3, `steps` times."""
    i = w.block.x * w.block_dim.x + w.thread.x
    value, zeros = w.load(x, i), np.zeros(LANES, dtype=np.float32)
    twos, threes = w.branch(i // group % 2 == 0)
    with twos:
        for _ in range(steps):
            value = np.where(w.active, w.fma(value, 2.0, zeros), value)
    with threes:
        for _ in range(steps):
            value = np.where(w.active, w.fma(value, 3.0, zeros), value)
    w.store(x, i, value)


def row_sums(w: Warp, rows: int, starts: Array, lengths: Array, x: Array, sums: Array) -> None:
    """One thread per row of a ragged matrix: each adds up its own row and waits for the longest of its warp."""
    row = w.block.x * w.block_dim.x + w.thread.x
    with w.where(row < rows):
        start, length = w.load(starts, row), w.load(lengths, row)
        total = np.zeros(LANES, dtype=np.float32)
        for step in range(w.longest(length)):
            with w.where(step < length):
                total = w.add(total, w.load(x, start + step))
        w.store(sums, row, total)


def transpose(w: Warp, rows: int, columns: int, x: Array, y: Array) -> None:
    """y = xᵀ, straight from one array to the other: reads along rows, so writes along columns."""
    row, column = w.block.y * w.block_dim.y + w.thread.y, w.block.x * w.block_dim.x + w.thread.x
    with w.where((row < rows) & (column < columns)):
        w.store(y, column * rows + row, w.load(x, row * columns + column))


def transpose_through_shared(w: Warp, rows: int, columns: int, pitch: int, x: Array, y: Array) -> Barriers:
    """y = xᵀ by tiles of 32 by 32 with blocks of 32 by 8 threads: in by rows, out by rows, turned in shared memory,
    whose rows are `pitch` words apart.
    """
    tile = w.shared("tile", TILE * pitch)
    top, left = w.block.y * TILE, w.block.x * TILE
    for down in range(0, TILE, w.block_dim.y):
        row = w.thread.y + down
        w.store(tile, row * pitch + w.thread.x, w.load(x, (top + row) * columns + left + w.thread.x))
    yield
    for down in range(0, TILE, w.block_dim.y):
        row = w.thread.y + down
        w.store(y, (left + row) * rows + top + w.thread.x, w.load(tile, w.thread.x * pitch + row))


def matmul(w: Warp, m: int, n: int, k: int, a: Array, b: Array, c: Array) -> None:
    """c = a b, one element of c per thread: neighbouring threads take neighbouring columns."""
    row, column = w.block.y * w.block_dim.y + w.thread.y, w.block.x * w.block_dim.x + w.thread.x
    one_element(w, row, column, m, n, k, a, b, c)


def matmul_swapped(w: Warp, m: int, n: int, k: int, a: Array, b: Array, c: Array) -> None:
    """The same with x and y exchanged: neighbouring threads take neighbouring rows."""
    row, column = w.block.x * w.block_dim.x + w.thread.x, w.block.y * w.block_dim.y + w.thread.y
    one_element(w, row, column, m, n, k, a, b, c)


def one_element(w: Warp, row: Any, column: Any, m: int, n: int, k: int, a: Array, b: Array, c: Array) -> None:
    """Along a row of a and down a column of b."""
    with w.where((row < m) & (column < n)):
        total = np.zeros(LANES, dtype=np.float32)
        for p in range(k):
            total = w.fma(w.load(a, row * k + p), w.load(b, p * n + column), total)
        w.store(c, row * n + column, total)


def matmul_tiled(w: Warp, n: int, k: int, tile: int, barriers: bool, a: Array, b: Array, c: Array) -> Barriers:
    """c = a b by square tiles, with blocks of tile by tile threads; sizes are multiples of the tile. barriers=False
    leaves out the second barrier.
    """
    left, right = w.shared("left", tile * tile), w.shared("right", tile * tile)
    x, y = w.thread.x, w.thread.y
    row, column = w.block.y * tile + y, w.block.x * tile + x
    total = np.zeros(LANES, dtype=np.float32)
    for start in range(0, k, tile):
        w.store(left, y * tile + x, w.load(a, row * k + start + x))
        w.store(right, y * tile + x, w.load(b, (start + y) * n + column))
        yield
        for p in range(tile):
            total = w.fma(w.load(left, y * tile + p), w.load(right, p * tile + x), total)
        if barriers:
            yield
    w.store(c, row * n + column, total)


def reduce_interleaved(w: Warp, x: Array, sums: Array) -> Barriers:
    """One sum per block, pairs first: threads 0, 2, 4, … add their neighbour, then 0, 4, 8, …: most warps stay
    active to the end, with ever fewer active threads.
    """
    parts, t = w.shared("parts", w.block_dim.x), w.thread.x
    w.store(parts, t, w.load(x, w.block.x * w.block_dim.x + t))
    yield
    step = 1
    while step < w.block_dim.x:
        with w.where(t % (2 * step) == 0):
            w.store(parts, t, w.add(w.load(parts, t), w.load(parts, t + step)))
        yield
        step *= 2
    with w.where(t == 0):
        w.store(sums, w.block.x, w.load(parts, 0))


def reduce_strided(w: Warp, x: Array, sums: Array) -> Barriers:
    """The same additions by the first threads, so that whole warps become idle; their words lie further and further
    apart.
    """
    parts, t = w.shared("parts", w.block_dim.x), w.thread.x
    w.store(parts, t, w.load(x, w.block.x * w.block_dim.x + t))
    yield
    step = 1
    while step < w.block_dim.x:
        with w.where(2 * step * t < w.block_dim.x):
            w.store(parts, 2 * step * t, w.add(w.load(parts, 2 * step * t), w.load(parts, 2 * step * t + step)))
        yield
        step *= 2
    with w.where(t == 0):
        w.store(sums, w.block.x, w.load(parts, 0))


def reduce_sequential(w: Warp, x: Array, sums: Array) -> Barriers:
    """Halves first: thread t adds the number half an array away; active threads and their words both lie side by
    side.
    """
    parts, t = w.shared("parts", w.block_dim.x), w.thread.x
    w.store(parts, t, w.load(x, w.block.x * w.block_dim.x + t))
    yield
    step = w.block_dim.x // 2
    while step > 0:
        with w.where(t < step):
            w.store(parts, t, w.add(w.load(parts, t), w.load(parts, t + step)))
        yield
        step //= 2
    with w.where(t == 0):
        w.store(sums, w.block.x, w.load(parts, 0))

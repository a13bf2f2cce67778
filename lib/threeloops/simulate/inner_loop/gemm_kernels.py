"""Kernels for the SIMT machine that climb from a tile to a matrix unit: the same product, its numbers reused in
registers.

>>> from threeloops.simulate.inner_loop import simt
>>> a, b, c = (np.ones((32, 32), dtype=np.float32) for _ in range(3))
>>> run = simt.launch(matmul_registers, 32, 32, 32, 8, 4, a, b, c, grid=(1, 1), block=(64,))
>>> float(c[5, 7]), run.flops, run.moved_bytes
(32.0, 65536, 12288)

Shapes:   as in toy_kernels; blocks are one-dimensional, and all sizes are multiples of the tile
"""

from typing import Any

import numpy as np

from threeloops.simulate.inner_loop import tensor_core
from threeloops.simulate.inner_loop.simt import Warp
from threeloops.simulate.inner_loop.simt_memory import LANES
from threeloops.simulate.inner_loop.toy_kernels import Array, Barriers

MMA_M, MMA_N, MMA_K = 16, 8, 8


def fetch(
    w: Warp, height: int, width: int, source: Array, first: int, source_pitch: int, target: Any, pitch: int
) -> None:
    """A block's threads carry height × width numbers, row by row, from global to shared memory."""
    threads = w.block_dim.x * w.block_dim.y
    for start in range(0, height * width, threads):
        row, column = np.divmod(start + w.thread.x, width)
        w.store(target, row * pitch + column, w.load(source, first + row * source_pitch + column))


def matmul_registers(
    w: Warp, n: int, k: int, tile: int, depth: int, side: int, a: Array, b: Array, c: Array
) -> Barriers:
    """c = a b by tiles of `tile` × `tile`, of which each of (tile / side)² threads keeps side × side elements in
    registers.
    """
    left, right = w.shared("left", tile * depth), w.shared("right", depth * tile)
    across = tile // side
    y, x = np.divmod(w.thread.x, across)
    total = np.zeros((side, side, LANES), dtype=np.float32)
    for start in range(0, k, depth):
        fetch(w, tile, depth, a, w.block.y * tile * k + start, k, left, depth)
        fetch(w, depth, tile, b, start * n + w.block.x * tile, n, right, tile)
        yield
        for p in range(depth):
            column = np.stack([w.load(left, (y + across * i) * depth + p) for i in range(side)])
            row = np.stack([w.load(right, p * tile + x + across * j) for j in range(side)])
            total = w.fma(column[:, None], row[None], total)
        yield
    for i in range(side):
        for j in range(side):
            w.store(c, (w.block.y * tile + y + across * i) * n + w.block.x * tile + x + across * j, total[i, j])


def matmul_fragments(
    w: Warp, n: int, k: int, tile: int, depth: int, side: int, a: Array, b: Array, c: Array
) -> Barriers:
    """c = a b by tiles of `tile` × `tile`; each of (tile / side)² warps feeds side × side elements to the matrix
    unit, 16 × 8 at a time.
    """
    pitches = {"a": depth + 4, "b": tile + 8}  # unused words that spread the fragments over all banks
    left, right = w.shared("left", tile * pitches["a"]), w.shared("right", depth * pitches["b"])
    top, edge = side * (w.number // (tile // side)), side * (w.number % (tile // side))
    total = np.zeros((side // MMA_M, side // MMA_N, 4, LANES), dtype=np.float32)
    for start in range(0, k, depth):
        fetch(w, tile, depth, a, w.block.y * tile * k + start, k, left, pitches["a"])
        fetch(w, depth, tile, b, start * n + w.block.x * tile, n, right, pitches["b"])
        yield
        for p in range(0, depth, MMA_K):
            lefts = [_fragment(w, left, "a", (top + i) * pitches["a"] + p, pitches["a"]) for i in range(0, side, MMA_M)]
            rights = [
                _fragment(w, right, "b", p * pitches["b"] + edge + j, pitches["b"]) for j in range(0, side, MMA_N)
            ]
            for i, j in np.ndindex(side // MMA_M, side // MMA_N):
                total[i, j] = w.mma(lefts[i], rights[j], total[i, j])
        yield
    rows, columns = tensor_core.places("c")
    first = (w.block.y * tile + top) * n + w.block.x * tile + edge
    for i, j, half in np.ndindex(side // MMA_M, side // MMA_N, 2):  # a lane's registers hold two pairs of neighbours
        here = first + (i * MMA_M + rows[2 * half]) * n + j * MMA_N + columns[2 * half]
        w.store(c, here, total[i, j, 2 * half : 2 * half + 2], width=2)


def _fragment(w: Warp, source: Any, operand: str, first: int, pitch: int) -> Any:
    """A lane's registers of an operand, one request each."""
    rows, columns = tensor_core.places(operand)
    return np.stack([w.load(source, first + row * pitch + column) for row, column in zip(rows, columns, strict=True)])

"""CUDA kernels that are recorded: the first rungs of the ladder from one thread per number of a product to a library.

They are compiled where they run, by the compiler that torch brings along (NVRTC). Row-major fp32, square sizes that
the largest tile divides; the chapter's machine counts the same three kernels.

>>> sorted(RUNGS)
['naive', 'registers', 'tiled']
"""

from collections.abc import Callable

import torch
from torch import Tensor

from threeloops import checks

TILE, DEPTH, SUMS = 64, 8, 8  # of the last rung: a tile's edge, a step along k, sums of a thread in each direction
NAIVE = """
extern "C" __global__ void naive(const float *a, const float *b, float *c, int m, int n, int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int p = 0; p < k; ++p) sum += a[row * k + p] * b[p * n + column];
    c[row * n + column] = sum;
}
"""
TILED = """
#define EDGE 32
extern "C" __global__ void tiled(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float left[EDGE][EDGE], right[EDGE][EDGE];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * EDGE + y, column = blockIdx.x * EDGE + x;
    float sum = 0;
    for (int start = 0; start < k; start += EDGE) {
        left[y][x] = a[row * k + start + x];
        right[y][x] = b[(start + y) * n + column];
        __syncthreads();
        for (int p = 0; p < EDGE; ++p) sum += left[y][p] * right[p][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
"""
REGISTERS = """
#define TILE 64
#define DEPTH 8
#define ACROSS 8
extern "C" __global__ void registers(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float left[TILE][DEPTH], right[DEPTH][TILE];
    int me = threadIdx.x, x = me % ACROSS, y = me / ACROSS;
    const float *strip = a + blockIdx.y * TILE * k, *column_strip = b + blockIdx.x * TILE;
    float sum[8][8] = {}, column[8], row[8];
    for (int start = 0; start < k; start += DEPTH) {
        for (int i = 0; i < 8; ++i) {
            left[y + ACROSS * i][x] = strip[(y + ACROSS * i) * k + start + x];
            right[i][me] = column_strip[(start + i) * n + me];
        }
        __syncthreads();
        for (int p = 0; p < DEPTH; ++p) {
            for (int i = 0; i < 8; ++i) column[i] = left[y + ACROSS * i][p];
            for (int j = 0; j < 8; ++j) row[j] = right[p][x + ACROSS * j];
            for (int i = 0; i < 8; ++i)
                for (int j = 0; j < 8; ++j) sum[i][j] += column[i] * row[j];
        }
        __syncthreads();
    }
    float *out = c + blockIdx.y * TILE * n + blockIdx.x * TILE;
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) out[(y + ACROSS * i) * n + x + ACROSS * j] = sum[i][j];
}
"""
# By name: the source, the threads of a block across and down, and the edge of its tile across and down.
RUNGS = {
    "naive": (NAIVE, (32, 8), (32, 8)),
    "tiled": (TILED, (32, 32), (32, 32)),
    "registers": (REGISTERS, (64, 1), (TILE, TILE)),
}


def product(rung: str) -> Callable[[Tensor, Tensor], Tensor]:
    """A rung of the ladder, compiled for this machine's GPU: [m, k] x [k, n] in fp32.

    Raises:   ValueError for another rung, or, when it is called, for sizes that 64 does not divide
    """
    checks.one_of(RUNGS, rung=rung)
    source, (across, down), (wide, high) = RUNGS[rung]
    kernel = torch.cuda._compile_kernel(source, rung)

    def run(a: Tensor, b: Tensor) -> Tensor:
        (m, k), n = a.shape, b.shape[1]
        if any(size % TILE for size in (m, n, k)):
            raise ValueError(f"m={m}, n={n}, k={k} must be multiples of {TILE}")
        c = torch.empty(m, n, device=a.device)
        kernel(grid=(n // wide, m // high, 1), block=(across, down, 1), args=(a, b, c, m, n, k))
        return c

    return run

"""Recorded threads: what threads, warps and copies between host and GPU cost, apart from any product; kernels in CUDA
C++, compiled where they run, by the compiler that torch brings along (NVRTC).

What a kernel reads it adds up, and writes only where the sum is one that never comes, so that nothing is left out and
nothing but reads is timed. Where a load must wait for another, its address adds "the last one is not a number", which
is 0, but no compiler knows.

>>> "way == 1" in paths_source(2), "way == 2" in paths_source(2)
(True, False)
"""

import torch

from threeloops.facts.recorded_cases import Case
from threeloops.measure.inner_loop.chained_loads import INCREMENT, MULTIPLIER
from threeloops.measure.recorded_needs import Call, needs_gpu

LANES, WARPS_PER_BLOCK, MOST_WARPS = 32, 32, 64
LINE = 32  # numbers of 4 bytes in a line of 128
UNROLLED, EACH = 32, 4
CHASE = """
extern "C" __global__ void chase(const int *next, int *at, int loads) {
    int place = *at;
    for (int i = 0; i < loads; ++i) place = next[place];
    *at = place;
}
"""
INFLIGHT = """
extern "C" __global__ void inflight(const float *x, float *out, int turns, int step) {
    long long lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    long long place = warp * 32 * LOADS + lane;
    float sum = 0;
    for (int turn = 0; turn < turns; ++turn) {
        float part = 0;
        #pragma unroll
        for (int i = 0; i < LOADS; ++i) part += x[place + 32 * i];
        sum += part;
        place += step + (part != part);
    }
    if (sum == -1) *out = sum;
}
"""
STRIDED = """
extern "C" __global__ void strided(const float *x, float *out, int stride) {
    long long first = 4LL * blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    #pragma unroll
    for (int i = 0; i < 4; ++i) sum += x[(first + i * blockDim.x) * stride];
    if (sum == -1) *out = sum;
}
"""
BANKS = """
extern "C" __global__ void banks(float *out, int turns, int stride) {
    __shared__ float words[2112];
    for (int i = threadIdx.x; i < 2112; i += blockDim.x) words[i] = 1;
    __syncthreads();
    int place = threadIdx.x % 32 * stride;
    float sum = 0;
    for (int turn = 0; turn < turns; ++turn) {
        float part = 0;
        #pragma unroll
        for (int i = 0; i < 32; ++i) part += words[place + 32 * i];
        sum += part;
        place += part != part;
    }
    if (sum == -1) *out = sum;
}
"""


def chase(case: Case, device: str) -> Call:
    """One thread, from line to line of 128 bytes in an order that nothing guesses, on from where it stopped."""
    needs_gpu(device, "a walk of one thread of a GPU")
    places = case.sizes["bytes"] // (4 * LINE)
    table = torch.zeros(places * LINE, dtype=torch.int32, device=device)
    order = (torch.arange(places, device=device) * MULTIPLIER + INCREMENT) % places
    table[::LINE] = (order * LINE).to(torch.int32)
    at, run = torch.zeros(1, dtype=torch.int32, device=device), torch.cuda._compile_kernel(CHASE, "chase")
    table.sum()  # a first visit may still miss: in more than half an L2 the walk times memory
    return lambda: run(grid=(1, 1, 1), block=(1, 1, 1), args=(table, at, case.sizes["loads"]))


def inflight(case: Case, device: str) -> Call:
    """So many warps on every SM, each with so many loads of 128 bytes under way, then a wait for all of them."""
    needs_gpu(device, "loads of a GPU's warps")
    warps, loads, sms = case.sizes["warps"], case.sizes["loads"], _sms()
    x, out = torch.ones(case.sizes["bytes"] // 4, device=device), torch.zeros(1, device=device)
    run = torch.cuda._compile_kernel(INFLIGHT.replace("LOADS", str(loads)), "inflight")
    step = sms * warps * loads * LANES
    threads = min(warps, WARPS_PER_BLOCK) * LANES
    grid = (sms * warps * LANES // threads, 1, 1)
    return lambda: run(grid=grid, block=(threads, 1, 1), args=(x, out, x.numel() // step, step))


def strided(case: Case, device: str) -> Call:
    """Four numbers a thread, each so many numbers from what the neighbouring thread reads."""
    needs_gpu(device, "reads of a GPU's threads")
    reads, stride = case.sizes["reads"], case.sizes["stride"]
    x, out = torch.ones(reads * stride, device=device), torch.zeros(1, device=device)
    run, threads = torch.cuda._compile_kernel(STRIDED, "strided"), 256
    return lambda: run(grid=(reads // (EACH * threads), 1, 1), block=(threads, 1, 1), args=(x, out, stride))


def banks(case: Case, device: str) -> Call:
    """Every SM full of warps that read words of its shared memory, the words of neighbours so far apart."""
    needs_gpu(device, "a GPU's shared memory")
    turns = max(1, case.sizes["requests"] // (MOST_WARPS * UNROLLED))
    out, run = torch.zeros(1, device=device), torch.cuda._compile_kernel(BANKS, "banks")
    return lambda: run(grid=_full(), block=(WARPS_PER_BLOCK * LANES, 1, 1), args=(out, turns, case.sizes["stride"]))


def paths(case: Case, device: str) -> Call:
    """Every SM full of warps whose threads go so many ways."""
    needs_gpu(device, "the warps of a GPU")
    ways = case.sizes["paths"]
    out, run = torch.zeros(1, device=device), torch.cuda._compile_kernel(paths_source(ways), "paths")
    return lambda: run(grid=_full(), block=(WARPS_PER_BLOCK * LANES, 1, 1), args=(out, case.sizes["steps"]))


def paths_source(ways: int) -> str:
    """A kernel whose threads take one of so many loops, by their place in the warp."""
    loops = " else ".join(
        f"if (way == {way}) {{\n#pragma unroll 64\nfor (int i = 0; i < steps; ++i) x = x * 0.{way + 11}f + {way}.5f; }}"
        for way in range(ways)
    )
    return (
        'extern "C" __global__ void paths(float *out, int steps) {\n'
        f"int way = threadIdx.x % {ways}; float x = threadIdx.x;\n{loops}\nif (x == -1) *out = x; }}\n"
    )


def carried(case: Case, device: str) -> Call:
    """A copy between the host's memory and the GPU's."""
    needs_gpu(device, "a copy between host and GPU")
    there = torch.ones(case.sizes["bytes"] // 4, device=device)
    here = torch.ones(there.shape, pin_memory=not case.kind.endswith("_pageable"))
    target, source = (there, here) if case.kind.startswith("copy_to_gpu") else (here, there)
    return lambda: target.copy_(source, non_blocking=True)


def _sms() -> int:
    return torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count


def _full() -> tuple[int, int, int]:
    return (_sms() * MOST_WARPS // WARPS_PER_BLOCK, 1, 1)

"""Reductions inside a block: what threads do to make one number of many.

>>> shuffle_instructions(blocks=1, threads_per_block=256)
43
"""

import math

from threeloops import checks
from threeloops.inner_loop.occupancy import MAX_THREADS_PER_BLOCK, THREADS_PER_WARP


def shuffle_instructions(*, blocks: int, threads_per_block: int) -> int:
    """Shuffle instructions of warps that add up one number a thread: first within each warp, then one warp adds what
    the warps of its block have found.

    Formula:  blocks * (warps * log2(32) + ceil(log2(warps)))
    Units:    instructions, counted once per warp
    Assumes:  whole warps; each step adds the number of a lane at half the distance of the step before
    Raises:   ValueError for threads_per_block that is no multiple of 32, or above 1,024
    Source:   Apache TVM, tirx.backend.cuda.op.warp_reduce and cta_reduce, documentation, 2026 (log2(width) steps of a
              shuffle in each warp, then one warp for the block)
    Counted:  drills.gpu_kernels.reductions.SHUFFLES

    >>> shuffle_instructions(blocks=10, threads_per_block=32)
    50
    """
    checks.count(blocks=blocks, threads_per_block=threads_per_block)
    if threads_per_block % THREADS_PER_WARP or threads_per_block > MAX_THREADS_PER_BLOCK:
        raise ValueError(
            f"threads_per_block={threads_per_block} must be a multiple of {THREADS_PER_WARP} and at most"
            f" {MAX_THREADS_PER_BLOCK}"
        )
    warps = threads_per_block // THREADS_PER_WARP
    return blocks * (warps * int(math.log2(THREADS_PER_WARP)) + math.ceil(math.log2(warps)))


def tree_busy_share(*, numbers: int) -> float:
    """Share of the threads that add, over the steps of a tree: a thread for every pair, half as many sums each step.

    Formula:  (numbers - 1) / (numbers / 2 * log2(numbers))
    Assumes:  a power of two of numbers; threads without a pair wait at the barrier after each step
    Raises:   ValueError for numbers that is no power of two from 2 on
    Source:   by definition: additions made over additions that the threads could have made
    Counted:  drills.gpu_kernels.reductions.TREE

    >>> tree_busy_share(numbers=4)
    0.75
    """
    checks.count(at_least=2, numbers=numbers)
    if numbers & (numbers - 1):
        raise ValueError(f"numbers={numbers} must be a power of two, like 512")
    return (numbers - 1) / (numbers / 2 * math.log2(numbers))


def global_atomics(*, elements: int, elements_per_block: int, bins: int) -> int:
    """Atomic additions to global memory of a histogram whose blocks count in shared memory first.

    Formula:  ceil(elements / elements_per_block) * bins
    Assumes:  each block adds each of its bins to the result once, those that stayed empty included
    Source:   by definition
    Counted:  drills.gpu_kernels.reductions.HISTOGRAM

    >>> global_atomics(elements=1000, elements_per_block=300, bins=16)
    64
    """
    checks.count(elements=elements, elements_per_block=elements_per_block, bins=bins)
    return -(-elements // elements_per_block) * bins

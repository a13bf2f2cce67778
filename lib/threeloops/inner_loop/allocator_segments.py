"""Segments: what a caching allocator takes from the device for what a program asks for.

PyTorch asks the driver for memory in large pieces, *segments*, and hands out *blocks* of them. A request is rounded
up; a segment that was once taken is kept. So the memory that nobody else can use is not what the tensors hold.

>>> block_bytes(requested_bytes=1000), segment_bytes(requested_bytes=1000) // 1024**2
(1024, 2)
>>> reserved_bytes(num_tensors=50, requested_bytes=6.25 * 1024**2) / 1024**2  # the tensors hold 312.5 MiB
340.0
"""

import math

from threeloops import checks
from threeloops.units import MiB

BLOCK_UNIT_BYTES = 512
SMALL_REQUEST_BYTES = 1 * MiB  # up to here, included, a request is small
SMALL_SEGMENT_BYTES = 2 * MiB
MIDDLE_REQUEST_BYTES = 10 * MiB  # below this, a large request opens a segment of fixed size
MIDDLE_SEGMENT_BYTES = 20 * MiB
LARGE_UNIT_BYTES = 2 * MiB  # from there on, a segment of its own, rounded up to this


def block_bytes(*, requested_bytes: float) -> int:
    """Bytes of the block that a request gets, unless what would be left of a larger free block is too little to be
    cut off.

    Formula:  ceil(requested / 512) * 512
    Raises:   ValueError unless requested_bytes is positive
    Source:   PyTorch, c10/cuda/CUDACachingAllocator.cpp, 2025 (kMinBlockSize)
    Counted:  simulate.inner_loop.caching_allocator.CachingAllocator
    """
    checks.positive(requested_bytes=requested_bytes)
    return math.ceil(requested_bytes / BLOCK_UNIT_BYTES) * BLOCK_UNIT_BYTES


def segment_bytes(*, requested_bytes: float) -> int:
    """Bytes that the allocator takes from the device when no free block fits the request.

    Formula:  2 MiB up to a request of 1 MiB; 20 MiB below 10 MiB; from there on the request, rounded up to 2 MiB
    Assumes:  default settings, expandable segments off
    Source:   PyTorch, c10/cuda/CUDACachingAllocator.cpp, 2025 (kSmallBuffer, kLargeBuffer, kMinLargeAlloc,
              kRoundLarge)
    Counted:  simulate.inner_loop.caching_allocator.CachingAllocator

    >>> [segment_bytes(requested_bytes=size * MiB) // MiB for size in (1, 1.5, 9.9, 10, 11)]
    [2, 20, 20, 10, 12]
    """
    block = block_bytes(requested_bytes=requested_bytes)
    if block <= SMALL_REQUEST_BYTES:
        return SMALL_SEGMENT_BYTES
    if block < MIDDLE_REQUEST_BYTES:
        return MIDDLE_SEGMENT_BYTES
    return math.ceil(block / LARGE_UNIT_BYTES) * LARGE_UNIT_BYTES


def reserved_bytes(*, num_tensors: int, requested_bytes: float) -> int:
    """Bytes taken from the device for tensors of one size that all live at once, the allocator being empty before.

    Formula:  ceil(num_tensors / floor(segment / block)) * segment
    Assumes:  as segment_bytes
    Source:   PyTorch, c10/cuda/CUDACachingAllocator.cpp, 2025
    Counted:  simulate.inner_loop.caching_allocator.CachingAllocator
    """
    checks.count(num_tensors=num_tensors)
    segment = segment_bytes(requested_bytes=requested_bytes)
    return math.ceil(num_tensors / (segment // block_bytes(requested_bytes=requested_bytes))) * segment

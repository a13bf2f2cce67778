"""Coalescing, bank conflicts and divergent branches: what it costs a warp when its lanes go apart.

>>> [sectors_per_request(stride_elements=stride, bytes_per_element=4) for stride in (1, 2, 8, 100)]
[4, 8, 32, 32]
>>> [passes_per_request(stride_words=stride) for stride in (1, 2, 32, 33)]
[1, 2, 32, 1]

Source: NVIDIA, CUDA C++ Best Practices Guide 12.9, 10.2.1 (coalescing) and 10.2.3.1 (shared memory and its banks)
"""

import math
from collections.abc import Sequence

from threeloops import checks

LANES = 32
SECTOR_BYTES = 32
BANKS = 32


def sectors_per_request(
    *, stride_elements: int, bytes_per_element: int, first_byte: int = 0, lanes: int = LANES
) -> int:
    """Sectors of 32 bytes that hold what the lanes of a warp ask for, lane i its element i × stride.

    Formula:  (first + (lanes - 1) * stride + bytes_per_element - 1) // 32 - first // 32 + 1 where the stride is at
              most a sector, else lanes
    Units:    bytes_per_element 1, 2, 4, 8 or 16 (a lane's whole request, vector loads included); first_byte is the
              address of lane 0
    Assumes:  elements aligned to their size, as the hardware demands; compute capability 6.0 and above
    Raises:   ValueError for a misaligned first_byte, or more than 32 lanes
    Counted:  simulate.inner_loop.simt.launch
    """
    checks.count(at_least=0, stride_elements=stride_elements, first_byte=first_byte)
    checks.count(lanes=lanes)
    if lanes > LANES:
        raise ValueError(f"lanes={lanes} must be at most {LANES}, the threads of a warp")
    if bytes_per_element not in (1, 2, 4, 8, 16):
        raise ValueError(
            f"bytes_per_element={bytes_per_element!r} must be 1, 2, 4, 8 or 16, which is what a thread can load at once"
        )
    if first_byte % bytes_per_element:
        raise ValueError(f"first_byte={first_byte} must be a multiple of bytes_per_element={bytes_per_element}")
    stride_bytes = stride_elements * bytes_per_element
    if stride_bytes > SECTOR_BYTES:
        return lanes
    last_byte = first_byte + (lanes - 1) * stride_bytes + bytes_per_element - 1
    return last_byte // SECTOR_BYTES - first_byte // SECTOR_BYTES + 1


def used_share(*, stride_elements: int, bytes_per_element: int, first_byte: int = 0) -> float:
    """Share of the fetched bytes that a full warp asked for; a stride of 0 asks for one element.

    >>> used_share(stride_elements=8, bytes_per_element=4)
    0.125
    """
    sectors = sectors_per_request(
        stride_elements=stride_elements, bytes_per_element=bytes_per_element, first_byte=first_byte
    )
    asked = bytes_per_element * (LANES if stride_elements else 1)
    return asked / (sectors * SECTOR_BYTES)


def passes_per_request(*, stride_words: int) -> int:
    """Turns that shared memory needs for a full warp, lane i at word i × stride: the lanes that meet in one bank.

    Formula:  gcd(stride, 32); 1 for a stride of 0, where all lanes share one word
    Assumes:  words of 32 bits; bank = word % 32; lanes that ask for the same word are served together
    Counted:  simulate.inner_loop.simt.launch
    """
    checks.count(at_least=0, stride_words=stride_words)
    return math.gcd(stride_words, BANKS) if stride_words else 1


def issued_instructions(*, warps: int, common: int, sides: Sequence[int]) -> int:
    """Instructions that are issued, counted once per warp, when the lanes of every warp take different sides of a
    branch.

    Formula:  warps * (common + sum(sides))
    Units:    instructions of one thread: common outside the branch, sides one number for each side
    Assumes:  in every warp each side has lanes that take it; the sides are executed one after another, each for its
              own lanes. Where whole warps agree, each issues its own side only
    Source:   Lindholm et al., IEEE Micro 28(2), 2008, doi:10.1109/MM.2008.31 (SIMT warps)
    Counted:  simulate.inner_loop.simt.launch

    >>> issued_instructions(warps=700, common=12, sides=[41, 26])
    55300
    """
    checks.count(warps=warps)
    checks.count(at_least=0, common=common)
    for instructions in sides:
        checks.count(at_least=0, side=instructions)
    return warps * (common + sum(sides))

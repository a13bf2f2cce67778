"""Caches: how often a walk over memory has to go past a cache.

A cache holds **lines** (64 bytes on most processors) in **sets**; a line may lie only in the set that its address
names, and a set has room for a few lines, its **ways**. When a set is full, the line unused for longest makes room.

>>> fits = walk_misses(lines=512, stride_lines=1, passes=10, sets=64, ways=8)
>>> one_set_more = walk_misses(lines=576, stride_lines=1, passes=10, sets=64, ways=8)
>>> fits, one_set_more
(512, 5760)

Source: Hennessy, Patterson, "Computer Architecture: A Quantitative Approach", 6th ed., 2017, appendix B
"""

import math

from threeloops import checks


def size_bytes(*, sets: int, ways: int, line_bytes: int) -> int:
    """Bytes that a cache holds.

    Formula:  sets * ways * line_bytes
    Counted:  simulate.foundations.processor_cache.Cache

    >>> size_bytes(sets=64, ways=12, line_bytes=64)
    49152
    """
    checks.count(sets=sets, ways=ways, line_bytes=line_bytes)
    return sets * ways * line_bytes


def sets_touched(*, stride_lines: int, sets: int) -> int:
    """Sets that a walk with a constant step ever turns to.

    Formula:  sets / gcd(stride_lines, sets)
    Assumes:  the set is the line's number modulo the number of sets, as in a cache close to the core; a large shared
              cache scatters addresses
    Counted:  simulate.foundations.processor_cache.Cache

    >>> sets_touched(stride_lines=1, sets=64), sets_touched(stride_lines=64, sets=64)
    (64, 1)
    """
    checks.count(stride_lines=stride_lines, sets=sets)
    return sets // math.gcd(stride_lines, sets)


def walk_misses(*, lines: int, stride_lines: int, passes: int, sets: int, ways: int) -> int:
    """Misses of a walk over `lines` lines, every `stride_lines`-th of memory, made `passes` times from the front.

    Formula:  a set that is turned to by no more lines than it has ways misses each of them once, any other set misses
              every time
    Assumes:  an empty cache at first, the least recently used line makes room, nothing is fetched ahead of being
              asked for
    Counted:  simulate.foundations.processor_cache.walk

    >>> walk_misses(lines=16, stride_lines=64, passes=10, sets=64, ways=8)
    160
    """
    checks.count(lines=lines, passes=passes, ways=ways)
    touched = sets_touched(stride_lines=stride_lines, sets=sets)
    per_set, left_over = divmod(lines, touched)
    return left_over * _set_misses(per_set + 1, passes, ways) + (touched - left_over) * _set_misses(
        per_set, passes, ways
    )


def _set_misses(lines: int, passes: int, ways: int) -> int:
    """Misses of one set to which that many different lines are brought in turn."""
    return lines if lines <= ways else lines * passes

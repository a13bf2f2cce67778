"""A processor's cache, address by address: sets of lines, the one unused for longest makes room. Levels stand one
behind the other.

>>> small = Cache(sets=2, ways=1, line_bytes=64)
>>> [small.read(address) for address in (0, 8, 64, 128, 0)]  # found or not: line 2 has pushed line 0 out of set 0
[False, True, False, False, False]
>>> small.accesses, small.misses
(5, 4)
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence


class Cache:
    """One level, empty at first."""

    def __init__(self, *, sets: int, ways: int, line_bytes: int) -> None:
        self.line_bytes = line_bytes
        self.accesses = 0
        self.misses = 0
        self._ways = ways
        self._sets: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(sets)]

    def read(self, address: int) -> bool:
        """Whether the byte at this address was there; afterwards its line is, as the one used last."""
        line = address // self.line_bytes
        held = self._sets[line % len(self._sets)]
        self.accesses += 1
        if line in held:
            held.move_to_end(line)
            return True
        self.misses += 1
        if len(held) == self._ways:
            held.popitem(last=False)
        held[line] = None
        return False


def read_through(levels: Sequence[Cache], addresses: Iterable[int]) -> list[int]:
    """Reads every address, asking each level only for what the one before it did not have. Returns what each level
    passed on, as bytes of whole lines.

    >>> levels = [Cache(sets=1, ways=2, line_bytes=64), Cache(sets=1, ways=8, line_bytes=64)]
    >>> read_through(levels, [0, 64, 128] * 10)  # three lines in turn: too many for two places, few enough for eight
    [1920, 192]
    """
    before = [level.misses for level in levels]
    for address in addresses:
        for level in levels:
            if level.read(address):
                break
    return [(level.misses - old) * level.line_bytes for level, old in zip(levels, before, strict=True)]


def walk(*, lines: int, stride_lines: int, passes: int, line_bytes: int) -> Iterable[int]:
    """Addresses of a walk over every `stride_lines`-th line, made again and again from the front.

    >>> list(walk(lines=3, stride_lines=2, passes=2, line_bytes=64))
    [0, 128, 256, 0, 128, 256]
    """
    for _ in range(passes):
        for step in range(lines):
            yield step * stride_lines * line_bytes

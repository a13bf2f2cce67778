"""A notebook's bytes without what grading never reads: outputs, pasted pictures, the state of widgets. They are what
makes a notebook large; its sources are small.

The file is gone through in pieces and never parsed, because an output may be larger than the memory that one hand-in
may take. Whatever is no JSON comes out as it went in, to be refused where it is parsed.

>>> whole = b'{"cells": [{"source": "x = 1", "outputs": [{"text": "[[[[ ]"}], "metadata": {}}]}'
>>> b"".join(without_outputs([whole]))
b'{"cells": [{"source": "x = 1", "outputs": [], "metadata": {}}]}'
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator

PIECE_BYTES = 1 << 20
MOST_READ_BYTES = 200_000_000  # of a file, however little of it is kept
MOST_STEPS = 3_000_000  # brackets and strings that are passed over: some seconds
# An ordinary string cannot hold these bytes: in it the quotes stand behind backslashes, which are covered first.
_DROPPED = re.compile(rb'"(?:outputs|attachments|widgets)"\s{0,16}:\s{0,16}([\[{])')
_LONGEST_KEY = 64
_STEP = re.compile(rb'"[^"]*(?:"|\Z)|[\[\]{}]')
_EMPTY = {b"[": b"[]", b"{": b"{}"}


def without_outputs(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same file, in pieces, with every list of outputs empty."""
    steps, depth, in_string = 0, 0, False
    waiting = b""
    for piece in pieces:
        buffer = waiting + piece
        end = len(buffer) - _odd_backslash(buffer)
        buffer, waiting = buffer[:end], buffer[end:]
        covered = buffer.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        at = 0
        while at < len(buffer):
            if depth:
                at, depth, in_string, more = _passed(covered, at, depth, in_string=in_string)
                steps += more
                if steps > MOST_STEPS:
                    raise ValueError("its outputs hold too many brackets to be passed over")
                continue
            found = _DROPPED.search(covered, at)
            if not found:
                kept = max(at, len(buffer) - _LONGEST_KEY)
                yield buffer[at:kept]
                waiting = buffer[kept:] + waiting
                break
            yield buffer[at : found.start(1)] + _EMPTY[found[1]]
            at, depth, in_string = found.end(), 1, False
    if not depth:
        yield waiting


def _odd_backslash(buffer: bytes) -> int:
    """1 where the buffer ends in the middle of an escape."""
    return (len(buffer) - len(buffer.rstrip(b"\\"))) % 2


def _passed(covered: bytes, at: int, depth: int, *, in_string: bool) -> tuple[int, int, bool, int]:
    """Go on through a value that is dropped: (where, how deep, whether within a string, steps taken)."""
    if in_string:
        closing = covered.find(b'"', at)
        if closing < 0:
            return len(covered), depth, True, 1
        at = closing + 1
    steps = 0
    for steps, step in enumerate(_STEP.finditer(covered, at), start=1):
        token = step[0]
        if token[:1] == b'"':
            if len(token) == 1 or token[-1:] != b'"':
                return len(covered), depth, True, steps
            continue
        depth += 1 if token in b"[{" else -1
        if not depth:
            return step.end(), 0, False, steps
        if steps > MOST_STEPS:
            break
    return len(covered), depth, False, steps


def shortened(pieces: Iterable[bytes], most: int) -> bytes:
    """A file as it is when it is no larger than that, otherwise without its outputs; some more bytes than `most` where
    even that is too large.
    """
    pieces, first = iter(pieces), deque[bytes]()
    for piece in pieces:
        first.append(piece)
        if sum(map(len, first)) > most:
            break
    else:
        return b"".join(first)
    kept, length = [], 0
    try:
        for part in without_outputs(_up_to(_emptied(first, pieces))):
            kept.append(part)
            length += len(part)
            if length > most:
                break
    except ValueError:
        return bytes(most + 1)
    return b"".join(kept)


def _emptied(first: deque[bytes], others: Iterable[bytes]) -> Iterator[bytes]:
    """Each piece once, and none kept."""
    while first:
        yield first.popleft()
    yield from others


def _up_to(pieces: Iterable[bytes]) -> Iterator[bytes]:
    read = 0
    for piece in pieces:
        read += len(piece)
        if read > MOST_READ_BYTES:
            raise ValueError(f"it is larger than {MOST_READ_BYTES:,} bytes")
        yield piece

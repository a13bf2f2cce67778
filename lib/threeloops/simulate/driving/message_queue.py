"""Messages between processes, piece by piece: a kernel's buffer that is filled and emptied, and a queue that keeps the
newest messages. Knows no formula for copies or ages.
"""

from collections import deque
from fractions import Fraction

from threeloops import checks
from threeloops.units import KiB

KERNEL_BYTES = 64 * KiB  # what a pipe of Linux holds; any other number gives the same count


def copied_bytes(*, message_bytes: int, serialised: bool) -> int:
    """Bytes copied until a message that goes through a kernel's buffer is whole on the other side.

    >>> copied_bytes(message_bytes=1000, serialised=False), copied_bytes(message_bytes=1000, serialised=True)
    (2000, 4000)
    """
    checks.count(message_bytes=message_bytes)
    copied = message_bytes if serialised else 0  # into one row of bytes
    arrived, left = 0, message_bytes
    while arrived < message_bytes:
        put = min(left, KERNEL_BYTES)
        copied, left = copied + put, left - put  # into the kernel
        copied, arrived = copied + put, arrived + put  # out of it
    return copied + (arrived if serialised else 0)  # out of the row of bytes


def ages(*, depth: int, period: int, busy: int, takes: int) -> list[Fraction]:
    """How long each message had been there when the reader took it: a message every `period`, the newest `depth` are
    kept, and the reader takes the oldest, then is busy with it. Whole numbers of one unit of time.

    >>> [float(age) for age in ages(depth=2, period=10, busy=13, takes=4)]
    [0.0, 3.0, 6.0, 9.0]
    """
    checks.count(depth=depth, period=period, busy=busy, takes=takes)
    held: deque[int] = deque(maxlen=depth)
    seen: list[Fraction] = []
    sent = now = 0
    while len(seen) < takes:
        while sent <= now:
            held.append(sent)
            sent += period
        if not held:
            now = sent
            continue
        seen.append(Fraction(now - held.popleft()))
        now += busy
    return seen

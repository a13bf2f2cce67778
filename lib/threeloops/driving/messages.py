"""Messages between processes: what handing one over costs in copies, and how old it is when a queue has held it.

>>> picture = 3840 * 2160 * 2
>>> round(handed_over_s(message_bytes=picture, copies=4, copy_bytes_per_s=5e9), 4)
0.0133
>>> round(age_from_full_queue_s(depth=10, period_s=1 / 30), 3)
0.317
"""

from threeloops import checks


def handed_over_s(*, message_bytes: float, copies: int, copy_bytes_per_s: float) -> float:
    """Seconds that a message's bytes take from one process to another, copied so many times, one copy after the other.

    Formula:  copies * bytes / bytes copied per second
    Assumes:  a copy ends before the next one begins; waking the other process costs nothing. A socket or pipe copies
              twice, into the kernel and out of it; serialising and reading back copy once each; shared memory copies
              once, and not at all where the sender makes the message there
    Source:   by definition
    Counted:  simulate.driving.message_queue.copied_bytes
    Measured: measure.driving.message_ways.handed_over

    >>> handed_over_s(message_bytes=16e6, copies=2, copy_bytes_per_s=8e9)
    0.004
    """
    checks.positive(message_bytes=message_bytes, copy_bytes_per_s=copy_bytes_per_s)
    checks.count(at_least=0, copies=copies)
    return copies * message_bytes / copy_bytes_per_s


def age_from_full_queue_s(*, depth: int, period_s: float) -> float:
    """Mean time since its arrival of the message that a reader takes from a queue that is full.

    Formula:  (depth - 1/2) * period: the oldest of the newest `depth` messages, at any moment between two arrivals
    Assumes:  first in, first out; the queue keeps the newest `depth` messages and drops older ones; the reader is
              slower than the sender, so the queue is full again before each take; its moments have nothing to do with
              the sender's
    Source:   by definition: of messages a period apart, the oldest of `depth` came depth - 1 periods before the newest
    Counted:  simulate.driving.message_queue.ages
    Measured: measure.driving.message_ways.queue_ages, measure.processes.loaned_messages.kept_ages

    >>> age_from_full_queue_s(depth=1, period_s=0.04)
    0.02
    """
    checks.count(depth=depth)
    checks.positive(period_s=period_s)
    return (depth - 0.5) * period_s

"""Rollouts: responses that are written token by token, side by side, in a limited number of seats.

One decoding step after the other is played. Nothing here knows how long it will take.

>>> play([2, 2, 5], seats=2, weights_s=1.0, response_s=0.0)
Played(finished_s=7.0, seat_steps=14, used_steps=9)
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Played:
    """When the last response was complete; seats times steps that were paid for, and those in which somebody
    wrote.
    """

    finished_s: float
    seat_steps: int
    used_steps: int


def play(lengths: Sequence[int], *, seats: int, weights_s: float, response_s: float) -> Played:
    """Play decoding steps until all responses are written; whoever is finished gives the seat to the next in line,
    and to nobody if none is left.
    """
    if seats < 1 or not lengths or min(lengths) < 1:
        raise ValueError(
            f"seats={seats} must be at least 1, and every one of the {len(lengths)} responses at least one token long"
        )
    waiting = deque(lengths)
    left: list[int] = []
    now, steps, used = 0.0, 0, 0
    while waiting or left:
        while waiting and len(left) < seats:
            left.append(waiting.popleft())
        now += weights_s + len(left) * response_s
        steps, used = steps + 1, used + len(left)
        left = [tokens - 1 for tokens in left if tokens > 1]
    return Played(now, steps * seats, used)

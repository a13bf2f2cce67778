"""Serving faults: what the counters of a server say, hour by hour, while something is wrong with its memory. The reader
of a trace is not told what.

>>> [(hour.running, hour.used_blocks) for hour in night(hours=3)]
[(20, 561), (20, 768), (20, 1000)]
"""

import random
from collections import deque
from dataclasses import dataclass

from threeloops import checks
from threeloops.simulate.product_loop.shared_blocks import NoRoomError, SharedBlocks

BLOCK = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """Counters at the end of an hour."""

    hour: int
    running: int
    running_tokens: int
    used_blocks: int
    kept_blocks: int  # of ended requests, kept for their prefixes
    refused: int  # requests of this hour that found no room at once
    hit_rate: float  # of this hour
    evictions: int  # in this hour


def night(*, hours: int = 8, seed: int = 7) -> list[Hour]:
    """Twenty requests at a time, some hundred an hour, in a pool that holds them easily."""
    checks.count(hours=hours)
    rng = random.Random(seed)
    pool = SharedBlocks(num_blocks=1100, block_tokens=BLOCK, keeps_prefixes=False)
    running: deque[str] = deque()
    served, told, full = 0, [], False
    for hour in range(1, hours + 1):
        refused = 0
        for _ in range(150):
            if running and (full or len(running) == 20):
                name = running.popleft()
                if rng.random() > 0.02:  # the client is still there, and the end of its answer is noticed
                    pool.release(name)
            try:
                pool.admit(str(served), [served] * rng.randint(200, 700))
                running.append(str(served))
                full = False
            except NoRoomError:
                full = True
                refused += 1
            served += 1
        told.append(_hour(hour, pool, list(running), refused=refused, found=(0, 0), evictions=0))
    return told


def morning(*, tenants: tuple[int, ...], in_turn: bool, requests: int = 90, seed: int = 7) -> list[Hour]:
    """An hour for each number of tenants. Each tenant has a system prompt of its own; requests come in turn or at
    random. The pool keeps what has ended as long as nobody needs the room.
    """
    checks.count(requests=requests, **{f"tenants in hour {hour}": number for hour, number in enumerate(tenants, 1)})
    rng = random.Random(seed)
    pool = SharedBlocks(num_blocks=8 * 68, block_tokens=BLOCK)
    told = []
    for hour, number in enumerate(tenants, 1):
        before, evictions = (pool.found_tokens, pool.asked_tokens), pool.evictions
        for turn in range(requests):
            tenant = turn % number if in_turn else rng.randrange(number)
            pool.admit("r", [tenant] * 64 * BLOCK + [1000 + hour * requests + turn] * 60)
            pool.release("r")
        told.append(_hour(hour, pool, [], refused=0, found=before, evictions=evictions))
    return told


def _hour(
    hour: int, pool: SharedBlocks, running: list[str], *, refused: int, found: tuple[int, int], evictions: int
) -> Hour:
    asked = pool.asked_tokens - found[1]
    return Hour(
        hour=hour,
        running=len(running),
        running_tokens=sum(len(pool.texts[name]) for name in running),
        used_blocks=pool.used_blocks,
        kept_blocks=len(pool.waiting),
        refused=refused,
        hit_rate=(pool.found_tokens - found[0]) / asked,
        evictions=pool.evictions - evictions,
    )

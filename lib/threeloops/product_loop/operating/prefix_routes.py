"""Which copy gets a request: the one that has its prefix, or one without a queue.

>>> random_cached_turns(turns=4, copies=2)
3.0625
"""

from threeloops import checks


def random_cached_turns(*, turns: int, copies: int) -> float:
    """Earlier turns of a conversation that a copy chosen at random has in its cache, on average.

    Formula:  turns - (1 - q) * (1 - (1 - q)^turns) / q, with q = 1 / copies
    Assumes:  every turn goes to a copy chosen at random; what a copy has read and written stays
              there; a turn's prompt is the whole conversation, so the last visit counts
    Source:   by definition; Ray Serve LLM, PrefixCacheAffinityRouter, documentation, 2026 (why requests should go where
              their prefix is)
    Counted:  drills.capacity.routes.RANDOM
    """
    checks.count(turns=turns, copies=copies)
    missed = 1 - 1 / copies
    return turns - missed * (1 - missed**turns) * copies


def queue_to_leave(*, cached_tokens: int, waiting_tokens: int) -> int:
    """The fewest requests waiting at the copy with the prefix, with which an idle copy without it answers first.

    Formula:  floor(cached tokens / tokens of a waiting request) + 1
    Units:    prompt tokens that are still to be read, of each request that waits
    Assumes:  prompts are read one after the other, at the same rate on both copies
    Source:   by definition: the queue against the prefix that would be read again
    Counted:  drills.capacity.routes.QUEUE

    >>> queue_to_leave(cached_tokens=6000, waiting_tokens=1500)
    5
    """
    checks.count(cached_tokens=cached_tokens, waiting_tokens=waiting_tokens)
    return cached_tokens // waiting_tokens + 1

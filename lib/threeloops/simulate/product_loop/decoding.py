"""Requests that are decoded token by token: batches that are held together or refilled, drafts that are checked, and
tokens that arrive one by one.
"""

from collections.abc import Iterable
from fractions import Fraction


def arrival_times(*, ttft_s: Fraction, itl_s: Fraction, output_tokens: int) -> list[Fraction]:
    """When each token of a request arrives.

    >>> [int(moment) for moment in arrival_times(ttft_s=Fraction(5), itl_s=Fraction(2), output_tokens=3)]
    [5, 7, 9]
    """
    times = [ttft_s]
    while len(times) < output_tokens:
        times.append(times[-1] + itl_s)
    return times


def tokens_by(deadline_s: Fraction, *, ttft_s: Fraction, itl_s: Fraction) -> int:
    """Tokens that have arrived at the deadline.

    >>> tokens_by(Fraction(10), ttft_s=Fraction(5), itl_s=Fraction(2))
    3
    """
    now, tokens = ttft_s, 0
    while now <= deadline_s:
        tokens, now = tokens + 1, now + itl_s
    return tokens


def held_batches(output_tokens: Iterable[int], *, slots: int) -> tuple[int, int]:
    """(steps, slot-steps paid) when a batch is only released as a whole and the next one then begins.

    >>> held_batches([3, 1, 2, 2], slots=2)
    (5, 10)
    """
    waiting, steps, paid = list(output_tokens), 0, 0
    while waiting:
        batch, waiting = waiting[:slots], waiting[slots:]
        left = list(batch)
        while any(left):
            left = [max(0, tokens - 1) for tokens in left]
            steps, paid = steps + 1, paid + len(batch)
    return steps, paid


def refilled_batch(output_tokens: Iterable[int], *, slots: int) -> tuple[int, int]:
    """(steps, slot-steps paid) when a request leaves after its last token and the next one takes its slot at once.

    >>> refilled_batch([3, 1, 2, 2], slots=2)
    (5, 8)
    """
    waiting, running = list(output_tokens), list[int]()
    steps = paid = 0
    while waiting or running:
        while waiting and len(running) < slots:
            running.append(waiting.pop(0))
        steps, paid = steps + 1, paid + len(running)
        running = [tokens - 1 for tokens in running if tokens > 1]
    return steps, paid


def tokens_per_check(*, accepted: Fraction, drafted: int) -> Fraction:
    """Mean tokens of one check: go along the draft, and at every token split the chances into taken and rejected.

    >>> tokens_per_check(accepted=Fraction(1, 2), drafted=2)
    Fraction(7, 4)
    """
    mean, chance = Fraction(0), Fraction(1)
    for taken in range(drafted):
        # stopped here: what was taken, and one token of the large model
        mean += chance * (1 - accepted) * (taken + 1)
        chance *= accepted
    return mean + chance * (drafted + 1)


def prefilled(*, requests: int, shared: int, own: int, forgotten_every: int) -> int:
    """Tokens computed while requests come one after the other; the shared beginning is forgotten, and computed anew,
    every so many requests.

    >>> prefilled(requests=4, shared=100, own=10, forgotten_every=2)
    240
    """
    computed, remembered = 0, False
    for request in range(requests):
        if request % forgotten_every == 0:
            remembered = False
        computed += own + (0 if remembered else shared)
        remembered = True
    return computed


def most_together(*, step_s: float, weights_bytes: int, cache_bytes: int, bytes_per_s: int) -> int:
    """Add request after request to a step until reading everything takes too long.

    >>> most_together(step_s=2.0, weights_bytes=100, cache_bytes=10, bytes_per_s=70)
    4
    """
    together, read = 0, weights_bytes
    while read + cache_bytes <= step_s * bytes_per_s:
        together, read = together + 1, read + cache_bytes
    return together

"""Requests that are decoded token by token: batches that are held together or refilled, drafts that are checked, and
tokens that arrive one by one.
"""

from collections.abc import Iterable
from fractions import Fraction


def arrival_times(*, ttft_s: Fraction, itl_s: Fraction, output_tokens: int) -> list[Fraction]:
    """When each token of a request arrives."""
    times = [ttft_s]
    while len(times) < output_tokens:
        times.append(times[-1] + itl_s)
    return times


def tokens_by(deadline_s: Fraction, *, ttft_s: Fraction, itl_s: Fraction) -> int:
    """Tokens that have arrived at the deadline."""
    now, tokens = ttft_s, 0
    while now <= deadline_s:
        tokens, now = tokens + 1, now + itl_s
    return tokens


def held_batches(output_tokens: Iterable[int], *, slots: int) -> tuple[int, int]:
    """(steps, slot-steps paid) when a batch is only released as a whole and the next one then begins."""
    waiting, steps, paid = list(output_tokens), 0, 0
    while waiting:
        batch, waiting = waiting[:slots], waiting[slots:]
        left = list(batch)
        while any(left):
            left = [max(0, tokens - 1) for tokens in left]
            steps, paid = steps + 1, paid + len(batch)
    return steps, paid


def refilled_batch(output_tokens: Iterable[int], *, slots: int) -> tuple[int, int]:
    """(steps, slot-steps paid) when a request leaves after its last token and the next one takes its slot at once."""
    waiting, running = list(output_tokens), list[int]()
    steps = paid = 0
    while waiting or running:
        while waiting and len(running) < slots:
            running.append(waiting.pop(0))
        steps, paid = steps + 1, paid + len(running)
        running = [tokens - 1 for tokens in running if tokens > 1]
    return steps, paid


def tokens_per_check(*, accepted: Fraction, drafted: int) -> Fraction:
    """Mean tokens of one check: go along the draft, and at every token split the chances into taken and rejected."""
    mean, chance = Fraction(0), Fraction(1)
    for taken in range(drafted):
        # stopped here: what was taken, and one token of the large model
        mean += chance * (1 - accepted) * (taken + 1)
        chance *= accepted
    return mean + chance * (drafted + 1)


def prefilled(*, requests: int, shared: int, own: int, forgotten_every: int) -> int:
    """Tokens computed while requests come one after the other; the shared beginning is forgotten, and computed anew,
    every so many requests.
    """
    computed, remembered = 0, False
    for request in range(requests):
        if request % forgotten_every == 0:
            remembered = False
        computed += own + (0 if remembered else shared)
        remembered = True
    return computed


def most_together(*, step_s: float, weights_bytes: int, cache_bytes: int, bytes_per_s: int) -> int:
    """Add request after request to a step until reading everything takes too long."""
    together, read = 0, weights_bytes
    while read + cache_bytes <= step_s * bytes_per_s:
        together, read = together + 1, read + cache_bytes
    return together

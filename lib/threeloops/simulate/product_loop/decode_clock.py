"""Decode clock: one step of decoding played out: what is read, what is computed, who waits for whom, which experts the
tokens choose.

>>> clock(requests=3, weights=[4, 4], cache=1, flops=2, bytes_per_s=1, flops_per_s=1)
(11.0, 12.0)
"""

import random
from collections.abc import Sequence


def clock(
    *, requests: int, weights: Sequence[float], cache: float, flops: float, bytes_per_s: float, flops_per_s: float
) -> tuple[float, float]:
    """(seconds of reading, seconds of computing): each layer's weights are read once, and every request reads its own
    share of the cache and computes its own products. `cache` and `flops` are of one request and layer.
    """
    reading = computing = 0.0
    for layer in weights:
        reading += layer / bytes_per_s
        for _ in range(requests):
            computing += flops / flops_per_s
    for _ in range(requests):
        reading += cache / bytes_per_s
    return reading, computing


def step_s(
    *, requests: int, weights: Sequence[float], cache: float, flops: float, bytes_per_s: float, flops_per_s: float
) -> float:
    """Seconds of a step, layer after layer: its weights come in while requests compute with them, and then attention
    reads every request's cache. `cache` and `flops` are of one request and layer.
    """
    now = 0.0
    for layer in weights:
        read, computed = now + layer / bytes_per_s, now
        for _ in range(requests):
            computed += flops / flops_per_s
        now = max(read, computed)
        for _ in range(requests):
            now += cache / bytes_per_s
    return now


def first_compute_bound(most: int, **step: float | Sequence[float]) -> int | None:
    """The smallest batch, tried from one up, whose step computes, all in all, at least as long as it reads; None up to
    `most`.
    """
    for requests in range(1, most + 1):
        reading, computing = clock(requests=requests, **step)  # type: ignore[arg-type]
        if computing >= reading:
            return requests
    return None


def ranks_step_s(
    *, layers: Sequence[float], caches: Sequence[float], ranks: int, bytes_per_s: float, all_reduce_s: float
) -> float:
    """Every rank reads its part of a sublayer; all wait for the last one, add up, and go on. The weights of each layer
    are half in attention, with its cache, and half in the MLP.

    >>> ranks_step_s(layers=[80, 80], caches=[20, 20], ranks=2, bytes_per_s=10, all_reduce_s=1)
    14.0
    """
    now = 0.0
    for weights, cache in zip(layers, caches, strict=True):
        for sublayer in (weights / 2 + cache, weights / 2):
            ready = [now + sublayer / ranks / bytes_per_s for _ in range(ranks)]
            now = max(ready) + (all_reduce_s if ranks > 1 else 0)
    return now


def touched(*, num_experts: int, top_k: int, tokens: int, seed: int) -> int:
    """Different experts that tokens choose, each token any top_k of them.

    >>> touched(num_experts=8, top_k=2, tokens=100, seed=1)
    8
    """
    rng = random.Random(seed)
    chosen: set[int] = set()
    for _ in range(tokens):
        chosen.update(rng.sample(range(num_experts), top_k))
    return len(chosen)


def mean_touched(*, num_experts: int, top_k: int, tokens: int, trials: int, seed: int) -> float:
    """The mean of `touched` over so many layers.

    >>> round(mean_touched(num_experts=8, top_k=2, tokens=1, trials=10, seed=1), 2)
    2.0
    """
    return (
        sum(
            touched(num_experts=num_experts, top_k=top_k, tokens=tokens, seed=seed * trials + trial)
            for trial in range(trials)
        )
        / trials
    )

"""Adapter batches: one base model, many small adapters (LoRA), and a batch in which each request may want another.

>>> step = mixed_step_s(
...     weights_bytes=16e9, cache_bytes=8e9, adapter_bytes=80e6, distinct=30, memory_bytes_per_s=3.35e12
... )
>>> f"{step * 1e3:.2f} ms"
'7.88 ms'
"""

from threeloops import checks


def distinct_adapters(*, adapters: int, batch: int) -> float:
    """Different adapters in a batch, on average, if each request wants any of them equally often.

    Formula:  adapters * (1 - (1 - 1 / adapters)^batch)
    Assumes:  independent, equally popular: the worst case; favourites make it fewer
    Source:   by definition of an expectation: an adapter is missed by all requests, each of which chooses by itself
    Counted:  tests.product_loop.test_capacity.test_different_adapters_are_counted_by_drawing_them

    >>> round(distinct_adapters(adapters=1000, batch=64), 1)
    62.0
    """
    checks.count(adapters=adapters, batch=batch)
    return float(adapters * (1 - (1 - 1 / adapters) ** batch))


def mixed_step_s(
    *, weights_bytes: float, cache_bytes: float, adapter_bytes: float, distinct: float, memory_bytes_per_s: float
) -> float:
    """Seconds of a decode step that reads the base once and each adapter of the batch once.

    Formula:  (weights + caches + distinct * adapter) / bandwidth
    Assumes:  memory-bound; adapters already on the GPU; kernels that batch over different adapters
    Source:   Sheng et al., S-LoRA, 2023, arXiv:2311.03285 (base batched for all, adapters apart)
    Counted:  tests.product_loop.test_capacity.test_a_step_reads_what_its_requests_need_copy_after_copy
    """
    checks.positive(weights_bytes=weights_bytes, memory_bytes_per_s=memory_bytes_per_s)
    checks.non_negative(cache_bytes=cache_bytes, adapter_bytes=adapter_bytes, distinct=distinct)
    return (weights_bytes + cache_bytes + distinct * adapter_bytes) / memory_bytes_per_s


def merged_step_s(*, weights_bytes: float, cache_bytes: float, distinct: float, memory_bytes_per_s: float) -> float:
    """Seconds for the same tokens where each adapter is merged into a copy of its own, and copies take turns.

    Formula:  (distinct * weights + caches) / bandwidth
    Source:   by definition: each copy reads its weights, and the caches of its requests
    Counted:  tests.product_loop.test_capacity.test_a_step_reads_what_its_requests_need_copy_after_copy

    >>> round(merged_step_s(weights_bytes=16e9, cache_bytes=8e9, distinct=30, memory_bytes_per_s=3.35e12) * 1e3)
    146
    """
    checks.positive(weights_bytes=weights_bytes, memory_bytes_per_s=memory_bytes_per_s)
    checks.non_negative(cache_bytes=cache_bytes, distinct=distinct)
    return (distinct * weights_bytes + cache_bytes) / memory_bytes_per_s

"""KV capacity: how many tokens, how many requests and how long a context fit into the bytes that are free for a cache.

These are the questions of `kv_cache` asked backwards, from bytes to tokens; how much memory is free says `kv_budget`.
Every figure is for one rank: with tp=1 that is the whole cache.

>>> from threeloops.models.catalogue import model
>>> max_concurrent_requests(model("llama-3-8b"), tokens=1000, free_bytes=16e9, bytes_per_element=2)
122
"""

from dataclasses import replace

from threeloops import checks
from threeloops.models.architecture import Model
from threeloops.product_loop.kv_allocators import Allocator, InformationMinimum
from threeloops.product_loop.kv_cache import bytes_per_token, held_bytes
from threeloops.product_loop.kv_quantisation import UNQUANTISED, Quantisation

MINIMUM = InformationMinimum()
_ENDLESS = 10**13  # tokens: where caches have not filled the memory by then, they never will


def token_slots(
    model: Model, *, free_bytes: float, bytes_per_element: float, quantisation: Quantisation = UNQUANTISED, tp: int = 1
) -> int:
    """Tokens, of however many requests, whose keys and values fit into `free_bytes` of one rank.

    Formula: floor(free_bytes / bytes_per_token)
    Assumes: no blocks and no waste, and every layer keeps every token: where layers have windows, a long request
             needs less (max_concurrent_requests)
    Raises:  ValueError unless free_bytes >= 0
    Source:  Kwon et al., 2023, arXiv:2309.06180, table 1 (maximum number of KV cache slots)
    Measured: tests.product_loop.test_kv_budget.test_cache_size_line_of_a_log

    >>> from threeloops.models.catalogue import model
    >>> token_slots(model("llama-3-8b"), free_bytes=16 * 2**30, bytes_per_element=2)
    131072
    """
    checks.non_negative(free_bytes=free_bytes)
    return int(
        free_bytes // bytes_per_token(model, bytes_per_element=bytes_per_element, quantisation=quantisation, tp=tp)
    )


def max_concurrent_requests(
    model: Model,
    *,
    tokens: int,
    free_bytes: float,
    bytes_per_element: float,
    allocator: Allocator = MINIMUM,
    quantisation: Quantisation = UNQUANTISED,
    tp: int = 1,
) -> int:
    """Most requests that can all grow to `tokens` tokens in `free_bytes` of one rank; 0 if not even one can.

    Formula: floor(free_bytes / peak bytes of one request)
    Assumes: equal requests, all at their largest at once; without an allocator the answer is an upper bound that no
             allocator can beat
    Source:   by definition
    Counted:  simulate.product_loop.block_allocator.requests_that_fit
    """
    checks.count(tokens=tokens)
    checks.non_negative(free_bytes=free_bytes)
    request = held_bytes(
        model,
        tokens=tokens,
        bytes_per_element=bytes_per_element,
        allocator=allocator,
        quantisation=quantisation,
        tp=tp,
        peak=True,
    )
    return int(free_bytes // request)


def longest_context(
    model: Model,
    *,
    batch: int,
    free_bytes: float,
    bytes_per_element: float,
    allocator: Allocator = MINIMUM,
    quantisation: Quantisation = UNQUANTISED,
    tp: int = 1,
) -> int:
    """Most tokens that each of `batch` requests can reach in `free_bytes` of one rank; 0 if not even one token fits.

    Assumes: as max_concurrent_requests; never more than the model's max_context or the allocator's buffer, however
             much memory is left
    """
    checks.count(batch=batch)
    checks.non_negative(free_bytes=free_bytes)

    def batch_bytes(tokens: int) -> float:
        return batch * held_bytes(
            model,
            tokens=tokens,
            bytes_per_element=bytes_per_element,
            allocator=allocator,
            quantisation=quantisation,
            tp=tp,
            peak=True,
        )

    limit = model.max_context if allocator.longest is None else min(model.max_context, allocator.longest)
    fits, too_many = 0, limit + 1  # halved by hand: Python on a page has no range as long as _ENDLESS
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if batch_bytes(middle) <= free_bytes:
            fits = middle
        else:
            too_many = middle
    return fits


def longest_by_memory(
    model: Model,
    *,
    batch: int,
    free_bytes: float,
    bytes_per_element: float,
    allocator: Allocator = MINIMUM,
    quantisation: Quantisation = UNQUANTISED,
    tp: int = 1,
) -> int | None:
    """Tokens that each of `batch` requests has memory for, however long a text the model was made for; None where
    memory sets no limit: every layer has a window or a state, and caches stop growing before it is full.

    Assumes: as longest_context, apart from the model's max_context

    >>> from threeloops.models.catalogue import model
    >>> longest_by_memory(model("llama-3-8b"), batch=1, free_bytes=16 * 2**30, bytes_per_element=2)
    131072
    >>> longest_by_memory(model("mistral-7b"), batch=1, free_bytes=16 * 2**30, bytes_per_element=2) is None
    True
    """
    longest = longest_context(
        replace(model, max_context=_ENDLESS),
        batch=batch,
        free_bytes=free_bytes,
        bytes_per_element=bytes_per_element,
        allocator=allocator,
        quantisation=quantisation,
        tp=tp,
    )
    return None if longest == _ENDLESS else longest

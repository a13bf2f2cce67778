"""KV paging: blocks in place of one long reservation, blocks that several requests share, and whether a cache that had
to go is fetched back or computed again.

>>> shared_prefix_blocks(requests=20, shared_tokens=1000, own_tokens=200, block_tokens=16)
322
>>> 20 * blocks(tokens=1200, block_tokens=16)  # without sharing
1500
"""

import math

from threeloops import checks


def blocks(*, tokens: int, block_tokens: int) -> int:
    """Blocks that a request of `tokens` tokens needs; the last one is perhaps not full.

    Formula:  ceil(tokens / block_tokens)
    Source:   Kwon et al., 2023, arXiv:2309.06180, section 4.2
    Counted:  drills.kv_cache.blocks.BRANCHES

    >>> blocks(tokens=500, block_tokens=16)
    32
    """
    checks.count(at_least=0, tokens=tokens)
    checks.count(block_tokens=block_tokens)
    return -(-tokens // block_tokens)


def mean_unwritten_slots(*, block_tokens: int) -> float:
    """Slots of a request's last block that stand empty, on average over requests.

    Formula:  (block_tokens - 1) / 2
    Assumes:  every remainder of length / block_tokens is equally frequent, as where lengths spread over many blocks
    Source:   by definition of a mean, over lengths that end anywhere in a block
    Counted:  simulate.product_loop.request_stream.play
    """
    checks.count(block_tokens=block_tokens)
    return (block_tokens - 1) / 2


def shared_prefix_blocks(*, requests: int, shared_tokens: int, own_tokens: int, block_tokens: int) -> int:
    """Blocks of all requests together when they begin with the same tokens and whole blocks of them are held once.

    Formula:  floor(shared / block) + requests * ceil((shared mod block + own) / block)
    Assumes:  all requests alive at once; a block is shared only when all its tokens are the same
    Source:   Kwon et al., 2023, arXiv:2309.06180, sections 4.4 (sharing) and 4.3 (blocks)
    Counted:  simulate.product_loop.shared_blocks.SharedBlocks
    """
    checks.count(requests=requests, block_tokens=block_tokens)
    checks.count(at_least=0, shared_tokens=shared_tokens, own_tokens=own_tokens)
    whole, rest = divmod(shared_tokens, block_tokens)
    return whole + requests * blocks(tokens=rest + own_tokens, block_tokens=block_tokens)


def copied_blocks(*, branches: int, prompt_tokens: int, block_tokens: int) -> int:
    """Blocks that are copied when `branches` answers grow from one prompt, whose blocks they share until they write.

    Formula:  branches - 1 if the prompt's last block has room, else 0: the last one to write is alone with the block
              and writes in place
    Source:   Kwon et al., 2023, arXiv:2309.06180, section 4.4 (copy-on-write in parallel sampling)
    Counted:  simulate.product_loop.shared_blocks.SharedBlocks

    >>> [copied_blocks(branches=4, prompt_tokens=tokens, block_tokens=16) for tokens in (100, 96)]
    [3, 0]
    """
    checks.count(branches=branches, prompt_tokens=prompt_tokens, block_tokens=block_tokens)
    return branches - 1 if prompt_tokens % block_tokens else 0


def fetch_s(*, cache_bytes: float, bytes_per_s_one_way: float, latency_s: float) -> float:
    """Seconds to bring a cache back from a slower memory.

    Formula:  latency + bytes / bandwidth
    Units:    latency_s until the first byte moves: a lookup, a queue, a disk's first answer
    Source:   by definition
    Counted:  tests.simulate.test_shared_blocks.test_a_cache_comes_over_the_link_or_is_computed_token_by_token

    >>> fetch_s(cache_bytes=1e9, bytes_per_s_one_way=50e9, latency_s=0.01)
    0.03
    """
    checks.non_negative(cache_bytes=cache_bytes, latency_s=latency_s)
    checks.positive(bytes_per_s_one_way=bytes_per_s_one_way)
    return latency_s + cache_bytes / bytes_per_s_one_way


def recompute_s(*, tokens: int, prefill_tokens_per_s: float) -> float:
    """Seconds to compute a cache again.

    Formula:  tokens / prefill rate
    Assumes:  the prefill has the GPU to itself; the rate is that of prompts of this length
    Source:   by definition of a rate
    Counted:  tests.simulate.test_shared_blocks.test_a_cache_comes_over_the_link_or_is_computed_token_by_token

    >>> recompute_s(tokens=8000, prefill_tokens_per_s=32_000)
    0.25
    """
    checks.count(at_least=0, tokens=tokens)
    checks.positive(prefill_tokens_per_s=prefill_tokens_per_s)
    return tokens / prefill_tokens_per_s


def break_even_bytes_per_s(*, cache_bytes_per_token: float, prefill_tokens_per_s: float) -> float:
    """Bandwidth at which fetching a long cache takes as long as computing it: the rate at which a prefill makes cache.

    Formula:  bytes per token * prefill tokens/s
    Assumes:  a cache long enough that the latency does not count
    Source:   by definition of a break-even
    Counted:  drills.kv_cache.blocks.RATE

    >>> break_even_bytes_per_s(cache_bytes_per_token=131072, prefill_tokens_per_s=30_000)
    3932160000
    """
    checks.positive(cache_bytes_per_token=cache_bytes_per_token, prefill_tokens_per_s=prefill_tokens_per_s)
    return cache_bytes_per_token * prefill_tokens_per_s


def shortest_worth_fetching(
    *, cache_bytes_per_token: float, prefill_tokens_per_s: float, bytes_per_s_one_way: float, latency_s: float
) -> float:
    """Length from which fetching is quicker than computing; infinite where the link is slower than the prefill makes
    cache.

    Formula:  latency / (1 / prefill rate - bytes per token / bandwidth)
    Source:   by definition of a break-even
    Counted:  drills.kv_cache.blocks.TIER

    >>> link = {"cache_bytes_per_token": 1e5, "prefill_tokens_per_s": 20_000, "latency_s": 0.008}
    >>> (
    ...     round(shortest_worth_fetching(**link, bytes_per_s_one_way=10e9)),
    ...     shortest_worth_fetching(**link, bytes_per_s_one_way=2e9),
    ... )
    (200, inf)
    """
    checks.positive(
        cache_bytes_per_token=cache_bytes_per_token,
        prefill_tokens_per_s=prefill_tokens_per_s,
        bytes_per_s_one_way=bytes_per_s_one_way,
    )
    checks.non_negative(latency_s=latency_s)
    saved_s = 1 / prefill_tokens_per_s - cache_bytes_per_token / bytes_per_s_one_way
    return latency_s / saved_s if saved_s > 0 else math.inf

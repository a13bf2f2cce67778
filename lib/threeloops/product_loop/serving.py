"""Serving: how long one request takes, how many are served at once, and what a token costs.

The field's words: TTFT is the time to the first token, ITL the time between two tokens of one request, TPOT its mean
over a request's tokens after the first.

>>> step = decode_step_s(
...     weights_bytes=16e9,
...     cache_bytes=64 * 1e9,
...     batch=64,
...     flops_per_token=16e9,
...     memory_bytes_per_s=3.35e12,
...     peak_flops_per_s=989.4e12,
... )
>>> f"{step * 1e3:.1f} ms between tokens, {64 / step:,.0f} tokens/s"
'23.9 ms between tokens, 2,680 tokens/s'
"""

import math

from threeloops import checks
from threeloops.product_loop import queueing

TOKENS_PER_MILLION = 1e6
SECONDS_PER_HOUR = 3600
HOURS_PER_DAY = 24


def prefill_s(*, tokens: int, flops_per_token: float, peak_flops_per_s: float, utilisation: float) -> float:
    """Seconds to read a prompt: enough tokens at once for the processor, not the memory, to set the pace.

    Formula:  tokens * FLOP per token / (peak * utilisation)
    Assumes:  compute-bound (a prompt longer than the ridge point has tokens, some hundreds); the FLOP of attention
              are in flops_per_token or left out by choice
    Source:   Pope et al., 2022, arXiv:2211.05102, section 2 (prefill processes all input tokens in one pass)
    Counted:  drills.decode_speed.times.PREFILL

    >>> prefill_s(tokens=4000, flops_per_token=16e9, peak_flops_per_s=1e15, utilisation=0.5)
    0.128
    """
    checks.count(tokens=tokens)
    checks.positive(flops_per_token=flops_per_token, peak_flops_per_s=peak_flops_per_s, utilisation=utilisation)
    checks.fraction(utilisation=utilisation)
    return tokens * flops_per_token / (peak_flops_per_s * utilisation)


def decode_step_s(
    *,
    weights_bytes: float,
    cache_bytes: float,
    batch: int,
    flops_per_token: float,
    memory_bytes_per_s: float,
    peak_flops_per_s: float,
) -> float:
    """Seconds for one token of every request in a batch: the least that memory and processor allow.

    Formula:  max(weights / bandwidth, batch * FLOP per token / peak) + caches / bandwidth
    Units:    cache_bytes is the cache of the whole batch; weights_bytes what one step reads of the weights (all of a
              dense model's, whatever the batch)
    Assumes:  matmuls and attention follow one another; each overlaps its own reading and computing perfectly, at full
              rates: a floor, not a forecast. Attention waits for memory, as with KV heads in 16 bits; latent attention
              computes for longer than it reads: transformer.model_time counts it kernel by kernel
    Source:   Pope et al., 2022, arXiv:2211.05102, section 2.1 (weights are read once per step, caches once per
              request)
    Counted:  drills.decode_speed.times.DECODE

    >>> decode_step_s(
    ...     weights_bytes=16e9,
    ...     cache_bytes=0,
    ...     batch=1,
    ...     flops_per_token=16e9,
    ...     memory_bytes_per_s=2e12,
    ...     peak_flops_per_s=1e15,
    ... )
    0.008
    """
    checks.positive(
        weights_bytes=weights_bytes,
        flops_per_token=flops_per_token,
        memory_bytes_per_s=memory_bytes_per_s,
        peak_flops_per_s=peak_flops_per_s,
    )
    checks.non_negative(cache_bytes=cache_bytes)
    checks.count(batch=batch)
    matmuls_s = max(weights_bytes / memory_bytes_per_s, batch * flops_per_token / peak_flops_per_s)
    return matmuls_s + cache_bytes / memory_bytes_per_s


def request_s(*, ttft_s: float, itl_s: float, output_tokens: int) -> float:
    """Seconds from a request's arrival to its last token.

    Formula:  TTFT + (output tokens - 1) * ITL: the first token comes with TTFT
    Source:   by definition of TTFT and ITL
    Counted:  simulate.product_loop.decoding.arrival_times

    >>> round(request_s(ttft_s=0.4, itl_s=0.03, output_tokens=101), 3)
    3.4
    """
    checks.non_negative(ttft_s=ttft_s, itl_s=itl_s)
    checks.count(output_tokens=output_tokens)
    return ttft_s + (output_tokens - 1) * itl_s


def tpot_s(*, request_s: float, ttft_s: float, output_tokens: int) -> float:
    """Mean seconds per token after the first.

    Formula:  (request - TTFT) / (output tokens - 1)
    Raises:   ValueError for fewer than two tokens: there is nothing between them
    Source:   by definition
    Counted:  simulate.product_loop.decoding.arrival_times
    """
    checks.count(at_least=2, output_tokens=output_tokens)
    checks.non_negative(request_s=request_s, ttft_s=ttft_s)
    if request_s < ttft_s:
        raise ValueError(
            f"request_s={request_s} is shorter than ttft_s={ttft_s}; the first token comes before the last"
        )
    return (request_s - ttft_s) / (output_tokens - 1)


def user_tokens_per_s(
    *, total_tokens_per_gpu_s: float, num_gpus: int, requests: int, prompt_tokens: float, output_tokens: float
) -> float:
    """Tokens per second that one user sees, from a throughput that counts prompts and is given per GPU.

    Formula:  total per GPU * GPUs * output / (prompt + output) / requests
    Units:    requests at a time; both lengths as means over requests
    Assumes:  a closed loop: each request that ends is followed by the next; the wait for the first token is inside
    Source:   by definition: a user gets the answers' share of all tokens
    Counted:  tests.product_loop.test_serving.test_what_one_user_sees_of_a_total_is_what_a_clock_counts

    >>> user_tokens_per_s(total_tokens_per_gpu_s=900, num_gpus=4, requests=8, prompt_tokens=500, output_tokens=100)
    75.0
    """
    checks.positive(
        total_tokens_per_gpu_s=total_tokens_per_gpu_s, prompt_tokens=prompt_tokens, output_tokens=output_tokens
    )
    checks.count(num_gpus=num_gpus, requests=requests)
    return total_tokens_per_gpu_s * num_gpus * output_tokens / (prompt_tokens + output_tokens) / requests


def most_output_tokens(*, deadline_s: float, ttft_s: float, itl_s: float) -> int:
    """Tokens that arrive before a deadline on the whole request: targets for TTFT, ITL and the end have to fit
    together.

    Formula:  floor((deadline - TTFT) / ITL) + 1, and 0 if the first one is late
    Source:   by definition of TTFT and ITL
    Counted:  simulate.product_loop.decoding.tokens_by

    >>> most_output_tokens(deadline_s=2.0, ttft_s=0.5, itl_s=0.05)
    31
    """
    checks.positive(deadline_s=deadline_s, itl_s=itl_s)
    checks.non_negative(ttft_s=ttft_s)
    if ttft_s > deadline_s:
        return 0
    return math.floor((deadline_s - ttft_s) / itl_s + 1e-9) + 1


def largest_batch_within_itl(
    *, itl_s: float, weights_bytes: float, cache_bytes_per_request: float, memory_bytes_per_s: float
) -> int:
    """Most requests in a batch whose step still fits into an ITL, as far as memory bandwidth goes; 0 if reading the
    weights alone takes longer.

    Formula:  floor((ITL * bandwidth - weights) / cache per request)
    Assumes:  bandwidth-bound, equally long contexts
    Source:   Pope et al., 2022, arXiv:2211.05102, section 2.1 (a decode step, solved for the batch)
    Counted:  simulate.product_loop.decoding.most_together
    """
    checks.positive(
        itl_s=itl_s,
        weights_bytes=weights_bytes,
        cache_bytes_per_request=cache_bytes_per_request,
        memory_bytes_per_s=memory_bytes_per_s,
    )
    return max(0, math.floor((itl_s * memory_bytes_per_s - weights_bytes) / cache_bytes_per_request * (1 + 1e-12)))


def replicas(*, requests_per_s: float, seconds: float, slots: int, headroom: float) -> int:
    """Copies of a server that hold all requests in flight, with a share of their slots kept free for bursts.

    Formula:  ceil(rate * time / (slots * (1 - headroom)))
    Assumes:  time in the system does not grow with load up to that share: look at `queueing` for when it does
    Source:   Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383 (requests inside)
    Counted:  drills.capacity.costs.REPLICAS

    >>> replicas(requests_per_s=40, seconds=4, slots=48, headroom=0.25)
    5
    """
    checks.count(slots=slots)
    checks.fraction(headroom=headroom)
    if headroom == 1:
        raise ValueError("headroom=1 leaves no slot to serve with; give a share below 1")
    return math.ceil(
        queueing.littles_law(requests_per_s=requests_per_s, seconds=seconds) / (slots * (1 - headroom)) * (1 - 1e-12)
    )


def dollars_per_million_tokens(*, dollars_per_hour: float, tokens_per_s: float, busy_share: float) -> float:
    """What a million tokens cost on a machine paid by the hour.

    Formula:  price per hour / (tokens/s * 3600 * busy share) * 1e6
    Assumes:  the machine is paid for whether busy or not; tokens/s is what it makes while busy
    Source:   by definition
    Counted:  drills.capacity.costs.PRICE

    >>> round(dollars_per_million_tokens(dollars_per_hour=2.5, tokens_per_s=2500, busy_share=0.5), 3)
    0.556
    """
    checks.positive(dollars_per_hour=dollars_per_hour, tokens_per_s=tokens_per_s, busy_share=busy_share)
    checks.fraction(busy_share=busy_share)
    return dollars_per_hour / (tokens_per_s * SECONDS_PER_HOUR * busy_share) * TOKENS_PER_MILLION


def break_even_tokens_per_day(*, dollars_per_hour: float, dollars_per_million: float) -> float:
    """Tokens a day from which a machine of one's own costs less than an interface paid by the token.

    Formula:  price per hour * 24 / price per million * 1e6
    Assumes:  the machine is paid day and night, and makes that many tokens: compare with what it can make
    Source:   by definition of a break-even
    Counted:  drills.capacity.costs.OWN

    >>> break_even_tokens_per_day(dollars_per_hour=2.5, dollars_per_million=0.6) / 1e6
    100.0
    """
    checks.positive(dollars_per_hour=dollars_per_hour, dollars_per_million=dollars_per_million)
    return dollars_per_hour * HOURS_PER_DAY / dollars_per_million * TOKENS_PER_MILLION


def prefilled_tokens(*, requests: int, shared_tokens: int, own_tokens: int, hit_share: float) -> float:
    """Prompt tokens that must really be computed when requests begin with the same text and a cache remembers it.

    Formula:  requests * (own + shared * (1 - hit share))
    Assumes:  a hit saves the whole shared beginning; the hit share counts requests, and the first one of each
              beginning is a miss
    Source:   Zheng et al., SGLang, 2024, arXiv:2312.07104, section 3 (RadixAttention)
    Counted:  simulate.product_loop.decoding.prefilled

    >>> prefilled_tokens(requests=100, shared_tokens=2000, own_tokens=150, hit_share=0.95)
    25000.0
    """
    checks.count(requests=requests)
    checks.count(at_least=0, shared_tokens=shared_tokens, own_tokens=own_tokens)
    checks.fraction(hit_share=hit_share)
    return round(requests * (own_tokens + shared_tokens * (1 - hit_share)), 6)


def chunked_prefill_s(*, tokens: int, chunk: int, decode_step_s: float, token_s: float) -> float:
    """Seconds to read a prompt chunk by chunk, while every step also makes a token for each running request.

    Formula:  ceil(tokens / chunk) * decode step + tokens * seconds per prompt token
    Assumes:  a step takes as long as its decoding and its chunk one after the other; nothing is gained by doing both
    Source:   Agrawal et al., Sarathi-Serve, 2024, arXiv:2403.02310, section 4 (chunked prefills, stall-free
              schedules)
    Counted:  drills.batching.promises.STALL

    >>> round(chunked_prefill_s(tokens=4000, chunk=512, decode_step_s=0.02, token_s=40e-6), 3)
    0.32
    """
    checks.count(tokens=tokens, chunk=chunk)
    checks.non_negative(decode_step_s=decode_step_s)
    checks.positive(token_s=token_s)
    return math.ceil(tokens / chunk) * decode_step_s + tokens * token_s


def goodput_per_s(*, requests: int, late_first: int, slow_between: int, both: int, seconds: float) -> float:
    """Requests per second that keep both promises, on the first token and on those after it.

    Formula:  (requests - late first tokens - slow between tokens + both) / seconds: who broke both promises is taken
              off twice
    Units:    late_first and slow_between each include those that are both; seconds of the whole run, to the last token
    Source:   the DistServe authors' page, hao-ai-lab.github.io/blogs/distserve (completed requests per second within
              the objectives); their paper, arXiv:2401.09670, means the highest rate per GPU that keeps them
    Counted:  simulate.product_loop.serving_run.run
    """
    checks.count(requests=requests)
    checks.count(at_least=0, late_first=late_first, slow_between=slow_between, both=both)
    checks.positive(seconds=seconds)
    if both > min(late_first, slow_between) or late_first + slow_between - both > requests:
        raise ValueError(
            f"late_first={late_first}, slow_between={slow_between} and both={both} do not fit into requests={requests}"
        )
    return (requests - late_first - slow_between + both) / seconds

"""Batching: what a batch of mixed answers costs, how full a server's batch gets, and what prompts do to the others.

>>> gain = continuous_gain(short_tokens=100, long_tokens=900, long_share=0.1, slots=16)
>>> f"{gain:.2f} times the tokens/s of static batches"
'4.18 times the tokens/s of static batches'
"""

import math

from threeloops import checks


def expected_longest(*, short_tokens: float, long_tokens: float, long_share: float, slots: int) -> float:
    """Tokens of the longest answer in a static batch, on average, where answers are either short or long.

    Formula:  long - (long - short) * (1 - share of long ones)^slots: one long answer is enough
    Assumes:  lengths know nothing of one another, and the batch is full
    Source:   by definition of an expectation
    Counted:  tests.product_loop.test_batching.test_the_longest_of_a_batch_is_that_of_all_batches_there_are

    >>> expected_longest(short_tokens=10, long_tokens=90, long_share=0.5, slots=2)
    70.0
    """
    checks.positive(short_tokens=short_tokens, long_tokens=long_tokens)
    checks.fraction(long_share=long_share)
    checks.count(slots=slots)
    return long_tokens - (long_tokens - short_tokens) * (1 - long_share) ** slots


def continuous_gain(*, short_tokens: float, long_tokens: float, long_share: float, slots: int) -> float:
    """Tokens/s of continuous batching over those of static batches, where answers are either short or long.

    Formula:  expected longest / mean
    Assumes:  as expected_longest; somebody always waits, and a step takes equally long with any batch
    Source:   Yu et al., Orca, OSDI 2022, section 3 (a batch ends with its longest request)
    Counted:  simulate.product_loop.serving_run.run
    """
    longest = expected_longest(short_tokens=short_tokens, long_tokens=long_tokens, long_share=long_share, slots=slots)
    return longest / (short_tokens + long_share * (long_tokens - short_tokens))


def running_requests(*, requests_per_s: float, output_tokens: float, base_s: float, per_request_s: float) -> float:
    """Requests that a server with enough slots is decoding on average, when a step takes longer the more there are.

    Formula:  tokens/s * base / (1 - tokens/s * per request), tokens/s = requests/s * output tokens
    Assumes:  a step takes base + running * per_request_s; Little's law with that step: running = tokens/s * step;
              prompts take no time, slots never run out
    Raises:   ValueError where every token's own share of the step adds up to a second a second: the batch would grow
              without end
    Source:   Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383 (requests inside), solved for a step that
              grows with them
    Counted:  simulate.product_loop.serving_run.run

    >>> round(running_requests(requests_per_s=10, output_tokens=200, base_s=0.005, per_request_s=0.0001), 9)
    12.5
    """
    checks.positive(requests_per_s=requests_per_s, output_tokens=output_tokens, base_s=base_s)
    checks.non_negative(per_request_s=per_request_s)
    tokens_per_s = requests_per_s * output_tokens
    if tokens_per_s * per_request_s >= 1:
        raise ValueError(
            f"{tokens_per_s:,.0f} tokens/s at {per_request_s} s each fill every second: the batch would grow without"
            " end. Take fewer requests"
        )
    return tokens_per_s * base_s / (1 - tokens_per_s * per_request_s)


def least_chunk(*, prompt_tokens_per_s: float, decode_step_s: float, token_s: float) -> float:
    """Prompt tokens that every step must read so that no more arrive than are read.

    Formula:  arriving tokens/s * decode step / (1 - arriving tokens/s * time per token)
    Assumes:  a step takes decode_step_s + chunk * token_s, and there is always a prompt to read
    Raises:   ValueError where reading alone takes all the time: no chunk is large enough
    Source:   Agrawal et al., Sarathi-Serve, 2024, arXiv:2403.02310, section 4.3 (the choice of a token budget)
    Counted:  simulate.product_loop.serving_run.run

    >>> round(least_chunk(prompt_tokens_per_s=10_000, decode_step_s=0.010, token_s=50e-6), 9)
    200.0
    """
    checks.positive(prompt_tokens_per_s=prompt_tokens_per_s, decode_step_s=decode_step_s, token_s=token_s)
    busy = prompt_tokens_per_s * token_s
    if busy >= 1:
        raise ValueError(
            f"{prompt_tokens_per_s:,.0f} prompt tokens/s at {token_s} s each take all the time there is; no chunk is"
            " large enough"
        )
    return prompt_tokens_per_s * decode_step_s / (1 - busy)


def largest_chunk(*, itl_s: float, decode_step_s: float, token_s: float) -> int:
    """Most prompt tokens that a step can read beside its decoding and still fit into an ITL; 0 if decoding alone takes
    as long.

    Formula:  floor((ITL - decode step) / time per token)
    Assumes:  a step takes decode_step_s + chunk * token_s
    Source:   Agrawal et al., Sarathi-Serve, 2024, arXiv:2403.02310, section 4 (chunked prefills)
    Counted:  simulate.product_loop.serving_run.run

    >>> largest_chunk(itl_s=0.050, decode_step_s=0.018, token_s=70e-6)
    457
    """
    checks.positive(itl_s=itl_s, token_s=token_s)
    checks.non_negative(decode_step_s=decode_step_s)
    return max(0, math.floor((itl_s - decode_step_s) / token_s * (1 + 1e-12)))


def budget_steps(*, prompt_tokens: int, token_budget: int, running: int) -> int:
    """Steps until a prompt is read, when everyone who runs takes a token of every step's budget first.

    Formula:  ceil(prompt / (budget - running))
    Assumes:  no other prompt is being read, and nobody who runs ends meanwhile
    Raises:   ValueError where the running requests use the whole budget
    Source:   Agrawal et al., Sarathi-Serve, 2024, arXiv:2403.02310, section 4.2 (decodes first, then prompts)
    Counted:  simulate.product_loop.serving_run.run

    >>> budget_steps(prompt_tokens=4000, token_budget=512, running=112)
    10
    """
    checks.count(prompt_tokens=prompt_tokens, token_budget=token_budget)
    checks.count(at_least=0, running=running)
    if running >= token_budget:
        raise ValueError(f"running={running} use all of token_budget={token_budget}; no token is left for a prompt")
    return math.ceil(prompt_tokens / (token_budget - running))


def prefill_first_gap_s(*, prompt_tokens: list[int], step_s: float, token_s: float) -> float:
    """Seconds between two tokens of a running request when prompts come together and are read before anybody decodes.

    Formula:  step + all prompt tokens * time per token, and then the step that decodes
    Assumes:  a step takes step_s whatever it decodes, and token_s more for each prompt token; all prompts are read in
              one step, whole
    Source:   Agrawal et al., Sarathi-Serve, 2024, arXiv:2403.02310, section 3 (generation stalls)
    Counted:  simulate.product_loop.serving_run.run

    >>> round(prefill_first_gap_s(prompt_tokens=[3000, 1000], step_s=0.010, token_s=50e-6), 9)
    0.22
    """
    checks.count(**{f"prompt {place}": tokens for place, tokens in enumerate(prompt_tokens, 1)})
    checks.positive(step_s=step_s, token_s=token_s)
    return 2 * step_s + sum(prompt_tokens) * token_s


def slots_gain(*, weights_bytes: float, cache_bytes_per_request: float, slots: int, more_slots: int) -> float:
    """Tokens/s with more slots over those with fewer, where a step is the reading of weights and caches.

    Formula:  more / slots * (weights + slots * cache) / (weights + more * cache)
    Assumes:  all slots taken, equally long contexts, bandwidth-bound
    Source:   Pope et al., 2022, arXiv:2211.05102, section 2.1 (weights once per step, caches once per request)
    Counted:  simulate.product_loop.serving_run.run

    >>> slots_gain(weights_bytes=16e9, cache_bytes_per_request=1e9, slots=16, more_slots=48)
    1.5
    """
    checks.positive(weights_bytes=weights_bytes)
    checks.non_negative(cache_bytes_per_request=cache_bytes_per_request)
    checks.count(slots=slots, more_slots=more_slots)
    steps = (weights_bytes + slots * cache_bytes_per_request) / (weights_bytes + more_slots * cache_bytes_per_request)
    return more_slots / slots * steps


def others_prompts_s(*, requests: int, output_tokens: int, prompt_s: float) -> float:
    """Seconds that the prompts of others add to the mean time between two tokens, where so many requests are always
    inside and the next one begins as soon as one ends.

    Formula:  (requests - 1) / output tokens * time of one prompt: while one request gets its answer, each other one
              ends once, and whoever follows brings a prompt
    Assumes:  a prompt stops everybody's tokens while it is read; equal answers
    Source:   Agrawal et al., Sarathi-Serve, OSDI 2024, arXiv:2403.02310, section 3 (generation stalls)
    Counted:  tests.product_loop.test_batching.test_prompts_of_others_are_those_that_begin_while_one_answer_is_made

    >>> others_prompts_s(requests=17, output_tokens=200, prompt_s=0.1)
    0.008
    """
    checks.count(requests=requests, output_tokens=output_tokens)
    checks.non_negative(prompt_s=prompt_s)
    return (requests - 1) / output_tokens * prompt_s


def static_batch_tokens_paid(output_tokens: list[int]) -> int:
    """Token slots that a batch occupies which is only released as a whole.

    Formula:  requests * longest output
    Source:   Yu et al., Orca, OSDI 2022, section 3 (requests that finish early wait for the longest)
    Counted:  simulate.product_loop.decoding.held_batches
    """
    checks.count(**{f"request {place}": tokens for place, tokens in enumerate(output_tokens, 1)})
    if not output_tokens:
        raise ValueError("output_tokens is empty; a batch needs a request")
    return len(output_tokens) * max(output_tokens)


def refilled_slots(output_tokens: list[int], *, slots: int) -> list[list[int]]:
    """Which requests each slot serves when a request leaves after its last token and the next one in line takes its
    place at once.

    Formula:  the next request goes to the slot that is free first; steps = the largest sum of a slot
    Source:   Yu et al., Orca, OSDI 2022, section 3.2 (iteration-level scheduling)
    Counted:  simulate.product_loop.decoding.refilled_batch

    >>> refilled_slots([5, 2, 4, 1], slots=2)
    [[5, 1], [2, 4]]
    """
    checks.count(slots=slots)
    checks.count(**{f"request {place}": tokens for place, tokens in enumerate(output_tokens, 1)})
    served: list[list[int]] = [[] for _ in range(slots)]
    for tokens in output_tokens:
        min(served, key=sum).append(tokens)
    return served

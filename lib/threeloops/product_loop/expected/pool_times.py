"""Pool times: some GPUs read prompts, others decode, so many requests at a time: the time between two tokens and the
requests that go through, by measured kernels; nothing in it is fitted to a server.

>>> from threeloops.models import catalogue
>>> eight = ServedPool(workers=1, tp=1, dp=8, ep=8)
>>> load = {"requests": 144, "prompt": 1024, "answer": 1024}
>>> formats = {"part": "h200-sxm", "format": "fp8", "cache": "bf16", "engine": "TensorRT-LLM"}
>>> one = pool_times(catalogue.model("deepseek-v3"), **formats, prefill=eight, decode=eight, **load)
>>> f"{one.tpot_s * 1e3:.0f} ms between two tokens, prompts are read in {one.busy_prefill:.0%} of the time"
'37 ms between two tokens, prompts are read in 16% of the time'

Source: Zhong et al., DistServe, 2024, arXiv:2401.09670, section 3 (the two pools); expected_token.py (their kernels)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.facts.served_pools import ServedPool
from threeloops.models.architecture import Model
from threeloops.product_loop.expected.expected_token import ExpectedToken, expected_token


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTimes:
    """What two pools take."""

    tpot_s: float
    prompt_s: float  # of one prompt by itself: no first token comes sooner
    requests_per_s: float
    decoding: int  # requests that decode at a time
    busy_prefill: float  # share of the time, 1 where the prefill pool binds


def prompt_every_s(token: ExpectedToken, dp: int) -> float:
    """How often a busy prefill server is done with a prompt, each of its groups reading one.

    Formula:  shared + (prompt - shared) / groups
    Source:   by definition: the experts compute everybody's tokens, the rest of each group its own
    Counted:  tests.product_loop.expected.test_pool_times.test_groups_that_read_at_once_share_the_experts
    """
    checks.count(dp=dp)
    return token.shared_prompt_s + (token.prompt_s - token.shared_prompt_s) / dp


def pools_at(
    requests: int, *, answer: int, prompt_s: float, reads_per_s: float, step_s: Callable[[int], float]
) -> PoolTimes:
    """Two pools with so many requests inside, each that ends followed by the next.

    Formula:  where all decode: requests / (prompt_s + (answer - 1) * step(requests)) go through. Where the prefill pool
              reads fewer than that: reads_per_s, and so many decode that as many end:
              decoding / ((answer - 1) * step(decoding)) = reads_per_s; the others wait for a prefill server
    Units:    step_s: of the decode pool with so many requests, which grows more slowly than they do
    Assumes:  a cache is handed over at once; nobody waits for a seat; arrivals are spread evenly, so that nobody waits
              for a prompt before the prefill pool is full
    Source:   Little, 1961, doi:10.1287/opre.9.3.383 (requests inside = flow * time)
    Counted:  tests.product_loop.expected.test_pool_times.test_two_pools_played_request_by_request
    """
    checks.count(requests=requests)
    checks.count(at_least=2, answer=answer)
    checks.positive(prompt_s=prompt_s, reads_per_s=reads_per_s)
    gaps, decoding = answer - 1, requests
    flow = requests / (prompt_s + gaps * step_s(requests))
    if flow > reads_per_s:
        flow, decoding = reads_per_s, _decoding(requests, reads_per_s * gaps, step_s)
    return PoolTimes(
        tpot_s=step_s(decoding),
        prompt_s=prompt_s,
        requests_per_s=flow,
        decoding=decoding,
        busy_prefill=flow / reads_per_s,
    )


def _decoding(requests: int, tokens_per_s: float, step_s: Callable[[int], float]) -> int:
    """The fewest that make so many tokens."""
    few, many = 0, requests
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if middle / step_s(middle) >= tokens_per_s else (middle, many)
    return many


def pool_times(
    model: Model,
    *,
    part: str,
    format: str,
    cache: str,
    engine: str,
    prefill: ServedPool,
    decode: ServedPool,
    requests: int,
    prompt: int,
    answer: int,
) -> PoolTimes:
    """pools_at, with a step and a prompt as expected_token has them.

    Assumes:  as both; requests are dealt evenly to servers; a prefill server reads one prompt at a time in each of its
              groups: engines that read several short ones at once are quicker
    Raises:   ValueError as expected_token, for either pool
    """
    formats: dict[str, Any] = {"part": part, "format": format, "cache": cache, "engine": engine, "prompt": prompt}

    def token(pool: ServedPool, inside: int) -> ExpectedToken:
        cut = {"tp": pool.tp, "dp": pool.dp, "ep": pool.ep}
        return expected_token(model, **formats, **cut, answer=answer, requests=inside)

    reading = token(prefill, 1)
    return pools_at(
        requests,
        answer=answer,
        prompt_s=reading.prompt_s,
        reads_per_s=prefill.workers / prompt_every_s(reading, prefill.dp),
        step_s=lambda inside: token(decode, max(1, round(inside / decode.workers))).step_s,
    )

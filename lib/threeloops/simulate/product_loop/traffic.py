"""Traffic for a serving run: when requests arrive, and how long they are.

>>> requests = drawn(AZURE_CODE_2023, requests=20_000, seed=1)
>>> sorted(request.output_tokens for request in requests)[10_000]  # of the trace: 13
13
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from threeloops import checks
from threeloops.facts.request_traces import request_trace
from threeloops.simulate.product_loop.serving_requests import Request

Numbers = NDArray[np.float64]


def gaps(*, requests_per_s: float, gap_cv: float, requests: int, rng: np.random.Generator) -> Numbers:
    """Seconds between arrivals: Gamma distributed with this coefficient of variation (standard deviation / mean).

    1 is the exponential (Poisson arrivals), more comes in bursts, 0 is a clock.
    """
    checks.positive(requests_per_s=requests_per_s)
    checks.non_negative(gap_cv=gap_cv)
    checks.count(requests=requests)
    if gap_cv == 0:
        return np.full(requests, 1 / requests_per_s)
    return rng.gamma(1 / gap_cv**2, gap_cv**2 / requests_per_s, requests)


def poisson(*, requests_per_s: float, requests: int, seed: int) -> Numbers:
    """Arrival times that know nothing of one another."""
    return bursts(requests_per_s=requests_per_s, gap_cv=1, requests=requests, seed=seed)


def bursts(*, requests_per_s: float, gap_cv: float, requests: int, seed: int) -> Numbers:
    """Arrival times whose gaps vary as told."""
    rng = np.random.default_rng(seed)
    return np.cumsum(gaps(requests_per_s=requests_per_s, gap_cv=gap_cv, requests=requests, rng=rng))


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What a service was asked: how often, how unevenly, and how long.

    Assumes:  gap_cv is that of the trace's gaps, and 1 where the trace rounds its moments, so that gaps say nothing
    """

    name: str
    source: str
    requests_per_s: float
    gap_cv: float
    lengths: tuple[tuple[int, int], ...]  # prompt and answer of real requests: equally likely, and kept together


def as_published(key: str) -> Traffic:
    """The traffic of a published trace: its rate, its gaps, and a sample of its requests.

    Assumes:  gaps without memory. In a trace the load itself moves as well: facts.request_traces counts how much
    Source:   Patel et al., Splitwise, 2023, arXiv:2311.18677; Qin et al., Mooncake, 2024, arXiv:2407.00079
    """
    trace = request_trace(key)
    return Traffic(
        name=trace.name,
        source=f"{trace.source} ({trace.licence})",
        requests_per_s=trace.requests / trace.seconds,
        gap_cv=1.0 if trace.stamp_s else trace.gap_cv,
        lengths=trace.sample,
    )


AZURE_CODE_2023 = as_published("azure-code-2023")
AZURE_CONVERSATION_2023 = as_published("azure-conversation-2023")
MOONCAKE_CONVERSATION = as_published("mooncake-conversation-2024")


def drawn(
    traffic: Traffic,
    *,
    requests: int,
    seed: int,
    requests_per_s: float | None = None,
    gap_cv: float | None = None,
) -> list[Request]:
    """Requests like those of a published trace; rate and burstiness may be set otherwise.

    Assumes:  a request's prompt and answer are one real request's; what came before it says nothing (in a trace it
              does: long prompts come together)
    """
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(
        gaps(
            requests_per_s=traffic.requests_per_s if requests_per_s is None else requests_per_s,
            gap_cv=traffic.gap_cv if gap_cv is None else gap_cv,
            requests=requests,
            rng=rng,
        )
    )
    prompts, outputs = np.array(traffic.lengths)[rng.integers(len(traffic.lengths), size=requests)].T
    return together(arrivals, prompts, outputs)


def together(arrivals_s: Iterable[float], prompts: Iterable[int], outputs: Iterable[int]) -> list[Request]:
    """Requests from a column of arrival times and two of lengths: a trace."""
    columns = (np.asarray(list(column)).tolist() for column in (arrivals_s, prompts, outputs))
    return [Request(*row) for row in zip(*columns, strict=True)]


def at_once(outputs: Sequence[int], *, prompt_tokens: int = 1) -> list[Request]:
    """Requests that all wait at second 0."""
    return [Request(0.0, prompt_tokens, tokens) for tokens in outputs]

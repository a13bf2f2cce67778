"""Traffic for a serving run: when requests arrive, and how long they are.

>>> requests = drawn(AZURE_CODE_2023, requests=20_000, seed=1)
>>> halfway = sorted(request.prompt_tokens for request in requests)[10_000]
>>> abs(halfway / AZURE_CODE_2023.prompt.p50 - 1) < 0.05
True
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from threeloops import checks
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


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths in tokens, of which half, nine tenths and 99 hundredths are below the three that are given.

    Assumes:  between two of them the logarithm of the length rises linearly with the share; below the half it falls as
              it rises from half to nine tenths, and above 0.99 it goes on rising. A fit to three quantiles, not the
              data: means, and what lies beyond the 99th percentile, may be off
    """

    p50: float
    p90: float
    p99: float

    def __post_init__(self) -> None:
        if not 0 < self.p50 < self.p90 < self.p99:
            raise ValueError(f"p50={self.p50}, p90={self.p90}, p99={self.p99} must be positive and rise")

    def at(self, shares: Numbers) -> Numbers:
        """The length below which each of these shares lies."""
        points = np.log([self.p50, self.p90, self.p99])
        body, tail = (points[1] - points[0]) / 0.4, (points[2] - points[1]) / 0.09
        knots = [points[0] - 0.5 * body, *points, points[2] + 0.01 * tail]
        lengths: Numbers = np.exp(np.interp(shares, [0, 0.5, 0.9, 0.99, 1], knots))
        return lengths

    def drawn(self, requests: int, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Whole lengths of at least one token."""
        return np.maximum(1, np.rint(self.at(rng.random(requests)))).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What a service was asked: how often, how unevenly, and how long."""

    name: str
    source: str
    requests_per_s: float
    gap_cv: float
    prompt: Lengths
    output: Lengths


AZURE_CODE_2023 = Traffic(
    name="Azure, code, 2023",
    source="AzureLLMInferenceTrace_code.csv, Azure Public Dataset (CC BY 4.0); Patel et al., Splitwise, 2023,"
    " arXiv:2311.18677",
    requests_per_s=2.57,
    gap_cv=13.2,
    prompt=Lengths(1469, 5188, 7436),
    output=Lengths(13, 55, 251),
)
AZURE_CONVERSATION_2023 = Traffic(
    name="Azure, conversation, 2023",
    source="AzureLLMInferenceTrace_conv.csv, Azure Public Dataset (CC BY 4.0); Patel et al., Splitwise, 2023,"
    " arXiv:2311.18677",
    requests_per_s=5.53,
    gap_cv=1.09,
    prompt=Lengths(1020, 2735, 4142),
    output=Lengths(129, 424, 601),
)
MOONCAKE_CONVERSATION = Traffic(
    name="Mooncake, conversation, 2024",
    source="conversation_trace.jsonl, Mooncake traces; Qin et al., 2024, arXiv:2407.00079",
    requests_per_s=3.40,
    gap_cv=3.03,
    prompt=Lengths(6909, 27367, 85400),
    output=Lengths(350, 597, 1119),
)


def drawn(
    traffic: Traffic,
    *,
    requests: int,
    seed: int,
    requests_per_s: float | None = None,
    gap_cv: float | None = None,
) -> list[Request]:
    """Requests like those of a published trace; rate and burstiness may be set otherwise.

    Assumes:  gaps, prompts and outputs know nothing of one another (in a trace they do: long prompts come together)
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
    return together(arrivals, traffic.prompt.drawn(requests, rng=rng), traffic.output.drawn(requests, rng=rng))


def together(arrivals_s: Iterable[float], prompts: Iterable[int], outputs: Iterable[int]) -> list[Request]:
    """Requests from a column of arrival times and two of lengths: a trace."""
    columns = (np.asarray(list(column)).tolist() for column in (arrivals_s, prompts, outputs))
    return [Request(*row) for row in zip(*columns, strict=True)]


def at_once(outputs: Sequence[int], *, prompt_tokens: int = 1) -> list[Request]:
    """Requests that all wait at second 0."""
    return [Request(0.0, prompt_tokens, tokens) for tokens in outputs]

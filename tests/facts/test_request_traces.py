"""Request traces: what is said of a whole trace, against its publishers and against the sample that stands for it."""

import numpy as np
import pytest

from threeloops.facts.request_traces import KEYS, request_trace

# Azure's own notebook (analysis/AzureLLMInferenceDataset2023.ipynb) prints its tables with their numbers of rows;
# Mooncake's README prints 12,031 requests with 12,035 and 343 tokens on average.
ROWS = {"azure-code-2023": 8_819, "azure-conversation-2023": 19_366, "mooncake-conversation-2024": 12_031}


@pytest.mark.parametrize("key", ROWS)
def test_as_many_requests_as_the_publishers_print(key: str) -> None:
    assert request_trace(key).requests == ROWS[key]


def test_means_as_mooncakes_readme_prints_them() -> None:
    trace = request_trace("mooncake-conversation-2024")
    assert (round(trace.prompt.mean), round(trace.answer.mean)) == (12_035, 343)


@pytest.mark.parametrize("key", KEYS)
def test_the_sample_stands_for_the_whole(key: str) -> None:
    trace = request_trace(key)
    prompts, answers = np.array(trace.sample).T
    for told, lengths in ((trace.prompt, prompts), (trace.answer, answers)):
        assert lengths.mean() == pytest.approx(told.mean, rel=0.02)
        assert np.quantile(lengths, [0.5, 0.9, 0.99]) == pytest.approx([told.p50, told.p90, told.p99], rel=0.075)
    assert np.corrcoef(prompts, answers)[0, 1] == pytest.approx(trace.correlation, abs=0.01)


def test_a_mean_is_not_what_three_quantiles_suggest() -> None:
    """Lines between the logarithms of p50, p90 and p99 give 183 tokens; the conversations have 211."""
    trace = request_trace("azure-conversation-2023")
    points = np.log([trace.answer.p50, trace.answer.p90, trace.answer.p99])
    knots = [
        points[0] - 0.5 * (points[1] - points[0]) / 0.4,
        *points,
        points[2] + 0.01 * (points[2] - points[1]) / 0.09,
    ]
    drawn = np.exp(np.interp(np.linspace(0, 1, 100_001), [0, 0.5, 0.9, 0.99, 1], knots))
    assert trace.answer.mean > 1.13 * drawn.mean()


def test_rounded_moments_make_a_gap_cv_of_three_out_of_poisson_arrivals() -> None:
    trace = request_trace("mooncake-conversation-2024")
    rate = trace.requests / trace.seconds
    moments = np.cumsum(np.random.default_rng(1).exponential(1 / rate, trace.requests))
    gaps = np.diff(np.floor(moments / trace.stamp_s) * trace.stamp_s)
    assert trace.gap_cv == pytest.approx(gaps.std() / gaps.mean(), rel=0.02)
    assert trace.counts[3] == pytest.approx(1.1, abs=0.01)  # requests at one stamp: a tenth more than Poisson's 1


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValueError, match="did you mean 'azure-code-2023'"):
        request_trace("azure-code")

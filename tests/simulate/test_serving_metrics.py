"""Metrics of a run against a run written by hand, and goodput counted against goodput by formula."""

import pytest

from threeloops.product_loop import serving
from threeloops.simulate.product_loop import serving_metrics, serving_run, traffic
from threeloops.simulate.product_loop.serving_policies import chunked_prefill
from threeloops.simulate.product_loop.serving_requests import Moments, Request
from threeloops.simulate.product_loop.serving_steps import AffineStep


def by_hand(*rows: tuple[float, float, list[float]]) -> serving_run.Run:
    """(arrival, admission, tokens) of each request."""
    found = []
    for place, (arrival, admitted, tokens) in enumerate(rows):
        one = Moments(place, Request(arrival, 10, len(tokens)))
        one.admitted_s, one.first_token_s, one.finished_s, one.token_s = admitted, tokens[0], tokens[-1], tokens
        found.append(one)
    return serving_run.Run(moments=found, steps=0, busy_s=0.0, end_s=max(one.finished_s for one in found))


RUN = by_hand((0.0, 0.5, [1.0, 2.0, 5.0]), (2.0, 2.0, [2.5]), (3.0, 7.0, [8.0, 8.5, 9.0, 9.5]))


def test_each_metric_is_what_the_tokens_say() -> None:
    found = serving_metrics.metrics(RUN)
    assert found["TTFT p50"] == 1.0  # of 0.5, 1, 5
    assert found["ITL mean"] == pytest.approx((1 + 3 + 0.5 * 3) / 5)  # five gaps, not three requests
    assert found["TPOT p50"] == (2 + 0.5) / 2  # of 2 and 0.5: a single token has none
    assert found["end to end p50"] == 5.0  # of 0.5, 5, 6.5
    assert serving_metrics.metrics(RUN)["TTFT p99"] == pytest.approx(1 + 0.98 * 4)


def test_stages_add_up_to_the_whole() -> None:
    for moments in RUN.moments:
        assert sum(serving_metrics.stages(moments).values()) == pytest.approx(moments.request_s)
    assert serving_metrics.stages(RUN.moments[2]) == {"waits": 4.0, "prefill": 1.0, "decode": 1.5}


@pytest.mark.parametrize("tpot_s", [0.011, 0.013, 0.02])
@pytest.mark.parametrize("ttft_s", [0.1, 0.3])
def test_goodput_counted_request_by_request_is_the_formulas(ttft_s: float, tpot_s: float) -> None:
    asked = traffic.drawn(traffic.AZURE_CONVERSATION_2023, requests=120, seed=4, requests_per_s=11)
    run = serving_run.run(
        asked,
        step_s=AffineStep(base_s=5e-3, per_prefill_token_s=32e-6),
        policy=chunked_prefill(slots=64, token_budget=512),
        each_token=True,
    )
    broken = serving_metrics.broken_promises(run, ttft_s=ttft_s, tpot_s=tpot_s)
    assert broken["late_first"] > 0
    predicted = serving.goodput_per_s(requests=120, seconds=run.end_s, **broken)
    assert run.goodput_per_s(ttft_s=ttft_s, tpot_s=tpot_s) == pytest.approx(predicted)
    assert predicted < 120 / run.end_s

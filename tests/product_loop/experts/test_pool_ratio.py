"""Two pools: nodes against a simulator of both, and against a published day."""

import pytest

from threeloops.facts.expert_fleets import served_day
from threeloops.product_loop.experts import pool_ratio
from threeloops.product_loop.experts.pool_ratio import NodeRates, PoolNodes
from threeloops.simulate.product_loop.serving_policies import continuous_batching
from threeloops.simulate.product_loop.serving_pools import Pool, split
from threeloops.simulate.product_loop.serving_requests import Request
from threeloops.simulate.product_loop.serving_steps import AffineStep

SLOTS, PREFILL_TOKEN_S, STEP_S = 16, 1e-4, 0.02
READ = AffineStep(base_s=0.0, per_prefill_token_s=PREFILL_TOKEN_S)
WRITE = AffineStep(base_s=STEP_S)
RATES = NodeRates(prefill_tokens_per_s=1 / PREFILL_TOKEN_S, decode_tokens_per_s=SLOTS / STEP_S)


def flow_per_s(prompt: int, answer: int, held: PoolNodes, requests: int = 1200) -> float:
    """Requests per second that two pools let through when all have come at once."""
    asked = [Request(0.0, prompt, answer) for _ in range(requests)]
    pools = {
        "prefill": Pool(step_s=READ, policy=continuous_batching(slots=1), servers=round(held.prefill)),
        "decode": Pool(step_s=WRITE, policy=continuous_batching(slots=SLOTS), servers=round(held.decode)),
    }
    return requests / split(asked, **pools, transfer_s=lambda _: 0.0).end_s


@pytest.mark.parametrize(
    ("prompt", "answer", "held"),
    [(2000, 101, PoolNodes(prefill=4, decode=4)), (8000, 101, PoolNodes(prefill=4, decode=4))],
)
def test_two_pools_serve_what_the_smaller_one_lets_through(prompt: int, answer: int, held: PoolNodes) -> None:
    flow = 10.0
    needed = pool_ratio.nodes_needed(
        RATES,
        input_tokens_per_s=flow * prompt,
        output_tokens_per_s=flow * (answer - 1),  # the prefill pool makes the first
    )
    told = flow * pool_ratio.split_capacity(held, needed=needed)
    assert flow_per_s(prompt, answer, held) == pytest.approx(told, rel=0.06)


def test_deepseeks_day_needs_the_nodes_that_it_held() -> None:
    """226.9 of 226.75: its rates are means over busy nodes, so this checks that they count the same tokens."""
    day = served_day("deepseek-day")
    needed = pool_ratio.nodes_needed(
        NodeRates(prefill_tokens_per_s=day.prefill_tokens_per_s, decode_tokens_per_s=day.decode_tokens_per_s),
        input_tokens_per_s=day.input_tokens / day.seconds,
        output_tokens_per_s=day.output_tokens / day.seconds,
    )
    assert needed.total == pytest.approx(day.mean_nodes, rel=0.002)
    assert needed.prefill_share == pytest.approx(0.42, abs=0.005)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="decode"):
        PoolNodes(prefill=1, decode=0)
    with pytest.raises(ValueError, match="input_tokens_per_s"):
        pool_ratio.nodes_needed(RATES, input_tokens_per_s=0, output_tokens_per_s=1)

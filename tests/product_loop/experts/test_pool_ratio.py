"""Two pools: nodes against a simulator of both, and against a published day."""

import pytest

from threeloops.facts.expert_fleets import served_day
from threeloops.product_loop.experts import pool_ratio
from threeloops.product_loop.experts.pool_ratio import NodeRates, PoolNodes
from threeloops.simulate.product_loop.experts.pool_flow import flow_per_s

SLOTS, PREFILL_TOKEN_S, STEP_S = 16, 1e-4, 0.02
RATES = NodeRates(prefill_tokens_per_s=1 / PREFILL_TOKEN_S, decode_tokens_per_s=SLOTS / STEP_S)


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
    servers = {"prefill_servers": round(held.prefill), "decode_servers": round(held.decode)}
    counted = flow_per_s(prompt, answer, prefill_token_s=PREFILL_TOKEN_S, step_s=STEP_S, slots=SLOTS, **servers)
    assert counted == pytest.approx(told, rel=0.06)


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

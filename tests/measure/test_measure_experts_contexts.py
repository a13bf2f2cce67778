"""Experts and contexts over real gloo processes: equal to one process, and as many bytes as predicted."""

import sys

import pytest

from threeloops.training_loop.network import traffic
from threeloops.training_loop.parallelism import context_parallel
from threeloops.training_loop.parallelism.expert_load import imbalance

pytest.importorskip("torch")

from threeloops.measure.processes import wire
from threeloops.measure.training_loop import context_parallel as real_contexts
from threeloops.measure.training_loop import expert_exchange, expert_training

LAYER = expert_exchange.Layer(num_experts=12, top_k=2, hidden=32, wide=16, tokens_per_rank=400, skew=0.0)
HEADS = real_contexts.Heads(sequence=96, num_heads=8, num_kv_heads=4, head_dim=8)


def test_experts_on_four_ranks_are_those_of_one_process():
    done = expert_exchange.exchanged(LAYER, ranks=4)
    assert max(done.output_difference, done.gradient_difference) < 1e-5
    assert sum(done.arrived) == 4 * 400 * 2
    predicted = traffic.expert_parallel_traffic(
        tokens_per_rank=400, hidden=32, top_k=2, num_moe_layers=1, ep=4, bytes_per_element=4
    ).forward_bytes
    # 3,200 choices, each elsewhere with probability 3/4: standard deviation sqrt(0.75 * 0.25 / 3,200) / 0.75 = 1.0 %;
    # four of them
    assert sum(done.sent_forward_bytes) / 4 == pytest.approx(predicted, rel=0.04)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bytes on the wire are in Linux's TCP_INFO")
def test_gloo_sends_what_is_handed_over():
    skewed = expert_exchange.Layer(num_experts=12, top_k=2, hidden=256, wide=8, tokens_per_rank=200, skew=1.0)
    handed = expert_exchange.exchanged(skewed, ranks=4).sent_forward_bytes
    forward, both = wire.step_traffic(
        (expert_exchange.prepared_exchange, (skewed, False)),
        (expert_exchange.prepared_exchange, (skewed, True)),
        ranks=4,
    )
    for rank in range(4):
        assert handed[rank] <= forward.sent_bytes_per_rank[rank] < 1.02 * handed[rank] + 2000  # message headers
        assert both.sent_bytes_per_rank[rank] == pytest.approx(2 * forward.sent_bytes_per_rank[rank], rel=0.01)


def test_attention_over_four_ranks_is_that_of_one_process():
    for way, done in real_contexts.spread(HEADS, ways=real_contexts.WAYS, ranks=4).items():
        assert max(done.output_difference, done.gradient_difference) < 1e-5, way
        if way == "ulysses":
            predicted = context_parallel.ulysses_traffic(
                tokens_per_rank=24, query_dim=64, kv_dim=32, cp=4, bytes_per_element=4
            )
        else:
            predicted = context_parallel.ring_traffic(
                tokens_per_rank=24, kv_dim=32, cp=4, bytes_per_element=4, bytes_per_gradient=4
            )
        assert done.forward_bytes == (predicted.forward_bytes,) * 4, way
        assert done.backward_bytes == (predicted.backward_bytes,) * 4, way


def test_balancing_balances_and_training_learns():
    plain, auxiliary = (
        expert_training.trained(way, num_experts=12, top_k=2, steps=120, strength=strength, seed=0)
        for way, strength in (("none", 0), ("auxiliary", 1))
    )
    assert imbalance(plain.mean_loads(40)) > 1.5 > 1.1 > imbalance(auxiliary.mean_loads(40))
    for run in (plain, auxiliary):
        assert sum(run.losses[-10:]) < 0.5 * sum(run.losses[:10])
    assert plain.loads[0] == auxiliary.loads[0]  # the same start, the same data


def test_refusals():
    with pytest.raises(ValueError, match="ranks=5 must divide num_experts=12"):
        expert_exchange.exchanged(LAYER, ranks=5)
    with pytest.raises(ValueError, match="ranks=8 must divide num_kv_heads=4"):
        real_contexts.spread(HEADS, ways=("ulysses",), ranks=8)
    with pytest.raises(ValueError, match="balancing='loss'"):
        expert_training.trained("loss", num_experts=4, top_k=1, steps=1, strength=0, seed=0)

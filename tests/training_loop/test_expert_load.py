"""Loads of experts: formulas against a router that sends tokens one by one, and against a layer that real processes
share.
"""

import numpy as np
import pytest

from threeloops.simulate.training_loop.expert_routing import (
    balanced_by_bias,
    co_located,
    in_order,
    router,
    serve,
    visited,
)
from threeloops.training_loop.parallelism.expert_load import (
    auxiliary_loss,
    balanced_spread,
    busiest_rank_s,
    dropped_share,
    expert_capacity,
    imbalance,
    visited_groups,
)


def test_switch_transformer_example():
    # Fedus et al., 2021, figure 3: 6 tokens, 3 experts: 2 places each at a factor of 1, 3 at 1.5
    assert [expert_capacity(tokens=6, top_k=1, num_experts=3, capacity_factor=factor) for factor in (1.0, 1.5)] == [
        2,
        3,
    ]


@pytest.mark.parametrize("skew", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("capacity_factor", [0.7, 1.0, 1.25, 3.0])
def test_what_overflows_is_what_is_turned_away(skew, capacity_factor):
    chooser = router(num_experts=12, top_k=2, skew=skew, seed=3)
    choices = chooser.choices(np.random.default_rng(4), tokens=600)
    capacity = expert_capacity(tokens=600, top_k=2, num_experts=12, capacity_factor=capacity_factor)
    served = serve(choices, num_experts=12, capacity=capacity)
    assert sum(served.loads) == 1200
    assert served.dropped / 1200 == pytest.approx(dropped_share(served.loads, capacity=capacity))
    assert served.empty_places == capacity * 12 - 1200 + served.dropped
    assert max(served.kept) <= capacity


def test_enough_capacity_for_the_busiest_drops_nothing():
    choices = router(num_experts=7, top_k=3, skew=1.0, seed=0).choices(np.random.default_rng(1), tokens=500)
    loads = serve(choices, num_experts=7, capacity=None).loads
    needed = expert_capacity(tokens=500, top_k=3, num_experts=7, capacity_factor=imbalance(loads))
    assert serve(choices, num_experts=7, capacity=needed).dropped == 0
    assert serve(choices, num_experts=7, capacity=max(loads) - 1).dropped == 1


@pytest.mark.parametrize(("experts", "top_k", "tokens"), [(8, 2, 400), (64, 8, 500), (20, 1, 1000)])
def test_even_routers_scatter_as_predicted(experts, top_k, tokens):
    chooser, generator = router(num_experts=experts, top_k=top_k, skew=0, seed=0), np.random.default_rng(5)
    loads = np.array(
        [serve(chooser.choices(generator, tokens=tokens), num_experts=experts, capacity=None).loads for _ in range(200)]
    )
    # 200 batches of at least 8 loads: the standard deviation is known to better than 1/sqrt(2 * 1400) = 1.9 %; four
    # of them
    assert loads.std() / loads.mean() == pytest.approx(
        balanced_spread(tokens=tokens, top_k=top_k, num_experts=experts), rel=0.076
    )


@pytest.mark.parametrize(("experts", "top_k", "groups"), [(12, 2, 4), (24, 8, 6), (10, 3, 10)])
def test_tokens_visit_as_many_groups_as_predicted(experts, top_k, groups):
    choices = router(num_experts=experts, top_k=top_k, skew=0, seed=0).choices(np.random.default_rng(6), tokens=4000)
    # a count between 1 and 8 of 4,000 tokens: its mean is known to about 1/sqrt(4000) = 1.6 %
    assert visited(choices, num_experts=experts, groups=groups) == pytest.approx(
        visited_groups(num_experts=experts, top_k=top_k, groups=groups), rel=0.016
    )


def test_a_bias_evens_out_what_popularity_does_not():
    chooser = router(num_experts=12, top_k=2, skew=1.0, seed=2)
    history, bias = balanced_by_bias(chooser, np.random.default_rng(7), tokens=600, steps=300, update=0.02)
    first, last = (np.mean(part, axis=0) for part in (history[:20], history[-100:]))
    assert imbalance(first) > 2
    assert imbalance(last) < 1.1
    assert np.corrcoef(bias, chooser.popularity)[0, 1] < -0.95  # it takes off what was too much


def test_co_location_moves_experts_and_loses_none():
    loads = [900, 700, 400, 300, 200, 100, 60, 40]
    assert sum(co_located(loads, ranks=4)) == sum(in_order(loads, ranks=4)) == sum(loads)
    assert imbalance(co_located(loads, ranks=4)) < imbalance(in_order(loads, ranks=4))
    assert max(co_located(loads, ranks=4)) >= max(loads)  # a rank never has less than its heaviest expert


@pytest.mark.parametrize(("top_k", "ranks", "matrices"), [(2, 4, [(5, 3), (5, 3), (3, 5)]), (3, 6, [(4, 7), (7, 4)])])
def test_a_layer_waits_for_the_rank_that_is_sent_most(top_k, ranks, matrices):
    choices = router(num_experts=12, top_k=top_k, skew=1.0, seed=4).choices(np.random.default_rng(8), tokens=90)
    flops = [0] * ranks
    for expert in choices.flat:
        flops[expert // (12 // ranks)] += sum(2 for rows, columns in matrices for _ in range(rows * columns))
    sent = [np.count_nonzero(choices // (12 // ranks) == rank) for rank in range(ranks)]
    assert busiest_rank_s(
        tokens=90,
        top_k=top_k,
        busiest_share=max(sent) / sum(sent),
        expert_parameters=sum(rows * columns for rows, columns in matrices),
        flops_per_s=1e4,
    ) == pytest.approx(max(flops) / 1e4)


def test_the_auxiliary_loss_is_one_for_even_loads_and_more_for_others():
    assert auxiliary_loss(loads=[5, 5, 5, 5], mean_probabilities=[0.7, 0.1, 0.1, 0.1]) == pytest.approx(1)
    assert auxiliary_loss(loads=[20, 0, 0, 0], mean_probabilities=[1, 0, 0, 0]) == 4  # all to one of four experts


def test_refusals():
    with pytest.raises(ValueError, match="top_k=9 must not exceed num_experts=8"):
        expert_capacity(tokens=10, top_k=9, num_experts=8, capacity_factor=1)
    with pytest.raises(ValueError, match="busiest_share=35 must lie between 0 and 1"):
        busiest_rank_s(tokens=10, top_k=2, busiest_share=35, expert_parameters=6, flops_per_s=1)
    with pytest.raises(ValueError, match="at least one token"):
        imbalance([0, 0])
    with pytest.raises(ValueError, match="groups=5 must divide num_experts=8"):
        visited_groups(num_experts=8, top_k=2, groups=5)
    with pytest.raises(ValueError, match="1 mean_probabilities and 2 loads"):
        auxiliary_loss(loads=[1, 2], mean_probabilities=[1.0])

"""Tensor parallelism: formulas against a block that is really cut over simulated ranks, and against real DTensor
ranks.
"""

import numpy as np
import pytest

from threeloops.models.parameter_buckets import layer_buckets
from threeloops.simulate.training_loop.traffic import tensor_parallel_block
from threeloops.training_loop.network.collectives import collective_time
from threeloops.training_loop.network.traffic import tensor_parallel_traffic
from threeloops.training_loop.parallelism import tensor_parallel

LLAMA = {"hidden": 8192, "num_heads": 64, "num_kv_heads": 8, "head_dim": 128}


@pytest.mark.parametrize("tp", [2, 3, 6])
def test_the_intensity_is_what_a_cut_block_calculates_over_what_it_sends(tp):
    tokens, hidden, wide, bytes_per_element = 6, 5, 12, 8
    generator = np.random.default_rng(tp)
    x, gradient = generator.normal(size=(2, tokens, hidden))
    done = tensor_parallel_block(
        x, generator.normal(size=(hidden, wide)), generator.normal(size=(wide, hidden)), gradient, tp=tp
    )
    # six products of a rank's share: two forward, and for each a gradient of its input and one of its weights; an MLP
    # is half a layer's exchanges
    flops = 6 * 2 * tokens * hidden * (wide // tp)
    intensity = tensor_parallel.flops_per_sent_byte(
        layer_parameters=2 * 2 * hidden * wide, hidden=hidden, tp=tp, bytes_per_element=bytes_per_element
    )
    assert intensity == pytest.approx(flops / done.sent_bytes[0])


def test_a_layer_takes_equally_long_on_both_sides_of_its_ridge():
    """Where intensity equals the ridge point of the link, calculating and exchanging take equally long."""
    parameters, hidden, tp, rate = 12 * 4096**2, 4096, 5, 450e9
    intensity = tensor_parallel.flops_per_sent_byte(
        layer_parameters=parameters, hidden=hidden, tp=tp, bytes_per_element=2
    )
    ring = collective_time(
        op="all_reduce", algorithm="ring", size_bytes=1000 * hidden * 2, ranks=tp, alpha_s=0, bytes_per_s_one_way=rate
    )
    layer = tensor_parallel.layer_time(
        layer_parameters=parameters, tokens=1000, tp=tp, flops_per_s=intensity * rate, all_reduce_s=ring.total_s
    )
    assert layer.compute_s == pytest.approx(layer.exchange_s)
    assert layer.compute_share == pytest.approx(0.5)


def test_the_exchange_is_the_traffic_over_the_rate():
    ring = collective_time(
        op="all_reduce", algorithm="ring", size_bytes=4096 * 8192 * 2, ranks=4, alpha_s=0, bytes_per_s_one_way=450e9
    )
    layer = tensor_parallel.layer_time(
        layer_parameters=855638016, tokens=4096, tp=4, flops_per_s=800e12, all_reduce_s=ring.total_s
    )
    sent = tensor_parallel_traffic(
        tokens=4096, hidden=8192, num_layers=1, tp=4, bytes_per_element=2, sequence_parallel=False, regather_input=False
    ).total_bytes
    assert layer.exchange_s == pytest.approx(sent / 450e9)


def test_one_rank_waits_for_nobody_and_twice_the_ranks_calculate_half_as_long():
    times = [
        tensor_parallel.layer_time(layer_parameters=1e8, tokens=100, tp=tp, flops_per_s=1e14, all_reduce_s=1e-3)
        for tp in (1, 2, 4)
    ]
    assert [layer.exchange_s for layer in times] == [0, 4e-3, 4e-3]
    assert times[0].compute_s == 2 * times[1].compute_s == 4 * times[2].compute_s
    # 6 * 1e8 * 100 / 1e14
    assert times[0].total_s == pytest.approx(6e-4)


def test_heads_are_dealt_out_until_there_is_one_kv_head_each():
    def dealt(tp):
        """Count columns head by head: a rank's query heads, the KV heads that they read, and the output's rows."""
        per_group = LLAMA["num_heads"] // LLAMA["num_kv_heads"]
        mine = range(LLAMA["num_heads"] // tp)  # rank 0
        heads = 2 * len(mine) + 2 * len({head // per_group for head in mine})
        return heads * LLAMA["head_dim"] * LLAMA["hidden"]

    for tp in (1, 2, 4, 8, 16, 32, 64):
        assert tensor_parallel.attention_parameters_per_rank(**LLAMA, tp=tp) == dealt(tp)


def test_all_heads_are_the_whole_attention():
    from threeloops.models.catalogue import model

    layer = model("llama-3-70b").groups[0][0]
    whole = tensor_parallel.attention_parameters_per_rank(**LLAMA, tp=1)
    assert (
        whole + layer.mlp.num_matrices * 8192 * layer.mlp.intermediate
        == layer_buckets(layer, hidden=8192).split_matrices
    )


@pytest.mark.parametrize(
    ("heads", "kv_heads", "domain"), [(42, 14, 8), (96, 8, 72), (60, 10, 4), (28, 4, 1), (9, 15, 8)]
)
def test_no_larger_group_can_be_dealt_equal_heads(heads, kv_heads, domain):
    def dealt_evenly(tp):
        hands = [(len(range(rank, heads, tp)), len(range(rank, kv_heads, tp))) for rank in range(tp)]
        return len(set(hands)) == 1 and min(hands[0]) > 0

    assert tensor_parallel.largest_tensor_group(num_heads=heads, num_kv_heads=kv_heads, domain_gpus=domain) == max(
        tp for tp in range(1, domain + 1) if dealt_evenly(tp)
    )


@pytest.mark.parametrize("tp", [1, 3, 4])
def test_a_bias_that_every_rank_has_added_is_taken_off(tp):
    generator, bias = np.random.default_rng(tp), -0.7
    x, weights = generator.normal(size=(2, 12))
    reduced = sum(part @ column + bias for part, column in zip(np.split(x, tp), np.split(weights, tp), strict=True))
    assert tensor_parallel.row_parallel_output(all_reduced=reduced, bias=bias, tp=tp) == pytest.approx(
        x @ weights + bias
    )


def test_refusals():
    with pytest.raises(ValueError, match="domain_gpus=0 must be a whole number of at least 1"):
        tensor_parallel.largest_tensor_group(num_heads=8, num_kv_heads=4, domain_gpus=0)
    with pytest.raises(ValueError, match="tp=0 must be a whole number of at least 1"):
        tensor_parallel.row_parallel_output(all_reduced=1.0, bias=0.5, tp=0)
    with pytest.raises(ValueError, match="tp=1 must be a whole number of at least 2"):
        tensor_parallel.flops_per_sent_byte(layer_parameters=1e6, hidden=64, tp=1, bytes_per_element=2)
    with pytest.raises(ValueError, match="tp=7 must divide num_heads=64"):
        tensor_parallel.attention_parameters_per_rank(**LLAMA, tp=7)
    with pytest.raises(ValueError, match="tp=4 must divide num_kv_heads=6 or be a multiple of it"):
        tensor_parallel.attention_parameters_per_rank(hidden=96, num_heads=12, num_kv_heads=6, head_dim=8, tp=4)
    with pytest.raises(ValueError, match="layer_parameters=0 must be greater than 0"):
        tensor_parallel.layer_time(layer_parameters=0, tokens=1, tp=1, flops_per_s=1, all_reduce_s=0)

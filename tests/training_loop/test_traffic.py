"""Bytes per training step: against the ZeRO paper, and against training steps that are really split over simulated
ranks.
"""

import numpy as np
import pytest

from threeloops.simulate.training_loop.network import cuts
from threeloops.simulate.training_loop.traffic import expert_exchange, tensor_parallel_block, zero_step
from threeloops.training_loop.network.traffic import (
    data_parallel_traffic,
    expert_parallel_traffic,
    tensor_parallel_traffic,
)

BF16 = {"bytes_per_gradient": 2, "bytes_per_parameter": 2}


def test_zero_sends_2p_2p_2p_3p_among_many_ranks():
    # Rajbhandari et al., 2019, section 7: 2P elements for stages 0 to 2, 3P for stage 3, with (n-1)/n taken as 1
    elements = [
        data_parallel_traffic(zero_stage=stage, num_parameters=1e9, dp=10**6, **BF16).total_bytes / 2e9
        for stage in (0, 1, 2, 3)
    ]
    assert elements == [pytest.approx(x, rel=1e-5) for x in (2, 2, 2, 3)]


def test_seven_billion_parameters_on_eight_ranks():
    # 14 GB of bf16 gradients, 2 * 7/8 * 14 GB = 24.5 GB
    assert data_parallel_traffic(zero_stage=0, num_parameters=7e9, dp=8, **BF16).total_bytes == pytest.approx(24.5e9)


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("micro_batches", [1, 3])
def test_zero_steps_send_what_is_predicted_and_train_alike(stage, ranks, micro_batches):
    generator = np.random.default_rng(stage + 10 * ranks)
    parameters, inputs = generator.normal(size=12 * ranks), generator.normal(size=(ranks, micro_batches))
    done = zero_step(parameters, inputs.tolist(), stage=stage, learning_rate=0.1)
    # SGD by hand: the gradient of the mean over ranks is parameters * sum(x^2) / ranks
    expected = parameters - 0.1 / ranks * (inputs**2).sum() * parameters
    trained = np.concatenate(done.outputs) if stage == 3 else done.outputs[-1]
    assert trained == pytest.approx(expected)
    predicted = data_parallel_traffic(
        zero_stage=stage,
        num_parameters=len(parameters),
        dp=ranks,
        bytes_per_gradient=8,
        bytes_per_parameter=8,
        micro_batches=micro_batches,
    )
    assert done.sent_bytes == (pytest.approx(predicted.total_bytes),) * ranks


def test_accumulation_is_free_below_stage_2_only():
    def total(stage, micro_batches):
        return data_parallel_traffic(
            zero_stage=stage, num_parameters=1e9, dp=5, micro_batches=micro_batches, **BF16
        ).total_bytes

    assert [total(stage, 4) / total(stage, 1) for stage in (0, 1, 2, 3)] == [1, 1, pytest.approx(2.5), pytest.approx(4)]


def test_keeping_parameters_after_the_forward_pass_saves_a_gather():
    kept = data_parallel_traffic(zero_stage=3, num_parameters=1e9, dp=5, reshard_after_forward=False, **BF16)
    dropped = data_parallel_traffic(zero_stage=3, num_parameters=1e9, dp=5, **BF16)
    assert (dropped.parameter_bytes, dropped.gradient_bytes) == (2 * kept.parameter_bytes, kept.gradient_bytes)


@pytest.mark.parametrize("tp", [1, 2, 3, 6])
def test_a_tensor_parallel_block_sends_an_all_reduce_each_way(tp):
    generator = np.random.default_rng(tp)
    x, gradient = generator.normal(size=(2, 6, 5))  # 6 tokens of width 5: 30 elements, which 1, 2, 3 and 6 divide
    up, down = generator.normal(size=(5, 12)), generator.normal(size=(12, 5))
    done = tensor_parallel_block(x, up, down, gradient, tp=tp)
    inner = x @ up
    assert done.outputs[0] == pytest.approx(np.maximum(inner, 0) @ down)
    assert done.outputs[1] == pytest.approx((gradient @ down.T * (inner > 0)) @ up.T)
    layer = tensor_parallel_traffic(
        tokens=6, hidden=5, num_layers=1, tp=tp, bytes_per_element=8, sequence_parallel=False, regather_input=False
    )
    assert done.sent_bytes == (pytest.approx(layer.total_bytes / 2),) * tp  # a layer has two such blocks


def test_sequence_parallelism_sends_the_same_until_inputs_are_gathered_again():
    inputs = {"tokens": 4096, "hidden": 8192, "num_layers": 3, "tp": 5, "bytes_per_element": 2}
    plain, kept, regathered = (
        tensor_parallel_traffic(**inputs, sequence_parallel=sequence, regather_input=regather)
        for sequence, regather in ((False, False), (True, False), (True, True))
    )
    assert (kept.forward_bytes, kept.backward_bytes, kept.total_bytes) == (
        plain.forward_bytes,
        plain.backward_bytes,
        plain.total_bytes,
    )
    assert regathered.total_bytes / plain.total_bytes == pytest.approx(10 / 8)  # eight halves, and two more gathers


def test_tensor_parallel_traffic_of_one_rank_is_none():
    assert (
        tensor_parallel_traffic(
            tokens=9, hidden=9, num_layers=9, tp=1, bytes_per_element=2, sequence_parallel=True, regather_input=True
        ).total_bytes
        == 0
    )


@pytest.mark.parametrize(("ep", "experts_per_rank", "top_k"), [(1, 4, 2), (3, 2, 2), (5, 1, 3), (4, 3, 1)])
def test_balanced_experts_exchange_what_is_predicted(ep, experts_per_rank, top_k):
    experts, hidden = ep * experts_per_rank, 6
    tokens = [vectors.astype(float) for vectors in np.random.default_rng(ep).integers(-9, 9, (ep, 2 * experts, hidden))]
    # Token t takes experts t, t + 1, …: over any multiple of `experts` tokens each expert is chosen equally often.
    choices = [(np.arange(2 * experts)[:, None] + np.arange(top_k)) % experts] * ep
    done = expert_exchange(tokens, choices, experts_per_rank=experts_per_rank)
    for vectors, choice, output in zip(tokens, choices, done.outputs, strict=True):
        assert np.array_equal(output, vectors * (choice + 1).sum(axis=1)[:, None])
    layer = expert_parallel_traffic(
        tokens_per_rank=2 * experts, hidden=hidden, top_k=top_k, num_moe_layers=1, ep=ep, bytes_per_element=8
    )
    assert done.sent_bytes == (pytest.approx(layer.forward_bytes),) * ep


def test_random_routing_sends_the_predicted_bytes_on_average():
    generator = np.random.default_rng(7)
    ep, experts_per_rank, top_k, tokens_per_rank = 5, 3, 2, 2000
    tokens = [np.ones((tokens_per_rank, 1))] * ep
    choices = [generator.random((tokens_per_rank, ep * experts_per_rank)).argsort(axis=1)[:, :top_k] for _ in range(ep)]
    done = expert_exchange(tokens, choices, experts_per_rank=experts_per_rank)
    layer = expert_parallel_traffic(
        tokens_per_rank=tokens_per_rank, hidden=1, top_k=top_k, num_moe_layers=1, ep=ep, bytes_per_element=8
    )
    # 20,000 choices, each elsewhere with probability 0.8: standard deviation sqrt(0.8 * 0.2 / 20,000) = 0.28 % of 1,
    # 0.35 % of 0.8; four of them
    assert sum(done.sent_bytes) / ep == pytest.approx(layer.forward_bytes, rel=0.014)


def test_backward_doubles_the_exchange():
    moe = expert_parallel_traffic(tokens_per_rank=100, hidden=8, top_k=2, num_moe_layers=5, ep=4, bytes_per_element=2)
    assert moe.total_bytes / moe.exchange_bytes == 4 * 5


@pytest.mark.parametrize("double", ["num_parameters", "elements"])
def test_twice_the_bytes_twice_the_traffic(double):
    once = data_parallel_traffic(zero_stage=3, num_parameters=1e9, dp=7, **BF16)
    change = (
        {"num_parameters": 2e9, **BF16}
        if double == "num_parameters"
        else {"num_parameters": 1e9, "bytes_per_gradient": 4, "bytes_per_parameter": 4}
    )
    assert data_parallel_traffic(zero_stage=3, dp=7, **change).total_bytes == pytest.approx(2 * once.total_bytes)


def test_pieces_cover_a_vector():
    assert [piece.stop - piece.start for piece in cuts(11, 4)] == [2, 3, 3, 3]


def test_refusals():
    with pytest.raises(ValueError, match=r"stage=4 must be 0 \(plain data parallelism\), 1, 2 or 3"):
        data_parallel_traffic(zero_stage=4, num_parameters=1e9, dp=8, **BF16)
    with pytest.raises(ValueError, match="reshard_after_forward=False needs zero_stage=3, not zero_stage=2"):
        data_parallel_traffic(zero_stage=2, num_parameters=1e9, dp=8, reshard_after_forward=False, **BF16)
    with pytest.raises(ValueError, match="dp=0 must be a whole number of at least 1"):
        data_parallel_traffic(zero_stage=0, num_parameters=1e9, dp=0, **BF16)
    with pytest.raises(ValueError, match="regather_input=True needs sequence_parallel=True"):
        tensor_parallel_traffic(
            tokens=9, hidden=9, num_layers=9, tp=3, bytes_per_element=2, sequence_parallel=False, regather_input=True
        )
    with pytest.raises(ValueError, match="top_k=0 must be a whole number"):
        expert_parallel_traffic(tokens_per_rank=100, hidden=8, top_k=0, num_moe_layers=5, ep=4, bytes_per_element=2)

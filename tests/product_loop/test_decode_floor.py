"""The floor of a decode step, held against a step that is played out, and at its limits."""

import math
import re

import pytest

from threeloops.facts import hardware
from threeloops.models import catalogue, parameters, transformer
from threeloops.models.forward_step import MATRIX, ForwardStep
from threeloops.operations.expert_layers import experts_touched
from threeloops.product_loop import decode_floor, kv_cache, serving
from threeloops.simulate.product_loop import decode_clock

RATES = {"bytes_per_s": 50.0, "flops_per_s": 7000.0}


@pytest.mark.parametrize("cache", [0.0, 1.5, 2.5])
def test_the_first_compute_bound_batch_is_the_formulas(cache: float) -> None:
    weights, flops = [400.0, 350.0, 900.0], 600.0
    formula = decode_floor.compute_bound_batch(
        weights_bytes=sum(weights),
        cache_bytes_per_request=cache,
        flops_per_token=3 * flops,
        memory_bytes_per_s=50,
        peak_flops_per_s=7000,
    )
    found = decode_clock.first_compute_bound(2000, weights=weights, cache=cache, flops=flops, **RATES)
    assert found == math.ceil(formula)


@pytest.mark.parametrize("requests", [1, 30, 139, 141, 600])  # 7000 / 50 = 140: from there the matmuls compute longer
def test_a_step_played_layer_by_layer_is_the_formulas(requests: int) -> None:
    layers = {"weights": [400.0, 400.0, 400.0], "cache": 2.5, "flops": 400.0}
    told = serving.decode_step_s(
        weights_bytes=1200,
        cache_bytes=requests * 7.5,
        batch=requests,
        flops_per_token=1200,
        memory_bytes_per_s=50,
        peak_flops_per_s=7000,
    )
    assert told == pytest.approx(decode_clock.step_s(requests=requests, **layers, **RATES))


@pytest.mark.parametrize(("batch", "context"), [(1, 2000), (64, 2000), (400, 400), (1024, 400), (1024, 2000)])
def test_a_step_is_the_sum_of_its_kernels(batch: int, context: int) -> None:
    """Llama 3 8B on an H100, kernel by kernel; the formula leaves out norms, rotations, activations and residuals."""
    model, part = catalogue.model("llama-3-8b"), hardware.part("h100-sxm5")
    rates = {"memory_bytes_per_s": part["memory_bytes_per_s"]}
    step = ForwardStep(
        phase="decode",
        batch=batch,
        sequence=context,
        causal="exact",
        fused_attention=True,
        logits="last",
        bytes_per_element=2,
    )
    ops = [op for op in transformer.model_ops(model, step) if op.unit == MATRIX]
    peak = part.peak_flops_per_s("bf16")
    kernels = transformer.model_time(ops, matrix_flops_per_s=peak, vector_flops_per_s=1, **rates)
    weights = 2 * (parameters.model_parameters(model).total - parameters.model_parameters(model).embedding)
    told = serving.decode_step_s(
        weights_bytes=weights,
        cache_bytes=batch * kv_cache.request_bytes(model, tokens=context, bytes_per_element=2),
        batch=batch,
        flops_per_token=weights,
        peak_flops_per_s=peak,
        **rates,
    )
    assert told == pytest.approx(kernels.lower_bound_s, rel=0.04)


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_ranks_that_wait_for_each_other_take_what_the_formula_says(ranks: int) -> None:
    layers, caches = [300.0, 500.0, 400.0], [60.0, 60.0, 60.0]
    played = decode_clock.ranks_step_s(layers=layers, caches=caches, ranks=ranks, bytes_per_s=50, all_reduce_s=0.3)
    assert played == pytest.approx(
        decode_floor.tensor_parallel_step_s(
            weights_bytes=sum(layers),
            cache_bytes=sum(caches),
            tp=ranks,
            memory_bytes_per_s=50,
            all_reduces=6,
            all_reduce_s=0.3,
        )
    )


def test_experts_that_tokens_choose_at_random_are_as_many_as_expected() -> None:
    for tokens in (1, 8, 64):
        counted = decode_clock.mean_touched(num_experts=64, top_k=6, tokens=tokens, trials=400, seed=3)
        expected = experts_touched(num_experts=64, top_k=6, tokens=tokens, routing="uniform")
        assert counted == pytest.approx(expected, rel=0.02)


def test_an_untouched_expert_is_not_read() -> None:
    numbers = {"always_bytes": 10.0, "num_layers": 3, "expert_bytes": 4.0}
    assert decode_floor.mixture_read_bytes(**numbers, experts_touched=0) == 10
    assert decode_floor.mixture_read_bytes(**numbers, experts_touched=5) == 70
    with pytest.raises(ValueError, match=re.escape("num_layers=0")):
        decode_floor.mixture_read_bytes(**numbers | {"num_layers": 0}, experts_touched=1)

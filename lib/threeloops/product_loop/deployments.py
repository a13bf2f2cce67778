"""Deployments: a catalogued model on a catalogued GPU as a replica that `capacity` counts with.

>>> from threeloops.facts import hardware
>>> from threeloops.models.catalogue import model
>>> gpu = replica(model("llama-3-8b"), hardware.part("h100-sxm5"), num_gpus=1, other_bytes=3e9, prefill_utilisation=0.5)
>>> f"weights {gpu.weights_bytes / 1e9:.1f} GB, {gpu.free_bytes / 1e9:.1f} GB for caches"
'weights 16.1 GB, 59.6 GB for caches'
"""

from threeloops import checks
from threeloops.facts.hardware import Part
from threeloops.models import parameters
from threeloops.models.architecture import Model
from threeloops.product_loop import kv_budget, kv_cache
from threeloops.product_loop.capacity import Replica
from threeloops.product_loop.serving import decode_step_s

MEMORY_UTILISATION = 0.92  # vLLM's default share of the memory, November 2026
FLOPS_PER_PARAMETER = 2  # a multiplication and an addition, forward


def replica(
    model: Model, part: Part, *, num_gpus: int, other_bytes: float, prefill_utilisation: float, dtype: str = "bf16"
) -> Replica:
    """One copy of a model on so many equal GPUs, weights and caches in one format.

    Units:    other_bytes: of one GPU, beside weights and caches: activations, CUDA context, graphs
    Assumes:  weights, caches and work split evenly, and GPUs that exchange in no time; vLLM's default share of memory
    Raises:   ValueError if the weights leave no room for a cache
    """
    checks.count(num_gpus=num_gpus)
    total = parameters.model_parameters(model).total
    weights = parameters.weights_bytes(num_parameters=total, dtype=dtype)
    free = kv_budget.budget_bytes(
        memory_bytes=num_gpus * part["usable_bytes"],
        memory_utilisation=MEMORY_UTILISATION,
        weights_bytes=weights,
        activation_peak_bytes=num_gpus * other_bytes,
        outside_bytes=0,
        graph_bytes=0,
    )
    return Replica(
        num_gpus=num_gpus,
        weights_bytes=weights,
        free_bytes=free,
        cache_bytes_per_token=kv_cache.bytes_per_token(model, bytes_per_element=weights / total),
        flops_per_token=FLOPS_PER_PARAMETER * parameters.model_parameters(model).active,
        memory_bytes_per_s=num_gpus * part["memory_bytes_per_s"],
        peak_flops_per_s=num_gpus * part.peak_flops_per_s(dtype),
        prefill_utilisation=prefill_utilisation,
    )


def trade_off(host: Replica, *, context: int) -> list[tuple[float, float]]:
    """(tokens/s for one user, tokens/s per GPU) of every batch that fits, from the fullest to a single request.

    Formula:  1 / step and batch / step / GPUs, the step by serving.decode_step_s
    Assumes:  equal contexts; decoding only; bytes and FLOP, nothing else
    Source:   by definition: a token a step for each request
    Counted:  tests.product_loop.test_capacity.test_the_trade_off_is_a_batch_that_is_walked
    """
    checks.count(context=context)
    most = int(host.free_bytes // (context * host.cache_bytes_per_token))
    points = []
    for batch in range(most, 0, -1):
        step_s = decode_step_s(
            weights_bytes=host.weights_bytes,
            cache_bytes=batch * context * host.cache_bytes_per_token,
            batch=batch,
            flops_per_token=host.flops_per_token,
            memory_bytes_per_s=host.memory_bytes_per_s,
            peak_flops_per_s=host.peak_flops_per_s,
        )
        points.append((1 / step_s, batch / step_s / host.num_gpus))
    return points

"""Partial recompute: between selective and full, chosen operations of every layer run again in the backward pass, and
the tensors that they made are not kept.

>>> DEEPSEEK_V3.operations[:2]
('attention_norm', 'latent_norm')

Source: DeepSeek-AI, DeepSeek-V3 Technical Report, arXiv:2412.19437, sections 3.2.3 (norms, up-projections) and 3.3.3
        (the gate's product)
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.models.architecture import Model
from threeloops.models.forward_step import MATRIX, ForwardStep, Op
from threeloops.models.transformer import layer_ops
from threeloops.training_loop.memory.activations import per_layer
from threeloops.training_loop.parallelism.layouts import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """What is run again, by the names of models.transformer, and what is therefore not kept, by those of
    memory.activations.
    """

    operations: tuple[str, ...]
    tensors: tuple[str, ...]


DEEPSEEK_V3 = Again(
    operations=(
        "attention_norm",
        "latent_norm",
        "query_up_projection",
        "kv_up_projection",
        "mlp_norm",
        "gated_activation",
        "expert_activation",
        "shared_gated_activation",
    ),
    tensors=(
        "attention input",
        "query latent",
        "key-value latent",
        "queries",
        "keys",
        "values",
        "MLP input",
        "down projection input",
        "expert down projection input",
        "shared expert down projection input",
    ),
)


def time_share(model: Model, again: Again, *, sequence: int, causal: str, cluster: Cluster) -> float:
    """The share of the layers' forward pass, in seconds, that is run again.

    Formula:  seconds of the chosen operations / seconds of all; a product takes FLOPs / rate, anything else
              bytes / memory rate
    Assumes:  one rank does whole layers (no tensor parallelism), experts get equal shares, attention is fused
    Raises:   ValueError if none of the model's operations is chosen
    Counted:  tests.training_loop.test_partial_recompute.test_the_up_projections_have_the_share_that_their_weights_have
    """
    checks.count(sequence=sequence)
    step = ForwardStep(
        phase="prefill",
        batch=1,
        sequence=sequence,
        causal=causal,
        fused_attention=True,
        logits="all",
        bytes_per_element=2,
        latent="expanded",
        routing="uniform",
    )
    chosen, whole = 0.0, 0.0
    for layer, count in model.groups:
        for op in layer_ops(layer, hidden=model.hidden, rotary=model.rotary, step=step):
            seconds = count * _seconds(op, cluster)
            whole += seconds
            chosen += seconds if op.name in again.operations else 0.0
    if not chosen:
        raise ValueError(f"none of {list(again.operations)} is an operation of {model.name!r}")
    return chosen / whole


def _seconds(op: Op, cluster: Cluster) -> float:
    if op.unit != MATRIX:
        return op.count * op.work.moved_bytes / cluster.memory_bytes_per_s
    rate = cluster.attention_flops_per_s if op.name == "attention" else cluster.gemm_flops_per_s
    return op.count * op.work.flops / rate


def kept_activation_share(model: Model, again: Again, *, sequence: int) -> float:
    """The share of the layers' activations, in bytes, that is still kept.

    Formula:  1 - bytes of the chosen tensors / bytes of all that the layers keep without recomputation
    Assumes:  fused kernels, no dropout, every tensor in the same format
    Counted:  tests.training_loop.test_partial_recompute.test_tensors_count_by_their_widths

    >>> from threeloops.models import catalogue
    >>> round(kept_activation_share(catalogue.model("deepseek-v3"), DEEPSEEK_V3, sequence=4096), 2)
    0.64
    """
    left, whole = 0, 0
    for layer, count in model.groups:
        kept = per_layer(
            layer,
            hidden=model.hidden,
            sequence=sequence,
            micro_batch=1,
            bytes_per_element=2,
            kernels="fused",
            dropout=False,
        )
        whole += count * kept.total_bytes
        left += count * sum(item.bytes for item in kept.items if item.name not in again.tensors)
    return left / whole

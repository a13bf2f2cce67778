"""Rank layers: a layer as one tensor rank sees it, and the operations that it runs there.

Source: Shoeybi et al., 2019, arXiv:1909.08053, section 3 (what a tensor group cuts); Megatron-LM,
        megatron/core/ssm/mamba_mixer.py (a recurrent state by heads and groups)
"""

from dataclasses import replace

from threeloops.models.architecture import Attention, DenseMlp, Layer, MoeMlp
from threeloops.models.forward_step import ForwardStep, Op
from threeloops.models.recurrent_layers import DeltaState, StateSpace
from threeloops.models.transformer import layer_ops
from threeloops.training_loop.parallelism.layouts import Job

# Operations on tensors whose width tensor parallelism cuts: their bytes are one rank's already in the rank's layer.
FOLLOW_TP = (
    "qk_norm",
    "rotary",
    "activation",
    "gated_activation",
    "shared_activation",
    "shared_gated_activation",
    "convolution",
    "state_norm",
    "output_gate",
    "attention_gate",
)


def rank_ops(layer: Layer, job: Job, tp: int, *, fused: bool) -> tuple[Op, ...]:
    """Every operation of a layer's forward pass on one tensor rank, for one whole sequence."""
    step = ForwardStep(
        phase="prefill",
        batch=1,
        sequence=job.sequence,
        causal=job.causal,
        fused_attention=fused,
        logits="all",
        bytes_per_element=job.bytes_per_element,
        latent="expanded",
        routing="uniform",
    )
    return layer_ops(rank_layer(layer, tp), hidden=job.model.hidden, rotary=job.model.rotary, step=step)


def rank_layer(layer: Layer, tp: int) -> Layer:
    """The layer as one tensor rank sees it: its heads, and its share of the width."""
    mlp = None if layer.mlp is None else _rank_mlp(layer.mlp, tp)
    if layer.attention is None:
        return replace(layer, mlp=mlp)
    if isinstance(layer.attention, DeltaState | StateSpace):
        return replace(layer, attention=rank_state(layer.attention, tp), mlp=mlp)
    attention = layer.attending
    heads = attention.num_heads // tp
    if isinstance(attention, Attention):
        split = replace(attention, num_heads=heads, num_kv_heads=max(1, attention.num_kv_heads // tp))
        return replace(layer, attention=split, mlp=mlp)
    return replace(layer, attention=replace(attention, num_heads=heads), mlp=mlp)


def rank_state(state: DeltaState | StateSpace, tp: int) -> DeltaState | StateSpace:
    """A recurrent state as one tensor rank holds it: its heads, with their keys or groups."""
    if isinstance(state, DeltaState):
        return replace(state, key_heads=state.key_heads // tp, value_heads=state.value_heads // tp)
    return replace(state, num_heads=state.num_heads // tp, groups=state.groups // tp)


def _rank_mlp(mlp: DenseMlp | MoeMlp, tp: int) -> DenseMlp | MoeMlp:
    if isinstance(mlp, DenseMlp):
        return replace(mlp, intermediate=mlp.intermediate // tp)
    return replace(mlp, shared=replace(mlp.shared, intermediate=mlp.shared.intermediate // tp) if mlp.shared else None)

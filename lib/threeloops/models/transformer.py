"""Transformer: every operation of a layer, and of a whole model, as named work.

The table holds what an engine that fuses nothing but attention would launch: one kernel per row, each operand moved
once. Its rows run on two kinds of unit, "matrix" and "vector"; only the matrix rows are what FLOP counters and papers
call the FLOPs of a model.

>>> layer = Layer(
...     attention=Attention(num_heads=32, num_kv_heads=8, head_dim=128),
...     mlp=DenseMlp(intermediate=14336, gated=True, activation="silu"),
...     norm="rmsnorm",
...     num_norms=2,
... )
>>> decode = ForwardStep(
...     phase="decode", batch=8, sequence=2048, causal="full", fused_attention=True, logits="all", bytes_per_element=2
... )
>>> ops = layer_ops(layer, hidden=4096, rotary=True, step=decode)
>>> [op.name for op in ops][:5]
['attention_norm', 'qkv_projection', 'rotary', 'attention', 'output_projection']
>>> total(ops).arithmetic_intensity < 8  # in decode, hardly more FLOPs per byte than requests
True

Source: Vaswani et al., 2017, arXiv:1706.03762; Touvron et al., LLaMA, 2023, arXiv:2302.13971 (RMSNorm, SwiGLU, rotary
        positions)
"""

from collections.abc import Iterable
from dataclasses import replace

from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, Model
from threeloops.models.forward_step import MATRIX, VECTOR, ForwardStep, Op
from threeloops.models.recurrent_layers import DeltaState, StateSpace
from threeloops.models.recurrent_ops import recurrent_ops
from threeloops.models.sublayers import attention_ops, latent_attention_ops, mlp_ops, moe_ops
from threeloops.operations import kernels, roofline
from threeloops.operations.roofline import SerialTime, Work

__all__ = [
    "MATRIX",
    "VECTOR",
    "Attention",
    "DenseMlp",
    "ForwardStep",
    "Layer",
    "Op",
    "layer_ops",
    "model_ops",
    "model_time",
    "total",
]

# Where a layer's norms of width `hidden` stand: before each block, and in models with four also behind each block.
NORMS = ("attention_norm", "mlp_norm", "attention_output_norm", "mlp_output_norm")


def layer_ops(layer: Layer, *, hidden: int, rotary: bool, step: ForwardStep) -> tuple[Op, ...]:
    """Every kernel of one transformer layer in one forward pass, in the order of a layer with norms in front of its
    blocks.

    Assumes:  no dropout; see attention_ops, latent_attention_ops, recurrent_ops, mlp_ops and moe_ops for the blocks; a
              layer of a hybrid model that has one block only has one norm and one residual
    Raises:   ValueError for more than four norms, or where the layer needs a convention (latent, routing) that the
              step leaves open
    """
    if layer.num_norms > len(NORMS):
        raise ValueError(f"num_norms={layer.num_norms} must be at most {len(NORMS)}: {', '.join(NORMS)}")
    norm = kernels.rmsnorm if layer.norm == "rmsnorm" else kernels.layernorm
    names = NORMS if layer.attention is not None else ("mlp_norm",)
    norms = {
        name: (_vector(name, norm(rows=step.tokens, width=hidden, bytes_per_element=step.bytes_per_element)),)
        for name in names[: layer.num_norms]
    }
    add = kernels.elementwise(
        elements=step.tokens * hidden, flops_per_element=1, inputs=2, bytes_per_element=step.bytes_per_element
    )
    attending = (
        (
            *norms.get("attention_norm", ()),
            *_attention_ops(layer, hidden=hidden, rotary=rotary, step=step),
            *norms.get("attention_output_norm", ()),
            _vector("attention_residual", add),
        )
        if layer.attention is not None
        else ()
    )
    mlp = layer.mlp
    if mlp is None:
        return attending
    return (
        *attending,
        *norms.get("mlp_norm", ()),
        *(
            mlp_ops(mlp, hidden=hidden, step=step)
            if isinstance(mlp, DenseMlp)
            else moe_ops(mlp, hidden=hidden, step=step)
        ),
        *norms.get("mlp_output_norm", ()),
        _vector("mlp_residual", add),
    )


def _attention_ops(layer: Layer, *, hidden: int, rotary: bool, step: ForwardStep) -> tuple[Op, ...]:
    """Attention of either kind, or what stands in its place."""
    if isinstance(layer.attention, DeltaState | StateSpace):
        return recurrent_ops(layer.attention, hidden=hidden, step=step)
    attends = layer.attending
    if isinstance(attends, LatentAttention):
        return latent_attention_ops(attends, hidden=hidden, step=step)
    return attention_ops(attends, hidden=hidden, rotary=rotary, step=step)


def model_ops(model: Model, step: ForwardStep) -> tuple[Op, ...]:
    """Every kernel of a model in one forward pass: look-up, each group of equal layers (with how many there are),
    norms at both ends, head.

    Assumes:  positions are rotary where the model has no learned table and no ALiBi, which the product of the scores
              adds on its way out; the head is a product with a [hidden, vocab]
              matrix, tied or not; no loss, no sampling
    """
    hidden, element, weight = model.hidden, step.bytes_per_element, step.weight_bytes_per_element
    first_norm, last_norm = (
        (kernels.rmsnorm if layer.norm == "rmsnorm" else kernels.layernorm)(
            rows=step.tokens, width=hidden, bytes_per_element=element
        )
        for layer in (model.groups[0][0], model.groups[-1][0])
    )
    rows = step.tokens if step.logits == "all" else step.batch
    lookup = kernels.embedding(
        tokens=step.tokens, hidden=hidden, bytes_per_element=element, weight_bytes_per_element=weight
    )
    position = kernels.elementwise(
        elements=step.tokens * hidden, flops_per_element=1, inputs=2, bytes_per_element=element
    )
    head = kernels.gemm(
        m=rows,
        n=model.vocab,
        k=hidden,
        bytes_per_element=element,
        weight_bytes_per_element=weight,
        bias=model.head_bias,
    )
    layers = [
        replace(op, count=num_layers, group=index)
        for index, (layer, num_layers) in enumerate(model.groups)
        for op in layer_ops(layer, hidden=hidden, rotary=model.rotary, step=step)
    ]
    return (
        _vector("embedding", lookup),
        *((_vector("position_embedding", position),) if model.learned_positions else ()),
        *((_vector("embedding_norm", first_norm),) if model.embedding_norm else ()),
        *layers,
        _vector("final_norm", last_norm),
        Op(name="head", unit=MATRIX, work=head),
    )


def total(ops: Iterable[Op], *, unit: str | None = None) -> Work:
    """The work of a table, each row as often as it is launched; of one unit's rows only, where `unit` is given.

    Raises:   ValueError if no row is left to add up
    """
    works = [op.work.times(op.count) for op in ops if unit in (None, op.unit)]
    if not works:
        raise ValueError(f"unit={unit!r} has no rows in this table; the units are {MATRIX!r} and {VECTOR!r}")
    return sum(works[1:], start=works[0])


def model_time(
    ops: Iterable[Op],
    *,
    matrix_flops_per_s: float,
    vector_flops_per_s: float,
    memory_bytes_per_s: float,
    launch_overhead_s: float = 0.0,
) -> SerialTime:
    """The time of a table's kernels run one after another, each on its own unit's peak, with one launch each.

    Assumes:  one device; no kernel overlaps the next; see roofline.SerialTime for the bounds
    """
    peak = {MATRIX: matrix_flops_per_s, VECTOR: vector_flops_per_s}
    return roofline.serial_time(
        roofline.time(
            op.work,
            peak_flops_per_s=peak[op.unit],
            memory_bytes_per_s=memory_bytes_per_s,
            launch_overhead_s=launch_overhead_s,
        )
        for op in ops
        for _ in range(op.count)
    )


def _vector(name: str, work: Work) -> Op:
    return Op(name=name, unit=VECTOR, work=work)

"""Adapted products: the matrices of a served model's layer that have LoRA adapters beside them, and what one GPU keeps
and does of these: ordinary and latent attention, dense MLPs and experts.

>>> from threeloops.models import catalogue
>>> qwen = catalogue.model("qwen3-235b-a22b")
>>> *_, up, down = adapted_products(qwen.groups[0][0], hidden=qwen.hidden, tp=8, ep=1)
>>> up.experts, up.inputs, up.outputs, down.inputs, down.outputs
(128, 4096, 384, 192, 4096)

Source: vLLM, lora/layers/base_linear.py, column_parallel_linear.py, row_parallel_linear.py and fused_moe.py (which half
        is cut over GPUs, which matrices share a kernel, that every expert has an adapter of its own, which half of
        those is whole on every GPU); SGLang, pull requests 25001 (the projections of latent attention) and 32708
        (groups with requests of their own: attention's adapters are cut over the GPUs of a group)
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, MoeMlp
from threeloops.training_loop.updates.adapters import layer_matrices

TOGETHER = (("query", "key", "value"), ("output",), ("gate", "up"), ("down",))  # what engines multiply at once
CUT_INPUTS = ("output", "down")  # of all others the outputs are cut over a tensor group's GPUs


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptedProduct:
    """A product of one layer on one GPU, of one or several matrices with the same inputs."""

    matrices: int
    inputs: int
    outputs: int  # of all matrices
    experts: int = 1  # on this GPU, each with an adapter of its own
    chosen_share: float = 1.0  # of the experts, those that a token is sent to
    untimed: str = ""  # where its kernels are others than a product's: beside what it stands

    @property
    def routed(self) -> bool:
        """Whether it has the tokens of all groups that share the experts."""
        return self.untimed == "experts"


def adapted_products(layer: Layer, *, hidden: int, tp: int, ep: int, dp: int = 1) -> tuple[AdaptedProduct, ...]:
    """The products of a layer that have an adapter, as one of tp GPUs does them; of the dp groups of so many, which
    share the experts, ep GPUs hold different ones.

    Assumes:  adapters beside every matrix of attention, MLP and experts, as engines reserve them whatever an adapter
              fills, and none beside a router; where there are more GPUs than KV heads, each has a copy; what compresses
              to latents is whole on every GPU
    Raises:   ValueError for layers with states, indexers or experts on latents of their own, whose adapters nobody
              counts here
    """
    checks.divides(part="ep", part_value=ep, whole="tp" if dp == 1 else "tp * dp", whole_value=tp * dp)
    layer.refuse_unusual()
    attention, mlp = layer.attention, layer.mlp
    latents = isinstance(attention, LatentAttention) and not attention.indexer
    experts = isinstance(mlp, MoeMlp) and mlp.latent is None
    if not (isinstance(attention, Attention) or latents) or not (isinstance(mlp, DenseMlp) or experts):
        raise ValueError(
            "adapters are counted beside attention with heads or latents, dense MLPs and experts, and this model has"
            " layers with states, an indexer or experts on latents; leave --adapters out, and give the bytes of yours"
            " with --other"
        )
    found = _heads(layer, hidden, tp) if isinstance(attention, Attention) else _latents(attention, hidden, tp)
    if isinstance(mlp, DenseMlp):
        return (*found, *_mlp(mlp, hidden, tp))
    assert isinstance(mlp, MoeMlp)
    shared = _mlp(mlp.shared, hidden, tp) if mlp.shared else ()
    return (*found, *shared, *_experts(mlp, hidden, tp * dp, ep))


def _heads(layer: Layer, hidden: int, tp: int) -> tuple[AdaptedProduct, ...]:
    attention = layer.attention
    assert isinstance(attention, Attention)
    shapes = layer_matrices(layer, hidden=hidden)
    narrow = max(1, attention.num_kv_heads // tp) * attention.head_dim
    found = []
    for names in TOGETHER[:2]:
        there = [name for name in names if name in shapes]
        inputs = shapes[there[0]][0] // (tp if there[0] in CUT_INPUTS else 1)
        outputs = sum(_outputs(name, shapes[name][1], narrow, tp) for name in there)
        found.append(AdaptedProduct(matrices=len(there), inputs=inputs, outputs=outputs))
    return tuple(found)


def _outputs(name: str, whole: int, narrow: int, tp: int) -> int:
    if name in ("key", "value"):
        return narrow
    return whole if name in CUT_INPUTS else whole // tp


def _latents(attention: object, hidden: int, tp: int) -> tuple[AdaptedProduct, ...]:
    assert isinstance(attention, LatentAttention)
    heads = attention.num_heads // tp
    cached, query = attention.kv_rank + attention.rope_head_dim, heads * attention.head_dim
    if attention.q_rank is None:
        shapes = [(1, hidden, query), (1, hidden, cached)]
    else:
        shapes = [(2, hidden, attention.q_rank + cached), (1, attention.q_rank, query)]
    shapes.append((1, attention.kv_rank, heads * (attention.nope_head_dim + attention.value_head_dim)))
    shapes.append((1, heads * attention.value_head_dim, hidden))
    return tuple(
        AdaptedProduct(matrices=matrices, inputs=inputs, outputs=outputs, untimed="latents")
        for matrices, inputs, outputs in shapes
    )


def _mlp(mlp: DenseMlp, hidden: int, tp: int) -> tuple[AdaptedProduct, ...]:
    wide, upward = mlp.intermediate // tp, mlp.num_matrices - 1
    return (
        AdaptedProduct(matrices=upward, inputs=hidden, outputs=upward * wide),
        AdaptedProduct(matrices=1, inputs=wide, outputs=hidden),
    )


def _experts(mlp: MoeMlp, hidden: int, gpus: int, ep: int) -> tuple[AdaptedProduct, ...]:
    """On ep of the GPUs different ones, whole or cut over the GPUs that have the same."""
    checks.divides(part="ep", part_value=ep, whole="experts", whole_value=mlp.num_experts)
    here, share = mlp.num_experts // ep, mlp.top_k / mlp.num_experts
    return tuple(
        AdaptedProduct(
            matrices=one.matrices,
            inputs=one.inputs,
            outputs=one.outputs,
            experts=here,
            chosen_share=share,
            untimed="experts",
        )
        for one in _mlp(mlp.expert, hidden, gpus // ep)
    )

"""Hybrid families, in which most layers keep a recurrent state in place of a cache: one reader per model_type.

Source: modeling_*.py and configuration_*.py of Hugging Face transformers 5.23.0,
        https://github.com/huggingface/transformers
"""

from collections.abc import Callable, Sequence

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model, MoeMlp, Recurrent
from threeloops.models.hf_expert_families import qwen_experts, qwen_mlps
from threeloops.models.hf_fields import Fields
from threeloops.models.hf_layers import (
    configured_attention,
    gated_mlp,
    grouped,
    layer_kinds,
    plain_mlp,
    rotary_model,
)
from threeloops.models.recurrent_layers import DeltaState, StateSpace

_NEMOTRON_KINDS = {"M": "linear_attention", "E": "moe", "*": "full_attention", "-": "mlp"}
# What files called a kind of layer before transformers gave all hybrids the same words.
_OLD_WORDS = {"mamba": "linear_attention", "attention": "full_attention"}


def _qwen_mixers(fields: Fields) -> list[Attention | Recurrent]:
    """Gated delta net in most layers, gated attention in every fourth."""
    every, bias = fields.config.get("full_attention_interval", 4), fields.flag("attention_bias")
    checks.count(full_attention_interval=every)
    fields.seen.add("full_attention_interval")
    fields.must_equal("attn_output_gate", True, "the transformers class always builds the gate")
    linear = DeltaState(
        key_heads=fields.count("linear_num_key_heads"),
        value_heads=fields.count("linear_num_value_heads"),
        key_head_dim=fields.count("linear_key_head_dim"),
        value_head_dim=fields.count("linear_value_head_dim"),
        conv_entries=fields.count("linear_conv_kernel_dim"),
    )
    full = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias, qk_norm=True, gated=True)
    kinds = layer_kinds(
        fields,
        known=("full_attention", "linear_attention"),
        rule=lambda layer: "linear_attention" if (layer + 1) % every else "full_attention",
    )
    return [linear if kind == "linear_attention" else full for kind in kinds]


def _qwen3_next(fields: Fields, name: str) -> Model:
    fields.must_equal("use_sliding_window", False, "the transformers class has no window")
    fields.seen |= {"sliding_window", "max_window_layers"}
    return rotary_model(fields, name, _qwen_mixers(fields), qwen_mlps(fields, shared=True))


def _qwen3_5(fields: Fields, name: str) -> Model:
    fields.seen.add("mlp_only_layers")  # the dense class has nothing else
    return rotary_model(fields, name, _qwen_mixers(fields), [gated_mlp(fields)])


def _qwen3_5_moe(fields: Fields, name: str) -> Model:
    fields.seen |= {"intermediate_size", "mlp_only_layers", "decoder_sparse_step"}  # the class has no dense layer
    return rotary_model(fields, name, _qwen_mixers(fields), [qwen_experts(fields, shared=True)])


def _nemotron_kinds(fields: Fields) -> Sequence[str]:
    """Every layer's kind, from the list or from the older pattern of letters."""
    named, pattern = fields.list_or_none("layers_block_type"), fields.config.get("hybrid_override_pattern")
    fields.seen |= {"hybrid_override_pattern", "num_hidden_layers", "mtp_hybrid_override_pattern"}
    if named is None:
        if not isinstance(pattern, str) or not pattern:
            raise ValueError("'hybrid_override_pattern' is missing; a nemotron_h config needs it or layers_block_type")
        for letter in pattern:
            checks.one_of(_NEMOTRON_KINDS, hybrid_override_pattern=letter)
        named = [_NEMOTRON_KINDS[letter] for letter in pattern]
    kinds = [_OLD_WORDS.get(str(kind), str(kind)) for kind in named]
    for kind in kinds:
        checks.one_of(_NEMOTRON_KINDS.values(), layers_block_type=kind)
    fields.must_equal("num_hidden_layers", len(kinds), "it is the number of letters in the pattern")
    return kinds


def _nemotron_h(fields: Fields, name: str) -> Model:
    """Nemotron-H and Nemotron 3: every layer is one sub-block on one norm."""
    fields.must_equal("mamba_hidden_act", "silu", "no published Nemotron-H has another")
    kinds, bias = _nemotron_kinds(fields), fields.flag("mlp_bias")
    parts: dict[str, tuple[Attention | Recurrent | None, DenseMlp | MoeMlp | None]] = {}
    if "linear_attention" in kinds:
        parts["linear_attention"] = (_nemotron_state(fields), None)
    if "full_attention" in kinds:
        parts["full_attention"] = (_nemotron_attention(fields), None)
    if "mlp" in kinds:
        parts["mlp"] = (None, plain_mlp(fields, bias=bias, act="mlp_hidden_act"))
    if "moe" in kinds:
        parts["moe"] = (None, _nemotron_experts(fields, bias=bias))
    fields.seen |= _NEMOTRON_UNUSED
    layers = [Layer(attention=parts[kind][0], mlp=parts[kind][1], norm="rmsnorm", num_norms=1) for kind in kinds]
    return Model(
        name=name,
        hidden=fields.count("hidden_size"),
        vocab=fields.count("vocab_size"),
        groups=grouped(layers),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=fields.count("max_position_embeddings"),
    )


# Sizes of kinds of layers that a pattern may not have, and second names.
_NEMOTRON_UNUSED = frozenset({
    "intermediate_size", "mlp_hidden_act", "moe_intermediate_size", "moe_shared_expert_intermediate_size",
    "n_routed_experts", "n_shared_experts", "num_experts_per_tok", "moe_latent_size", "expand", "sliding_window",
    "attention_head_dim", "mamba_proj_bias", "mtp_layers_block_type", "chunk_size", "mamba_chunk_size",
})  # fmt: skip


def _nemotron_state(fields: Fields) -> StateSpace:
    return StateSpace(
        num_heads=fields.count("mamba_num_heads"),
        head_dim=fields.count("mamba_head_dim"),
        state_dim=fields.count("ssm_state_size"),
        groups=fields.count("n_groups"),
        conv_entries=fields.count("conv_kernel"),
        conv_bias=fields.flag("use_conv_bias"),
        bias=fields.flag("use_bias"),  # of both projections: the class does not read mamba_proj_bias
        chunk=fields.count_either("chunk_size", "mamba_chunk_size"),
    )


def _nemotron_attention(fields: Fields) -> Attention:
    fields.must_equal("attention_bias", False, "the transformers class projects without")
    if "head_dim" not in fields.config and "attention_head_dim" in fields.config:
        fields.config = {**fields.config, "head_dim": fields.config["attention_head_dim"]}
    return configured_attention(fields, window=None)


def _nemotron_experts(fields: Fields, *, bias: bool) -> MoeMlp:
    expert = plain_mlp(fields, bias=False, intermediate="moe_intermediate_size", act="mlp_hidden_act")
    shared = plain_mlp(fields, bias=bias, intermediate="moe_shared_expert_intermediate_size", act="mlp_hidden_act")
    latent = fields.count_or_none("moe_latent_size")
    if latent and bias:
        raise ValueError("mlp_bias=True is not understood beside moe_latent_size; no published model has both")
    return MoeMlp(
        num_experts=fields.count("n_routed_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=expert,
        shared=shared,
        correction_bias=True,
        latent=latent,
    )


def _granite_hybrid(fields: Fields, name: str) -> Model:
    """Granite 4: Mamba 2 in most layers, experts or a dense block in each, and a shared block beside the experts."""
    bias = fields.flag("attention_bias")
    shared = gated_mlp(fields, intermediate="shared_intermediate_size")
    num_experts, top_k = fields.count("num_local_experts", at_least=0), fields.get("num_experts_per_tok")
    fields.seen |= {"position_embedding_type", "intermediate_size", "layers_block_type"}
    mlp = (
        MoeMlp(num_experts=num_experts, top_k=top_k, expert=gated_mlp(fields), shared=shared)
        if num_experts and top_k is not None
        else shared
    )
    old = fields.config.get("layer_types")
    if isinstance(old, list | tuple):
        fields.config = {**fields.config, "layer_types": [_OLD_WORDS.get(str(kind), kind) for kind in old]}
    kinds = layer_kinds(fields, known=("full_attention", "linear_attention"), rule=lambda _: "linear_attention")
    full = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias)
    linear = _granite_state(fields)
    mixers = [linear if kind == "linear_attention" else full for kind in kinds]
    return rotary_model(fields, name, mixers, [mlp])


def mamba2_state(fields: Fields, *, inner: int, decided_by: str, bias: bool, gated_norm: bool = True) -> StateSpace:
    """The state of a Mamba 2 mixer that is so many values wide.

    Raises:   ValueError where the heads do not divide it, or a stated head width contradicts it
    """
    heads, head_dim = fields.count("mamba_n_heads"), fields.get("mamba_d_head")
    checks.divides(part="mamba_n_heads", part_value=heads, whole=decided_by, whole_value=inner)
    reason = f"{decided_by.partition(' ')[0]} decides it"
    fields.must_equal("mamba_d_head", "auto" if head_dim == "auto" else inner // heads, reason)
    return StateSpace(
        num_heads=heads,
        head_dim=inner // heads,
        state_dim=fields.count("mamba_d_state"),
        groups=fields.count("mamba_n_groups"),
        conv_entries=fields.count("mamba_d_conv"),
        conv_bias=fields.flag("mamba_conv_bias"),
        bias=bias,
        chunk=fields.count("mamba_chunk_size"),
        gated_norm=gated_norm,
    )


def _granite_state(fields: Fields) -> StateSpace:
    inner = fields.count("mamba_expand") * fields.count("hidden_size")
    bias = fields.flag("mamba_proj_bias")
    return mamba2_state(fields, inner=inner, decided_by="mamba_expand * hidden_size", bias=bias)


HYBRID_FAMILIES: dict[str, Callable[[Fields, str], Model]] = {
    "qwen3_next": _qwen3_next,
    "qwen3_5_text": _qwen3_5,
    "qwen3_5_moe_text": _qwen3_5_moe,
    "nemotron_h": _nemotron_h,
    "granitemoehybrid": _granite_hybrid,
}

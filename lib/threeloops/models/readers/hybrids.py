"""Hybrids of attention with states of further kinds: Falcon-H1, Jamba, LFM2, Kimi Linear and Kimi K3.

Source: modeling_*.py and configuration_*.py of Hugging Face transformers 5.23.0 (falcon_h1, jamba, lfm2, lfm2_moe,
        kimi_linear), https://github.com/huggingface/transformers; what Kimi K3 has besides: vLLM,
        vllm/models/kimi_k3/nvidia/model.py and kda.py, https://github.com/vllm-project/vllm
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from threeloops import checks
from threeloops.models.architecture import DenseMlp, Layer, Model, MoeMlp
from threeloops.models.hf_expert_families import latent_attention
from threeloops.models.hf_fields import Fields
from threeloops.models.hf_hybrid_families import mamba2_state
from threeloops.models.hf_layers import (
    configured_attention,
    gated_mlp,
    layer_kinds,
    num_layers,
    rotary_model,
    side_by_side,
)
from threeloops.models.layers.beside import Beside
from threeloops.models.layers.states import KimiDelta, SelectiveScan, ShortConvolution
from threeloops.models.recurrent_layers import StateSpace

_MULTIPLIERS = {
    "lm_head_multiplier", "mlp_multipliers", "key_multiplier", "attention_out_multiplier", "attention_in_multiplier",
    "ssm_multipliers", "ssm_in_multiplier", "ssm_out_multiplier", "mamba_norm_before_gate",
}  # fmt: skip


def _falcon_h1(fields: Fields, name: str) -> Model:
    """Falcon-H1: attention and Mamba 2 side by side in every layer, on one norm; a dense block behind them."""
    fields.seen |= _MULTIPLIERS | {"mamba_expand", "layer_types", "layers_block_type"}
    fields.must_equal("attn_layer_indices", None, "the transformers class has both in every layer")
    fields.must_equal("mamba_use_mlp", True, "the transformers class has a dense block in every layer")
    fields.must_equal("projectors_bias", False, "no published Falcon-H1 has another bias out of its states than in")
    fields.must_equal("mamba_proj_bias", False, "no published Falcon-H1 has these biases")
    bias, mlp_bias = fields.flag("attention_bias"), fields.flag("mlp_bias")
    attention = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias)
    layer = Layer(
        attention=attention,
        mlp=gated_mlp(fields, bias=mlp_bias),
        norm="rmsnorm",
        num_norms=2,
        state=_falcon_state(fields),
    )
    model = rotary_model(fields, name, [attention], [layer.mlp])
    return replace(model, groups=((layer, model.num_layers),))


def _falcon_state(fields: Fields) -> StateSpace:
    inner = fields.count_or_none("mamba_d_ssm") or fields.count("mamba_expand") * fields.count("hidden_size")
    gated_norm = fields.flag("mamba_rms_norm")
    return mamba2_state(fields, inner=inner, decided_by="mamba_d_ssm", bias=False, gated_norm=gated_norm)


def _every(fields: Fields, what: str) -> Callable[[int], bool]:
    """Whether a layer is one of those that come once in a period, at an offset."""
    period, offset = fields.count(f"{what}_layer_period"), fields.count(f"{what}_layer_offset", at_least=0)
    if offset >= period:
        raise ValueError(f"{what}_layer_offset={offset} must be less than {what}_layer_period={period}")
    return lambda layer: layer % period == offset


def _jamba(fields: Fields, name: str) -> Model:
    """Jamba: Mamba 1 in most layers, attention without positions in some, experts in every other."""
    fields.seen |= {"use_mambapy", "use_associative_scan", "calc_logits_for_entire_prompt", "n_ctx"}
    fields.must_equal("sliding_window", None, "the transformers class has no window")
    fields.seen |= {"layer_types", "layers_block_type"}
    depth, attends, expert = num_layers(fields), _every(fields, "attn"), _every(fields, "expert")
    dense, experts = gated_mlp(fields), fields.count_either("num_experts", "num_local_experts")
    top_k = fields.count("num_experts_per_tok")
    sparse = MoeMlp(num_experts=experts, top_k=top_k, expert=dense) if experts > 1 else dense
    full, scan = configured_attention(fields, window=None), _jamba_scan(fields)
    mixers = [full if attends(layer) else scan for layer in range(depth)]
    return rotary_model(fields, name, mixers, [sparse if expert(layer) else dense for layer in range(depth)])


def _jamba_scan(fields: Fields) -> SelectiveScan:
    hidden, rank = fields.count("hidden_size"), fields.get("mamba_dt_rank")
    return SelectiveScan(
        inner=fields.count("mamba_expand") * hidden,
        state_dim=fields.count("mamba_d_state"),
        step_rank=-(-hidden // 16) if rank == "auto" else fields.count("mamba_dt_rank"),
        conv_entries=fields.count("mamba_d_conv"),
        conv_bias=fields.flag("mamba_conv_bias"),
        bias=fields.flag("mamba_proj_bias"),
        normed=True,
    )


# What LFM2's files say of themselves that its class does not read, and second names.
_LFM2_SAYS = {
    "block_mlp_init_scale", "block_out_init_scale", "block_use_xavier_init", "conv_use_xavier_init", "block_norm_eps",
    "theta", "use_pos_enc", "num_heads", "block_dim", "conv_dim", "conv_dim_out", "full_attn_idxs", "tie_embedding",
}  # fmt: skip


def _lfm2_names(fields: Fields) -> None:
    """Second names of LFM2's files, each of which its class reads in place of the first."""
    fields.seen |= _LFM2_SAYS
    fields.must_equal("block_use_swiglu", True, "the transformers class has no other block")
    for other, own in (("tie_embedding", "tie_word_embeddings"), ("block_ff_dim", "intermediate_size")):
        fields.seen.add(other)
        if fields.config.get(other) is not None:
            fields.config = {**fields.config, own: fields.config[other]}
    width = fields.count("hidden_size")
    for other in ("block_dim", "conv_dim", "conv_dim_out"):
        fields.must_equal(other, width, "the transformers class has the width of the model there")


def _lfm2_mixers(fields: Fields) -> list[Any]:
    attending = fields.layers_or_none("full_attn_idxs") if fields.has("full_attn_idxs") else None
    kinds = layer_kinds(
        fields,
        known=("full_attention", "conv"),
        rule=lambda layer: "full_attention" if attending is None or layer in attending else "conv",
    )
    full = configured_attention(fields, window=None, qk_norm=True)
    short = ShortConvolution(
        channels=fields.count("hidden_size"),
        conv_entries=fields.count("conv_L_cache"),
        bias=fields.flag("conv_bias"),
    )
    return [full if kind == "full_attention" else short for kind in kinds]


def _silu(width: int) -> DenseMlp:
    return DenseMlp(intermediate=width, gated=True, activation="silu")


def _lfm2(fields: Fields, name: str) -> Model:
    """LFM2: short convolutions in most layers; the MLP's width is two thirds of what the file says, rounded up."""
    _lfm2_names(fields)
    stated, factor = fields.count("intermediate_size"), fields.get("block_ffn_dim_multiplier")
    multiple, adjusts = fields.count("block_multiple_of"), fields.flag("block_auto_adjust_ff_dim")
    width = int(2 * stated / 3) if adjusts else stated
    if adjusts and factor is not None:
        checks.positive(block_ffn_dim_multiplier=factor)
        width = multiple * -(-int(factor * width) // multiple)
    return rotary_model(fields, name, _lfm2_mixers(fields), [_silu(width)])


def _lfm2_moe(fields: Fields, name: str) -> Model:
    """LFM2 with experts in all but the first layers."""
    _lfm2_names(fields)
    depth, first = num_layers(fields), fields.count("num_dense_layers", at_least=0)
    if fields.get("layer_types") is None:
        raise ValueError("'layer_types' is missing; a lfm2_moe config needs it")
    sparse = MoeMlp(
        num_experts=fields.count("num_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=_silu(fields.count("moe_intermediate_size")),
        correction_bias=fields.flag("use_expert_bias"),
    )
    dense = _silu(fields.count("intermediate_size"))
    mlps = [dense if layer < first else sparse for layer in range(depth)]
    return rotary_model(fields, name, _lfm2_mixers(fields), mlps)


# How Kimi Linear's experts are chosen and its positions are not rotated: no count depends on it.
_KIMI_SAYS = {
    "mla_use_nope", "moe_router_activation_func", "use_grouped_topk", "moe_renormalize", "num_expert_group", "head_dim",
    "model_max_length", "linear_attn_config", "first_k_dense_replace", "activation_situ_beta",
    "activation_situ_linear_beta", "routed_expert_hidden_size",
}  # fmt: skip
_K3_STATE = {"gate_lower_bound", "use_full_rank_gate"}


def _kimi_linear(fields: Fields, name: str) -> Model:
    """Kimi Linear: Kimi delta attention in three layers of four, latent attention in the fourth."""
    fields.seen |= _KIMI_SAYS
    if fields.config.get("hidden_act") == "situ":  # Kimi K3's gated activation, of as many matrices
        fields.config = {**fields.config, "hidden_act": "silu"}
    fields.must_equal("moe_layer_freq", 1, "the transformers class has experts in every layer behind the first ones")
    linear = fields.config.get("linear_attn_config") or {}
    if not isinstance(linear, Mapping):
        raise ValueError(f"linear_attn_config={linear!r} must be an object")
    state = _kimi_state(fields, linear)
    depth, full = num_layers(fields), linear.get("full_attn_layers")
    if full is not None and fields.config.get("layer_types") is None:
        listed = sorted([*full, *linear.get("kda_layers", ())])
        if listed != list(range(1, depth + 1)):
            raise ValueError(f"linear_attn_config must list each of the {depth} layers once, counted from 1")
    kinds = layer_kinds(
        fields,
        known=("full_attention", "linear_attention"),
        rule=lambda layer: (
            "full_attention"
            if (layer and layer % 4 == 0 if full is None else layer + 1 in full)
            else "linear_attention"
        ),
    )
    latent = replace(latent_attention(fields), gated=_k3_flag(fields, "mla_use_output_gate"))
    longest = fields.config.get("model_max_length")  # the name that its files use
    if longest is not None:
        fields.config = {**fields.config, "max_position_embeddings": longest}
    mixers = [latent if kind == "full_attention" else state for kind in kinds]
    return _with_residuals(fields, rotary_model(fields, name, mixers, _kimi_mlps(fields)))


def _k3_flag(fields: Fields, name: str) -> bool:
    """A field that Kimi K3 has and Kimi Linear has not."""
    return fields.config.get(name) is not None and fields.flag(name)


def _with_residuals(fields: Fields, model: Model) -> Model:
    """Kimi K3's attention over what earlier blocks of layers left, a norm and a row in front of each sub-block and
    behind the last; and the norm of what its narrower experts give back.
    """
    normed, latent = _k3_flag(fields, "latent_moe_use_norm"), fields.config.get("routed_expert_hidden_size")
    if fields.config.get("attn_res_block_size") is None:
        if normed and latent:
            raise ValueError("latent_moe_use_norm=True is not understood without attn_res_block_size, as in Kimi K3")
        return model
    fields.count("attn_res_block_size")
    row = model.hidden

    def beside(layer: Layer) -> Beside:
        own = latent if normed and latent and isinstance(layer.mlp, MoeMlp) else 0
        return Beside(name="attention over earlier residuals", matrices=2 * row, others=2 * row + own)

    return replace(
        model,
        groups=tuple((replace(layer, beside=beside(layer)), count) for layer, count in model.groups),
        beside=Beside(name="the last attention over residuals", matrices=row, others=row),
    )


def _kimi_state(fields: Fields, linear: Mapping[str, Any]) -> KimiDelta:
    known = {"head_dim", "num_heads", "short_conv_kernel_size", "full_attn_layers", "kda_layers", *_K3_STATE}
    if unknown := sorted(linear.keys() - known):
        raise ValueError(f"linear_attn_config has {unknown[0]!r}, which the transformers class does not know")
    return KimiDelta(
        head_dim=linear.get("head_dim", fields.count("linear_head_dim")),
        num_heads=linear.get("num_heads", fields.count("linear_num_heads")),
        conv_entries=linear.get("short_conv_kernel_size", fields.count("linear_conv_kernel_dim")),
        full_rank_gate=linear.get("use_full_rank_gate") is True,
    )


def _kimi_mlps(fields: Fields) -> list[DenseMlp | MoeMlp]:
    depth, first = num_layers(fields), fields.config.get("first_k_dense_replace", 1)
    checks.count(at_least=0, first_k_dense_replace=first)
    kinds = fields.list_or_none("mlp_layer_types")
    if kinds is None:
        kinds = ["dense" if layer < first else "sparse" for layer in range(depth)]
    if len(kinds) != depth:
        raise ValueError(f"mlp_layer_types lists {len(kinds)} layers, but num_hidden_layers={depth}")
    for kind in kinds:
        checks.one_of(("dense", "sparse"), mlp_layer_types=kind)
    dense, expert = gated_mlp(fields), gated_mlp(fields, intermediate="moe_intermediate_size")
    sparse = MoeMlp(
        num_experts=fields.count_either("num_experts", "num_local_experts"),
        top_k=fields.count_either("num_experts_per_token", "num_experts_per_tok"),
        expert=expert,
        shared=side_by_side(expert, fields.count_either("num_shared_experts", "n_shared_experts")),
        correction_bias=True,
        latent=fields.count("routed_expert_hidden_size") if fields.config.get("routed_expert_hidden_size") else None,
    )
    return [sparse if kind == "sparse" else dense for kind in kinds]


NEW_HYBRIDS: dict[str, Callable[[Fields, str], Model]] = {
    "falcon_h1": _falcon_h1,
    "jamba": _jamba,
    "lfm2": _lfm2,
    "lfm2_moe": _lfm2_moe,
    "kimi_linear": _kimi_linear,
}

"""Families whose layers differ in their heads: Laguna, MiMo-V2-Flash.

Source: modeling_*.py and configuration_*.py of Hugging Face transformers 5.23.0 (laguna, mimo_v2_flash),
        https://github.com/huggingface/transformers
"""

from collections.abc import Callable
from dataclasses import replace

from threeloops import checks
from threeloops.models.architecture import DenseMlp, Layer, Model, MoeMlp
from threeloops.models.hf_fields import Fields
from threeloops.models.hf_layers import (
    configured_attention,
    gated_mlp,
    grouped,
    layer_kinds,
    num_layers,
    rotary_model,
    windows,
)
from threeloops.models.layers.beside import Beside


def _sparse_layers(fields: Fields) -> list[bool]:
    """Which layers have experts: as mlp_layer_types lists them, else all but the first."""
    depth, kinds = num_layers(fields), fields.list_or_none("mlp_layer_types")
    if kinds is None:
        return [layer > 0 for layer in range(depth)]
    if len(kinds) != depth:
        raise ValueError(f"mlp_layer_types lists {len(kinds)} layers, but num_hidden_layers={depth}")
    for kind in kinds:
        checks.one_of(("dense", "sparse"), mlp_layer_types=kind)
    return [kind == "sparse" for kind in kinds]


def _laguna(fields: Fields, name: str) -> Model:
    """Laguna: a number of query heads for every layer, gates on what they read, experts behind the first layer."""
    fields.seen |= {"moe_routed_scaling_factor", "moe_router_logit_softcapping", "swa_attention_sink_enabled"}
    fields.must_equal("moe_apply_router_weight_on_input", False, "the transformers class has no other way")
    fields.must_equal("use_bidirectional_attention", False, "text read in both directions is another kind of model")
    hidden, depth, bias = fields.count("hidden_size"), num_layers(fields), fields.flag("attention_bias")
    gating = fields.get("gating")
    if gating is not True:
        checks.one_of(("per-head", "per-element"), gating=gating)
    full = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias, qk_norm=True)
    every = windows(fields, window=fields.count("sliding_window"), slides=lambda _: False)
    heads = fields.list_or_none("num_attention_heads_per_layer") or [full.num_heads] * depth
    if len(heads) != depth:
        raise ValueError(f"num_attention_heads_per_layer lists {len(heads)} layers, but num_hidden_layers={depth}")
    dense, expert = gated_mlp(fields), gated_mlp(fields, intermediate="moe_intermediate_size")
    sparse = MoeMlp(
        num_experts=fields.count("num_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=expert,
        shared=gated_mlp(fields, intermediate="shared_expert_intermediate_size"),
        router_bias=True,  # the class keeps the correction of its choice as a parameter
    )
    per_head = 1 if gating in (True, "per-head") else full.head_dim
    layers = []
    for number, window, has in zip(heads, every, _sparse_layers(fields), strict=True):
        checks.count(num_attention_heads_per_layer=number)
        gate = Beside(name="a gate on what each head reads", matrices=hidden * number * per_head)
        attention = replace(full, num_heads=number, window=window)
        layers.append(
            Layer(attention=attention, mlp=sparse if has else dense, norm="rmsnorm", num_norms=2, beside=gate)
        )
    return Model(
        name=name,
        hidden=hidden,
        vocab=fields.count("vocab_size"),
        groups=grouped(layers),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=fields.count("max_position_embeddings"),
    )


# How scores are scaled, and what the class takes for granted or reads under other names.
_MIMO_SAYS = {
    "attention_value_scale", "layernorm_epsilon", "swa_rope_theta", "attention_chunk_size", "hybrid_block_size",
    "attention_projection_layout",
}  # fmt: skip


def _mimo_v2_flash(fields: Fields, name: str) -> Model:
    """MiMo-V2-Flash: values narrower than keys; layers with a window have sinks and twice the KV heads."""
    fields.seen |= _MIMO_SAYS
    width, values = fields.count("head_dim"), fields.count("v_head_dim")
    full = replace(
        configured_attention(fields, window=None, qkv_bias=fields.flag("attention_bias")), value_head_dim=values
    )
    slid = replace(full, num_kv_heads=2 * full.num_kv_heads, window=_mimo_window(fields), sinks=True)
    of_windows = {
        "swa_num_attention_heads": full.num_heads, "swa_num_key_value_heads": slid.num_kv_heads,
        "swa_head_dim": width, "swa_v_head_dim": values, "add_swa_attention_sink_bias": True,
        "add_full_attention_sink_bias": False,
    }  # fmt: skip
    for field, only in of_windows.items():
        fields.must_equal(field, only, "the transformers class takes it for granted")
    kinds = layer_kinds(
        fields,
        known=("full_attention", "sliding_attention"),
        rule=lambda layer: "full_attention" if not layer or (layer + 1) % 6 == 0 else "sliding_attention",
    )
    slides, mlps = [kind == "sliding_attention" for kind in kinds], _mimo_mlps(fields)
    fields.must_equal("hybrid_layer_pattern", [int(one) for one in slides], "the transformers class has this pattern")
    return rotary_model(fields, name, [slid if one else full for one in slides], mlps)


def _mimo_window(fields: Fields) -> int:
    """The window with the query's own token, which sliding_window_size leaves out and sliding_window does not."""
    if fields.config.get("sliding_window_size") is None:
        return fields.count("sliding_window")
    fields.seen.add("sliding_window")
    return fields.count("sliding_window_size") + 1


def _mimo_mlps(fields: Fields) -> list[DenseMlp | MoeMlp]:
    sparse = MoeMlp(
        num_experts=fields.count_either("n_routed_experts", "num_local_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=gated_mlp(fields, intermediate="moe_intermediate_size"),
        correction_bias=True,
    )
    dense, routed = gated_mlp(fields), _sparse_layers(fields)
    fields.must_equal("moe_layer_freq", [int(one) for one in routed], "the transformers class reads mlp_layer_types")
    fields.must_equal("n_shared_experts", 0, "the transformers class has none")
    return [sparse if one else dense for one in routed]


UNEVEN: dict[str, Callable[[Fields, str], Model]] = {"laguna": _laguna, "mimo_v2_flash": _mimo_v2_flash}

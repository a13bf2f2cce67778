"""Further families with mixtures of experts: one reader per model_type.

Source: modeling_*.py and configuration_*.py of Hugging Face transformers 5.23.0,
        https://github.com/huggingface/transformers
"""

from collections.abc import Callable
from dataclasses import replace

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model, MoeMlp
from threeloops.models.hf_expert_families import dense_then_experts
from threeloops.models.hf_fields import Fields
from threeloops.models.hf_layers import (
    configured_attention,
    gated_mlp,
    grouped,
    num_layers,
    rotary_model,
    side_by_side,
    windows,
)
from threeloops.models.layers.beside import Beside


def _ernie4_5_moe(fields: Fields, name: str) -> Model:
    """ERNIE 4.5: dense layers at the ends, experts between them in every moe_layer_interval-th."""
    bias, last = fields.flag("use_bias"), fields.config.get("moe_layer_end_index", -1)
    fields.seen |= {"moe_layer_end_index", "moe_norm_min"}
    checks.count(at_least=-1, moe_layer_end_index=last)
    first, every = fields.count("moe_layer_start_index", at_least=0), fields.count("moe_layer_interval")
    expert = gated_mlp(fields, intermediate="moe_intermediate_size")
    shared = replace(expert, bias=bias)
    sparse = MoeMlp(
        num_experts=fields.count_either("moe_num_experts", "num_experts"),
        top_k=fields.count_either("moe_k", "num_experts_per_tok"),
        expert=expert,
        shared=side_by_side(shared, fields.count("moe_num_shared_experts", at_least=0)),
        router_bias=True,  # the class keeps the correction of its choice as a parameter
    )
    dense, depth = gated_mlp(fields, bias=bias), num_layers(fields)
    mlps = [
        sparse if (layer + 1) % every == 0 and first <= layer <= (depth - 1 if last == -1 else last) else dense
        for layer in range(depth)
    ]
    attention = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias)
    return rotary_model(fields, name, [attention], mlps, head_bias=bias)


def _dots1(fields: Fields, name: str) -> Model:
    """dots.llm1: Qwen's attention, DeepSeek's experts."""
    bias, first = fields.flag("attention_bias"), fields.count("max_window_layers", at_least=0)
    every = windows(fields, window=fields.count_or_none("sliding_window"), slides=lambda layer: layer >= first)
    attentions = [
        configured_attention(fields, window=window, qkv_bias=bias, output_bias=bias, qk_norm=True) for window in every
    ]
    return rotary_model(fields, name, attentions, dense_then_experts(fields))


# What files of Hunyuan say besides, of how experts are trained and what the class takes for granted.
_HUNYUAN_SAYS = {
    "use_mixed_mlp_moe", "norm_type", "use_rotary_pos_emb", "group_limited_greedy", "moe_drop_tokens",
    # the file as it was published: of a classifier and of images that it has not
    "dense_list", "org_vocab_size", "num_media_embeds", "mask_init_id", "pad_id", "pool_type", "text_start_id",
    "cla_share_factor", "text_end_id", "im_start_id", "im_end_id", "im_newline_id", "video_start_id", "video_end_id",
}  # fmt: skip
_HUNYUAN_IMAGES = ("vit_", "anyres_")


def _hunyuan_moe(fields: Fields, name: str) -> Model:
    """Hunyuan A13B: one shared block as wide as an expert, norms of queries and keys."""
    fields.seen |= _HUNYUAN_SAYS | {field for field in fields.config if field.startswith(_HUNYUAN_IMAGES)}
    fields.must_equal("vit_type", None, "a file with a vision tower is not described")
    for field, only in (("use_mla", False), ("use_cla", False), ("use_qk_norm", True), ("moe_layer_num_skipped", 0)):
        fields.must_equal(field, only, "the transformers class has no other layers")
    if "attention_head_dim" in fields.config:
        if fields.config.get("head_dim") is None:
            fields.config = {**fields.config, "head_dim": fields.count("attention_head_dim")}
        fields.must_equal("attention_head_dim", fields.get("head_dim"), "it is a second name of head_dim")
    bias, expert = fields.flag("attention_bias"), gated_mlp(fields)
    for field, only in (("moe_intermediate_size", expert.intermediate), ("num_shared_expert", 1)):
        if field in fields.config and _same_in_all(fields, field) != only:
            fields.must_equal(field, only, "the transformers class takes it for granted")
    mlp = MoeMlp(
        num_experts=_same_in_all(fields, "num_experts"),
        top_k=_same_in_all(fields, "moe_topk"),
        expert=expert,
        shared=expert,
    )
    attention = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias, qk_norm=True)
    return rotary_model(fields, name, [attention], [mlp])


def _same_in_all(fields: Fields, field: str) -> int:
    """A number that the file may repeat for every layer."""
    value = fields.config.get(field)
    if isinstance(value, list):
        if len(set(value)) != 1:
            raise ValueError(f"{field}={value!r} must be the same in every layer; unequal layers are not read")
        fields.config = {**fields.config, field: value[0]}
    return fields.count(field)


def _solar_open(fields: Fields, name: str) -> Model:
    """Solar Open: GLM 4.5's experts in every layer."""
    bias, expert = fields.flag("attention_bias"), gated_mlp(fields, intermediate="moe_intermediate_size")
    mlp = MoeMlp(
        num_experts=fields.count_either("n_routed_experts", "num_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=expert,
        shared=side_by_side(expert, fields.count("n_shared_experts", at_least=0)),
        correction_bias=True,
    )
    return rotary_model(fields, name, [configured_attention(fields, window=None, qkv_bias=bias)], [mlp])


# How scores, gates and experts are scaled and limited, and second names of what is read.
_STEP_SAYS = {
    "swiglu_limits", "swiglu_limits_shared", "moe_router_scaling_factor", "moe_router_activation", "need_fp32_gate",
    "norm_expert_weight", "use_moe_router_bias", "att_impl_type", "partial_rotary_factors", "yarn_only_types",
    "max_seq_len", "mtp_layer_types", "mtp_mlp_layer_types", "per_layer_config", "use_head_wise_attn_gate", "gating",
    "layer_types", "mlp_layer_types", "moe_layers_enum", "attention_other_setting", "num_sliding_attention_heads",
    "use_bidirectional_attention", "share_expert_dims", "first_k_dense_replace", "use_moe",
}  # fmt: skip


def _step3p5(fields: Fields, name: str) -> Model:
    """Step 3.5 and 3.7: windows with more heads than full layers have, each head with a gate, experts after three
    dense layers.
    """
    fields.seen |= _STEP_SAYS
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    for gate in ("gating", "use_head_wise_attn_gate"):
        fields.must_equal(gate, True, "every head has a gate of its own")
    fields.must_equal("use_bidirectional_attention", False, "text read in both directions is another kind of model")
    full = configured_attention(
        fields,
        window=None,
        qkv_bias=fields.flag("attention_bias"),
        output_bias=fields.flag("attention_bias"),
        qk_norm=True,
    )
    slid = replace(full, num_heads=_sliding_heads(fields, heads, full), window=fields.count_or_none("sliding_window"))
    expert, dense = (
        gated_mlp(fields, intermediate="moe_intermediate_size"),
        gated_mlp(fields, bias=fields.flag("mlp_bias")),
    )
    fields.must_equal("n_shared_experts", 1, "the transformers class has one")
    sparse = MoeMlp(
        num_experts=fields.count_either("n_routed_experts", "num_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=expert,
        shared=gated_mlp(fields, intermediate="share_expert_dim", bias=fields.flag("mlp_bias")),
        correction_bias=True,
    )
    layers = [
        Layer(
            attention=attention,
            mlp=sparse if has else dense,
            norm="rmsnorm",
            num_norms=2,
            beside=Beside(name="a gate for every head", matrices=hidden * attention.num_heads),
        )
        for kind, has in zip(_step_kinds(fields), _step_sparse(fields), strict=True)
        for attention in (slid if kind == "sliding_attention" else full,)
    ]
    return Model(
        name=name,
        hidden=hidden,
        vocab=fields.count("vocab_size"),
        groups=grouped(layers),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=fields.count("max_position_embeddings"),
    )


def _sliding_heads(fields: Fields, heads: int, full: Attention) -> int:
    """Query heads of layers with a window; KV heads and their width are those of the full layers."""
    other = fields.config.get("attention_other_setting") or {}
    checks.table(attention_other_setting=other)
    for name, own in (("num_attention_groups", full.num_kv_heads), ("head_dim", full.head_dim)):
        if other.get(name, own) != own:
            raise ValueError(f"attention_other_setting: {name}={other[name]!r} must be {own}, as in the other layers")
    stated = fields.config.get("num_sliding_attention_heads") or other.get("num_attention_heads")
    if stated is None:
        stated = fields.assumed["num_sliding_attention_heads"] = heads
    checks.count(num_sliding_attention_heads=stated)
    return int(stated)


def _step_kinds(fields: Fields) -> list[str]:
    """What layer_types says of every layer, without the layers for multi-token prediction that files append."""
    depth, kinds = num_layers(fields), fields.list_or_none("layer_types")
    kinds = ["full_attention"] * depth if kinds is None else kinds
    if len(kinds) not in (depth, depth + _guessing(fields)):
        raise ValueError(f"layer_types lists {len(kinds)} layers, but num_hidden_layers={depth}")
    for kind in kinds:
        checks.one_of(("full_attention", "sliding_attention"), layer_types=kind)
    return kinds[:depth]


def _step_sparse(fields: Fields) -> list[bool]:
    """Which layers have experts: as mlp_layer_types lists them, else as moe_layers_enum does, else from the fourth."""
    depth, kinds, listed = (
        num_layers(fields),
        fields.list_or_none("mlp_layer_types"),
        fields.config.get("moe_layers_enum"),
    )
    if kinds is not None:
        if len(kinds) not in (depth, depth + _guessing(fields)):
            raise ValueError(f"mlp_layer_types lists {len(kinds)} layers, but num_hidden_layers={depth}")
        for kind in kinds:
            checks.one_of(("dense", "sparse"), mlp_layer_types=kind)
        return [kind == "sparse" for kind in kinds[:depth]]
    first = fields.config.get("first_k_dense_replace", 3)
    checks.count(at_least=0, first_k_dense_replace=first)
    if listed is None:
        return [layer >= first for layer in range(depth)]
    words = listed.split(",") if isinstance(listed, str) else list(listed)
    if not all(str(word).strip().isdecimal() for word in words):
        raise ValueError(f"moe_layers_enum={listed!r} must list layers by their numbers, like '3,4,5'")
    return [layer in {int(word) for word in words} for layer in range(depth)]


def _guessing(fields: Fields) -> int:
    number = fields.config.get("num_nextn_predict_layers") or 0
    checks.count(at_least=0, num_nextn_predict_layers=number)
    return int(number)


def _dbrx(fields: Fields, name: str) -> Model:
    """DBRX: LayerNorm without biases, the sizes of attention and of experts in parts of their own."""
    fields.seen |= {"emb_pdrop", "num_key_value_heads"}
    parts = {}
    for part in ("attn_config", "ffn_config"):
        own = fields.get(part) or {}
        checks.table(**{part: own})
        parts[part] = own
    attends, feeds = parts["attn_config"], parts["ffn_config"]
    act = (feeds.get("ffn_act_fn") or {}).get("name", "silu")
    # as the classes of the two parts have them, where a file leaves one out
    sizes = {"kv_n_heads": attends.get("kv_n_heads", 1)} | {
        field: feeds.get(field, assumed)
        for field, assumed in (("ffn_hidden_size", 3584), ("moe_num_experts", 4), ("moe_top_k", 1))
    }
    checks.count(**sizes)
    checks.one_of(("silu", "gelu"), ffn_act_fn=act)
    hidden, heads = fields.count("d_model"), fields.count("n_heads")
    checks.divides(part="n_heads", part_value=heads, whole="d_model", whole_value=hidden)
    layer = Layer(
        attention=Attention(num_heads=heads, num_kv_heads=sizes["kv_n_heads"], head_dim=hidden // heads),
        mlp=MoeMlp(
            num_experts=sizes["moe_num_experts"],
            top_k=sizes["moe_top_k"],
            expert=DenseMlp(intermediate=sizes["ffn_hidden_size"], gated=True, activation=act),
        ),
        norm="layernorm-no-bias",
        num_norms=2,
    )
    return Model(
        name=name,
        hidden=hidden,
        vocab=fields.count("vocab_size"),
        groups=((layer, fields.count("n_layers")),),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=fields.count("max_seq_len"),
    )


FURTHER_EXPERTS: dict[str, Callable[[Fields, str], Model]] = {
    "ernie4_5_moe": _ernie4_5_moe,
    "dots1": _dots1,
    "hunyuan_v1_moe": _hunyuan_moe,
    "solar_open": _solar_open,
    "step3p5": _step3p5,
    "dbrx": _dbrx,
}

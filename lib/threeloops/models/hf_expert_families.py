"""Families with mixtures of experts: one reader per model_type.

Source: modeling_*.py and configuration_*.py of Hugging Face transformers 5.23.0,
        https://github.com/huggingface/transformers
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Model, MoeMlp
from threeloops.models.hf_fields import Fields
from threeloops.models.hf_layers import (
    configured_attention,
    gated_mlp,
    layer_kinds,
    num_layers,
    rotary_model,
    side_by_side,
)
from threeloops.models.layers.indexers import Indexer


def latent_attention(fields: Fields, indexer: Indexer | None = None) -> LatentAttention:
    """Latent attention under the names that DeepSeek's files have for its sizes."""
    num_heads, nope, rope = (
        fields.count("num_attention_heads"),
        fields.count("qk_nope_head_dim"),
        fields.count("qk_rope_head_dim"),
    )
    if fields.config.get("num_key_value_heads") is not None:
        fields.must_equal(
            "num_key_value_heads", num_heads, "latent attention rebuilds a key and a value for every query head"
        )
    fields.seen |= {"num_key_value_heads"}
    # transformers writes these two into the configs that it saves.
    fields.must_equal("qk_head_dim", nope + rope, "it is qk_nope_head_dim + qk_rope_head_dim")
    if fields.config.get("head_dim") not in (nope, nope + rope):  # the class reads none of these
        fields.must_equal("head_dim", rope, "it is a second name of qk_rope_head_dim")
    fields.seen.add("head_dim")
    return LatentAttention(
        num_heads=num_heads,
        q_rank=fields.count_or_none("q_lora_rank"),
        kv_rank=fields.count("kv_lora_rank"),
        nope_head_dim=nope,
        rope_head_dim=rope,
        value_head_dim=fields.count("v_head_dim"),
        bias=fields.flag("attention_bias"),
        indexer=indexer,
    )


def dense_then_experts(
    fields: Fields, *, mlp_bias: bool = False, correction_bias: bool = True
) -> list[DenseMlp | MoeMlp]:
    """The first layers dense, then routed experts with shared ones beside them."""
    fields.must_equal(
        "moe_layer_freq", 1, "the transformers class puts experts in every layer from first_k_dense_replace on"
    )
    is_sparse, num_shared = _sparse_layers(fields), fields.count("n_shared_experts", at_least=0)
    expert = gated_mlp(fields, intermediate="moe_intermediate_size")
    dense = gated_mlp(fields, bias=mlp_bias)
    sparse = MoeMlp(
        num_experts=fields.count_either("n_routed_experts", "num_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=expert,
        shared=side_by_side(replace(expert, bias=mlp_bias), num_shared),
        correction_bias=correction_bias,
    )
    return [sparse if here else dense for here in is_sparse]


def _sparse_layers(fields: Fields) -> list[bool]:
    """Which layers have experts: as mlp_layer_types lists them, where a class reads it, else from a first one on."""
    depth, listed = num_layers(fields), fields.config.get("mlp_layer_types")
    if listed is None or not fields.has("mlp_layer_types"):
        first = fields.count("first_k_dense_replace", at_least=0) if fields.has("first_k_dense_replace") else 1
        return [layer >= first for layer in range(depth)]
    kinds = fields.list_or_none("mlp_layer_types") or []
    if len(kinds) != depth:
        raise ValueError(f"mlp_layer_types lists {len(kinds)} layers, but num_hidden_layers={depth}")
    for kind in kinds:
        checks.one_of(("dense", "sparse"), mlp_layer_types=kind)
    fields.seen.add("first_k_dense_replace")
    return [kind == "sparse" for kind in kinds]


def _deepseek_v2(fields: Fields, name: str) -> Model:
    """DeepSeek-V2; without latents, as DeepSeek-OCR's files say, Llama's attention."""
    if fields.config.get("use_mla") is False:
        fields.seen |= {"lm_head", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"}
        split = {"head_dim": fields.count("hidden_size") // fields.count("num_attention_heads")}
        fields.config = {**fields.config, **split}
        attention: Attention | LatentAttention = configured_attention(fields, window=None)
    else:
        attention = latent_attention(fields)
    fields.must_equal("use_mla", fields.config.get("use_mla") is not False, "it says whether there are latents")
    mlps = dense_then_experts(fields, mlp_bias=fields.flag("mlp_bias"), correction_bias=False)
    return rotary_model(fields, name, [attention], mlps)


def _deepseek_v3(fields: Fields, name: str) -> Model:
    return rotary_model(fields, name, [latent_attention(fields)], dense_then_experts(fields))


def _mistral4(fields: Fields, name: str) -> Model:
    """Mistral Small 4: DeepSeek-V3's layers, routed without a correction."""
    return rotary_model(fields, name, [latent_attention(fields)], dense_then_experts(fields, correction_bias=False))


def _indexer(fields: Fields) -> Indexer:
    return Indexer(
        num_heads=fields.count("index_n_heads"),
        head_dim=fields.count("index_head_dim"),
        top_k=fields.count("index_topk"),
    )


def _sparse_latent(fields: Fields, name: str, indexed: Sequence[bool]) -> Model:
    """DeepSeek-V3.2 and GLM-5: latent attention that reads the tokens which an indexer chose, its own or the last."""
    fields.must_equal("mlp_bias", False, "no published model has these biases")
    fields.count("q_lora_rank")
    fields.seen |= {"layer_types", "mlp_layer_types"}
    # the second is what files of GLM-5.2 called it before
    if set(fields.list_or_none("layer_types") or ()) - {"indexed_attention", "deepseek_sparse_attention"}:
        raise ValueError("layer_types is not understood; every layer of these classes is 'indexed_attention'")
    with_indexer, without = latent_attention(fields, _indexer(fields)), latent_attention(fields)
    attentions = [with_indexer if own else without for own in indexed]
    return rotary_model(fields, name, attentions, dense_then_experts(fields))


def _deepseek_v32(fields: Fields, name: str) -> Model:
    return _sparse_latent(fields, name, [True])


def _glm_moe_dsa(fields: Fields, name: str) -> Model:
    fields.seen |= {"index_topk_pattern", "index_topk_freq", "index_skip_topk_offset"}
    depth, kinds = num_layers(fields), fields.list_or_none("indexer_types")
    pattern = fields.config.get("index_topk_pattern")
    if kinds is None and pattern is not None:
        if not isinstance(pattern, str) or set(pattern) - set("FS"):
            raise ValueError(f"index_topk_pattern={pattern!r} must be a word of F and S, one letter a layer")
        kinds = ["full" if letter == "F" else "shared" for letter in pattern]
    if kinds is None:
        every, offset = fields.config.get("index_topk_freq", 1), fields.config.get("index_skip_topk_offset", 2)
        checks.count(at_least=0, index_topk_freq=every, index_skip_topk_offset=offset)
        kinds = ["full" if max(layer - offset + 1, 0) % max(every, 1) == 0 else "shared" for layer in range(depth)]
    if len(kinds) != depth:
        raise ValueError(f"indexer_types lists {len(kinds)} layers, but num_hidden_layers={depth}")
    for kind in kinds:
        checks.one_of(("full", "shared"), indexer_types=kind)
    return _sparse_latent(fields, name, [kind == "full" for kind in kinds])


def _glm4_moe(fields: Fields, name: str) -> Model:
    attention = configured_attention(
        fields, window=None, qkv_bias=fields.flag("attention_bias"), qk_norm=fields.flag("use_qk_norm")
    )
    return rotary_model(fields, name, [attention], dense_then_experts(fields))


def _glm4v_moe(fields: Fields, name: str) -> Model:
    """GLM 4.5V's text: GLM 4.5 without norms of queries and keys."""
    fields.must_equal("use_qk_norm", False, "the transformers class has no such norms")
    attention = configured_attention(fields, window=None, qkv_bias=fields.flag("attention_bias"))
    return rotary_model(fields, name, [attention], dense_then_experts(fields))


def _glm4_moe_lite(fields: Fields, name: str) -> Model:
    if fields.get("mlp_layer_types") is None:
        fields.must_equal("first_k_dense_replace", 1, "the transformers class keeps the first layer dense")
    return rotary_model(fields, name, [latent_attention(fields)], dense_then_experts(fields))


def qwen_experts(fields: Fields, *, shared: bool) -> MoeMlp:
    """Routed experts; with `shared`, one block beside them that a scalar gate weighs."""
    return MoeMlp(
        # transformers 5 saves it under the second name
        num_experts=fields.count_either("num_experts", "num_local_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=gated_mlp(fields, intermediate="moe_intermediate_size"),
        shared=gated_mlp(fields, intermediate="shared_expert_intermediate_size") if shared else None,
        shared_gate=shared,
    )


def qwen_mlps(fields: Fields, *, shared: bool) -> list[DenseMlp | MoeMlp]:
    """Experts in every decoder_sparse_step-th layer, apart from the layers that the file names as dense."""
    step, dense_layers = fields.count("decoder_sparse_step"), fields.layers_or_none("mlp_only_layers") or ()
    dense, sparse = gated_mlp(fields), qwen_experts(fields, shared=shared)
    return [
        sparse if layer not in dense_layers and (layer + 1) % step == 0 else dense
        for layer in range(num_layers(fields))
    ]


def _no_window(fields: Fields) -> None:
    fields.must_equal(
        "use_sliding_window", False, "no published Qwen MoE uses its window, and max_window_layers is not read"
    )
    fields.seen |= {"sliding_window", "max_window_layers", "layer_types"}


def _qwen2_moe(fields: Fields, name: str) -> Model:
    _no_window(fields)
    attention = configured_attention(fields, window=None, qkv_bias=fields.flag("qkv_bias"))
    return rotary_model(fields, name, [attention], qwen_mlps(fields, shared=True))


def _qwen3_moe(fields: Fields, name: str) -> Model:
    _no_window(fields)
    fields.must_equal("use_qk_norm", True, "the transformers class always builds these norms")
    fields.must_equal("qkv_bias", False, "the transformers class reads attention_bias")
    fields.must_equal("shared_expert_intermediate_size", 0, "the transformers class has no shared expert")
    bias = fields.flag("attention_bias")
    attention = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias, qk_norm=True)
    return rotary_model(fields, name, [attention], qwen_mlps(fields, shared=False))


def _minimax_m2(fields: Fields, name: str) -> Model:
    fields.must_equal("use_qk_norm", True, "the transformers class always builds these norms")
    fields.must_equal("qk_norm_type", "per_layer", "the norms span all heads")
    fields.must_equal("shared_intermediate_size", 0, "the transformers class has no shared expert")
    fields.must_equal("use_routing_bias", True, "the transformers class always keeps it")
    fields.must_equal("sliding_window", None, "no published MiniMax M2 has a window")
    fields.must_equal("attn_type_list", [1] * num_layers(fields), "1 is full attention; the class has no other")
    mlp = MoeMlp(
        num_experts=fields.count("num_local_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=gated_mlp(fields),
        correction_bias=True,
    )
    attention = configured_attention(fields, window=None, qk_norm=True, qk_norm_spans_heads=True)
    return rotary_model(fields, name, [attention], [mlp])


def _llama4(fields: Fields, name: str) -> Model:
    """Llama 4: three layers in four attend inside chunks of the text; their norms of queries and keys learn nothing.

    A chunk is counted as a window of its size, which is what it holds at its fullest and what the cache of
    transformers keeps.
    """
    bias, chunk = fields.flag("attention_bias"), fields.count_or_none("attention_chunk_size")
    rotary, every = fields.layers_or_none("no_rope_layers"), fields.count("no_rope_layer_interval")
    fields.seen.add("use_qk_norm")
    kinds = layer_kinds(
        fields,
        known=("full_attention", "chunked_attention"),
        rule=lambda layer: (
            "chunked_attention"
            if (rotary[layer] if rotary and layer < len(rotary) else (layer + 1) % every)
            else "full_attention"
        ),
    )
    attentions = [
        configured_attention(
            fields, window=chunk if kind == "chunked_attention" else None, qkv_bias=bias, output_bias=bias
        )
        for kind in kinds
    ]
    step, listed, depth = fields.count("interleave_moe_layer_step"), fields.layers_or_none("moe_layers"), len(kinds)
    with_experts = set(range(step - 1, depth, step) if listed is None else listed)
    expert, dense = gated_mlp(fields), gated_mlp(fields, intermediate="intermediate_size_mlp")
    sparse = MoeMlp(
        num_experts=fields.count("num_local_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=expert,
        shared=expert,
    )
    return rotary_model(
        fields, name, attentions, [sparse if layer in with_experts else dense for layer in range(depth)]
    )


EXPERT_FAMILIES: dict[str, Callable[[Fields, str], Model]] = {
    "qwen2_moe": _qwen2_moe,
    "qwen3_moe": _qwen3_moe,
    "qwen3_vl_moe_text": _qwen3_moe,
    "qwen3_omni_moe_text": _qwen3_moe,
    "deepseek_v2": _deepseek_v2,
    "deepseek_v3": _deepseek_v3,
    "deepseek_v32": _deepseek_v32,
    "mistral4": _mistral4,
    "glm4_moe": _glm4_moe,
    "glm4v_moe_text": _glm4v_moe,
    "glm4_moe_lite": _glm4_moe_lite,
    "glm_moe_dsa": _glm_moe_dsa,
    "minimax_m2": _minimax_m2,
    "llama4_text": _llama4,
}

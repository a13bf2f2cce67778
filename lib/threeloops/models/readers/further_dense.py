"""Further families of attention and one feed-forward block: older ones whose files are still met, and newer ones.

Source: modeling_*.py and configuration_*.py of Hugging Face transformers 5.23.0 (stablelm, nemotron, helium, cwm,
        ministral, gptj, gpt_bigcode, mpt, exaone_moe, phi4_multimodal), https://github.com/huggingface/transformers
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model, MoeMlp
from threeloops.models.hf_fields import Fields
from threeloops.models.hf_layers import (
    configured_attention,
    exaone_windows,
    gated_mlp,
    num_layers,
    plain_mlp,
    rotary_model,
    side_by_side,
    windows,
)


def _stablelm(fields: Fields, name: str) -> Model:
    """StableLM: LayerNorm; attention and MLP side by side on one norm in some."""
    fields.must_equal("qk_layernorm", False, "norms of each head of its own are not described")
    fields.seen.add("qk_layernorm")
    attention = configured_attention(fields, window=None, qkv_bias=fields.flag("use_qkv_bias"))
    norms = 1 if fields.flag("use_parallel_residual") else 2
    return rotary_model(fields, name, [attention], [gated_mlp(fields)], norm="layernorm", num_norms=norms)


def _nemotron(fields: Fields, name: str) -> Model:
    """Nemotron and Minitron: squared ReLU in two matrices, LayerNorm whose weight is counted from one."""
    bias, mlp = fields.flag("attention_bias"), plain_mlp(fields, bias=fields.flag("mlp_bias"))
    attention = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias)
    return rotary_model(fields, name, [attention], [mlp], norm="layernorm")


def _helium(fields: Fields, name: str) -> Model:
    attention = configured_attention(fields, window=None, qkv_bias=fields.flag("attention_bias"))
    return rotary_model(fields, name, [attention], [gated_mlp(fields, bias=fields.flag("mlp_bias"))])


def _cwm(fields: Fields, name: str) -> Model:
    """Code World Model: one layer of four sees everything, the first among them."""
    fields.must_equal("attention_bias", False, "the transformers class has none")
    every = windows(fields, window=fields.count("sliding_window"), slides=lambda layer: layer % 4 != 0)
    attentions = [configured_attention(fields, window=window) for window in every]
    return rotary_model(fields, name, attentions, [gated_mlp(fields, bias=fields.flag("mlp_bias"))])


def _ministral(fields: Fields, name: str) -> Model:
    """Ministral 8B: Mistral with a window in the layers that layer_types names, or in all."""
    window = fields.count_or_none("sliding_window")
    every = windows(fields, window=window, slides=lambda layer: window is not None)
    return rotary_model(fields, name, [configured_attention(fields, window=one) for one in every], [gated_mlp(fields)])


def _gpt(fields: Fields, name: str, *, num_kv_heads: int, attention_bias: bool, num_norms: int) -> Model:
    """GPT-2's sizes under GPT-2's names, without its positions."""
    hidden, heads = fields.count("n_embd"), fields.count("n_head")
    checks.divides(part="n_head", part_value=heads, whole="n_embd", whole_value=hidden)
    fields.must_equal("head_dim", hidden // heads, "it is n_embd / n_head")
    attention = Attention(
        num_heads=heads,
        num_kv_heads=num_kv_heads,
        head_dim=hidden // heads,
        qkv_bias=attention_bias,
        output_bias=attention_bias,
    )
    if fields.get("n_inner") is None:
        fields.config = {**fields.config, "n_inner": 4 * hidden}
    mlp = plain_mlp(fields, bias=True, intermediate="n_inner", act="activation_function")
    return Model(
        name=name,
        hidden=hidden,
        vocab=fields.count("vocab_size"),
        groups=((Layer(attention=attention, mlp=mlp, norm="layernorm", num_norms=num_norms), fields.count("n_layer")),),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=fields.count("n_positions"),
    )


def _gptj(fields: Fields, name: str) -> Model:
    """GPT-J: rotary positions, attention and MLP side by side on one norm, biases in the MLP and the head."""
    fields.must_equal("rotary", True, "the transformers class has no other positions")
    model = _gpt(fields, name, num_kv_heads=fields.count("n_head"), attention_bias=False, num_norms=1)
    return replace(model, head_bias=True)


# How BigCode's attention is computed, and a field that follows from multi_query.
_BIGCODE_SAYS = {
    "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "inference_runner", "max_batch_size",
    "max_sequence_length", "pad_key_length", "pre_allocate_kv_cache", "validate_runner_input", "num_key_value_heads",
}  # fmt: skip


def _gpt_bigcode(fields: Fields, name: str) -> Model:
    """StarCoder 1 and SantaCoder: GPT-2 with one KV head for all query heads."""
    fields.seen |= _BIGCODE_SAYS
    kv_heads = 1 if fields.flag("multi_query") else fields.count("n_head")
    model = _gpt(fields, name, num_kv_heads=kv_heads, attention_bias=True, num_norms=2)
    return replace(model, learned_positions=model.max_context)


_MPT_SAYS = {
    "embedding_fraction", "init_device", "learned_pos_emb", "norm_type", "logit_scale", "emb_pdrop", "verbose",
    "init_config", "attn_config", "tokenizer_name", "layer_norm_epsilon",
}  # fmt: skip
_MPT_ATTENTION = {"attn_type": "multihead_attention", "qk_ln": False, "alibi": True, "prefix_lm": False}


def _mpt(fields: Fields, name: str) -> Model:
    """MPT: ALiBi in place of positions, no biases anywhere."""
    fields.seen |= _MPT_SAYS
    fields.must_equal("expansion_ratio", 4, "the transformers class builds MLPs of four times the width")
    fields.must_equal("no_bias", True, "the transformers class builds none")
    own = fields.config.get("attn_config") or {}
    if not isinstance(own, Mapping):
        raise ValueError(f"attn_config={own!r} must be an object")
    for field, only in _MPT_ATTENTION.items():
        if own.get(field, only) != only:
            raise ValueError(f"attn_config has {field}={own[field]!r}, which is not understood; only {only!r} is")
    hidden, heads = fields.count("d_model"), fields.count("n_heads")
    checks.divides(part="n_heads", part_value=heads, whole="d_model", whole_value=hidden)
    layer = Layer(
        attention=Attention(num_heads=heads, num_kv_heads=heads, head_dim=hidden // heads),
        mlp=DenseMlp(intermediate=4 * hidden, gated=False, activation="gelu"),
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
        alibi=True,
    )


def _exaone_moe(fields: Fields, name: str) -> Model:
    """K-EXAONE: EXAONE 4's attention, experts in all but the first layers."""
    every = exaone_windows(fields)
    depth, first = num_layers(fields), fields.count("first_k_dense_replace", at_least=0)
    kinds = fields.list_or_none("mlp_layer_types")
    if kinds is None:
        kinds = ["dense" if layer < first else "sparse" for layer in range(depth)]
    if len(kinds) != depth:
        raise ValueError(f"mlp_layer_types lists {len(kinds)} layers, but num_hidden_layers={depth}")
    for kind in kinds:
        checks.one_of(("dense", "sparse"), mlp_layer_types=kind)
    _refuse_other_experts(fields, kinds)
    dense, expert = gated_mlp(fields), gated_mlp(fields, intermediate="moe_intermediate_size")
    sparse = MoeMlp(
        num_experts=fields.count_either("num_experts", "num_local_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=expert,
        shared=side_by_side(expert, fields.count("num_shared_experts", at_least=0)),
        correction_bias=True,
    )
    attentions = [configured_attention(fields, window=one, qk_norm=True) for one in every]
    return rotary_model(fields, name, attentions, [sparse if kind == "sparse" else dense for kind in kinds])


# What Phi-4-multimodal's own files say of their towers, adapters and attention, beside the text's sizes.
_PHI4_SAYS = {
    "vision_config", "audio_config", "embd_layer", "img_processor", "audio_processor", "speech_lora", "vision_lora",
    "full_attn_mod", "interpolate_factor", "image_token_id", "audio_token_id",
}  # fmt: skip


def _phi4_multimodal(fields: Fields, name: str) -> Model:
    """Phi-4-multimodal: Phi-4-mini's text beside two towers, with which no adapter is counted."""
    fields.seen |= _PHI4_SAYS
    fields.must_equal("lm_head_bias", False, "the transformers class has none")
    attention = configured_attention(fields, window=fields.count_or_none("sliding_window"))
    return rotary_model(fields, name, [attention], [gated_mlp(fields)])


def _refuse_other_experts(fields: Fields, kinds: list[str]) -> None:
    """LG's own file says once more which layers have experts, in fields that the transformers class does not read."""
    fields.seen |= {"is_moe_layer", "first_last_k_dense_replace"}
    sparse = [kind == "sparse" for kind in kinds]
    said = {"is_moe_layer": sparse, "first_last_k_dense_replace": [*sparse, True].index(True)}
    for field, expected in said.items():
        if fields.config.get(field, expected) != expected:
            raise ValueError(
                f"{field}={fields.config[field]!r} contradicts mlp_layer_types or first_k_dense_replace, which the"
                f" transformers class reads; by them it is {expected!r}"
            )


FURTHER_DENSE: dict[str, Callable[[Fields, str], Model]] = {
    "stablelm": _stablelm,
    "nemotron": _nemotron,
    "helium": _helium,
    "cwm": _cwm,
    "ministral": _ministral,
    "gptj": _gptj,
    "gpt_bigcode": _gpt_bigcode,
    "mpt": _mpt,
    "exaone_moe": _exaone_moe,
    "phi4_multimodal": _phi4_multimodal,
}

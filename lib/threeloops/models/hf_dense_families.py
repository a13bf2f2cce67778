"""Families whose layers are attention and one feed-forward block: one reader per model_type.

Source: modeling_*.py and configuration_*.py of Hugging Face transformers 5.23.0,
        https://github.com/huggingface/transformers
"""

from collections.abc import Callable
from dataclasses import replace

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model, MoeMlp
from threeloops.models.hf_fields import Fields
from threeloops.models.hf_layers import (
    configured_attention,
    exaone_windows,
    falcon_sizes,
    gated_mlp,
    plain_mlp,
    rotary_model,
    windows,
)


def _gemma1(fields: Fields, name: str) -> Model:
    fields.seen |= {"hidden_activation", "use_bidirectional_attention"}
    bias = fields.flag("attention_bias")
    return rotary_model(
        fields,
        name,
        [configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias)],
        [gated_mlp(fields)],
    )


def _glm(fields: Fields, name: str, *, num_norms: int) -> Model:
    attention = configured_attention(fields, window=None, qkv_bias=fields.flag("attention_bias"))
    return rotary_model(fields, name, [attention], [gated_mlp(fields)], num_norms=num_norms)


def _glm4v(fields: Fields, name: str) -> Model:
    """GLM 4.1V's and 4.6V's text: GLM 4, whose biases no field switches off."""
    fields.must_equal("attention_bias", True, "the transformers class always builds these biases")
    attention = configured_attention(fields, window=None, qkv_bias=True)
    return rotary_model(fields, name, [attention], [gated_mlp(fields)], num_norms=4)


def _exaone4(fields: Fields, name: str) -> Model:
    """EXAONE 4: norms behind the sub-blocks, of queries and keys too; three layers with a window, then one without."""
    attentions = [configured_attention(fields, window=one, qk_norm=True) for one in exaone_windows(fields)]
    return rotary_model(fields, name, attentions, [gated_mlp(fields)])


def _olmo(fields: Fields, name: str) -> Model:
    """OLMo 1: LayerNorm without anything learned."""
    bias = fields.flag("attention_bias")
    attention = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias)
    return rotary_model(fields, name, [attention], [gated_mlp(fields)], norm="layernorm-no-weight")


def _olmo2(fields: Fields, name: str, *, slides: bool) -> Model:
    """OLMo 2 and 3: norms behind the sub-blocks, and over all query heads and all key heads at once."""
    bias = fields.flag("attention_bias")
    every = (
        windows(
            fields,
            window=fields.count_or_none("sliding_window"),
            slides=lambda layer: (layer + 1) % 4 != 0,
        )
        if slides
        else [None]
    )
    attentions = [
        configured_attention(
            fields, window=window, qkv_bias=bias, output_bias=bias, qk_norm=True, qk_norm_spans_heads=True
        )
        for window in every
    ]
    return rotary_model(fields, name, attentions, [gated_mlp(fields)])


def _olmoe(fields: Fields, name: str) -> Model:
    bias = fields.flag("attention_bias")
    mlp = MoeMlp(
        num_experts=fields.count_either("num_experts", "num_local_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=gated_mlp(fields),
    )
    attention = configured_attention(
        fields, window=None, qkv_bias=bias, output_bias=bias, qk_norm=True, qk_norm_spans_heads=True
    )
    return rotary_model(fields, name, [attention], [mlp])


def _falcon(fields: Fields, name: str) -> Model:
    """Falcon: attention and MLP side by side on one norm, or on one each in the larger models; Falcon-RW has ALiBi."""
    sizes = falcon_sizes(fields)
    rotary = rotary_model(fields, name, [sizes.attention], [sizes.mlp], norm="layernorm", num_norms=sizes.num_norms)
    return replace(rotary, alibi=fields.flag("alibi"))


def _cohere(fields: Fields, name: str) -> Model:
    bias, norm = fields.flag("attention_bias"), fields.flag("use_qk_norm")
    attention = configured_attention(
        fields, window=None, qkv_bias=bias, output_bias=bias, qk_norm=norm, qk_norm_spans_heads=norm
    )
    return rotary_model(fields, name, [attention], [gated_mlp(fields)], norm="layernorm-no-bias", num_norms=1)


# What Command A's file says of itself besides sizes, all of which its class takes for granted.
_COHERE_SAYS = {
    "order_of_interleaved_layers", "position_embedding_type", "use_embedding_sharing", "use_gated_activation",
    "use_parallel_block", "use_parallel_embedding", "layer_switch",
}  # fmt: skip


def _cohere2(fields: Fields, name: str) -> Model:
    """Command R7B, Command A: three layers with a window, then one without."""
    bias, pattern = fields.flag("attention_bias"), fields.config.get("sliding_window_pattern", 4)
    checks.count(sliding_window_pattern=pattern)
    fields.seen |= {"sliding_window_pattern", "_sliding_window_pattern"}
    fields.must_equal("use_qk_norm", False, "the transformers class of cohere2 has no such norms")
    fields.seen |= _COHERE_SAYS
    window = fields.count_or_none("sliding_window")
    every = windows(fields, window=window, slides=lambda layer: (layer + 1) % pattern != 0)
    attentions = [configured_attention(fields, window=one, qkv_bias=bias, output_bias=bias) for one in every]
    return rotary_model(fields, name, attentions, [gated_mlp(fields)], norm="layernorm-no-bias", num_norms=1)


def _phi(fields: Fields, name: str) -> Model:
    """Phi 1, 1.5 and 2: attention and MLP side by side on one norm, biases everywhere, in the head too."""
    fields.must_equal("qk_layernorm", False, "no published Phi normalises its queries and keys")
    attention = configured_attention(fields, window=None, qkv_bias=True, output_bias=True)
    mlp = plain_mlp(fields, bias=True)
    return rotary_model(fields, name, [attention], [mlp], norm="layernorm", num_norms=1, head_bias=True)


def _phimoe(fields: Fields, name: str) -> Model:
    bias = fields.flag("attention_bias")
    mlp = MoeMlp(
        num_experts=fields.count("num_local_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=gated_mlp(fields),
    )
    window = fields.count_or_none("sliding_window")
    attention = configured_attention(fields, window=window, qkv_bias=bias, output_bias=bias)
    return rotary_model(fields, name, [attention], [mlp], norm="layernorm", head_bias=fields.flag("lm_head_bias"))


def _smollm3(fields: Fields, name: str) -> Model:
    fields.must_equal("use_sliding_window", False, "no published SmolLM3 uses its window")
    fields.seen |= {"sliding_window", "layer_types", "no_rope_layers", "no_rope_layer_interval", "max_window_layers"}
    return _biased(fields, name)


def _biased(fields: Fields, name: str) -> Model:
    """As Llama: one flag for all biases of attention, one for those of the MLP."""
    bias, mlp = fields.flag("attention_bias"), gated_mlp(fields, bias=fields.flag("mlp_bias"))
    return rotary_model(
        fields, name, [configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias)], [mlp]
    )


def _ministral3(fields: Fields, name: str) -> Model:
    window = fields.count_or_none("sliding_window")
    return rotary_model(fields, name, [configured_attention(fields, window=window)], [gated_mlp(fields)])


def _starcoder2(fields: Fields, name: str) -> Model:
    bias, window = fields.flag("use_bias"), fields.count_or_none("sliding_window")
    attention = configured_attention(fields, window=window, qkv_bias=bias, output_bias=bias)
    return rotary_model(fields, name, [attention], [plain_mlp(fields, bias=bias)], norm="layernorm")


def _gpt_neox(fields: Fields, name: str) -> Model:
    fields.seen.add("use_parallel_residual")  # side by side or not, attention and MLP have a norm each
    bias, heads = fields.flag("attention_bias"), fields.count("num_attention_heads")
    checks.divides(
        part="num_attention_heads", part_value=heads, whole="hidden_size", whole_value=fields.count("hidden_size")
    )
    attention = Attention(
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=fields.count("hidden_size") // heads,
        qkv_bias=bias,
        output_bias=bias,
    )
    return rotary_model(fields, name, [attention], [plain_mlp(fields, bias=True)], norm="layernorm")


# What a config of BLOOM says besides sizes: kept from the framework that trained it, and read by nothing.
_BLOOM_SAYS = {
    "apply_residual_connection_post_layernorm", "slow_but_exact", "attention_softmax_in_fp32", "masked_softmax_fusion",
    "bias_dropout_fusion", "skip_bias_add", "skip_bias_add_qkv", "offset_alibi", "unk_token_id", "n_inner",
}  # fmt: skip


def _bloom(fields: Fields, name: str) -> Model:
    """BLOOM: ALiBi in place of positions, a norm behind the input table, biases everywhere.

    Assumes: trained on 2,048 tokens, as all of them were, where the file says nothing (seq_length)
    Source:  BigScience, 2022, arXiv:2211.05100 (sequence length)
    """
    fields.seen |= _BLOOM_SAYS
    hidden, heads = fields.count_either("hidden_size", "n_embed"), fields.count_either("n_head", "num_attention_heads")
    depth = fields.count_either("n_layer", "num_hidden_layers")
    checks.divides(part="n_head", part_value=heads, whole="hidden_size", whole_value=hidden)
    if fields.config.get("n_inner") is not None:
        fields.must_equal("n_inner", 4 * hidden, "the class builds MLPs of four times the width")
    layer = Layer(
        attention=Attention(
            num_heads=heads, num_kv_heads=heads, head_dim=hidden // heads, qkv_bias=True, output_bias=True
        ),
        mlp=DenseMlp(intermediate=4 * hidden, gated=False, activation="gelu", bias=True),
        norm="layernorm",
        num_norms=2,
    )
    return Model(
        name=name,
        hidden=hidden,
        vocab=fields.count("vocab_size"),
        groups=((layer, depth),),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=fields.count("seq_length") if "seq_length" in fields.config else 2048,
        alibi=True,
        embedding_norm=True,
    )


def _seed_oss(fields: Fields, name: str) -> Model:
    """Seed-OSS: biases on queries, keys and values, and a flag of its own for the output's."""
    bias, out, mlp = fields.flag("attention_bias"), fields.flag("attention_out_bias"), fields.flag("mlp_bias")
    attention = configured_attention(fields, window=None, qkv_bias=bias, output_bias=out)
    return rotary_model(fields, name, [attention], [gated_mlp(fields, bias=mlp)])


def _ernie4_5(fields: Fields, name: str) -> Model:
    bias = fields.flag("use_bias")
    attention = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias)
    return rotary_model(fields, name, [attention], [gated_mlp(fields, bias=bias)])


def _hunyuan_dense(fields: Fields, name: str) -> Model:
    bias = fields.flag("attention_bias")
    attention = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias, qk_norm=True)
    return rotary_model(fields, name, [attention], [gated_mlp(fields)])


def _arcee(fields: Fields, name: str) -> Model:
    bias, mlp = fields.flag("attention_bias"), plain_mlp(fields, bias=fields.flag("mlp_bias"))
    attention = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias)
    return rotary_model(fields, name, [attention], [mlp])


def _granitemoe(fields: Fields, name: str) -> Model:
    bias = fields.flag("attention_bias")
    mlp = MoeMlp(
        num_experts=fields.count("num_local_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=gated_mlp(fields),
    )
    attention = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias)
    return rotary_model(fields, name, [attention], [mlp])


DENSE_FAMILIES: dict[str, Callable[[Fields, str], Model]] = {
    "gemma": _gemma1,
    "glm": lambda fields, name: _glm(fields, name, num_norms=2),
    "glm4": lambda fields, name: _glm(fields, name, num_norms=4),
    "glm4v_text": _glm4v,
    "exaone4": _exaone4,
    "olmo": _olmo,
    "olmo2": lambda fields, name: _olmo2(fields, name, slides=False),
    "olmo3": lambda fields, name: _olmo2(fields, name, slides=True),
    "olmoe": _olmoe,
    "falcon": _falcon,
    "cohere": _cohere,
    "cohere2": _cohere2,
    "phi": _phi,
    "phimoe": _phimoe,
    "granite": _biased,
    "smollm3": _smollm3,
    "ministral3": _ministral3,
    "starcoder2": _starcoder2,
    "bloom": _bloom,
    "gpt_neox": _gpt_neox,
    "seed_oss": _seed_oss,
    "ernie4_5": _ernie4_5,
    "hunyuan_v1_dense": _hunyuan_dense,
    "arcee": _arcee,
    "granitemoe": _granitemoe,
}

"""Decoders of usual layers whose classes ship with their checkpoints: InternLM 2, MiniCPM, MiniMind, the first Qwen,
ChatGLM, Phi 1.5 and 2 as they first came, and what flash-linear-attention trains (its transformer, gated delta net and
gated linear attention).

Source: modeling_internlm2.py, as OpenGVLab and Shanghai AI Laboratory publish it with their checkpoints; vLLM,
        vllm/model_executor/models/internlm2.py, minicpm.py, qwen.py and chatglm.py, https://github.com/vllm-project/vllm;
        model/model_minimind.py and its first form, model.py with LMConfig.py, https://github.com/jingyaogong/minimind;
        fla/models/*/configuration_*.py, fla/layers/attn.py, gated_deltanet.py and gla.py, fla/modules/mlp.py,
        https://github.com/fla-org/flash-linear-attention
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, Model, MoeMlp, Recurrent
from threeloops.models.hf_fields import Fields
from threeloops.models.hf_layers import configured_attention, gated_mlp, plain_mlp, rotary_model
from threeloops.models.layers.states import GatedLinear
from threeloops.models.readers.first_forms import chatglm_1, refuse_prefix
from threeloops.models.recurrent_layers import DeltaState


def _with_defaults(fields: Fields, defaults: Mapping[str, Any]) -> None:
    """What its class takes for a field that the file leaves out."""
    fields.config = {**defaults, **fields.config}


def _internlm2(fields: Fields, name: str) -> Model:
    """InternLM 2 and 2.5: Llama, with one switch for the biases of attention."""
    _with_defaults(fields, {"hidden_act": "silu", "tie_word_embeddings": False, "bias": True})
    bias = fields.flag("bias")
    attention = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias)
    return rotary_model(fields, name, [attention], [gated_mlp(fields)])


_MINICPM_SCALES = {"scale_emb", "scale_depth", "dim_model_base", "mup_denominator", "sparse_config"}


def _minicpm(fields: Fields, name: str) -> Model:
    """MiniCPM 1 to 4: Llama with scaled tables and residuals; which blocks are read of a long context costs no weight.

    Assumes: dense attention, whose cache sparse attention has, too
    """
    _with_defaults(fields, {"hidden_act": "silu", "tie_word_embeddings": True})
    fields.seen |= _MINICPM_SCALES
    fields.must_equal("num_experts", 0, "MiniCPM with experts is not described")
    attention = configured_attention(fields, window=None)
    return rotary_model(fields, name, [attention], [gated_mlp(fields)])


_QWEN_SAYS = {
    "emb_dropout_prob", "attn_dropout_prob", "bf16", "fp16", "fp32", "onnx_safe", "scale_attn_weights",
    "use_dynamic_ntk", "use_logn_attn", "tokenizer_type", "padded_vocab_size", "use_cache_quantization",
    "use_cache_kernel", "softmax_in_fp32", "visual",
}  # fmt: skip


def _qwen(fields: Fields, name: str) -> Model:
    """Qwen 1: as many KV heads as query heads, biases of queries, keys and values; the file gives the width of both
    matrices of its gated block together.
    """
    _with_defaults(fields, {"hidden_act": "silu", "tie_word_embeddings": False, "max_position_embeddings": 8192})
    fields.seen |= _QWEN_SAYS
    fields.must_equal("no_bias", True, "no published Qwen has further biases")
    heads, hidden, both = (fields.count(one) for one in ("num_attention_heads", "hidden_size", "intermediate_size"))
    checks.divides(part="2", part_value=2, whole="intermediate_size", whole_value=both)
    fields.config = {**fields.config, "intermediate_size": both // 2}
    width = fields.count("kv_channels")
    checks.divides(part="kv_channels", part_value=width, whole="hidden_size", whole_value=hidden)
    fields.must_equal("num_attention_heads", hidden // width, "it is hidden_size / kv_channels")
    attention = Attention(num_heads=heads, num_kv_heads=heads, head_dim=width, qkv_bias=True)
    return rotary_model(fields, name, [attention], [gated_mlp(fields)])


_CHATGLM_SAYS = {
    "apply_query_key_layer_scaling", "attention_softmax_in_fp32", "bias_dropout_fusion", "fp32_residual_connection",
    "layernorm_epsilon", "original_rope", "rope_ratio", "rmsnorm", "post_layer_norm", "seq_length",
    "prefix_projection", "vocab_size", "num_hidden_layers",
}  # fmt: skip


def _chatglm(fields: Fields, name: str) -> Model:
    """ChatGLM 2 and 3, and GLM 4 under that name: few KV heads, biases of queries, keys and values."""
    fields.seen |= _CHATGLM_SAYS
    if "inner_hidden_size" in fields.config:
        return chatglm_1(fields, name)
    refuse_prefix(fields)
    only = {"add_bias_linear": False, "rmsnorm": True, "post_layer_norm": True}
    for field, value in (only | {"apply_residual_connection_post_layernorm": False}).items():
        fields.must_equal(field, value, "no published ChatGLM has the other")
    moved = {"num_hidden_layers": "num_layers", "intermediate_size": "ffn_hidden_size", "head_dim": "kv_channels"}
    moved |= {"vocab_size": "padded_vocab_size", "max_position_embeddings": "seq_length"}
    own = {name: fields.count(other) for name, other in moved.items()}
    fields.config = {"hidden_act": "silu", "tie_word_embeddings": False, **fields.config, **own}
    heads = fields.count("num_attention_heads")
    attention = Attention(
        num_heads=heads,
        num_kv_heads=fields.count("multi_query_group_num") if fields.flag("multi_query_attention") else heads,
        head_dim=fields.count("head_dim"),
        qkv_bias=fields.flag("add_qkv_bias"),
    )
    return rotary_model(fields, name, [attention], [gated_mlp(fields)])


# MiniMind's first names -> those of today.
_MINIMIND_OLD = {
    "dim": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads", "hidden_dim": "intermediate_size", "max_seq_len": "max_position_embeddings",
}  # fmt: skip
_MINIMIND_SAYS = {"flash_attn", "multiple_of", "use_moe", "n_routed_experts", "n_shared_experts", "num_experts"}
_MINIMIND_SAYS |= {"num_experts_per_tok", "moe_intermediate_size", "inference_rope_scaling"}


def _minimind(fields: Fields, name: str) -> Model:
    """MiniMind: Llama in its first form, with norms of queries and keys and with experts in today's."""
    fields.seen |= _MINIMIND_SAYS
    first = "n_layers" in fields.config
    if first:
        fields.config = {_MINIMIND_OLD.get(field, field): value for field, value in fields.config.items()}
        fields.must_equal("use_moe", False, "experts of MiniMind's first form are not described")
    hidden = fields.count("hidden_size")
    multiple = fields.count("multiple_of") if first else 64
    width = 2 * 4 * hidden // 3 if first else math.ceil(hidden * math.pi)
    usual = {"hidden_act": "silu", "tie_word_embeddings": True, "num_attention_heads": 8}
    _with_defaults(fields, usual | {"num_key_value_heads": 2 if first else 4, "max_position_embeddings": 32768})
    if fields.config.get("intermediate_size") is None:
        fields.config = {**fields.config, "intermediate_size": multiple * -(-width // multiple)}
    dense = gated_mlp(fields)
    mlp: DenseMlp | MoeMlp = dense
    if fields.config.get("use_moe"):
        _with_defaults(
            fields, {"num_experts": 4, "num_experts_per_tok": 1, "moe_intermediate_size": dense.intermediate}
        )
        expert = gated_mlp(fields, intermediate="moe_intermediate_size")
        fields.must_equal("n_shared_experts", None, "experts that all tokens share are not described")
        mlp = MoeMlp(num_experts=fields.count("num_experts"), top_k=fields.count("num_experts_per_tok"), expert=expert)
    return rotary_model(fields, name, [configured_attention(fields, window=None, qk_norm=not first)], [mlp])


_MIXFORMER = {
    "n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
    "n_inner": "intermediate_size", "n_positions": "max_position_embeddings", "activation_function": "hidden_act",
    "n_head_kv": "num_key_value_heads",
}  # fmt: skip
_MIXFORMER_SAYS = {"architecture", "embd_layer", "phyagi_version", "flash_rotary", "fused_dense", "flash_attn"}


def _mixformer(fields: Fields, name: str) -> Model:
    """Phi 1.5 and 2 under their first type: attention and MLP side by side on one norm, biases everywhere."""
    own = fields.config.get("architecture") or {"block_cls": "parallel"}  # what its class takes for none
    if not isinstance(own, Mapping) or own.get("block_cls") != "parallel":
        raise ValueError("architecture must have block_cls='parallel', as every published file of this type has")
    if own.get("mixer") or own.get("mlp_cls", "mlp") not in ("mlp", "fused_mlp"):
        raise ValueError(
            "architecture must have no fields of a mixer and mlp_cls 'mlp' or 'fused_mlp': others build else"
        )
    fields.seen |= _MIXFORMER_SAYS
    fields.config = {_MIXFORMER.get(field, field): value for field, value in fields.config.items()}
    if fields.config.get("intermediate_size") is None:
        fields.config = {**fields.config, "intermediate_size": 4 * fields.count("hidden_size")}
    _with_defaults(fields, {"tie_word_embeddings": False, "num_key_value_heads": None})
    attention = configured_attention(fields, window=None, qkv_bias=True, output_bias=True)
    mlp = plain_mlp(fields, bias=True)
    return rotary_model(fields, name, [attention], [mlp], norm="layernorm", num_norms=1, head_bias=True)


# What all of flash-linear-attention's classes take for granted.
_FLA = {
    "hidden_act": "swish", "hidden_ratio": 4, "intermediate_size": None, "max_position_embeddings": 2048,
    "tie_word_embeddings": False, "vocab_size": 32000,
}  # fmt: skip
_FLA_SAYS = {"attn_mode", "use_l2warp", "allow_neg_eigval", "clamp_min", "attention_bias", "chunk_size"}


def _fla(fields: Fields, name: str, mixer: Callable[[Fields], Attention | Recurrent]) -> Model:
    """One kind of layer throughout, a gated block behind each."""
    _with_defaults(fields, _FLA)
    fields.seen |= _FLA_SAYS | {"hidden_ratio"}
    for field, only in (("attn", None), ("attnres_block_size", None), ("elementwise_affine", True)):
        fields.must_equal(field, only, "layers of another kind between these are not described")
    if fields.config["intermediate_size"] is None:
        ratio = fields.config["hidden_ratio"]
        checks.positive(hidden_ratio=ratio)
        width = int(fields.count("hidden_size") * ratio * 2 / 3)
        fields.config = {**fields.config, "intermediate_size": 256 * -(-width // 256)}
    return rotary_model(fields, name, [mixer(fields)], [gated_mlp(fields)])


def _fla_attention(fields: Fields) -> Attention:
    _with_defaults(fields, {"num_heads": 32, "num_kv_heads": None, "qkv_bias": False, "qk_norm": False})
    _with_defaults(fields, {"window_size": None})
    heads, hidden = fields.count("num_heads"), fields.count("hidden_size")
    kv_heads = fields.count_or_none("num_kv_heads") or heads
    checks.divides(part="num_heads", part_value=heads, whole="hidden_size", whole_value=hidden)
    checks.divides(part="num_kv_heads", part_value=kv_heads, whole="num_heads", whole_value=heads)
    return Attention(
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=hidden // heads,
        window=fields.count_or_none("window_size"),
        qkv_bias=fields.flag("qkv_bias"),
        qk_norm=fields.flag("qk_norm"),
    )


def _whole(fields: Fields, field: str, size: int) -> int:
    """A width that a field stretches."""
    factor = fields.get(field)
    checks.positive(**{field: factor})
    if int(size * factor) != size * factor:
        raise ValueError(f"{field}={factor} times {size:,} must be a whole number")
    return int(size * factor)


def _fla_delta(fields: Fields) -> DeltaState:
    usual = {"head_dim": 256, "num_heads": 6, "num_v_heads": None, "expand_v": 2.0, "conv_size": 4}
    _with_defaults(fields, usual)
    for field in ("use_gate", "use_short_conv"):
        fields.must_equal(field, True, "a layer without it is not described")
    heads, width = fields.count("num_heads"), fields.count("head_dim")
    return DeltaState(
        key_heads=heads,
        value_heads=fields.count_or_none("num_v_heads") or heads,
        key_head_dim=width,
        value_head_dim=_whole(fields, "expand_v", width),
        conv_entries=fields.count("conv_size"),
    )


def _fla_gla(fields: Fields) -> GatedLinear:
    _with_defaults(fields, {"num_heads": 4, "num_kv_heads": None, "expand_k": 0.5, "expand_v": 1.0})
    fields.seen |= {"use_gk", "conv_size"}
    for field, only in (("use_gv", False), ("use_short_conv", False), ("use_output_gate", True), ("use_gk", True)):
        fields.must_equal(field, only, "the other form of these layers is not described")
    fields.must_equal("feature_map", None, "the other form of these layers is not described")
    heads, hidden = fields.count("num_heads"), fields.count("hidden_size")
    fields.must_equal("num_kv_heads", heads, "heads that share keys are not described")
    keys, values = _whole(fields, "expand_k", hidden), _whole(fields, "expand_v", hidden)
    for whole, value in (("expand_k * hidden_size", keys), ("expand_v * hidden_size", values)):
        checks.divides(part="num_heads", part_value=heads, whole=whole, whole_value=value)
    return GatedLinear(num_heads=heads, key_head_dim=keys // heads, value_head_dim=values // heads)


SHIPS_ITS_CODE: dict[str, Callable[[Fields, str], Model]] = {
    "internlm2": _internlm2,
    "minicpm": _minicpm,
    "minimind": _minimind,
    "qwen": _qwen,
    "chatglm": _chatglm,
    "mixformer-sequential": _mixformer,
    "transformer": lambda fields, name: _fla(fields, name, _fla_attention),
    "gated_deltanet": lambda fields, name: _fla(fields, name, _fla_delta),
    "gla": lambda fields, name: _fla(fields, name, _fla_gla),
}

"""How each family of checkpoints builds its layers: one reader per model_type.

Source: modeling_*.py and configuration_*.py of Hugging Face transformers 5.23.0,
        https://github.com/huggingface/transformers
"""

from collections.abc import Callable

from threeloops import checks
from threeloops.models.architecture import DenseMlp, LatentAttention, Model, MoeMlp
from threeloops.models.hf_fields import Fields
from threeloops.models.hf_layers import configured_attention, gated_mlp, learned_position_model, rotary_model, windows


def _gpt2(fields: Fields, name: str) -> Model:
    intermediate = fields.count_or_none("n_inner") or 4 * fields.count("n_embd")
    num_positions = fields.count("n_positions")
    sizes = {"hidden": "n_embd", "num_heads": "n_head", "num_layers": "n_layer"}
    return learned_position_model(
        fields,
        name,
        **sizes,
        intermediate=intermediate,
        max_context=num_positions,
        learned_positions=num_positions,
        bias=True,
    )


def _opt(fields: Fields, name: str) -> Model:
    if fields.get("word_embed_proj_dim") is not None:
        fields.must_equal(
            "word_embed_proj_dim",
            fields.count("hidden_size"),
            "a narrower embedding adds two projections that no layer here describes",
        )
    num_positions = fields.count("max_position_embeddings")
    return learned_position_model(
        fields,
        name,
        hidden="hidden_size",
        num_heads="num_attention_heads",
        num_layers="num_hidden_layers",
        intermediate=fields.count("ffn_dim"),
        max_context=num_positions,
        # OPT looks positions up two rows further on, so its table has two rows more.
        learned_positions=num_positions + 2,
        bias=fields.flag("enable_bias"),
    )


def _llama(fields: Fields, name: str) -> Model:
    bias = fields.flag("attention_bias")
    mlp = gated_mlp(fields, bias=fields.flag("mlp_bias"))
    return rotary_model(
        fields, name, [configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias)], [mlp]
    )


def _mistral(fields: Fields, name: str) -> Model:
    return rotary_model(
        fields, name, [configured_attention(fields, window=fields.count_or_none("sliding_window"))], [gated_mlp(fields)]
    )


def _mixtral(fields: Fields, name: str) -> Model:
    mlp = MoeMlp(
        num_experts=fields.count("num_local_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=gated_mlp(fields),
    )
    return rotary_model(
        fields, name, [configured_attention(fields, window=fields.count_or_none("sliding_window"))], [mlp]
    )


def _phi3(fields: Fields, name: str) -> Model:
    return rotary_model(
        fields, name, [configured_attention(fields, window=fields.count_or_none("sliding_window"))], [gated_mlp(fields)]
    )


def _gemma(fields: Fields, name: str, *, qk_norm: bool, slides: Callable[[int], bool]) -> Model:
    """Gemma 2 and 3: windows in a repeating pattern, and a norm on the way out of each sub-block too."""
    if fields.config.get("use_bidirectional_attention") is not None:
        fields.must_equal("use_bidirectional_attention", False, "text read in both directions is another kind of model")
    fields.seen |= {"use_bidirectional_attention", "hidden_act"}  # the class reads hidden_activation
    bias, mlp = fields.flag("attention_bias"), gated_mlp(fields, act="hidden_activation")
    layer_windows = windows(fields, window=fields.count_or_none("sliding_window"), slides=slides)
    attentions = [
        configured_attention(fields, window=window, qkv_bias=bias, output_bias=bias, qk_norm=qk_norm)
        for window in layer_windows
    ]
    return rotary_model(fields, name, attentions, [mlp], num_norms=4)


def _gemma2(fields: Fields, name: str) -> Model:
    return _gemma(fields, name, qk_norm=False, slides=lambda layer: layer % 2 == 0)


def _gemma3(fields: Fields, name: str) -> Model:
    pattern = fields.config.get("sliding_window_pattern", 6)  # five layers with a window, then one without
    checks.count(sliding_window_pattern=pattern)
    fields.seen |= {"sliding_window_pattern", "_sliding_window_pattern"}
    return _gemma(fields, name, qk_norm=True, slides=lambda layer: (layer + 1) % pattern != 0)


def _qwen_windows(fields: Fields) -> list[int | None]:
    """Qwen's window is off unless use_sliding_window says so, and starts at layer max_window_layers."""
    window, first = fields.count_or_none("sliding_window"), fields.count("max_window_layers", at_least=0)
    in_use = window if fields.flag("use_sliding_window") else None
    return windows(fields, window=in_use, slides=lambda layer: layer >= first)


def _qwen2(fields: Fields, name: str) -> Model:
    mlp = gated_mlp(fields)
    attentions = [configured_attention(fields, window=window, qkv_bias=True) for window in _qwen_windows(fields)]
    return rotary_model(fields, name, attentions, [mlp])


def _qwen3(fields: Fields, name: str) -> Model:
    bias, mlp = fields.flag("attention_bias"), gated_mlp(fields)
    attentions = [
        configured_attention(fields, window=window, qkv_bias=bias, output_bias=bias, qk_norm=True)
        for window in _qwen_windows(fields)
    ]
    return rotary_model(fields, name, attentions, [mlp])


def _qwen3_moe(fields: Fields, name: str) -> Model:
    fields.must_equal(
        "use_sliding_window", False, "no published Qwen3 MoE uses its window, and max_window_layers is not read"
    )
    fields.seen |= {"sliding_window", "max_window_layers"}
    bias, step, dense_layers = (
        fields.flag("attention_bias"),
        fields.count("decoder_sparse_step"),
        fields.list_or_none("mlp_only_layers") or (),
    )
    dense, expert = gated_mlp(fields), gated_mlp(fields, intermediate="moe_intermediate_size")
    # transformers 5 saves it under the second name
    num_experts = fields.count_either("num_experts", "num_local_experts")
    sparse = MoeMlp(num_experts=num_experts, top_k=fields.count("num_experts_per_tok"), expert=expert)
    mlps = [
        sparse if layer not in dense_layers and (layer + 1) % step == 0 else dense
        for layer in range(fields.count("num_hidden_layers"))
    ]
    return rotary_model(
        fields, name, [configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias, qk_norm=True)], mlps
    )


def _gpt_oss(fields: Fields, name: str) -> Model:
    bias, top_k = fields.flag("attention_bias"), fields.count_either("num_experts_per_tok", "experts_per_token")
    num_experts = fields.count_either("num_local_experts", "num_experts")
    mlp = MoeMlp(num_experts=num_experts, top_k=top_k, expert=gated_mlp(fields, bias=True), router_bias=True)
    layer_windows = windows(fields, window=fields.count_or_none("sliding_window"), slides=lambda layer: layer % 2 == 0)
    attentions = [
        configured_attention(fields, window=window, qkv_bias=bias, output_bias=bias, sinks=True)
        for window in layer_windows
    ]
    return rotary_model(fields, name, attentions, [mlp])


def _latent_attention(fields: Fields) -> LatentAttention:
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
    fields.must_equal("head_dim", rope, "it is a second name of qk_rope_head_dim")
    return LatentAttention(
        num_heads=num_heads,
        q_rank=fields.count_or_none("q_lora_rank"),
        kv_rank=fields.count("kv_lora_rank"),
        nope_head_dim=nope,
        rope_head_dim=rope,
        value_head_dim=fields.count("v_head_dim"),
        bias=fields.flag("attention_bias"),
    )


def _deepseek(fields: Fields, name: str, *, mlp_bias: bool, correction_bias: bool) -> Model:
    """DeepSeek-V2 and V3: the first layers dense, then routed experts with shared ones beside them."""
    fields.must_equal(
        "moe_layer_freq", 1, "the transformers class puts experts in every layer from first_k_dense_replace on"
    )
    first, num_shared = fields.count("first_k_dense_replace", at_least=0), fields.count("n_shared_experts")
    expert = gated_mlp(fields, intermediate="moe_intermediate_size")
    dense = gated_mlp(fields, bias=mlp_bias)
    sparse = MoeMlp(
        num_experts=fields.count("n_routed_experts"),
        top_k=fields.count("num_experts_per_tok"),
        expert=expert,
        shared=DenseMlp(
            intermediate=num_shared * expert.intermediate, gated=True, activation=expert.activation, bias=mlp_bias
        ),
        correction_bias=correction_bias,
    )
    mlps = [sparse if layer >= first else dense for layer in range(fields.count("num_hidden_layers"))]
    return rotary_model(fields, name, [_latent_attention(fields)], mlps)


def _deepseek_v2(fields: Fields, name: str) -> Model:
    return _deepseek(fields, name, mlp_bias=fields.flag("mlp_bias"), correction_bias=False)


def _deepseek_v3(fields: Fields, name: str) -> Model:
    return _deepseek(fields, name, mlp_bias=False, correction_bias=True)


FAMILIES: dict[str, Callable[[Fields, str], Model]] = {
    "gpt2": _gpt2,
    "opt": _opt,
    "llama": _llama,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "deepseek_v2": _deepseek_v2,
    "deepseek_v3": _deepseek_v3,
    "gpt_oss": _gpt_oss,
    "phi3": _phi3,
}

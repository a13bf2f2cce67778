"""How each family of checkpoints builds its layers: one reader per model_type.

Source: modeling_*.py and configuration_*.py of Hugging Face transformers 5.23.0,
        https://github.com/huggingface/transformers
"""

from collections.abc import Callable

from threeloops import checks
from threeloops.models.architecture import Model, MoeMlp
from threeloops.models.hf_dense_families import DENSE_FAMILIES
from threeloops.models.hf_expert_families import EXPERT_FAMILIES
from threeloops.models.hf_fields import Fields
from threeloops.models.hf_hybrid_families import HYBRID_FAMILIES
from threeloops.models.hf_layers import configured_attention, gated_mlp, learned_position_model, rotary_model, windows
from threeloops.models.readers.compressed_attention import COMPRESSED_FAMILIES
from threeloops.models.readers.experts import FURTHER_EXPERTS
from threeloops.models.readers.further_dense import FURTHER_DENSE
from threeloops.models.readers.gemma import GEMMA_FAMILIES
from threeloops.models.readers.hybrids import NEW_HYBRIDS
from threeloops.models.readers.scans import SCANS
from threeloops.models.readers.uneven import UNEVEN


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
    """Phi 3 and 4; Phi-4-mini's files have three fields more, which its class does not read."""
    fields.must_equal("lm_head_bias", False, "the transformers class has none")
    fields.must_equal("mlp_bias", False, "the transformers class has none")
    fields.seen |= {"full_attn_mod", "interpolate_factor"}
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
    if not fields.flag("use_sliding_window"):
        fields.seen |= {"sliding_window", "max_window_layers"}
        return windows(fields, window=None, slides=lambda _: False)
    window, first = fields.count_or_none("sliding_window"), fields.count("max_window_layers", at_least=0)
    return windows(fields, window=window, slides=lambda layer: layer >= first)


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


def _qwen3_vl(fields: Fields, name: str) -> Model:
    bias = fields.flag("attention_bias")
    attention = configured_attention(fields, window=None, qkv_bias=bias, output_bias=bias, qk_norm=True)
    return rotary_model(fields, name, [attention], [gated_mlp(fields)])


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


FAMILIES: dict[str, Callable[[Fields, str], Model]] = {
    "gpt2": _gpt2,
    "opt": _opt,
    "llama": _llama,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "qwen2": _qwen2,
    "qwen2_vl_text": _qwen2,
    "qwen2_5_vl_text": _qwen2,
    "qwen2_5_omni_text": _qwen2,
    "qwen3": _qwen3,
    "qwen3_vl_text": _qwen3_vl,
    "gpt_oss": _gpt_oss,
    "phi3": _phi3,
    **DENSE_FAMILIES,
    **EXPERT_FAMILIES,
    **FURTHER_EXPERTS,
    **HYBRID_FAMILIES,
    **GEMMA_FAMILIES,
    **NEW_HYBRIDS,
    **FURTHER_DENSE,
    **COMPRESSED_FAMILIES,
    **SCANS,
    **UNEVEN,
}

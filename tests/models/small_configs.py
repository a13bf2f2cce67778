"""One small config of each family, and what transformers builds from it."""

from collections.abc import Iterable

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
from transformers.models.mistral4 import Mistral4ForCausalLM
from transformers.models.qwen2_5_omni import Qwen2_5OmniThinkerForConditionalGeneration
from transformers.models.qwen3_omni_moe import Qwen3OmniMoeThinkerForConditionalGeneration
from transformers.models.voxtral import VoxtralForConditionalGeneration

from threeloops.models import catalogue
from threeloops.models.architecture import Attention, LatentAttention

# One small config per family, no two sizes equal, so that a swapped field shows.
ROTARY = {
    "hidden_size": 48,
    "intermediate_size": 70,
    "num_hidden_layers": 5,
    "num_attention_heads": 6,
    "max_position_embeddings": 96,
    "vocab_size": 131,
}
GQA = ROTARY | {"num_key_value_heads": 3, "hidden_act": "silu"}
MLA = {
    "q_lora_rank": 22,
    "kv_lora_rank": 14,
    "qk_nope_head_dim": 10,
    "qk_rope_head_dim": 4,
    "v_head_dim": 9,
    "hidden_act": "silu",
}
DEEPSEEK = (
    ROTARY
    | MLA
    | {
        "moe_intermediate_size": 26,
        "n_routed_experts": 8,
        "n_shared_experts": 2,
        "num_experts_per_tok": 3,
        "first_k_dense_replace": 2,
    }
)
DEEPSEEK_MOE = {name: value for name, value in DEEPSEEK.items() if name not in MLA}
INDEXER = {"index_n_heads": 3, "index_head_dim": 11, "index_topk": 9, "n_group": 2, "topk_group": 1}
SHARED = {
    "num_experts": 7,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 26,
    "shared_expert_intermediate_size": 30,
}
LINEAR = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 5,
    "linear_value_head_dim": 7,
    "linear_conv_kernel_dim": 4,
}
SHARED_EXPERTS_OF_ONE = {
    "num_experts": 7,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 26,
    "num_shared_experts": 2,
}
NEMOTRON = {
    "hidden_size": 48,
    "vocab_size": 131,
    "hybrid_override_pattern": "MEM*-ME",
    "num_hidden_layers": 7,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "head_dim": 20,
    "max_position_embeddings": 96,
    "intermediate_size": 70,
    "mlp_hidden_act": "relu2",
    "mamba_num_heads": 8,
    "mamba_head_dim": 5,
    "ssm_state_size": 11,
    "n_groups": 2,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 26,
    "moe_shared_expert_intermediate_size": 30,
}
GRANITE = {
    "num_local_experts": 7,
    "num_experts_per_tok": 2,
    "shared_intermediate_size": 30,
    "mamba_n_heads": 8,
    "mamba_d_state": 11,
    "mamba_n_groups": 2,
    "layer_types": ["mamba", "attention", "mamba", "mamba", "attention"],
}
QWEN_MOE = GQA | {"head_dim": 20, "num_experts": 7, "num_experts_per_tok": 2, "moe_intermediate_size": 26}
GEMMA = ROTARY | {
    "num_key_value_heads": 3,
    "head_dim": 20,
    "hidden_activation": "gelu_pytorch_tanh",
    "sliding_window": 17,
}
OWN_INPUTS = {"vocab_size_per_layer_input": 130, "hidden_size_per_layer_input": 8}
MAMBA_1 = {"mamba_d_state": 11, "mamba_dt_rank": 5, "attn_layer_period": 3, "attn_layer_offset": 1}
FALCON_H1 = {"mamba_d_ssm": 40, "mamba_n_heads": 8, "mamba_d_state": 11, "mamba_n_groups": 2, "mamba_chunk_size": 16}
KIMI = {
    "linear_attn_config": {
        "full_attn_layers": [3, 5],
        "kda_layers": [1, 2, 4],
        "head_dim": 7,
        "num_heads": 4,
        "short_conv_kernel_size": 3,
    },
    "num_experts": 8,
    "num_experts_per_token": 3,
    "num_shared_experts": 2,
    "moe_intermediate_size": 26,
    "pad_token_id": 0,
}
V4 = {
    "hidden_size": 48,
    "vocab_size": 131,
    "num_hidden_layers": 5,
    "num_attention_heads": 6,
    "head_dim": 16,
    "q_lora_rank": 22,
    "moe_intermediate_size": 26,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "max_position_embeddings": 96,
    "compress_ratios": [0, 4, 128, 4, 0],
    "compress_rate_hca": 8,
    "num_hash_layers": 2,
    "sliding_window": 7,
    "o_groups": 2,
    "o_lora_rank": 9,
    "hc_mult": 3,
    "index_n_heads": 3,
    "index_head_dim": 8,
    "index_topk": 2,
    "qk_rope_head_dim": 4,
}
M3 = {
    "head_dim": 20,
    "num_local_experts": 7,
    "num_experts_per_tok": 2,
    "dense_intermediate_size": 90,
    "shared_intermediate_size": 30,
    "rotary_dim": 4,
    "moe_layer_freq": [0, 1, 1, 1, 1],
    "sparse_attention_config": {
        "sparse_num_index_heads": 3,
        "sparse_index_dim": 12,
        "sparse_block_size": 4,
        "sparse_topk_blocks": 2,
        "sparse_attention_freq": [0, 0, 1, 1, 1],
    },
}
STEP = {
    "head_dim": 20,
    "num_sliding_attention_heads": 9,
    "sliding_window": 17,
    "layer_types": ["full_attention"] + ["sliding_attention"] * 3 + ["full_attention"],
    "n_routed_experts": 7,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 26,
    "share_expert_dim": 30,
    "tie_word_embeddings": False,
}
BAMBA = {"mamba_n_heads": 8, "mamba_d_state": 11, "mamba_n_groups": 2, "attn_layer_indices": [1, 4]}
ZAMBA = {
    "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid", "hybrid"],
    "mamba_d_state": 11,
    "mamba_ngroups": 2,
    "n_mamba_heads": 8,
    "num_mem_blocks": 2,
    "adapter_rank": 5,
}
LAGUNA = {
    "head_dim": 20,
    "num_attention_heads_per_layer": [6, 9, 9, 6, 9],
    "layer_types": ["full_attention", "sliding_attention"] * 2 + ["full_attention"],
    "sliding_window": 17,
    "num_experts": 7,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 26,
    "shared_expert_intermediate_size": 30,
}
MIMO = {
    "head_dim": 20,
    "v_head_dim": 12,
    "sliding_window": 17,
    "num_attention_heads": 6,
    "num_key_value_heads": 1,
    "n_routed_experts": 7,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 26,
}
SMALL = {
    "gpt2": {"n_embd": 48, "n_layer": 5, "n_head": 6, "n_positions": 96, "vocab_size": 131},
    "opt": (
        {k: v for k, v in ROTARY.items() if k != "intermediate_size"} | {"ffn_dim": 70, "activation_function": "relu"}
    ),
    "llama": GQA,
    "mistral": GQA | {"sliding_window": 17},
    "mixtral": GQA | {"num_local_experts": 7, "num_experts_per_tok": 2},
    "gemma2": GEMMA,
    "gemma3_text": GEMMA,
    "qwen2": GQA,
    "qwen2_vl_text": GQA | {"tie_word_embeddings": False},
    "qwen2_5_vl_text": GQA | {"tie_word_embeddings": True},
    "seed_oss": GQA | {"head_dim": 20, "attention_out_bias": True},
    "ernie4_5": GQA | {"head_dim": 20, "use_bias": True},
    "hunyuan_v1_dense": GQA | {"head_dim": 20, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
    "arcee": GQA | {"hidden_act": "relu2"},
    "granitemoe": GQA | {"num_local_experts": 7, "num_experts_per_tok": 2},
    "mistral4": DEEPSEEK | {"n_group": 2, "topk_group": 1, "pad_token_id": 0},
    "qwen3": GQA | {"head_dim": 20},
    "qwen3_moe": QWEN_MOE,
    "deepseek_v2": DEEPSEEK,
    "deepseek_v3": DEEPSEEK | {"n_group": 2, "topk_group": 1},
    "gpt_oss": GQA | {"head_dim": 20, "num_local_experts": 7, "num_experts_per_tok": 2, "sliding_window": 17},
    "phi3": GQA | {"pad_token_id": 0},
    "gemma": GQA | {"head_dim": 20, "hidden_act": "gelu_pytorch_tanh"},
    "glm": GQA | {"head_dim": 20, "pad_token_id": 0},
    "glm4": GQA | {"head_dim": 20, "pad_token_id": 0},
    "olmo": GQA,
    "olmo2": GQA,
    "olmo3": GQA | {"sliding_window": 17},
    "olmoe": GQA | {"num_experts": 7, "num_experts_per_tok": 2},
    "falcon": {name: value for name, value in ROTARY.items() if name != "intermediate_size"},
    "cohere": GQA,
    "cohere2": GQA | {"sliding_window": 17},
    "phi": GQA | {"hidden_act": "gelu_new"},
    "phimoe": GQA | {"num_local_experts": 7, "num_experts_per_tok": 2},
    "granite": GQA,
    "smollm3": GQA | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
    "ministral3": GQA | {"head_dim": 20},
    "starcoder2": GQA | {"hidden_act": "gelu_pytorch_tanh"},
    "bloom": {"hidden_size": 48, "n_layer": 5, "n_head": 6, "vocab_size": 131},
    "gpt_neox": ROTARY,
    "qwen2_moe": GQA | SHARED,
    "qwen3_vl_text": GQA | {"head_dim": 20, "tie_word_embeddings": True},
    "qwen3_vl_moe_text": QWEN_MOE | {"tie_word_embeddings": False},
    "llama4_text": GQA
    | {
        "head_dim": 20,
        "intermediate_size_mlp": 90,
        "num_local_experts": 7,
        "num_experts_per_tok": 2,
        "attention_chunk_size": 17,
    },
    "glm4_moe": DEEPSEEK_MOE | GQA | {"head_dim": 20},
    "glm4_moe_lite": DEEPSEEK | {"first_k_dense_replace": 1},
    "minimax_m2": GQA | {"head_dim": 20, "num_local_experts": 7, "num_experts_per_tok": 2},
    "deepseek_v32": DEEPSEEK | INDEXER,
    "glm_moe_dsa": DEEPSEEK | INDEXER,
    "qwen3_next": GQA | LINEAR | SHARED | {"head_dim": 20},
    "qwen3_5_text": GQA | LINEAR | {"head_dim": 20},
    "qwen3_5_moe_text": GQA | LINEAR | SHARED | {"head_dim": 20},
    "nemotron_h": NEMOTRON,
    "granitemoehybrid": GQA | GRANITE,
    "gemma3n_text": GEMMA | OWN_INPUTS | {"num_kv_shared_layers": 0, "altup_num_inputs": 3, "laurel_rank": 5},
    "gemma4_text": GEMMA | OWN_INPUTS | {"global_head_dim": 28, "num_hidden_layers": 7},
    "gemma4_unified_text": GEMMA | {"global_head_dim": 28, "num_hidden_layers": 7},
    "falcon_h1": GQA | FALCON_H1,
    "jamba": GQA | MAMBA_1 | {"num_experts": 7, "num_experts_per_tok": 2},
    "lfm2": {name: value for name, value in GQA.items() if name != "hidden_act"}
    | {"block_multiple_of": 16, "full_attn_idxs": [1, 4]},
    "lfm2_moe": {name: value for name, value in GQA.items() if name != "hidden_act"}
    | {
        "num_experts": 7,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 26,
        "layer_types": ["conv", "conv", "full_attention", "conv", "full_attention"],
    },
    "kimi_linear": ROTARY | MLA | KIMI,
    "deepseek_v4": V4,
    "minimax_m3_vl_text": GQA | M3,
    "qwen2_5_omni_text": GQA | {"tie_word_embeddings": False},
    "qwen3_omni_moe_text": QWEN_MOE | {"tie_word_embeddings": False},
    "glm4v_text": GQA | {"tie_word_embeddings": False},
    "glm4v_moe_text": DEEPSEEK_MOE | GQA | {"head_dim": 20, "tie_word_embeddings": False},
    "exaone4": GQA | {"sliding_window": 17},
    "ernie4_5_moe": GQA
    | {
        "head_dim": 20,
        "moe_num_experts": 7,
        "moe_k": 2,
        "moe_intermediate_size": 26,
        "moe_num_shared_experts": 2,
        "moe_layer_start_index": 2,
    },
    "dots1": DEEPSEEK_MOE | GQA | {"head_dim": 20, "sliding_window": 17, "max_window_layers": 3},
    "hunyuan_v1_moe": GQA | {"head_dim": 20, "num_experts": 7, "moe_topk": 2, "sep_token_id": 4, "eod_token_id": 3},
    "stablelm": GQA,
    "nemotron": GQA | {"hidden_act": "relu2", "head_dim": 20},
    "helium": GQA | {"head_dim": 8},
    "cwm": GQA | {"head_dim": 20, "sliding_window": 17},
    "ministral": GQA
    | {
        "sliding_window": 17,
        "head_dim": 20,
        "layer_types": ["full_attention", "sliding_attention"] * 2 + ["full_attention"],
    },
    "gptj": {
        "n_embd": 48,
        "n_layer": 3,
        "n_head": 6,
        "n_positions": 96,
        "vocab_size": 131,
        "rotary_dim": 4,
        "activation_function": "gelu_new",
    },
    "gpt_bigcode": {"n_embd": 48, "n_layer": 3, "n_head": 6, "n_positions": 96, "vocab_size": 131, "n_inner": 70},
    "mpt": {"d_model": 48, "n_layers": 3, "n_heads": 6, "max_seq_len": 96, "vocab_size": 131},
    "exaone_moe": GQA | SHARED_EXPERTS_OF_ONE | {"sliding_window": 17},
    "solar_open": {
        k: v for k, v in (DEEPSEEK_MOE | GQA).items() if k not in ("intermediate_size", "first_k_dense_replace")
    }
    | {"head_dim": 20},
    "step3p5": GQA | STEP,
    "dbrx": {
        "d_model": 48,
        "n_layers": 5,
        "n_heads": 6,
        "max_seq_len": 96,
        "vocab_size": 131,
        "attn_config": {"kv_n_heads": 3, "clip_qkv": 8, "rope_theta": 500000},
        "ffn_config": {"ffn_hidden_size": 26, "moe_num_experts": 7, "moe_top_k": 2},
    },
    "phi4_multimodal": GQA | {"pad_token_id": 0},
    "bamba": GQA | BAMBA,
    "mamba2": {
        "hidden_size": 48,
        "state_size": 11,
        "num_hidden_layers": 5,
        "vocab_size": 131,
        "num_heads": 8,
        "head_dim": 12,
        "n_groups": 2,
        "conv_kernel": 3,
    },
    "mamba": {"hidden_size": 48, "state_size": 11, "num_hidden_layers": 5, "vocab_size": 131, "conv_kernel": 3},
    "falcon_mamba": {"hidden_size": 48, "state_size": 11, "num_hidden_layers": 5, "vocab_size": 131, "expand": 3},
    "recurrent_gemma": {
        "hidden_size": 48,
        "intermediate_size": 70,
        "num_hidden_layers": 5,
        "num_attention_heads": 6,
        "num_key_value_heads": 3,
        "vocab_size": 131,
        "lru_width": 60,
        "attention_window_size": 17,
        "conv1d_width": 3,
    },
    "zamba2": ROTARY | ZAMBA,
    "laguna": GQA | LAGUNA,
    "mimo_v2_flash": GQA | MIMO,
}


# Of these transformers has no class; `readers/test_own_code.py` holds them against the code that ships with them.
OWN_CODE = ("kimi-k3", "mimo-7b")


def attending(keys: Iterable[str]) -> list[str]:
    """The catalogued models whose layers all have an MLP and attention to every token, and nothing beside: others are
    counted in part only.
    """
    return [
        key
        for key in keys
        if all(
            isinstance(layer.attention, Attention | LatentAttention)
            and not getattr(layer.attention, "indexer", None)
            and layer.mlp is not None
            and not layer.unusual
            for layer, _ in catalogue.model(key).groups
        )
    ]


def small(model_type: str, **changes) -> dict:
    """The family's small config with fields changed, or taken out where the change is `...`."""
    return {
        name: value
        for name, value in ({"model_type": model_type} | SMALL[model_type] | changes).items()
        if value is not ...
    }


def real(config: dict):
    """What transformers builds from the same config: the config object and the number of parameters."""
    config = dict(config)
    model_type = config.pop("model_type")
    built = AutoConfig.for_model(model_type, **config)
    if type(built) in AutoModelForCausalLM._model_mapping:
        with torch.device("meta"):
            parts = AutoModelForCausalLM.from_config(built).named_parameters()
        return built, sum(p.numel() for name, p in parts if TOWERS_OF_PHI not in name)
    if model_type == "mistral4":  # a language model of its own, for which no other name is registered
        with torch.device("meta"):
            return built, sum(p.numel() for p in Mistral4ForCausalLM(built).parameters())
    # A text model that transformers builds beside towers only.
    whole = AutoConfig.for_model(
        BUILT_IN.get(model_type, model_type.removesuffix("_text")),
        text_config=config,
        tie_word_embeddings=config["tie_word_embeddings"],
    )
    with torch.device("meta"):
        parts = built_from(whole).named_parameters()
    return built, sum(p.numel() for name, p in parts if not any(tower in name for tower in TOWERS))


TOWERS_OF_PHI = "embed_tokens_extend"  # beside its table of words, inside the language model
TOWERS = ("visual", "audio_tower", "vision_model", "multi_modal_projector")
# The config that a text's class stands in, where its name does not say so.
BUILT_IN = {
    "qwen2_5_omni_text": "qwen2_5_omni_thinker",
    "qwen3_omni_moe_text": "qwen3_omni_moe_thinker",
    "step3p5": "step3p7",
}
BY_CLASS = {
    "qwen2_5_omni_thinker": Qwen2_5OmniThinkerForConditionalGeneration,
    "qwen3_omni_moe_thinker": Qwen3OmniMoeThinkerForConditionalGeneration,
    "voxtral": VoxtralForConditionalGeneration,
}


def built_from(whole):
    """The model of a multimodal config; those that read no images by their class."""
    own = BY_CLASS.get(whole.model_type)
    return own(whole) if own else AutoModelForImageTextToText.from_config(whole)

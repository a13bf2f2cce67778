"""Reading config.json: against transformers itself, on real published configs, and what is refused."""

import dataclasses
import functools
import json
import re

import pytest
import torch
from huggingface_hub.errors import StrictDataclassClassValidationError
from tests.models import class_defaults
from tests.models.small_configs import OWN_CODE, SMALL, built_from, real, small
from transformers import AutoConfig
from transformers.masking_utils import sliding_window_overlay
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from threeloops.models import catalogue
from threeloops.models.hf_config import READ, SAME_CLASS, WRAPPERS, from_hf_config
from threeloops.models.hf_encoders import ENCODERS
from threeloops.models.hf_families import FAMILIES
from threeloops.models.hf_fields import CHANGES_NO_COUNT
from threeloops.models.hf_not_read import NOT_READ
from threeloops.models.parameters import model_parameters


def window_counts(model) -> dict:
    """How many layers have which window."""
    counts: dict = {}
    for layer in model.layers():
        counts[layer.attention.window] = counts.get(layer.attention.window, 0) + 1
    return counts


VARIANTS = [
    *((model_type, {}) for model_type in FAMILIES),
    ("gpt2", {"n_inner": 70}),
    ("gpt2", {"tie_word_embeddings": False}),
    ("opt", {"enable_bias": False}),
    ("opt", {"word_embed_proj_dim": 48}),
    ("llama", {"num_key_value_heads": ...}),
    ("llama", {"num_key_value_heads": None, "head_dim": None}),
    ("llama", {"head_dim": 20, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    ("mistral", {"head_dim": 20, "tie_word_embeddings": True}),
    ("mixtral", {"head_dim": 20}),
    ("gemma2", {"attention_bias": True, "tie_word_embeddings": False}),
    (
        "gemma3_text",
        {
            "head_dim": ...,
            "num_attention_heads": ...,
            "num_key_value_heads": ...,
            "vocab_size": ...,
            "max_position_embeddings": ...,
        },
    ),
    ("qwen2", {"tie_word_embeddings": True}),
    ("qwen3", {"head_dim": ..., "attention_bias": True}),
    ("qwen3_moe", {"decoder_sparse_step": 2}),
    ("qwen3_moe", {"mlp_only_layers": [0, 3], "attention_bias": True}),
    ("qwen3_moe", {"head_dim": ...}),
    ("qwen3_moe", {"num_experts": ..., "num_local_experts": 7}),
    ("deepseek_v2", {"q_lora_rank": None, "mlp_bias": True, "attention_bias": True}),
    ("deepseek_v2", {"attention_bias": True, "first_k_dense_replace": 0}),
    ("deepseek_v3", {"n_group": 2, "topk_group": 1, "q_lora_rank": None, "n_shared_experts": 1}),
    (
        "deepseek_v3",
        {
            "n_group": 2,
            "topk_group": 1,
            "attention_bias": True,
            "first_k_dense_replace": 5,
            "num_nextn_predict_layers": 1,
        },
    ),
    ("gpt_oss", {"attention_bias": False}),
    ("phi3", {"num_key_value_heads": ...}),
    ("gemma", {"attention_bias": True}),
    ("glm4", {"attention_bias": False}),
    ("olmo", {"attention_bias": True, "num_key_value_heads": ...}),
    ("olmo2", {"attention_bias": True}),
    ("olmo3", {"layer_types": ["full_attention"] * 5}),
    ("falcon", {"bias": True, "parallel_attn": False}),
    ("falcon", {"alibi": True, "bias": True, "multi_query": False, "parallel_attn": False}),
    ("falcon", {"multi_query": False, "ffn_hidden_size": 70}),
    ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 3}),
    ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1}),
    ("cohere", {"use_qk_norm": True, "attention_bias": True}),
    ("phimoe", {"attention_bias": True, "lm_head_bias": True}),
    ("granite", {"attention_bias": True, "mlp_bias": True}),
    ("starcoder2", {"use_bias": False}),
    (
        "bloom",
        {"hidden_size": ..., "n_embed": 48, "n_head": ..., "num_attention_heads": 4, "tie_word_embeddings": False},
    ),
    ("gpt_neox", {"attention_bias": False}),
    ("qwen2_moe", {"qkv_bias": False, "mlp_only_layers": [0], "decoder_sparse_step": 2}),
    ("qwen2_moe", {"decoder_sparse_step": 3}),
    ("llama4_text", {"interleave_moe_layer_step": 2, "attention_bias": True}),
    ("llama4_text", {"moe_layers": [0, 4], "no_rope_layers": [1, 0, 1, 1, 0]}),
    ("glm4_moe", {"attention_bias": True, "use_qk_norm": True, "n_shared_experts": 2}),
    ("deepseek_v3", {"n_shared_experts": 0}),
    ("glm4_moe_lite", {"mlp_layer_types": ["sparse", "dense", "sparse", "sparse", "dense"]}),
    ("deepseek_v32", {"mlp_layer_types": ["dense"] * 4 + ["sparse"], "first_k_dense_replace": ...}),
    ("glm_moe_dsa", {"indexer_types": ["full", "shared", "shared", "full", "shared"]}),
    ("glm_moe_dsa", {"index_topk_freq": 2, "index_skip_topk_offset": 1, "head_dim": 10}),
    ("glm_moe_dsa", {"index_topk_pattern": "FSFSS"}),
    ("glm_moe_dsa", {"layer_types": ["deepseek_sparse_attention"] * 5}),
    ("exaone4", {"sliding_window": None, "layer_types": ["full_attention"] * 5}),
    ("exaone4", {"sliding_window_pattern": 3, "tie_word_embeddings": True}),
    ("ernie4_5_moe", {"use_bias": True, "moe_layer_interval": 2, "moe_layer_end_index": 3, "head_dim": ...}),
    ("ernie4_5_moe", {"moe_num_shared_experts": 0, "tie_word_embeddings": False}),
    ("dots1", {"attention_bias": True, "first_k_dense_replace": 1}),
    ("hunyuan_v1_moe", {"attention_bias": True, "tie_word_embeddings": True}),
    ("solar_open", {"attention_bias": True, "n_shared_experts": 2}),
    ("glm4v_moe_text", {"attention_bias": False, "first_k_dense_replace": 3}),
    ("qwen3_omni_moe_text", {"attention_bias": True, "mlp_only_layers": [0, 3]}),
    ("step3p5", {"num_sliding_attention_heads": ..., "attention_other_setting": {"num_attention_heads": 12}}),
    ("step3p5", {"moe_layers_enum": "1,4", "layer_types": ..., "mlp_bias": True, "attention_bias": True}),
    ("step3p5", {"mlp_layer_types": ["dense", "sparse", "sparse", "dense", "sparse"]}),
    ("qwen3_next", {"layer_types": ["full_attention", "linear_attention"] * 2 + ["full_attention"]}),
    ("qwen3_next", {"attention_bias": True, "mlp_only_layers": [1]}),
    ("qwen3_5_text", {"full_attention_interval": 2, "tie_word_embeddings": True}),
    ("nemotron_h", {"moe_latent_size": 10, "use_conv_bias": False}),
    ("nemotron_h", {"use_bias": True, "mamba_proj_bias": False, "mlp_bias": True}),
    (
        "nemotron_h",
        {"hybrid_override_pattern": ..., "layers_block_type": ["mamba", "attention", "moe"], "num_hidden_layers": 3},
    ),
    ("granitemoehybrid", {"num_local_experts": 0, "mamba_proj_bias": True, "mamba_conv_bias": False}),
    ("granitemoehybrid", {"mamba_d_head": 12, "attention_bias": True, "layer_types": ...}),
    ("gemma3n_text", {"num_hidden_layers": 10, "num_kv_shared_layers": 3, "attention_bias": True}),
    ("gemma3n_text", {"intermediate_size": [70, 66, 70, 70, 62]}),
    ("gemma4_text", {"num_kv_shared_layers": 1, "use_double_wide_mlp": True}),
    (
        "gemma4_text",
        {
            "attention_k_eq_v": True,
            "num_global_key_value_heads": 2,
            "hidden_size_per_layer_input": 0,
            "enable_moe_block": True,
            "num_experts": 7,
            "top_k_experts": 2,
            "moe_intermediate_size": 26,
            "use_bidirectional_attention": "vision",
        },
    ),
    ("gemma4_text", {"layer_types": ["sliding_attention"] * 7, "global_head_dim": ..., "attention_bias": True}),
    ("falcon_h1", {"mamba_rms_norm": True, "mamba_d_ssm": None, "attention_bias": True, "mlp_bias": True}),
    ("falcon_h1", {"mamba_conv_bias": False, "head_dim": 20}),
    ("jamba", {"mamba_proj_bias": True, "mamba_conv_bias": False, "mamba_dt_rank": ...}),
    ("jamba", {"num_experts": 1, "num_experts_per_tok": 1, "tie_word_embeddings": True}),
    ("lfm2", {"conv_bias": True, "block_auto_adjust_ff_dim": False, "tie_embedding": False}),
    ("lfm2", {"block_ff_dim": 100, "intermediate_size": ..., "full_attn_idxs": ..., "block_ffn_dim_multiplier": 1.3}),
    ("lfm2_moe", {"use_expert_bias": False, "num_dense_layers": 0, "conv_bias": True}),
    ("kimi_linear", {"q_lora_rank": None, "attention_bias": True, "first_k_dense_replace": 2}),
    ("kimi_linear", {"linear_attn_config": {"head_dim": 7, "num_heads": 4}, "num_hidden_layers": 9}),
    ("deepseek_v4", {"compress_ratios": ..., "compress_rate_hca": ..., "compress_rate_csa": 2, "num_hash_layers": ...}),
    ("deepseek_v4", {"compress_ratios": [128, 4, 4, 0, 0, 0], "mlp_bias": True, "hc_mult": 2}),
    ("stablelm", {"use_parallel_residual": True, "use_qkv_bias": True}),
    ("nemotron", {"attention_bias": True, "mlp_bias": True, "head_dim": ...}),
    ("helium", {"attention_bias": True, "mlp_bias": True}),
    ("cwm", {"layer_types": ["full_attention"] * 5, "mlp_bias": True}),
    ("ministral", {"layer_types": ..., "head_dim": 8}),
    ("gptj", {"n_inner": 70}),
    ("gpt_bigcode", {"multi_query": False, "n_inner": ...}),
    ("mpt", {"tie_word_embeddings": False}),
    ("exaone_moe", {"num_shared_experts": 0, "first_k_dense_replace": 3}),
    ("exaone_moe", {"mlp_layer_types": ["sparse", "dense", "sparse", "sparse", "dense"], "sliding_window_pattern": 2}),
    ("dbrx", {"attn_config": {"rope_theta": 10000.0}, "ffn_config": {"ffn_act_fn": {"name": "gelu"}, "moe_top_k": 4}}),
    ("bamba", {"attn_layer_indices": ..., "mamba_proj_bias": True, "mamba_conv_bias": False}),
    ("bamba", {"attention_bias": True, "mlp_bias": True, "mamba_d_head": 12}),
    ("mamba2", {"use_bias": True, "use_conv_bias": False, "tie_word_embeddings": True}),
    ("mamba", {"use_bias": True, "use_conv_bias": False, "time_step_rank": 7}),
    ("falcon_mamba", {"use_bias": True, "tie_word_embeddings": False}),
    ("recurrent_gemma", {"lru_width": ..., "attention_bias": True, "block_types": ["attention", "recurrent"]}),
    ("zamba2", {"use_shared_attention_adapter": True, "add_bias_linear": True, "num_mem_blocks": 1}),
    ("zamba2", {"layers_block_type": ["hybrid"] + ["mamba"] * 4, "intermediate_size": ..., "num_key_value_heads": 3}),
    ("zamba2", {"layers_block_type": ..., "num_hidden_layers": 54}),
    ("laguna", {"gating": "per-element", "attention_bias": True, "num_attention_heads_per_layer": ...}),
    ("laguna", {"mlp_layer_types": ["sparse", "dense"] * 2 + ["sparse"], "layer_types": ...}),
    ("mimo_v2_flash", {"num_hidden_layers": 13, "attention_bias": True, "sliding_window_size": 16}),
    ("mimo_v2_flash", {"mlp_layer_types": ["sparse", "dense"] * 2 + ["sparse"], "tie_word_embeddings": True}),
    ("minimax_m3_vl_text", {"moe_layer_freq": ..., "sparse_attention_config": ..., "num_local_experts": 9}),
    (
        "minimax_m3_vl_text",
        {
            "layer_types": ["minimax_m3_sparse", "full_attention"] * 2 + ["full_attention"],
            "mlp_layer_types": ["sparse", "dense"] * 2 + ["sparse"],
        },
    ),
]


@pytest.mark.parametrize(("model_type", "changes"), VARIANTS)
def test_small_variants_equal_the_real_model(model_type, changes):
    config = small(model_type, **changes)
    assert model_parameters(from_hf_config(config)).total == real(config)[1]


@pytest.mark.parametrize("key", [key for key in catalogue.model_keys() if key not in OWN_CODE])
def test_configs_that_transformers_saves_are_read_whole(key):
    """transformers writes out every field it knows, defaults included: all must be understood and give the same
    model.
    """
    config = dict(catalogue.model_entry(key).config)
    model_type = SAME_CLASS.get(config["model_type"], config.pop("model_type"))
    saved = json.loads(AutoConfig.for_model(model_type, **config).to_json_string(use_diff=False))
    assert from_hf_config(saved, name=key) == catalogue.model(key)


def saved(config: dict) -> dict:
    """Every field of the config as its class has it, those that were left out among them."""
    built = json.loads(AutoConfig.for_model(**config).to_json_string(use_diff=False))
    if "kv_lora_rank" in built:
        del built["num_key_value_heads"]  # latent attention has none, whatever the class writes
    return built | ENDLESS.get(config["model_type"], {})


# What a class has no value for, or none that anybody would have meant.
STATED = {
    **{
        name: {"tie_word_embeddings": False}
        for name in ("qwen3_vl_text", "qwen2_vl_text", "qwen2_5_vl_text", "qwen3_omni_moe_text", "glm4v_text")
    },
    "nemotron_h": {"hybrid_override_pattern": "MEM*-ME", "num_hidden_layers": 7},
    "deepseek_v2": {"num_experts_per_tok": 3},
    "dots1": {"num_experts_per_tok": 3, "n_routed_experts": 8, "n_shared_experts": 2},
    **{
        name: {field: SMALL[name][field] for field in ("num_hidden_layers", lists)}
        for name, lists in (
            ("lfm2_moe", "layer_types"),
            ("kimi_linear", "linear_attn_config"),
            ("minimax_m3_vl_text", "sparse_attention_config"),
        )
    },
}
# Written as Infinity, which is no JSON that a class reads again.
ENDLESS = {name: {"time_step_limit": [0.0, 1e308]} for name in ("granitemoehybrid", "nemotron_h", "falcon_h1")}


def test_class_defaults_are_those_of_transformers():
    assert json.loads(class_defaults.TABLE.read_text("utf-8")) == json.loads(class_defaults.text(class_defaults.made()))


@pytest.mark.parametrize("model_type", FAMILIES)
def test_what_a_file_leaves_out_is_what_its_class_has(model_type):
    """Without any field, and without each of them in turn."""
    refused, stated = 0, STATED.get(model_type, {})
    for left_out in ("everything", *(SMALL[model_type].keys() - stated.keys())):
        config = {"model_type": model_type, **(SMALL[model_type] if left_out != "everything" else {}), **stated}
        config.pop(left_out, None)
        try:
            assert from_hf_config(config) == from_hf_config(saved(config)), left_out
        except StrictDataclassClassValidationError:  # the class refuses what it would not need
            refused += 1
        except ValueError as error:  # the class's size beside the small ones: some classes round such a split down
            if not re.search(
                "must divide|must not exceed|must be less than|but num_hidden_layers=|must be expand", str(error)
            ):
                raise
            refused += 1
    assert refused <= 4


# Whose own default tower cannot be built: 14 heads of 1,152, and a package that is not here.
TOWERS = {"aya_vision": {"vision_config": {"model_type": "siglip_vision_model"}}}
NO_TOWER = {"gemma3n"}


@pytest.mark.parametrize("model_type", sorted(WRAPPERS.keys() - {"mistral3", "kimi_k25", "kimi_k3"} - NO_TOWER))
@pytest.mark.parametrize("inside", [{}, {"tie_word_embeddings": True}, {"tie_word_embeddings": False}])
@pytest.mark.parametrize("outside", [{}, {"tie_word_embeddings": True}, {"tie_word_embeddings": False}])
def test_who_decides_whether_the_head_is_the_table(model_type, inside, outside):
    text = small(WRAPPERS[model_type], tie_word_embeddings=...) | inside
    config = {"model_type": model_type, "text_config": text, **outside, **TOWERS.get(model_type, {})}
    with torch.device("meta"):
        built = built_from(AutoConfig.for_model(**config))
    assert from_hf_config(config).tied_head == (not any("lm_head" in name for name, _ in built.named_parameters()))


TOKENS_AND_GROUPS = ("token_id", "n_group", "topk_group")


@pytest.mark.parametrize("model_type", FAMILIES)
def test_ignored_fields_change_no_count(model_type):
    """Every number and flag that is ignored by name, changed at once: the real model keeps its size, and ours is the
    same.
    """
    changed = {}
    for field in dataclasses.fields(CONFIG_MAPPING[model_type]):
        if field.name in CHANGES_NO_COUNT and not any(word in field.name for word in TOKENS_AND_GROUPS):
            if isinstance(field.default, bool):
                changed[field.name] = not field.default
            elif isinstance(field.default, int | float):
                changed[field.name] = (
                    field.default + 1
                    if isinstance(field.default, int) and "drop" not in field.name
                    else field.default + 0.05
                )
    assert len(changed) > 4
    assert real(small(model_type, **changed))[1] == real(small(model_type))[1]
    assert from_hf_config(small(model_type, **changed)) == from_hf_config(small(model_type))


def test_positions_are_what_the_class_makes_of_them():
    """ALiBi's slopes and rotary angles are no parameters, so that no count tells them apart."""
    for changes, rotates in (({}, True), ({"alibi": True}, False)):
        config = small("falcon", **changes)
        assert real(config)[0].rotary == from_hf_config(config).rotary == rotates
    assert not from_hf_config(small("bloom")).rotary
    assert not from_hf_config(small("gpt2")).rotary


def test_sizes_that_come_from_the_class_are_said():
    assert from_hf_config(small("minimax_m2", head_dim=...)).assumed == ("head_dim=128",)
    assert from_hf_config(small("minimax_m2")).assumed == from_hf_config(small("llama", head_dim=...)).assumed == ()
    inside = {"model_type": "gemma3", "text_config": small("gemma3_text", vocab_size=...)}
    assert from_hf_config(inside).assumed == ("vocab_size=262208",)


def test_no_row_of_the_catalogue_leaves_a_window_to_its_class():
    for key in catalogue.model_keys():
        assert not [said for said in catalogue.model(key).assumed if "window" in said], key


# Windows


def test_mistral_window():
    assert window_counts(from_hf_config(small("mistral"))) == {17: 5}
    assert window_counts(from_hf_config(small("mistral", sliding_window=None))) == {None: 5}
    # The class assumes 4096 where the file says nothing.
    assert real(small("mistral", sliding_window=...))[0].sliding_window == 4096
    assert window_counts(from_hf_config(small("mistral", sliding_window=...))) == {4096: 5}


@pytest.mark.parametrize(
    ("model_type", "changes"),
    [
        ("gemma2", {}),
        ("gemma3_text", {"num_hidden_layers": 13}),
        ("gemma3_text", {"num_hidden_layers": 13, "sliding_window_pattern": 4}),
        ("gpt_oss", {}),
        ("gpt_oss", {"layer_types": ["full_attention"] * 4 + ["sliding_attention"]}),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 17, "max_window_layers": 2}),
        ("qwen2", {"use_sliding_window": False, "sliding_window": 17, "max_window_layers": 2}),
        ("qwen3", {"use_sliding_window": True, "sliding_window": 17, "max_window_layers": 0}),
        ("qwen3", {"use_sliding_window": True, "sliding_window": None, "max_window_layers": 0}),
        ("cwm", {}),
        ("ministral", {}),
        ("ministral", {"layer_types": ...}),
        ("exaone_moe", {"sliding_window_pattern": 3}),
    ],
)
def test_windows_are_where_transformers_puts_them(model_type, changes):
    config = small(model_type, **changes)
    built, _ = real(config)
    expected: dict = {}
    for layer_type in built.layer_types:
        window = built.sliding_window if layer_type == "sliding_attention" else None
        expected[window] = expected.get(window, 0) + 1
    assert window_counts(from_hf_config(config)) == expected


def test_a_window_includes_the_query_itself():
    """In transformers, a query far enough from the start sees exactly `sliding_window` tokens, its own among them."""
    visible = [key for key in range(51) if sliding_window_overlay(17)(0, 0, 50, key)]
    assert visible == list(range(34, 51))
    assert len(visible) == from_hf_config(small("mistral")).groups[0][0].attention.window


def test_published_window_patterns():
    # Gemma 2: every other layer (arXiv:2408.00118, section 2); Gemma 3: five in six of 62 layers, the last two being
    # local (arXiv:2503.19786, section 2).
    assert window_counts(catalogue.model("gemma-2-9b")) == {4096: 21, None: 21}
    assert window_counts(catalogue.model("gemma-3-27b")) == {1024: 52, None: 10}
    assert window_counts(catalogue.model("gpt-oss-120b")) == {128: 18, None: 18}
    assert window_counts(catalogue.model("mistral-7b")) == {4096: 32}
    assert window_counts(catalogue.model("phi-3-mini")) == {2047: 32}
    # transformers, mistral3's default text_config, which is Mistral Small 3.1's: "sliding_window": None
    assert window_counts(catalogue.model("mistral-small-3-24b")) == {None: 40}
    assert window_counts(catalogue.model("qwen2.5-7b")) == {None: 28}


# Published files, as their repositories show them

LLAMA_2_70B = """{"_name_or_path": "meta-llama/Llama-2-70b-hf", "architectures": ["LlamaForCausalLM"], "attention_bias": false, "bos_token_id": 1,
"eos_token_id": 2, "hidden_act": "silu", "hidden_size": 8192, "initializer_range": 0.02, "intermediate_size": 28672, "max_position_embeddings": 4096,
"model_type": "llama", "num_attention_heads": 64, "num_hidden_layers": 80, "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
"rope_scaling": null, "rope_theta": 10000.0, "tie_word_embeddings": false, "torch_dtype": "float16", "transformers_version": "4.34.1", "use_cache": false,
"vocab_size": 32000}"""  # https://huggingface.co/dreamgen/opus-v0-70b/blame/main/config.json  # noqa: E501

GEMMA_3_4B = """{"architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 255999, "eoi_token_index": 256000, "eos_token_id": [1, 106],
"image_token_index": 262144, "initializer_range": 0.02, "mm_tokens_per_image": 256, "model_type": "gemma3", "text_config": {"hidden_size": 2560,
"intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
"sliding_window": 1024}, "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0", "vision_config": {"hidden_size": 1152, "image_size": 896,
"intermediate_size": 4304, "model_type": "siglip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14,
"vision_use_head": false}}"""  # https://huggingface.co/mlx-community/gemma-3-4b-it-bf16/blob/main/config.json  # noqa: E501

DEEPSEEK_CODER_V2_LITE = """{"architectures": ["DeepseekV2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "auto_map": {"AutoConfig":
"configuration_deepseek.DeepseekV2Config", "AutoModel": "modeling_deepseek.DeepseekV2Model", "AutoModelForCausalLM":
"modeling_deepseek.DeepseekV2ForCausalLM"}, "aux_loss_alpha": 0.001, "bos_token_id": 100000, "eos_token_id": 100001, "first_k_dense_replace": 1,
"hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 10944, "kv_lora_rank": 512, "max_position_embeddings": 163840,
"model_type": "deepseek_v2", "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2,
"norm_topk_prob": false, "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 27, "num_key_value_heads": 16, "pretraining_tp": 1,
"q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_scaling": {"beta_fast": 32, "beta_slow": 1,
"factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096, "type": "yarn"}, "rope_theta": 10000,
"routed_scaling_factor": 1.0, "scoring_func": "softmax", "seq_aux": true, "tie_word_embeddings": false, "topk_group": 1, "topk_method": "greedy",
"torch_dtype": "bfloat16", "use_cache": true, "v_head_dim": 128,
"vocab_size": 102400}"""  # https://huggingface.co/deepseek-ai/DeepSeek-Coder-V2-Lite-Base/blame/main/config.json  # noqa: E501

GPT_OSS_20B = """{"architectures": ["GptOssForCausalLM"], "attention_bias": true, "attention_dropout": 0.0, "dtype": "bfloat16", "eos_token_id": 200002,
"experts_per_token": 4, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880, "initial_context_length": 4096, "initializer_range": 0.02,
"intermediate_size": 2880, "layer_types": LAYER_TYPES, "max_position_embeddings": 131072, "model_type": "gpt_oss", "num_attention_heads": 64,
"num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8, "num_local_experts": 32, "output_router_logits": false,
"pad_token_id": 199999, "rms_norm_eps": 1e-05, "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
"original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": false}, "rope_theta": 150000, "router_aux_loss_coef": 0.9,
"sliding_window": 128, "swiglu_limit": 7.0, "tie_word_embeddings": false, "use_cache": true,
"vocab_size": 201088}""".replace(  # https://huggingface.co/cryptonaut/AltiMind-sft/blob/main/config.json  # noqa: E501
    "LAYER_TYPES", json.dumps(["sliding_attention", "full_attention"] * 12)
)


@functools.cache
def published(text: str) -> tuple:
    config = json.loads(text)
    return (
        from_hf_config(config, name="published"),
        real(
            {"model_type": f"{config['model_type']}_text"} | config["text_config"]
            if "text_config" in config
            else config
        )[1],
    )


@pytest.mark.parametrize(
    "text",
    [LLAMA_2_70B, GEMMA_3_4B, DEEPSEEK_CODER_V2_LITE, GPT_OSS_20B],
    ids=["llama-2-70b", "gemma-3-4b", "deepseek-v2-lite", "gpt-oss-20b"],
)
def test_published_files_equal_the_real_model(text):
    model, total = published(text)
    assert model_parameters(model).total == total


def test_published_files_equal_the_catalogue():
    for text, key in ((LLAMA_2_70B, "llama-2-70b"), (GPT_OSS_20B, "gpt-oss-20b")):
        assert from_hf_config(json.loads(text), name=key) == catalogue.model(key)


def test_a_sparse_gemma_3_file_takes_its_class_defaults():
    model = from_hf_config(json.loads(GEMMA_3_4B))
    attention = model.groups[0][0].attention
    assert (model.vocab, attention.num_heads, attention.num_kv_heads, attention.head_dim) == (262_208, 8, 4, 256)
    assert window_counts(model) == {1024: 29, None: 5}  # layers 6, 12, 18, 24 and 30 of 34 see everything


def test_files_and_folders(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(LLAMA_2_70B)
    assert from_hf_config(file) == from_hf_config(str(tmp_path)) == from_hf_config(json.loads(LLAMA_2_70B))
    assert from_hf_config(file).name == "meta-llama/Llama-2-70b-hf"
    unnamed = tmp_path / "my-model"
    unnamed.mkdir()
    (unnamed / "config.json").write_text(json.dumps(small("llama")))
    assert from_hf_config(unnamed).name == "my-model"


# Refusals

REFUSALS = [
    (
        "mpt",
        {"expansion_ratio": 3},
        "expansion_ratio=3 is not understood; only 4 is (the transformers class builds MLPs",
    ),
    ("mpt", {"attn_config": {"alibi": False}}, "attn_config has alibi=False, which is not understood; only True is"),
    ("mpt", {"attn_config": [1]}, "attn_config=[1] must be an object"),
    ("stablelm", {"qk_layernorm": True}, "qk_layernorm=True is not understood; only False is"),
    ("exaone_moe", {"mlp_layer_types": ["dense"]}, "mlp_layer_types lists 1 layers, but num_hidden_layers=5"),
    ("llama", {"hidden_size": None}, "hidden_size=None must be a whole number"),
    ("llama", {"hidden_size": "48"}, "hidden_size='48' must be a whole number"),
    ("llama", {"num_hidden_layers": 0}, "num_hidden_layers=0 must be a whole number of at least 1"),
    (
        "llama",
        {"num_key_value_heads": 4},
        "num_key_value_heads=4 must divide num_attention_heads=6; try num_key_value_heads in {1, 2, 3, 6}",
    ),
    (
        "llama",
        {"num_attention_heads": 5, "num_key_value_heads": 5},
        "num_attention_heads=5 must divide hidden_size=48; try",
    ),
    ("llama", {"tie_word_embeddings": "yes"}, "tie_word_embeddings='yes' must be true or false"),
    ("llama", {"hidden_act": "tanh"}, "hidden_act='tanh' is not known"),
    ("llama", {"cross_layer_sharing": 2}, "'cross_layer_sharing' is a field that llama configs are not known to have"),
    ("llama", {"num_local_experts": 8}, "'num_local_experts' is a field that llama configs are not known to have"),
    (
        "llama",
        {"architectures": ["LlamaForSequenceClassification"]},
        "architectures='LlamaForSequenceClassification' has no language-model head",
    ),
    ("llama", {"architectures": ["LlamaForCausalLMEagle3"]}, "architectures=['LlamaForCausalLMEagle3'] is a draft for"),
    (
        "llama",
        {"draft_vocab_size": 32000},
        "architectures=[] is a draft for speculative decoding, which reads its target's hidden",
    ),
    ("llama", {"is_encoder_decoder": True}, "is_encoder_decoder=True is not understood; only False is"),
    ("gpt2", {"add_cross_attention": True}, "add_cross_attention=True is not understood; only False is"),
    ("opt", {"word_embed_proj_dim": 24}, "word_embed_proj_dim=24 is not understood; only 48 is"),
    ("opt", {"do_layer_norm_before": False}, "do_layer_norm_before=False is not understood; only True is"),
    ("phi3", {"attention_bias": True}, "attention_bias=True is not understood; only False is"),
    ("gemma2", {"use_bidirectional_attention": True}, "use_bidirectional_attention=True is not understood"),
    ("gemma2", {"layer_types": ["full_attention"] * 4}, "layer_types lists 4 layers, but num_hidden_layers=5"),
    ("gemma2", {"layer_types": ["chunked_attention"] * 5}, "layer_types='chunked_attention' is not known"),
    ("gemma2", {"layer_types": 5}, "layer_types=5 must be a list"),
    ("gemma3_text", {"sliding_window_pattern": 0}, "sliding_window_pattern=0 must be a whole number"),
    ("qwen3_moe", {"use_sliding_window": True}, "use_sliding_window=True is not understood; only False is"),
    ("qwen3_moe", {"num_experts_per_tok": 8}, "top_k=8 must not exceed num_experts=7"),
    ("qwen3_moe", {"num_local_experts": 8}, "num_local_experts=8 is not understood; only 7 is"),
    ("deepseek_v3", {"moe_layer_freq": 2}, "moe_layer_freq=2 is not understood; only 1 is"),
    ("deepseek_v3", {"num_key_value_heads": 3}, "num_key_value_heads=3 is not understood; only 6 is"),
    ("deepseek_v2", {"num_experts_per_tok": ...}, "'num_experts_per_tok' is missing; a deepseek_v2 config needs it"),
    ("gpt_oss", {"experts_per_token": 4}, "experts_per_token=4 is not understood; only 2 is"),
    ("llama", {"hidden_size": 10**40}, "hidden_size=1e+40 is larger than in any model; it must be at most 1e+12"),
    ("llama", {"num_hidden_layers": 10**6}, "num_hidden_layers=1000000 must be at most 10,000; no model is so deep"),
    ("llama", {"architectures": 5}, "architectures=5 has no language-model head"),
    ("cohere2", {"use_qk_norm": True}, "use_qk_norm=True is not understood; only False is"),
    ("cohere2", {"sliding_window_pattern": 0}, "sliding_window_pattern=0 must be a whole number of at least 1"),
    ("phi", {"qk_layernorm": True}, "qk_layernorm=True is not understood; only False is"),
    ("qwen3_moe", {"mlp_only_layers": [{}]}, "mlp_only_layers={} must be a whole number of at least 0"),
    ("qwen3_moe", {"use_qk_norm": False}, "use_qk_norm=False is not understood; only True is"),
    ("llama4_text", {"moe_layers": ["a"]}, "moe_layers='a' must be a whole number of at least 0"),
    ("llama4_text", {"layer_types": ["sliding_attention"] * 5}, "layer_types='sliding_attention' is not known"),
    ("minimax_m2", {"attn_type_list": [1, 0]}, "attn_type_list=[1, 0] is not understood; only [1, 1, 1, 1, 1] is"),
    ("deepseek_v32", {"q_lora_rank": None}, "q_lora_rank=None must be a whole number of at least 1"),
    ("deepseek_v32", {"mlp_layer_types": ["dense"]}, "mlp_layer_types lists 1 layers, but num_hidden_layers=5"),
    ("deepseek_v32", {"layer_types": ["full_attention"] * 5}, "layer_types is not understood"),
    ("glm_moe_dsa", {"indexer_types": ["full"]}, "indexer_types lists 1 layers, but num_hidden_layers=5"),
    ("glm_moe_dsa", {"index_topk_pattern": "FX"}, "index_topk_pattern='FX' must be a word of F and S"),
    ("glm4_moe_lite", {"first_k_dense_replace": 2}, "first_k_dense_replace=2 is not understood; only 1 is"),
    ("qwen3_next", {"attn_output_gate": False}, "attn_output_gate=False is not understood; only True is"),
    ("qwen3_next", {"linear_num_key_heads": 4}, "key_heads=4 must divide value_heads=6"),
    ("nemotron_h", {"hybrid_override_pattern": "MX"}, "hybrid_override_pattern='X' is not known. Known: M, E, *, -"),
    ("nemotron_h", {"hybrid_override_pattern": ...}, "'hybrid_override_pattern' is missing"),
    ("nemotron_h", {"num_hidden_layers": 9}, "num_hidden_layers=9 is not understood; only 7 is"),
    ("nemotron_h", {"n_groups": 3}, "groups=3 must divide num_heads=8"),
    ("bloom", {"n_inner": 70}, "n_inner=70 is not understood; only 192 is"),
    ("bloom", {"num_attention_heads": 4}, "num_attention_heads=4 is not understood; only 6 is"),
    ("bloom", {"n_head": 5}, "n_head=5 must divide hidden_size=48; try"),
    ("granitemoehybrid", {"mamba_d_head": 5}, "mamba_d_head=5 is not understood; only 12 is"),
    ("gemma3n_text", {"num_kv_shared_layers": 5}, "num_kv_shared_layers=5 must be less than num_hidden_layers=5"),
    ("gemma3n_text", {"intermediate_size": [70]}, "intermediate_size lists 1 layers, but num_hidden_layers=5"),
    ("gemma4_text", {"per_layer_config": {"1": {"sliding_window": 3}}}, "per_layer_config has 'sliding_window'"),
    ("gemma4_text", {"use_bidirectional_attention": "all"}, "use_bidirectional_attention='all' is not understood"),
    ("falcon_h1", {"mamba_d_head": 9}, "mamba_d_head=9 is not understood; only 5 is"),
    ("falcon_h1", {"attn_layer_indices": [1]}, "attn_layer_indices=[1] is not understood; only None is"),
    ("jamba", {"attn_layer_offset": 3}, "attn_layer_offset=3 must be less than attn_layer_period=3"),
    ("lfm2", {"block_dim": 40}, "block_dim=40 is not understood; only 48 is"),
    ("lfm2_moe", {"layer_types": ...}, "'layer_types' is missing; a lfm2_moe config needs it"),
    ("kimi_linear", {"linear_attn_config": {"expand_v": 2}}, "linear_attn_config has 'expand_v'"),
    (
        "kimi_linear",
        {"linear_attn_config": {"full_attn_layers": [1], "kda_layers": [1, 2, 3, 4]}},
        "linear_attn_config must list each of the 5 layers once, counted from 1",
    ),
    ("deepseek_v4", {"compress_ratios": [8] * 5}, "compress_ratios has 8; known: 0, 4, 128"),
    ("deepseek_v4", {"compress_ratios": [4]}, "compress_ratios lists 1 layers, but num_hidden_layers=5"),
    ("deepseek_v4", {"n_shared_experts": 2}, "n_shared_experts=2 is not understood; only 1 is"),
    ("minimax_m3_vl_text", {"moe_layer_freq": [1]}, "moe_layer_freq must list 0 or 1 for each of the 5 layers"),
]


@pytest.mark.parametrize(("model_type", "changes", "message"), REFUSALS)
def test_refusals(model_type, changes, message):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 (the message is compared whole below)
        from_hf_config(small(model_type, **changes), name="mine")
    assert str(refusal.value).startswith(f"mine: {message}")
    assert from_hf_config(small(model_type), name="mine").name == "mine"


def test_architectures_that_are_not_read_are_refused_by_name():
    """By name, with what would be needed; none of them is read after all, and transformers knows most of them."""
    for model_type, needed in NOT_READ.items():
        with pytest.raises(ValueError, match=re.escape(f"mine: model_type='{model_type}' is not read: {needed}")):
            from_hf_config({"model_type": model_type}, name="mine")
    assert not NOT_READ.keys() & {*READ, *ENCODERS}
    assert sum(model_type in CONFIG_MAPPING for model_type in NOT_READ) > len(NOT_READ) / 2


def test_a_name_that_would_break_the_line_is_not_printed(tmp_path):
    file = tmp_path / "mine.json"
    for own, name in (("a/b", "a/b"), ("a\nb\x1b[31m", "mine"), (["x"], "mine")):
        file.write_text(json.dumps(small("llama", _name_or_path=own)))
        assert from_hf_config(file).name == name


LISTED = "`threeloops sources --types` lists the types that are"


@pytest.mark.parametrize("model_type", ["llama5", "xlm-roberta", "modernbert", "qwen9_vl", 7])
def test_an_unknown_model_type_gets_no_hint_by_its_letters(model_type):
    unread = re.escape(f"config: model_type={model_type!r} is not read")
    unseen = ": its code was not seen, and no field is called 'hidden_size', as a Llama's is"
    with pytest.raises(ValueError, match=f"{unread}({unseen})?; {re.escape(LISTED)}$"):
        from_hf_config({"model_type": model_type})


def test_a_type_in_another_spelling_is_named():
    with pytest.raises(ValueError, match=re.escape("'Qwen3-MoE' is not read (did you mean 'qwen3_moe'?)")):
        from_hf_config({"model_type": "Qwen3-MoE"})
    with pytest.raises(ValueError, match=re.escape(f"'model_type' is missing, which every config.json has; {LISTED}")):
        from_hf_config({})


def test_the_multimodal_wrapper():
    with pytest.raises(
        ValueError, match=r"^config: 'text_config' is missing; a gemma3 config keeps its language model there"
    ):
        from_hf_config({"model_type": "gemma3"})
    with pytest.raises(
        ValueError, match=r"^config: 'audio_config' is a field that gemma3 configs are not known to have"
    ):
        from_hf_config({"model_type": "gemma3", "text_config": SMALL["gemma3_text"], "audio_config": {}})
    assert from_hf_config({"model_type": "gemma3", "text_config": SMALL["gemma3_text"]}).hidden == 48
    assert not from_hf_config(
        {"model_type": "gemma3", "tie_word_embeddings": False, "text_config": SMALL["gemma3_text"]}
    ).tied_head


BOOKKEEPING = [
    {"_load_in_4bit": True, "_load_in_8bit": False, "_pre_quantization_dtype": "bfloat16"},
    {
        "unsloth_fixed": True,
        "unsloth_version": "2025.9.1",
        "unsloth_training_args": {"rank": 8},
        "model_name": "unsloth/mine",
    },
    {"quantization_status": "compressed", "quantization_config": {"quant_method": "compressed-tensors"}},
    {"compression_config": {"format": "pack-quantized"}},
    {"rope_scaling": None, "nobody_knows_this": None, "attention_bias": None},
    {"hidden_size": 48.0, "num_hidden_layers": 5.0},
    {"use_grouped_mm": True, "seq_length": 64},
]


@pytest.mark.parametrize("fields", BOOKKEEPING)
def test_what_programs_note_about_themselves_changes_nothing(fields):
    assert from_hf_config(small("llama", **fields)) == from_hf_config(small("llama"))


def test_fields_of_phi_4_mini_and_of_command_a():
    phi = {"full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": False, "mlp_bias": False}
    assert from_hf_config(small("phi3", **phi)) == from_hf_config(small("phi3"))
    command = {"order_of_interleaved_layers": "local_attn_first", "position_embedding_type": "rope_gptj"}
    command |= {"layer_switch": 4, "use_parallel_block": True, "use_embedding_sharing": True, "rotary_pct": 1.0}
    assert from_hf_config(small("cohere2", **command)) == from_hf_config(small("cohere2"))


def test_a_null_that_the_class_could_not_use_is_refused():
    with pytest.raises(ValueError, match="head_dim=None must be a number, or left out, which means 128"):
        from_hf_config(small("minimax_m2", head_dim=None))


@pytest.mark.parametrize("wrapper", ["qwen2_vl", "qwen2_5_vl"])
def test_a_wrapper_whose_text_stands_beside_its_tower(wrapper):
    """As Qwen2-VL and Qwen2.5-VL were published: no text_config."""
    tower = {"vision_config": {"depth": 32}, "vision_token_id": 7, "image_token_id": 8, "vision_start_token_id": 9}
    text = small(f"{wrapper}_text", tie_word_embeddings=True, rope_scaling={"type": "mrope", "mrope_section": [1, 2]})
    flat = text | tower | {"model_type": wrapper, "architectures": ["Qwen2_5_VLForConditionalGeneration"]}
    assert from_hf_config(flat) == from_hf_config(text)
    assert from_hf_config(flat).not_counted == ("its vision tower",)
    with pytest.raises(ValueError, match=f"'colour' is a field that {wrapper}_text configs are not known to have"):
        from_hf_config(flat | {"colour": 1})


def test_mistral_small_4_is_a_text_beside_a_tower():
    text = small("mistral4")
    assert from_hf_config({"model_type": "mistral3", "text_config": text}) == from_hf_config(text)
    latent = from_hf_config(small("mistral4")).groups[0][0].attention
    assert (latent.kv_rank, latent.rope_head_dim) == (14, 4)

"""Caches of compressed and chosen tokens, against what DeepSeek-V4's class in transformers keeps; published counts of
all families of the readers' folder.
"""

import json
from pathlib import Path

import pytest
import torch
from tests.models.small_configs import small

from threeloops.cli import main
from threeloops.measure.product_loop import kv_cache as weigh
from threeloops.models.hf_config import from_hf_config
from threeloops.models.layers.compressed import CompressedAttention
from threeloops.models.parameters import model_parameters
from threeloops.product_loop import gguf_files, kv_cache
from threeloops.product_loop.caches.entry_caches import entries_bytes, entry_bytes, token_vector_bytes
from threeloops.product_loop.kv_quantisation import PER_TOKEN_HEAD, UNQUANTISED

CONFIGS = Path(__file__).parents[1] / "configs"
BF16 = {"bytes_per_element": 2, "quantisation": UNQUANTISED}


def filled(layer):
    """Whether a layer's cache has entries of every kind that it keeps."""
    kept = list(getattr(layer, "compressed_kv", {}).values())
    return bool(kept) and all(one is not None and one.shape[1] for one in kept)


@pytest.mark.parametrize(("prompt", "decoded"), [(3, 0), (29, 2), (21, 11)])
def test_entries_and_windows_are_what_the_class_keeps(prompt, decoded):
    """A window of vectors, each once though it is key and value, and entries; not what waits to be compressed."""
    config = small("deepseek_v4")
    real = weigh.small_model(config, dtype=torch.bfloat16)
    real.set_experts_implementation("eager")  # others need widths that small models do not have
    cache = weigh.filled_cache(real, batch=2, prompt_tokens=prompt, decode_tokens=decoded)
    entries = [one for layer in cache.layers for one in getattr(layer, "compressed_kv", {}).values() if one is not None]
    once = {layer.keys.data_ptr(): layer.keys.nbytes for layer in cache.layers}
    kept = sum(once.values()) + sum(entry.nbytes for entry in entries)
    model, tokens = from_hf_config(config), prompt + decoded
    assert 2 * kv_cache.request_bytes(model, tokens=tokens, bytes_per_element=2, moment="between_steps") == kept
    by_layer = sum(
        count * layer.attention.kept_elements(tokens=tokens, window_tokens=min(tokens, layer.attention.window - 1))
        for layer, count in model.groups
    )
    assert 2 * 2 * by_layer == kept
    by_entries = sum(
        count
        * entries_bytes(
            layer.attention,
            entries=tokens // layer.attention.ratio if layer.attention.ratio else 0,
            window_tokens=min(tokens, layer.attention.window - 1),
            **BF16,
        )
        for layer, count in model.groups
    )
    assert 2 * by_entries == kept
    widest = max((layer.attention for layer, _ in model.groups), key=lambda one: entry_bytes(one, **BF16))
    vector = token_vector_bytes(widest, **BF16)
    assert vector == cache.layers[0].keys[0, 0, 0].nbytes
    found = [sum(one[0, 0].nbytes for one in layer.compressed_kv.values()) for layer in cache.layers if filled(layer)]
    assert not found or max(found) == entry_bytes(widest, **BF16)


def test_one_more_token_costs_its_share_of_entries():
    model = from_hf_config(small("deepseek_v4"))  # 2 layers of a window, 2 with an entry for 4 tokens, 1 for 8
    first = kv_cache.bytes_per_token(model, bytes_per_element=2)
    assert first == 2 * (5 * 16 + 2 * (16 + 8) / 4 + 16 / 8)
    late = kv_cache.bytes_per_token(model, bytes_per_element=2, past_tokens=50)
    assert late == first - 2 * 5 * 16
    sizes = [kv_cache.request_bytes(model, tokens=tokens, bytes_per_element=2) for tokens in (40, 80)]
    assert sizes[1] - sizes[0] == 40 * late
    scaled = kv_cache.bytes_per_token(model, bytes_per_element=2, quantisation=PER_TOKEN_HEAD)
    assert scaled == first + 4 * (5 + 2 * 2 / 4 + 1 / 8)


JAMBA_MINI = {
    "model_type": "jamba", "attn_layer_offset": 4, "attn_layer_period": 8, "expert_layer_offset": 1,
    "expert_layer_period": 2, "hidden_size": 4096, "intermediate_size": 14336, "mamba_conv_bias": True,
    "mamba_d_conv": 4, "mamba_d_state": 16, "mamba_dt_rank": 256, "mamba_expand": 2, "mamba_proj_bias": False,
    "max_position_embeddings": 262144, "num_attention_heads": 32, "num_experts": 16, "num_experts_per_tok": 2,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "num_logits_to_keep": 1, "sliding_window": None,
    "tie_word_embeddings": False, "vocab_size": 65536,
}  # fmt: skip
LFM2_350M = {
    "model_type": "lfm2", "hidden_size": 1024, "block_dim": 1024, "conv_dim": 1024, "block_ff_dim": 6656,
    "block_auto_adjust_ff_dim": True, "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 256, "conv_bias": False,
    "conv_L_cache": 3, "num_attention_heads": 16, "num_heads": 16, "num_key_value_heads": 8, "num_hidden_layers": 16,
    "full_attn_idxs": [2, 5, 8, 10, 12, 14], "vocab_size": 65536, "tie_embedding": True,
    "max_position_embeddings": 128000,
}  # fmt: skip
KIMI_48B = {
    "model_type": "kimi_linear", "hidden_act": "silu", "q_lora_rank": None, "mla_use_nope": True,
    "moe_router_activation_func": "sigmoid", "num_expert_group": 1, "topk_group": 1, "moe_layer_freq": 1,
    "tie_word_embeddings": False, "hidden_size": 2304, "num_hidden_layers": 27, "vocab_size": 163840,
    "num_attention_heads": 32, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
    "v_head_dim": 128, "num_experts": 256, "num_experts_per_token": 8, "num_shared_experts": 1,
    "moe_intermediate_size": 1024, "moe_renormalize": True, "first_k_dense_replace": 1, "intermediate_size": 9216,
    "linear_attn_config": {
        "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
        "kda_layers": [n for n in range(1, 27) if n % 4],
        "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4,
    },
}  # fmt: skip
# Billions as the makers print them, and which tables they count: Jamba Team, 2024, arXiv:2408.12570; Kimi Team, 2025,
# arXiv:2510.26692; the model cards of deepseek-ai/DeepSeek-V4-Flash and google/gemma-4-26B-A4B.
PRINTED = {
    "jamba-1.5-mini": (JAMBA_MINI, {"total": "52", "active": "12"}),
    "kimi-linear-48b-a3b": (KIMI_48B, {"non_embedding": "48", "active_with_head": "3"}),
    "deepseek-v4-flash": (None, {"total": "284", "active_with_head": "13"}),
    "gemma-4-26b-a4b": (None, {"total": "25.2", "active": "3.8"}),
}


@pytest.mark.parametrize("name", PRINTED)
def test_the_printed_counts(name):
    config, printed = PRINTED[name]
    counted = model_parameters(from_hf_config(config or json.loads((CONFIGS / f"{name}.json").read_text("utf-8"))))
    for convention, figure in printed.items():
        digits = len(figure.partition(".")[2])
        assert f"{getattr(counted, convention) / 1e9:.{digits}f}" == figure, convention


def test_the_weights_of_lfm2_350m():
    """As its safetensors file counts them: 354,483,968."""
    assert model_parameters(from_hf_config(LFM2_350M)).total == 354_483_968


# Their files are counted all the same.
IN_FILES = ("falcon_h1", "jamba", "lfm2")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("gemma3n_text", "streams, a low-rank residual and inputs of its own beside"),
        ("gemma4_text", "inputs of its own beside"),
        ("falcon_h1", "a state side by side with its attention"),
        ("jamba", "a scan of Mamba 1"),
        ("lfm2", "a short convolution alone"),
        ("kimi_linear", "Kimi delta attention"),
        ("deepseek_v4", "residual streams that are mixed beside"),
        ("minimax_m3_vl_text", "attention to chosen blocks"),
    ],
)
def test_what_is_not_counted_of_a_family_is_said(name, what):
    model = from_hf_config(small(name))
    unusual = [layer for layer, _ in model.groups if layer.unusual]
    assert unusual[0].unusual.startswith(what)
    with pytest.raises(ValueError, match=f"a layer of this model has {what}"):
        _ = unusual[0].attending
    if name in IN_FILES:
        assert sum(gguf_files.file_weights(model, file_type="Q4_K_M").values()) == model_parameters(model).total
        return
    with pytest.raises(ValueError, match="whose GGUF files are not counted here"):
        gguf_files.file_weights(model, file_type="Q4_K_M")


def test_what_waits_to_be_compressed_is_said(capsys):
    assert main(["kv", "--model", str(CONFIGS / "deepseek-v4-flash.json"), "--tokens", "32k", "--cache", "bf16"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "assumes: tokens that wait to become an entry are not counted" in said
    assert "21 × (128 × 1024 + 8192 × 1280)" in said


def test_a_window_without_entries_has_no_indexer():
    sizes = {"num_heads": 4, "head_dim": 8, "q_rank": 5, "window": 3, "groups": 2, "output_rank": 6}
    indexer = next(
        layer.attention.indexer for layer, _ in from_hf_config(small("deepseek_v4")).groups if layer.attention.indexer
    )
    with pytest.raises(ValueError, match="an indexer chooses among entries, and ratio=None makes none"):
        CompressedAttention(**sizes, indexer=indexer)

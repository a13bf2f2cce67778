"""Caches and states of models with scans and with unequal heads, against what one step of their classes keeps."""

import pytest
import torch
from tests.models.small_configs import small

from threeloops.measure.product_loop import kv_cache as weigh
from threeloops.models.hf_config import from_hf_config
from threeloops.product_loop import kv_cache
from threeloops.product_loop.recurrent_state import CONV_BYTES, MATRIX_BYTES, state_bytes

BF16 = {"bytes_per_element": 2}


def elements(model) -> int:
    """Numbers in all states of one request."""
    return sum(
        int(state_bytes(one, state_bytes_per_element=1, conv_bytes_per_element=1)) * count
        for layer, count in model.groups
        for one in (layer.attention, layer.state)
        if hasattr(one, "state_elements")
    )


@pytest.mark.parametrize("model_type", ["bamba", "mamba", "mamba2", "falcon_mamba", "zamba2"])
def test_states_and_caches_are_what_the_class_keeps(model_type):
    config, tokens = small(model_type, use_cache=True), 23
    config.pop("use_cache")
    real = weigh.small_model(config, dtype=torch.float32)
    with torch.no_grad():
        out = real(torch.zeros((1, tokens), dtype=torch.long), use_cache=True)
    cache = getattr(out, "past_key_values", None) or out.cache_params
    model = from_hf_config(config)
    assert weigh.state_bytes(cache) == 4 * elements(model)
    held = kv_cache.request_bytes(model, tokens=tokens, **BF16, moment="between_steps") - kv_cache.states_bytes(model)
    assert 2 * held == weigh.cache_weight(cache).tensor_bytes


def test_recurrent_gemma_keeps_a_number_per_channel_and_a_window():
    config = small("recurrent_gemma")
    real = weigh.small_model(config, dtype=torch.bfloat16)
    with torch.no_grad():
        real(torch.zeros((1, 29), dtype=torch.long), use_cache=True)
    kept = 0
    for block in real.model.layers:
        own = block.temporal_block
        if hasattr(own, "rg_lru"):
            kept += own.rg_lru.recurrent_states.numel() * MATRIX_BYTES + own.conv1d_state.numel() * CONV_BYTES
    model = from_hf_config(config)
    assert kv_cache.states_bytes(model) == kept
    window = [layer.attention.window for layer, _ in model.groups if hasattr(layer.attention, "window")]
    assert window == [17]


@pytest.mark.parametrize("model_type", ["laguna", "mimo_v2_flash", "dbrx"])
@pytest.mark.parametrize(("prompt", "decoded"), [(5, 0), (29, 2)])
def test_unequal_heads_keep_what_the_class_keeps(model_type, prompt, decoded):
    config = small(model_type, **({"num_hidden_layers": 7} if model_type == "mimo_v2_flash" else {}))
    real = weigh.small_model(config, dtype=torch.bfloat16)
    real.set_experts_implementation("eager")
    kept = weigh.weighed_cache(real, batch=1, prompt_tokens=prompt, decode_tokens=decoded).tensor_bytes
    model, tokens = from_hf_config(config), prompt + decoded
    assert kv_cache.request_bytes(model, tokens=tokens, **BF16, moment="between_steps") == kept


def test_what_keeps_a_family_out_of_further_counts_is_said():
    said = {
        "bamba": "",
        "mamba": "a scan of Mamba 1",
        "recurrent_gemma": "a gated linear recurrence",
        "zamba2": "a state side by side with its attention",
        "laguna": "a gate on what each head reads beside attention and MLP",
        "mimo_v2_flash": "values of another width than its keys",
    }
    for model_type, words in said.items():
        found = {layer.unusual for layer, _ in from_hf_config(small(model_type)).groups}
        assert words in found, model_type


@pytest.mark.parametrize(
    ("model_type", "changes", "told"),
    [
        ("bamba", {"attn_layer_indices": [5]}, "attn_layer_indices has 5, but num_hidden_layers=5"),
        ("mamba2", {"expand": 3}, "num_heads \\* head_dim = 96 must be expand \\* hidden_size = 144"),
        ("recurrent_gemma", {"block_types": ["dense"]}, "block_types='dense' is not known"),
        ("zamba2", {"layers_block_type": ["mamba"]}, "layers_block_type lists 1 layers, but num_hidden_layers=5"),
        ("zamba2", {"n_mamba_heads": 7}, "n_mamba_heads=7 must divide mamba_expand \\* hidden_size=96"),
        ("laguna", {"num_attention_heads_per_layer": [6]}, "num_attention_heads_per_layer lists 1 layers"),
        ("laguna", {"mlp_layer_types": ["dense"]}, "mlp_layer_types lists 1 layers, but num_hidden_layers=5"),
        ("laguna", {"gating": "none"}, "gating='none' is not known"),
        ("mimo_v2_flash", {"swa_head_dim": 12}, "swa_head_dim=12 is not understood; only 20 is"),
        ("mimo_v2_flash", {"hybrid_layer_pattern": [0] * 5}, "the transformers class has this pattern"),
        ("dbrx", {"ffn_config": 3}, "ffn_config"),
    ],
)
def test_what_cannot_be_is_refused(model_type, changes, told):
    with pytest.raises(ValueError, match=told):
        from_hf_config(small(model_type, **changes))

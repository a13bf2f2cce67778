"""The cache of every kind of config that is read, against the tensors that its class in transformers keeps."""

import pytest
import torch
from tests import seeds
from tests.models.small_configs import SMALL, small
from transformers import AutoConfig
from transformers.models.step3p7 import Step3p7TextModel

from threeloops.measure.product_loop import kv_cache as weigh
from threeloops.models.hf_config import from_hf_config
from threeloops.product_loop import kv_cache

BATCH, PROMPT, DECODED = 2, 29, 2  # more tokens than any window or chunk of these configs

# Kinds of layers that no other family has are weighed in every run; of the rest, a sixth.
ALWAYS = {
    "deepseek_v3": {},
    "falcon": {},
    "falcon_h1": {},
    "gemma3n_text": {"num_hidden_layers": 10, "num_kv_shared_layers": 3},
    "gemma4_text": {"num_kv_shared_layers": 1, "attention_k_eq_v": True, "num_global_key_value_heads": 2},
    "glm_moe_dsa": {"indexer_types": ["full", "shared", "full", "shared", "shared"]},
    "granitemoehybrid": {},
    "jamba": {},
    "kimi_linear": {},
    "lfm2": {},
    "llama4_text": {},
    "minimax_m3_vl_text": {},
    "nemotron_h": {},
    "qwen3_next": {},
}
# transformers builds them beside a vision tower only
INSIDE_OTHERS = {"qwen3_vl_text", "qwen3_vl_moe_text", "qwen2_vl_text", "qwen2_5_vl_text", "mistral4"}
INSIDE_OTHERS |= {"qwen2_5_omni_text", "qwen3_omni_moe_text", "glm4v_text", "glm4v_moe_text", "step3p5"}
ELSEWHERE = {"deepseek_v4"}  # keys that are values, and entries: tests/models/readers/test_compressed_readers.py
ELSEWHERE |= {
    "mamba",
    "mamba2",
    "falcon_mamba",
    "recurrent_gemma",
}  # states alone, under other names: test_scan_readers


def todays() -> list[str]:
    """What this run weighs."""
    rest = [model_type for model_type in SMALL if model_type not in {*ALWAYS, *INSIDE_OTHERS, *ELSEWHERE}]
    return [*ALWAYS, *seeds.todays(rest, shares=6)]


def index_bytes(cache) -> int:
    """Bytes of the keys that an indexer keeps."""
    kept = [getattr(layer, name, None) for layer in cache.layers for name in ("indexer_keys", "idx_keys")]
    return sum(keys.nbytes for keys in kept if keys is not None)


@pytest.mark.parametrize("model_type", todays())
def test_a_config_keeps_what_its_class_keeps(model_type):
    config = small(model_type, **ALWAYS.get(model_type, {}))
    real = weigh.small_model(config, dtype=torch.bfloat16)
    real.set_experts_implementation("eager")  # others need widths that small models do not have
    cache = weigh.filled_cache(real, batch=BATCH, prompt_tokens=PROMPT, decode_tokens=DECODED)
    kept = weigh.cache_weight(cache).tensor_bytes + weigh.state_bytes(cache) + index_bytes(cache)
    model, tokens = from_hf_config(config), PROMPT + DECODED
    counted = kv_cache.request_bytes(model, tokens=tokens, bytes_per_element=2, moment="between_steps")
    assert BATCH * counted == kept
    assert BATCH * kv_cache.states_bytes(model) == weigh.state_bytes(cache)


def test_steps_windows_keep_as_many_kv_heads_as_its_full_layers():
    """Its text model alone, for which no causal name is registered: only the query heads of windows are more."""
    config = small("step3p5")
    built = AutoConfig.for_model(**config)
    real = Step3p7TextModel(built).to(torch.bfloat16).eval()
    real.set_experts_implementation("eager")
    cache = weigh.filled_cache(real, batch=BATCH, prompt_tokens=PROMPT, decode_tokens=DECODED)
    counted = kv_cache.request_bytes(
        from_hf_config(config), tokens=PROMPT + DECODED, bytes_per_element=2, moment="between_steps"
    )
    assert BATCH * counted == weigh.cache_weight(cache).tensor_bytes


def test_a_large_falcon_copies_its_heads_before_it_caches_them():
    """Only this class does: servers keep a KV head once, and that is what is counted."""
    config = small("falcon", new_decoder_architecture=True, num_kv_heads=3)
    cache = weigh.filled_cache(weigh.small_model(config, dtype=torch.bfloat16), batch=1, prompt_tokens=PROMPT)
    model = from_hf_config(config)
    counted = kv_cache.request_bytes(model, tokens=PROMPT, bytes_per_element=2)
    assert weigh.cache_weight(cache).tensor_bytes == model.groups[0][0].attending.group_size * counted == 2 * counted

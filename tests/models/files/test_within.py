"""Decoders within the config.json of a model whose code ships with it."""

import pytest
from tests.models.small_configs import small

from threeloops.models.files.within import WITHIN
from threeloops.models.hf_config import from_hf_config


@pytest.mark.parametrize(("model_type", "inside"), [("internvl_chat", "qwen2"), ("kimi_vl", "deepseek_v3")])
def test_the_decoder_alone_is_counted_and_the_tower_named(model_type, inside):
    whole = {
        "model_type": model_type,
        "architectures": ["InternVLChatModel"],
        WITHIN[model_type]: small(inside, architectures=["Qwen2ForCausalLM"]),
        "vision_config": {"hidden_size": 64},
        "dynamic_image_size": True,
    }
    read = from_hf_config(whole, name="mine")
    assert read == from_hf_config(small(inside), name="mine")
    assert read.not_counted == ("its vision tower",)


@pytest.mark.parametrize("inside", [None, {}, {"model_type": "kimi_vl"}])
def test_without_it_the_field_is_named(inside):
    with pytest.raises(ValueError, match="mine: 'llm_config' is missing; internvl_chat configs keep"):
        from_hf_config({"model_type": "internvl_chat", "llm_config": inside}, name="mine")

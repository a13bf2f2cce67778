"""Files of types that nobody knows, and fields that nobody knows: read where that is safe, and said."""

import json
from pathlib import Path

import pytest
from tests.models.small_configs import small

from threeloops.cli import main
from threeloops.models.hf_config import from_hf_config

TEXT = small("qwen3")


def own(model_type: str | None, of: str, *architectures: str) -> dict:
    """A file of this family under a type of its own."""
    return small(of, architectures=list(architectures)) | {"model_type": model_type}


WITHOUT = {name: value for name, value in own("", "qwen3", "Qwen3ForCausalLM").items() if name != "model_type"}
OWN_NAMES = [
    (own("phi4", "phi3", "Phi3ForCausalLM"), "phi3", "model_type='phi4' is read as phi3, whose class its architect"),
    (WITHOUT, "qwen3", "a config without model_type is read as qwen3"),
    (own("gemma3", "gemma3_text", "Gemma3ForCausalLM"), "gemma3_text", "is read as gemma3_text"),
    ({"model_type": "andes", "text_config": TEXT, "vision_config": {}}, "qwen3", "its text_config is read, as qwen3"),
    (
        {"model_type": "kite", "llm_config": own("kite_text", "qwen3", "Qwen3ForCausalLM")},
        "qwen3",
        "its llm_config is read, as qwen3",
    ),
]


@pytest.mark.parametrize(("config", "read_as", "said"), OWN_NAMES)
def test_a_type_of_its_own_is_read_by_its_class_or_by_what_lies_in_it(config: dict, read_as: str, said: str) -> None:
    model = from_hf_config(config, name="mine")
    assert model == from_hf_config(small(read_as), name="mine")
    assert any(said in words for words in model.noted)


def test_the_outer_config_decides_whether_the_head_is_the_table() -> None:
    for tied in (True, False):
        wrapped = {"model_type": "andes", "text_config": TEXT, "tie_word_embeddings": tied}
        assert from_hf_config(wrapped, name="mine").tied_head is tied


@pytest.mark.parametrize(
    "config",
    [
        own("own", "mixtral", "OwnForCausalLM"),
        own("own", "llama", "LlamaForCausalLM", "OwnForCausalLM"),
        {"model_type": "own", "text_config": own("own_text", "mixtral", "OwnForCausalLM")},
        {"model_type": "own", "text_config": "llama"},
        {"model_type": 7, "text_config": TEXT},
    ],
)
def test_what_names_no_class_that_is_known_is_refused(config: dict) -> None:
    with pytest.raises(ValueError, match=r"model_type=.* is not read"):
        from_hf_config(config)


@pytest.mark.parametrize("value", ["a word", False, 0, 0.5, -1000, ""])
def test_a_field_that_can_be_no_size_is_passed_over_and_said(value: object, tmp_path: Path, capsys) -> None:
    model = from_hf_config(small("llama", mask_value=value))
    assert model == from_hf_config(small("llama"))
    assert model.noted == ("not read, as llama configs are not known to have it: mask_value",)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(small("llama", mask_value=value)))
    assert main(["kv", "--model", str(file), "--tokens", "1k", "--cache", "bf16"]) == 0
    assert "not read, as llama configs are not known to have it: mask_value" in capsys.readouterr().out


@pytest.mark.parametrize("value", [True, 1, 2.0, 64, [1], {"a": 1}])
def test_a_field_that_could_be_a_size_or_a_switch_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="'mask_value' is a field that llama configs are not known to have"):
        from_hf_config(small("llama", mask_value=value))


def test_a_gemma_4_without_towers_of_its_own_is_its_text() -> None:
    """google/gemma-4-12B-it: files that transformers saves leave out the inputs of each layer, which it has not."""
    text = small("gemma4_unified_text")
    inside = {"model_type": "gemma4_unified", "text_config": text, "audio_config": {}}
    assert from_hf_config(inside, name="mine") == from_hf_config(text, name="mine")
    as_gemma4 = small("gemma4_text", hidden_size_per_layer_input=0, vocab_size_per_layer_input=...)
    assert from_hf_config(text, name="mine") == from_hf_config(as_gemma4, name="mine")

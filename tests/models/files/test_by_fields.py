"""Types that the book does not know: read by their fields where these are Llama's alone, and said so."""

import pytest
from tests.models.small_configs import real

from threeloops.models.hf_config import from_hf_config
from threeloops.models.parameters import model_parameters

OWN = {
    "model_type": "kite", "architectures": ["KiteForCausalLM"], "auto_map": {"AutoModelForCausalLM": "kite.Kite"},
    "hidden_act": "silu", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "tie_word_embeddings": False,
}  # fmt: skip
LLAMA = {name: value for name, value in OWN.items() if name not in ("architectures", "auto_map")} | {
    "model_type": "llama"
}


def test_it_is_counted_as_a_llama_and_says_so():
    model = from_hf_config(OWN)
    assert model_parameters(model).total == real(LLAMA)[1]
    assert "'kite' is not known, and its code was not seen: read as a Llama" in model.noted[0]


def test_one_switch_of_biases_is_that_of_attention():
    assert model_parameters(from_hf_config(OWN | {"bias": True})).total == real(LLAMA | {"attention_bias": True})[1]


def test_what_was_passed_over_is_named_and_images_are_not_layers():
    several = {f"size_{letter}": 7 for letter in "abcdefgh"}
    noted = from_hf_config(OWN | several | {"mm_compress_state": 3, "vision_index_token": 4}).noted[0]
    assert noted.endswith("not read: size_a, size_b, size_c, size_d, size_e, size_f and 2 more")


def test_a_decoder_within_a_larger_file_is_read_alike():
    outside = {"auto_map": {}, "architectures": ["KiteForConditionalGeneration"], "vision_config": {}}
    inside = {name: value for name, value in OWN.items() if name not in ("auto_map", "architectures")}
    model = from_hf_config({**outside, "text_config": inside | {"layer_types": ["full_attention"] * 3}})
    assert model_parameters(model).total == real(LLAMA)[1]
    assert model.not_counted == ("its vision tower",)


@pytest.mark.parametrize(
    "other",
    [
        {"num_experts": 8},
        {"kv_lora_rank": 512},
        {"layer_types": ["linear"]},
        {"sparse_block_size": 16},
        {"hidden_act": "gelu"},
        {"architectures": ["KiteModel"]},
        {"hidden_size": None},
    ],
)
def test_other_layers_are_refused(other):
    with pytest.raises(ValueError, match="model_type='kite' is not read"):
        from_hf_config(OWN | other)


def test_a_type_that_transformers_may_know_is_not_guessed():
    with pytest.raises(ValueError, match="model_type='kite' is not read"):
        from_hf_config({name: value for name, value in OWN.items() if name != "auto_map"})


@pytest.mark.parametrize("kinds", [5, [["a"]], [{"a": 1}], ["conv"]])
def test_layer_types_that_are_no_list_of_full_attention_are_no_llama(kinds: object) -> None:
    with pytest.raises(ValueError, match="model_type='kite' is not read"):
        from_hf_config(OWN | {"layer_types": kinds})

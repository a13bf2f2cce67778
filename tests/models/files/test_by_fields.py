"""Types that the book does not know: read by their fields where these are Llama's alone, and said so."""

import pytest
from tests.models.small_configs import real, small
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from threeloops.models.hf_config import READ, UnreadTypeError, from_hf_config
from threeloops.models.hf_not_read import NOT_READ, ON_THEIR_CLASS
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


def test_a_type_that_transformers_knows_is_not_guessed():
    without = {name: value for name, value in OWN.items() if name != "auto_map"}
    assert from_hf_config(without) == from_hf_config(OWN)  # trained from nothing by a program of its own
    assert {*CONFIG_MAPPING_NAMES} - {*READ, *NOT_READ} == ON_THEIR_CLASS


@pytest.mark.parametrize("own_code", [{}, {"auto_map": {}}])
@pytest.mark.parametrize(
    "name",
    ["diffllama", "csm", "higgs_audio_v2", "eurobert", "moonshine_streaming", "hrm_text", "axk1", "longcat_flash"],
)
def test_no_class_of_transformers_is_guessed_whatever_code_the_file_names(name, own_code):
    without = {field: value for field, value in OWN.items() if field not in ("auto_map", "architectures")}
    for fields in (without, small("deepseek_v3") | {"further_experts": 3}):
        with pytest.raises(UnreadTypeError, match=f"model_type='{name}' is not read; "):
            from_hf_config(fields | {"model_type": name} | own_code)
    within = {"model_type": "kite", "text_config": without | {"model_type": name}}
    with pytest.raises(UnreadTypeError, match=f"'kite' is not read: its decoder is of model_type='{name}'"):
        from_hf_config(within | own_code)


def test_what_deepseeks_reader_refuses_is_of_a_type_that_is_not_read():
    own = small("deepseek_v3") | {"model_type": "holmes", "zero_expert_num": 5}
    with pytest.raises(UnreadTypeError, match="'holmes' is not known, .* it is refused: 'zero_expert_num'") as refused:
        from_hf_config(own)
    assert "remove" not in str(refused.value)


def test_one_expert_is_a_dense_block_and_another_activation_no_llama():
    assert from_hf_config(OWN | {"num_experts": 1, "num_experts_per_tok": 1}).groups == from_hf_config(OWN).groups
    with pytest.raises(ValueError, match="model_type='kite' is not read"):
        from_hf_config({name: OWN[name] for name in OWN if name != "hidden_act"} | {"activation": "gelu"})


def test_deepseeks_fields_under_another_name():
    """A model trained from nothing with DeepSeek V3's code under a name of its own."""
    own = small("deepseek_v3") | {"model_type": "holmes", "architectures": ["HolmesForCausalLM"], "auto_map": {}}
    model = from_hf_config(own)
    assert model_parameters(model).total == real(small("deepseek_v3"))[1]
    assert "read as DeepSeek V3, whose fields it has" in model.noted[0]


@pytest.mark.parametrize("kinds", [5, [["a"]], [{"a": 1}], ["conv"]])
def test_layer_types_that_are_no_list_of_full_attention_are_no_llama(kinds: object) -> None:
    with pytest.raises(ValueError, match="model_type='kite' is not read"):
        from_hf_config(OWN | {"layer_types": kinds})


@pytest.mark.parametrize(
    "noted",
    [
        {"batch_size": 8},
        {"learning_rate": 3, "warmup_steps": 10},
        {"block_size": 6},
        {"seed": 1},
        {"eval_steps": 500, "save_steps": 500, "logging_steps": 10, "max_steps": 9000},
        {"gradient_accumulation_steps": 8, "num_train_steps": 9000, "lr_decay_steps": 100},
    ],
)
def test_what_was_noted_of_a_training_is_no_layer(noted):
    assert from_hf_config(small("llama", **noted)) == from_hf_config(small("llama"))


@pytest.mark.parametrize("name", ["recurrent_steps", "refinement_steps", "num_steps"])
def test_steps_of_layers_are_not_taken_for_those_of_a_training(name):
    with pytest.raises(ValueError, match=f"'{name}' is a field that llama configs are not known to have"):
        from_hf_config(small("llama", **{name: 4}))


@pytest.mark.parametrize("name", ["DebertaV2ForSequenceClassification", "SiglipModel", "NicheForMaskedLM"])
def test_a_class_that_is_no_language_models_is_named(name):
    with pytest.raises(ValueError, match=f"is not read: its class, '{name}', is no language model's"):
        from_hf_config({"model_type": "kite", "architectures": [name]})


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"num_blocks": 8, "emb_dim": 64}, "no field is called 'hidden_size', as a Llama's is"),
        ({name: OWN[name] for name in OWN if name != "model_type"} | {"memory_slots": 4}, "'memory_slots' speaks of"),
        (OWN | {"architectures": ["KiteModel"]}, "its architectures name 'KiteModel', which is not known to be"),
        *(
            (OWN | {"hidden_act": "gelu"} | harmless, "hidden_act='gelu' is no Llama's, which is 'silu'")
            for harmless in (
                {"layer_types": ["full_attention"] * 3},
                {"output_hidden_states": True},
                {"pad_token_index": 7},
                {"num_experts": 1},
            )
        ),
        ({"text_model_id": "meta-llama/Llama-3.1-8B"}, "it names its decoder, 'meta-llama/Llama-3.1-8B', and does not"),
    ],
)
def test_a_refusal_of_an_unknown_type_says_why(config, why):
    with pytest.raises(ValueError, match=f"model_type='kite' is not read: .*{why}"):
        from_hf_config({"model_type": "kite"} | config)

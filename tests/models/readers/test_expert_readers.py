"""What files of these families say in their own way: a number for every layer, a part in a part, fields said twice."""

import pytest
from tests.models.small_configs import small

from threeloops.models.hf_config import from_hf_config

OMNI = {"qwen2_5_omni": "qwen2_5_omni_text", "qwen3_omni_moe": "qwen3_omni_moe_text"}


def omni(model_type: str, **changes: object) -> dict:
    """A file of an omni model: what listens and sees around the text, and what speaks beside it."""
    text = small(OMNI[model_type])
    thinker = {
        "model_type": f"{model_type}_thinker",
        "architectures": ["ThinkerForConditionalGeneration"],
        "text_config": text,
        "audio_config": {"d_model": 32},
        "vision_config": {"depth": 2},
        "audio_token_index": 7,
        "position_id_per_seconds": 25,
    }
    own = {"architectures": ["Qwen2_5OmniModel"], "enable_audio_output": True, "talker_config": {"hidden_size": 9}}
    whole = {"model_type": model_type, "thinker_config": thinker, **own, **changes}
    return {name: value for name, value in whole.items() if value is not ...}


@pytest.mark.parametrize("model_type", OMNI)
def test_an_omni_model_is_read_by_what_it_thinks_with(model_type):
    found = from_hf_config(omni(model_type))
    assert found.groups == from_hf_config(small(OMNI[model_type])).groups
    assert found.not_counted == ("its vision tower", "its audio tower", "what speaks (talker and waveform)")
    with pytest.raises(ValueError, match="'thinker_config' is missing; a qwen"):
        from_hf_config(omni(model_type, thinker_config=...))
    with pytest.raises(ValueError, match="'depth_of_thought' is a field that qwen"):
        from_hf_config(omni(model_type, depth_of_thought=3))


def test_what_a_file_says_twice_is_read_inside_its_text():
    """As files of Qwen2.5-VL that were saved again do, and those of EXAONE 4.5 and Voxtral."""
    text = small("qwen2_5_vl_text") | {"architectures": ["Qwen2_5_VLForConditionalGeneration"]}
    plain = {"model_type": "qwen2_5_vl", "architectures": text["architectures"], "text_config": text}
    again = {**plain, "hidden_size": 999, "num_hidden_layers": 99, "use_sliding_window": None, "a_new_token_id": 5}
    assert from_hf_config(again) == from_hf_config(plain)
    with pytest.raises(ValueError, match="'depth' is a field that qwen2_5_vl configs are not known to have"):
        from_hf_config({**again, "depth": 3})


def test_heads_for_rewards_are_refused_where_there_are_some():
    config = {"model_type": "minimax_m3_vl", "text_config": small("minimax_m3_vl_text"), "num_reward_heads": 0}
    assert from_hf_config(config).num_layers == 5
    with pytest.raises(ValueError, match="'num_reward_heads' is a field"):
        from_hf_config({**config, "num_reward_heads": 2})


def test_hunyuan_may_repeat_a_number_for_every_layer():
    listed = small("hunyuan_v1_moe", num_experts=[7] * 5, moe_topk=[2] * 5, moe_intermediate_size=[70] * 5)
    assert from_hf_config(listed | {"num_shared_expert": [1] * 5}) == from_hf_config(small("hunyuan_v1_moe"))
    with pytest.raises(ValueError, match="must be the same in every layer"):
        from_hf_config(small("hunyuan_v1_moe", moe_topk=[2, 2, 2, 2, 3]))
    with pytest.raises(ValueError, match="moe_intermediate_size=26 is not understood"):
        from_hf_config(small("hunyuan_v1_moe", moe_intermediate_size=26))
    with pytest.raises(ValueError, match="use_cla=True is not understood"):
        from_hf_config(small("hunyuan_v1_moe", use_cla=True))


def test_steps_windows_have_more_heads_and_its_lists_may_go_on_past_the_last_layer():
    kinds = small("step3p5")["layer_types"]
    found = from_hf_config(small("step3p5", layer_types=[*kinds, "sliding_attention"], num_nextn_predict_layers=1))
    assert found.groups == from_hf_config(small("step3p5")).groups
    assert found.not_counted == ("1 layer for multi-token prediction",)
    assert {(layer.attention.window, layer.attention.num_heads) for layer in found.layers()} == {(None, 6), (17, 9)}
    assert [layer.mlp.num_experts for layer in found.layers() if hasattr(layer.mlp, "num_experts")] == [7, 7]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"layer_types": ["full_attention"] * 4}, "layer_types lists 4 layers, but num_hidden_layers=5"),
        ({"mlp_layer_types": ["dense"] * 4}, "mlp_layer_types lists 4 layers, but num_hidden_layers=5"),
        ({"moe_layers_enum": "3,last"}, "must list layers by their numbers"),
        ({"gating": False}, "gating=False is not understood"),
        ({"attention_other_setting": {"head_dim": 40}}, "attention_other_setting: head_dim=40 must be 20"),
    ],
)
def test_what_step_cannot_be_is_refused(changes, told):
    with pytest.raises(ValueError, match=told):
        from_hf_config(small("step3p5", **changes))


def test_exaone_writes_its_windows_as_a_word():
    """EXAONE 4.0 32B has sliding_window_pattern "LLLG" beside its list of layers."""
    windows = [
        layer.attention.window for layer in from_hf_config(small("exaone4", sliding_window_pattern="LLLG")).layers()
    ]
    assert sorted(windows, key=str) == [17, 17, 17, 17, None]


def test_k_exaone_writes_its_windows_as_a_word_and_its_experts_twice():
    """K-EXAONE 236B lists its layers with experts under a name that the class of transformers does not read."""
    own = {"sliding_window_pattern": "LLLG", "is_moe_layer": [False] + [True] * 4, "first_last_k_dense_replace": 1}
    read, plain = (from_hf_config(small("exaone_moe", **changes)) for changes in (own, {}))
    assert read.groups == plain.groups
    assert [layer.attention.window for layer in read.layers()].count(None) == 1
    for changes, told in (
        ({"is_moe_layer": [True] * 5}, "is_moe_layer=.* contradicts mlp_layer_types or first_k_dense_replace"),
        ({"first_last_k_dense_replace": 2}, "first_last_k_dense_replace=2 contradicts .*; by them it is 1"),
    ):
        with pytest.raises(ValueError, match=told):
            from_hf_config(small("exaone_moe", **changes))

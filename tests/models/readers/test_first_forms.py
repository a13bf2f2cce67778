"""Families under their first names, against indexes of their checkpoints, printed sizes and classes of transformers."""

import pytest
from tests.models.small_configs import real

from threeloops.models.architecture import Attention
from threeloops.models.hf_config import from_hf_config
from threeloops.models.layers.lightning import Lightning
from threeloops.models.parameters import model_parameters
from threeloops.product_loop import kv_cache


def total(config: dict) -> int:
    return model_parameters(from_hf_config(config)).total


LAYERS_32 = {"num_attention_heads": 32, "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 11008}
INTERNLM_7B = LAYERS_32 | {
    "model_type": "internlm", "architectures": ["InternLMForCausalLM"], "bias": True, "vocab_size": 103168,
    "max_position_embeddings": 2048, "tie_word_embeddings": False, "hidden_act": "silu",
}  # fmt: skip


def test_internlm_as_its_index_prints_it():
    """pytorch_model.bin.index.json of internlm-chat-7b: 14643904512, with 64 rotary numbers of 4 bytes a layer."""
    assert 2 * total(INTERNLM_7B) + 32 * 64 * 4 == 14_643_904_512


TELECHAT_52B = {
    "model_type": "telechat", "n_embd": 8192, "n_head": 64, "n_layer": 64, "n_inner": 21824, "n_positions": 4096,
    "vocab_size": 80896, "add_bias_linear": False, "activation_function": "silu", "relative_encoding": "rotary",
    "use_RMSNorm": True, "tie_word_embeddings": False,
}  # fmt: skip


def test_telechat_as_its_index_prints_it():
    """pytorch_model.bin.index.json of TeleChat-52B: 105665020032, with a masked_bias of 2 bytes a layer."""
    assert 2 * total(TELECHAT_52B) + 64 * 2 == 105_665_020_032
    with pytest.raises(ValueError, match="add_bias_linear=True is not understood"):
        from_hf_config(TELECHAT_52B | {"add_bias_linear": True})
    with pytest.raises(ValueError, match="'n_inner' is missing"):
        from_hf_config({"model_type": "telechat", "hidden_size": 4096})


def test_chatglm_1_as_its_index_prints_it():
    """chatglm-6b's index: 13744473856, with norms in 4 bytes and 32 rotary numbers a layer."""
    config = {
        "model_type": "chatglm", "hidden_size": 4096, "inner_hidden_size": 16384, "num_attention_heads": 32,
        "num_layers": 28, "vocab_size": 150528, "max_sequence_length": 2048, "position_encoding_2d": True,
    }  # fmt: skip
    norms = (28 * 4 + 2) * 4096
    assert 2 * total(config) + 2 * norms + 28 * 32 * 2 == 13_744_473_856
    assert total(config | {"pre_seq_len": None, "prefix_projection": False}) == total(config)
    with pytest.raises(ValueError, match="pre_seq_len=128 is not understood; .*its encoder of a prefix holds weights"):
        from_hf_config(config | {"pre_seq_len": 128, "prefix_projection": False})


REFINED_WEB = {
    "model_type": "RefinedWeb", "architectures": ["RWForCausalLM"], "alibi": False, "bias": False, "vocab_size": 65024,
    "hidden_size": 8192, "n_head": 128, "n_head_kv": 8, "n_layer": 60, "parallel_attn": True,
    "apply_residual_connection_post_layernorm": False,
}  # fmt: skip


def test_falcons_first_names():
    """pytorch_model.bin.index.json of falcon-40b: 83671941120, with the table saved again as the head."""
    assert 2 * (total(REFINED_WEB) + 65024 * 8192) == 83_671_941_120
    small = {"hidden_size": 64, "vocab_size": 100, "alibi": False, "bias": False, "parallel_attn": True}
    first = small | {"model_type": "RefinedWebModel", "n_head": 4, "n_layer": 2, "multi_query": True}
    today = small | {"model_type": "falcon", "num_attention_heads": 4, "num_hidden_layers": 2, "multi_query": True}
    assert total(first) == real(today)[1]


def test_codeshell_is_starcoder_2():
    config = {
        "model_type": "codeshell", "n_embd": 64, "n_head": 4, "n_layer": 3, "n_inner": 256, "n_positions": 128,
        "num_query_groups": 2, "group_query_attention": True, "position_embedding_type": "rope", "vocab_size": 100,
        "activation_function": "gelu_pytorch_tanh",
    }  # fmt: skip
    near = {
        "model_type": "starcoder2", "hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
    }  # fmt: skip
    assert total(config) == real(near)[1]
    with pytest.raises(ValueError, match="position_embedding_type='learned_absolute' is not understood"):
        from_hf_config(config | {"position_embedding_type": "learned_absolute"})
    with pytest.raises(ValueError, match="'n_inner' is missing; a codeshell config"):
        from_hf_config(config | {"n_inner": None})


CODEGEN = {
    "model_type": "codegen", "n_embd": 64, "n_head": 4, "n_layer": 3, "n_positions": 128, "rotary_dim": 8,
    "vocab_size": 100, "tie_word_embeddings": False,
}  # fmt: skip


def test_codegen_and_moss_are_gpt_j():
    assert total(CODEGEN | {"head_dim": 16}) == total(CODEGEN | {"model_type": "moss"}) == real(CODEGEN)[1]
    with pytest.raises(ValueError, match="head_dim=32 is not understood; only 16 is"):
        from_hf_config(CODEGEN | {"head_dim": 32})


GPT_NEO = {
    "model_type": "gpt_neo", "hidden_size": 64, "num_heads": 4, "num_layers": 4, "vocab_size": 100, "window_size": 16,
    "max_position_embeddings": 128, "attention_types": [[["global", "local"], 2]],
}  # fmt: skip


def test_gpt_neo_has_windows_in_every_second_layer():
    assert total(GPT_NEO) == real(GPT_NEO)[1]
    windows = {group[0].attention.window: group[1] for group in from_hf_config(GPT_NEO).groups}
    assert windows == {None: 2, 16: 2}


@pytest.mark.parametrize(
    "wrong",
    [
        [[["global", "local"], 3]],
        [[["global"], "4"]],
        [[["global", "local"]]],
        [[["global"], 10**12]],
        [[["global"], True]],
        [["global", 4]],
        [[[["global"]], 4]],
        [[["sparse"], 4]],
        [4],
        [],
        None,
    ],
)
def test_gpt_neo_without_a_kind_for_each_layer_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="attention_types must name global or local for each of the 4 layers, as"):
        from_hf_config(GPT_NEO | {"attention_types": wrong})


MINIMAX = {
    "model_type": "minimax", "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 4, "head_dim": 16,
    "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 6, "num_experts_per_tok": 2,
    "vocab_size": 100, "layer_types": ["linear_attention"] * 3 + ["full_attention"],
}  # fmt: skip


def test_minimax_1_on_its_class_and_in_its_first_names():
    assert total(MINIMAX) == real(MINIMAX)[1]
    without = {name: value for name, value in MINIMAX.items() if name != "layer_types"}
    assert total(without) == real(without)[1]
    first = without | {"model_type": "minimax_m1", "attn_type_list": [0, 0, 0, 1], "postnorm": True}
    assert total(first) == total(MINIMAX)
    assert kv_cache.states_bytes(from_hf_config(first), tp=1) == 3 * 4 * 4 * 16 * 16
    for name in ("minimax_m1", "minimax_text_01"):
        with pytest.raises(ValueError, match=f"'attn_type_list' is missing; a {name} config says there"):
            from_hf_config(without | {"model_type": name})
    for wrong in ([0, 1], [0, 0, 0, 2], [0, 0, 0, "1"]):
        with pytest.raises(ValueError, match="must name one of two kinds for each of the 4 layers"):
            from_hf_config(first | {"attn_type_list": wrong})


def test_minimax_m1_is_as_large_as_it_is_called():
    """456 billion, 45.9 billion of them for each token: the card of MiniMax-M1-80k."""
    sizes = {"hidden_size": 6144, "intermediate_size": 9216, "num_hidden_layers": 80, "num_attention_heads": 64}
    sizes |= {"num_key_value_heads": 8, "head_dim": 128, "num_local_experts": 32, "num_experts_per_tok": 2}
    model = from_hf_config(
        MINIMAX | sizes | {"vocab_size": 200064, "layer_types": (["linear_attention"] * 7 + ["full_attention"]) * 10}
    )
    assert round(model_parameters(model).total / 1e9) == 456
    assert isinstance(model.groups[0][0].attention, Lightning)
    assert isinstance(model.groups[1][0].attention, Attention)


LING_LITE = {
    "model_type": "bailing_moe", "hidden_size": 2048, "intermediate_size": 5632, "moe_intermediate_size": 1408,
    "num_experts": 64, "num_experts_per_tok": 6, "num_shared_experts": 2, "num_attention_heads": 16,
    "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 126464, "max_position_embeddings": 32768,
    "use_bias": False,
}  # fmt: skip


def test_ming_has_a_router_for_images_and_one_for_sound_in_each_layer():
    """inclusionAI, Ming: modeling_bailing_moe.py, BailingMoeSparseMoeBlock (image_gate, audio_gate)."""
    assert total(LING_LITE | {"multi_gate": True}) - total(LING_LITE) == 2 * 64 * 2048 * 28
    assert total(LING_LITE | {"multi_gate": False}) == total(LING_LITE)
    behind_one = LING_LITE | {"model_type": "bailing_moe_v2", "first_k_dense_replace": 1}
    assert total(behind_one | {"multi_gate": True}) - total(behind_one) == 2 * 64 * 2048 * 27


def test_ling_1_has_a_bias_behind_attention_unless_its_file_says_none():
    """configuration_bailing_moe.py: use_bias=True; configuration_bailing_moe_v2.py: use_bias=False."""
    silent = {name: value for name, value in LING_LITE.items() if name != "use_bias"}
    assert total(silent) - total(LING_LITE) == 28 * 2048
    second = {"model_type": "bailing_moe_v2"}
    assert total(silent | second) == total(LING_LITE | second)


def test_ling_as_its_cards_print_it():
    """Ling-lite: 16.8 billion; Ling-mini-2.0: 16.26 billion."""
    assert round(total(LING_LITE) / 1e9, 1) == 16.8
    mini = LING_LITE | {
        "model_type": "bailing_moe_v2", "intermediate_size": 5120, "moe_intermediate_size": 512, "num_experts": 256,
        "num_experts_per_tok": 8, "num_shared_experts": 1, "num_hidden_layers": 20, "head_dim": 128,
        "first_k_dense_replace": 1, "vocab_size": 157184,
    }  # fmt: skip
    assert round(total(mini) / 1e9, 2) == 16.26

"""Decoders whose classes ship with their checkpoints, against printed sizes, shapes of their code and near classes."""

import pytest
from tests.models.small_configs import real

from threeloops.cli import main
from threeloops.models.hf_config import from_hf_config
from threeloops.models.layers.states import GatedLinear
from threeloops.models.parameters import model_parameters
from threeloops.product_loop import kv_cache

INTERNLM2_7B = {
    "model_type": "internlm2", "architectures": ["InternLM2ForCausalLM"], "bias": False, "hidden_act": "silu",
    "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 32768, "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "rope_theta": 1000000, "tie_word_embeddings": False,
    "vocab_size": 92544,
}  # fmt: skip


def total(config: dict) -> int:
    return model_parameters(from_hf_config(config)).total


def test_internlm_2_as_its_index_prints_it():
    """model.safetensors.index.json of the checkpoint says total_size 15475417088, in 16 bits."""
    assert 2 * total(INTERNLM2_7B) == 15_475_417_088
    biases = 32 * (32 + 2 * 8) * 128 + 32 * 4096
    assert total(INTERNLM2_7B | {"bias": True}) == total(INTERNLM2_7B) + biases


def test_minicpm_is_llama_with_scales():
    config = {
        "model_type": "minicpm", "architectures": ["MiniCPMForCausalLM"], "hidden_act": "silu", "hidden_size": 4096,
        "intermediate_size": 16384, "max_position_embeddings": 4096, "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 2, "scale_emb": 12, "scale_depth": 1.4, "mup_denominator": 32,
        "dim_model_base": 256, "tie_word_embeddings": False, "vocab_size": 73448,
    }  # fmt: skip
    assert total(config) == real(config | {"model_type": "llama", "architectures": ["LlamaForCausalLM"]})[1]
    with pytest.raises(ValueError, match="num_experts=8 is not understood"):
        from_hf_config(config | {"num_experts": 8})


QWEN_7B = {
    "model_type": "qwen", "architectures": ["QWenLMHeadModel"], "hidden_size": 4096, "intermediate_size": 22016,
    "kv_channels": 128, "max_position_embeddings": 32768, "no_bias": True, "num_attention_heads": 32,
    "num_hidden_layers": 32, "seq_length": 8192, "tie_word_embeddings": False, "use_dynamic_ntk": True,
    "vocab_size": 151936,
}  # fmt: skip


def test_the_first_qwen_is_qwen_2_with_half_the_width_it_says():
    near = QWEN_7B | {"model_type": "qwen2", "intermediate_size": 11008, "architectures": ["Qwen2ForCausalLM"]}
    for name in ("kv_channels", "no_bias", "seq_length", "use_dynamic_ntk"):
        del near[name]
    assert total(QWEN_7B) == real(near)[1] == 7_721_324_544
    with pytest.raises(ValueError, match="num_attention_heads=16 is not understood"):
        from_hf_config(QWEN_7B | {"num_attention_heads": 16})


def test_phis_first_type_is_phi():
    first = {
        "model_type": "mixformer-sequential", "architectures": ["MixFormerSequentialForCausalLM"], "n_embd": 256,
        "architecture": {"block_cls": "parallel", "mlp": {"mlp_cls": "fused_mlp"}}, "n_head": 4, "n_inner": None,
        "n_layer": 3, "n_positions": 2048, "activation_function": "gelu_new", "rotary_dim": 32, "vocab_size": 1000,
        "tie_word_embeddings": False,
    }  # fmt: skip
    near = {"model_type": "phi", "hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 3}
    near |= {"intermediate_size": 1024, "vocab_size": 1000, "hidden_act": "gelu_new", "tie_word_embeddings": False}
    assert total(first) == real(near)[1]
    with pytest.raises(ValueError, match="block_cls='parallel'"):
        from_hf_config(first | {"architecture": {"block_cls": "sequential"}})


def test_chatglm_is_glm_under_other_names():
    """GLM-4-9B's first file, and the class that its second one is for."""
    config = {
        "model_type": "chatglm", "architectures": ["ChatGLMForConditionalGeneration"], "add_bias_linear": False,
        "add_qkv_bias": True, "apply_residual_connection_post_layernorm": False, "ffn_hidden_size": 13696,
        "hidden_size": 4096, "kv_channels": 128, "multi_query_attention": True, "multi_query_group_num": 2,
        "num_attention_heads": 32, "num_hidden_layers": 40, "num_layers": 40, "padded_vocab_size": 151552,
        "rmsnorm": True, "post_layer_norm": True, "seq_length": 131072, "tie_word_embeddings": False,
        "vocab_size": 151552,
    }  # fmt: skip
    near = {
        "model_type": "glm", "attention_bias": True, "head_dim": 128, "hidden_size": 4096, "intermediate_size": 13696,
        "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 2, "vocab_size": 151552,
        "tie_word_embeddings": False,
    }  # fmt: skip
    assert total(config) == real(near)[1] == 9_399_951_360
    with pytest.raises(ValueError, match="pre_seq_len=64 is not understood; .*its encoder of a prefix holds weights"):
        from_hf_config(config | {"pre_seq_len": 64})


def test_deepseek_without_latents_has_llamas_attention():
    """The text of DeepSeek-OCR: use_mla is false, and the widths of latents are zero."""
    text = {
        "model_type": "deepseek_v2", "hidden_size": 1280, "intermediate_size": 6848, "moe_intermediate_size": 896,
        "num_attention_heads": 10, "num_key_value_heads": 10, "num_hidden_layers": 12, "n_routed_experts": 64,
        "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "vocab_size": 129280,
        "use_mla": False, "kv_lora_rank": None, "q_lora_rank": None, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0,
        "v_head_dim": 0, "lm_head": True, "rm_head": False, "tie_word_embeddings": False,
    }  # fmt: skip
    layer = 4 * 1280**2 + 2 * 1280
    expected = 12 * layer + 3 * 1280 * 6848 + 11 * (66 * 3 * 1280 * 896 + 64 * 1280) + (2 * 129280 + 1) * 1280
    assert total(text) == expected
    assert kv_cache.bytes_per_token(from_hf_config(text), bytes_per_element=2, tp=1) == 12 * 2 * 1280 * 2


MINIMIND2 = {
    "model_type": "minimind", "architectures": ["MiniMindLM"], "dim": 768, "hidden_dim": 2048, "max_seq_len": 8192,
    "multiple_of": 64, "n_heads": 8, "n_kv_heads": 2, "n_layers": 16, "n_routed_experts": 4, "n_shared_experts": True,
    "use_moe": False, "flash_attn": True, "rope_theta": 1000000.0, "vocab_size": 6400,
}  # fmt: skip


def test_minimind_in_both_of_its_forms():
    """Its README says 104M for the first; the second is Qwen 3 with a width of its own."""
    assert round(total(MINIMIND2) / 1e6) == 104
    assert total({**MINIMIND2, "hidden_dim": None}) == total(MINIMIND2)
    today = {"model_type": "minimind", "hidden_size": 512, "num_hidden_layers": 8, "use_moe": False}
    today |= {"vocab_size": 6400}
    near = {"model_type": "qwen3", "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64}
    near |= {"intermediate_size": 1664, "tie_word_embeddings": True, "max_position_embeddings": 32768}
    assert total(today) == real({**today, **near})[1]
    with pytest.raises(ValueError, match="use_moe=True is not understood"):
        from_hf_config({**MINIMIND2, "use_moe": True})


def test_flash_linear_attentions_transformer_is_llama():
    config = {"model_type": "transformer", "hidden_size": 1024, "num_heads": 16, "num_hidden_layers": 24}
    near = {"model_type": "llama", "hidden_size": 1024, "num_attention_heads": 16, "num_hidden_layers": 24}
    near |= {"intermediate_size": 2816, "vocab_size": 32000}  # 2/3 of 4,096, up to a multiple of 256
    assert total(config) == real(near)[1]
    with pytest.raises(ValueError, match="attn=.* is not understood"):
        from_hf_config(config | {"attn": {"layers": [1]}})


def test_gated_delta_net_holds_what_its_code_makes():
    """Shapes of fla/layers/gated_deltanet.py, one by one."""
    hidden, heads, width, values, depth, intermediate, vocab = 2048, 6, 256, 512, 21, 5632, 32000
    layer = 2 * hidden * heads * width + hidden * heads * values  # q, k, v
    layer += 2 * hidden * heads + 2 * heads  # a, b; A_log, dt_bias
    layer += 4 * (2 * heads * width + heads * values)  # three convolutions
    layer += 2 * hidden * heads * values + values  # gate, out and its norm
    layer += 3 * hidden * intermediate + 2 * hidden
    config = {"model_type": "gated_deltanet", "hidden_size": hidden, "num_hidden_layers": depth}
    assert total(config) == depth * layer + 2 * vocab * hidden + hidden
    held = kv_cache.states_bytes(from_hf_config(config), tp=1)
    convolved = 2 * 4 * (2 * heads * width + heads * values)
    assert held == depth * (4 * heads * width * values + convolved)


def test_gated_linear_attention_is_as_large_as_it_is_called():
    """fla's gla_340M and gla_1B; a state of one matrix a head, and nothing for each token."""
    config = {"model_type": "gla", "hidden_size": 1024, "num_heads": 4, "num_hidden_layers": 24}
    assert round(total(config | {"tie_word_embeddings": True}) / 1e6) == 342
    model = from_hf_config(config)
    assert kv_cache.states_bytes(model, tp=1) == 24 * 4 * 4 * 128 * 256
    assert model.groups[0][0].attention == GatedLinear(num_heads=4, key_head_dim=128, value_head_dim=256)
    with pytest.raises(ValueError, match="expand_k=0.3 times 1,024 must be a whole number"):
        from_hf_config(config | {"expand_k": 0.3})


def test_mamba_2_without_its_heads_has_as_many_as_its_width_asks(tmp_path):
    sizes = {"model_type": "mamba2", "hidden_size": 1024, "expand": 2, "head_dim": 64, "state_size": 128}
    sizes |= {"n_groups": 1, "num_hidden_layers": 2, "vocab_size": 1000}
    assert total(sizes) == total(sizes | {"num_heads": 32})


def test_a_class_whose_letters_stand_in_another_order_is_known():
    config = {
        "model_type": "hunyuan", "architectures": ["HunYuanMoEV1ForCausalLM"], "attention_head_dim": 32,
        "hidden_size": 128, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 2, "num_experts": 8, "moe_topk": [2, 2], "num_shared_expert": [1, 1],
        "moe_intermediate_size": [96, 96], "vocab_size": 100, "tie_word_embeddings": True, "vit_token": 64,
        "hidden_act": "silu", "max_position_embeddings": 64, "use_qk_norm": True,
    }  # fmt: skip
    model = from_hf_config(config)
    assert "read as hunyuan_v1_moe" in model.noted[0]
    assert model.groups[0][0].attention.head_dim == 32


def test_narrow_index_keys_have_one_scale(tmp_path, capsys):
    """A toy of GLM 5: keys of 64 elements are kept with one scale, as those of 128 are."""
    toy = tmp_path / "config.json"
    toy.write_text(
        '{"model_type": "glm_moe_dsa", "vocab_size": 512, "hidden_size": 256, "intermediate_size": 512,'
        ' "moe_intermediate_size": 128, "num_hidden_layers": 4, "num_attention_heads": 8, "kv_lora_rank": 64,'
        ' "q_lora_rank": 128, "qk_rope_head_dim": 32, "qk_nope_head_dim": 64, "v_head_dim": 64, "n_routed_experts": 8,'
        ' "num_experts_per_tok": 2, "index_topk": 16, "index_head_dim": 64, "index_n_heads": 4}'
    )
    assert main(["kv", "--model", str(toy), "--tokens", "1000", "--cache", "bf16"]) == 0
    each = 4 * ((64 + 32) * 2 + 64 + 4)
    assert f"{each * 1000:,} B" in capsys.readouterr().out

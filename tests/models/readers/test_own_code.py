"""Families whose classes ship with their checkpoints, against the classes that those are made of and printed counts."""

import json
from pathlib import Path

import pytest
import torch
from tests.models.small_configs import real, small
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaMLP

from threeloops.cli import main
from threeloops.models.hf_config import from_hf_config
from threeloops.models.parameters import model_parameters
from threeloops.product_loop import kv_cache

CONFIGS = Path(__file__).parents[1] / "configs"


def read(name: str) -> dict:
    return json.loads((CONFIGS / f"{name}.json").read_text("utf-8"))


def test_mimo_is_qwen_2():
    """Its class is Qwen 2's with layers that guess tokens; Qwen 2's has no field for the biases that it always has."""
    config = read("mimo-7b-base")
    model = from_hf_config(config)
    assert model_parameters(model).total == real({**config, "model_type": "qwen2"})[1]
    assert model.not_counted == ("1 layer for multi-token prediction",)
    with pytest.raises(ValueError, match="attention_bias=False is not understood"):
        from_hf_config({**config, "attention_bias": False})


NEMOTRON = "llama-3_3-nemotron-super-49b-v1"


def rounded_up(width: float) -> int:
    return next(multiple for multiple in range(0, 10**6, 256) if multiple >= int(width))


def test_nemotrons_blocks_are_llamas_of_their_own_sizes():
    config, elements, cached = read(NEMOTRON), 0, 0
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    for block in config["block_configs"]:
        attends, feeds = block["attention"], block["ffn"]
        width = rounded_up(2 * feeds["ffn_mult"] * hidden / 3)
        own = LlamaConfig(
            hidden_size=hidden,
            intermediate_size=width,
            num_attention_heads=heads,
            num_key_value_heads=heads // (attends["n_heads_in_group"] or heads),
        )
        with torch.device("meta"):
            parts = [LlamaMLP(own)] + ([] if attends["no_op"] else [LlamaAttention(own, layer_idx=0)])
        elements += sum(one.numel() for part in parts for one in part.parameters()) + len(parts) * hidden
        if not attends["no_op"]:
            cached += 2 * own.num_key_value_heads * (hidden // heads)
    tables = 2 * config["vocab_size"] * hidden + hidden
    model = from_hf_config(config)
    assert model_parameters(model).total == elements + tables
    assert kv_cache.bytes_per_token(model, bytes_per_element=2) == 2 * cached
    assert f"{model_parameters(model).total / 1e9:.1f}" == "49.9"  # NVIDIA's name rounds it down


def changed(number: int, part: str, **fields: object) -> dict:
    """Nemotron's file with a part of one block changed."""
    config = read(NEMOTRON)
    config["block_configs"][number][part] |= fields
    return config


def test_a_block_may_lack_a_part_or_have_one_matrix_there():
    config, before = read(NEMOTRON), model_parameters(from_hf_config(read(NEMOTRON)))
    hidden, width = config["hidden_size"], rounded_up(2 * 5.25 * config["hidden_size"] / 3)
    gone = model_parameters(from_hf_config(changed(1, "ffn", no_op=True, ffn_mult=None))).total
    assert before.total - gone == 3 * hidden * width + hidden
    linear = model_parameters(from_hf_config(changed(1, "ffn", replace_with_linear=True))).total
    assert before.total - linear == 3 * hidden * width - hidden**2
    both = changed(6, "ffn", no_op=True)  # its attention is left out already
    assert from_hf_config(both).num_layers == config["num_hidden_layers"] - 1


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"block_configs": []}, "block_configs lists 0 layers, but num_hidden_layers=80"),
        (changed(1, "attention", num_sink_tokens=4), "has sink tokens or is sparse, which is not described"),
        (changed(1, "attention", n_heads_in_group=7), "n_heads_in_group=7 must divide num_attention_heads=64"),
        (changed(6, "ffn", replace_with_linear=True), "has no part but single matrices"),
        (changed(2, "ffn", ffn_mult="wide"), "ffn_mult"),
        ({"block_configs": [{"attention": None}], "num_hidden_layers": 1}, "attention=None must be a table"),
    ],
)
def test_what_a_block_cannot_be_is_refused(config, told):
    with pytest.raises(ValueError, match=told):
        from_hf_config({**read(NEMOTRON), **config})


def test_kimi_k3_has_the_experts_and_the_size_that_are_published():
    """2,722,740,830,208 elements in MXFP4 and 57,191,006,976 others, a vision tower among them, as the Hub counts the
    checkpoint's tensors; 2.8T and 104B active, as NVIDIA's documentation of NeMo AutoModel prints them.
    """
    model = from_hf_config(read("kimi-k3"))
    counted = model_parameters(model)
    assert counted.routed_experts == 2_722_740_830_208
    tower = 57_191_006_976 - (counted.total - counted.routed_experts)
    assert 0.4e9 < tower < 0.5e9
    assert model.not_counted == ("its vision tower",)
    assert f"{counted.total / 1e12:.1f} {counted.active_with_head / 1e9:.0f}" == "2.8 104"
    # 24 layers of 512 + 64 numbers; 69 with a matrix of 128 x 128 for each of 96 heads
    assert kv_cache.bytes_per_token(model, bytes_per_element=2) == 2 * 24 * 576
    assert kv_cache.states_bytes(model) == 69 * (4 * 96 * 128 * 128 + 2 * 3 * 96 * 128 * 4)


def test_each_of_kimi_k3s_additions_is_counted_once():
    plain = small("kimi_linear")
    before = model_parameters(from_hf_config(plain)).total
    additions = {
        "mla_use_output_gate": (True, 2 * 48 * 6 * 9),  # of two layers
        "attn_res_block_size": (2, (2 * 5 + 1) * 2 * 48),
    }
    for field, (value, more) in additions.items():
        assert model_parameters(from_hf_config({**plain, field: value})).total - before == more
    narrow = {**plain, "routed_expert_hidden_size": 20, "attn_res_block_size": 2, "latent_moe_use_norm": True}
    fewer = 4 * (8 * 3 * 26 * (48 - 20) - 2 * 48 * 20 - 20)  # of four layers with experts
    assert before + 22 * 48 - model_parameters(from_hf_config(narrow)).total == fewer
    with pytest.raises(ValueError, match="latent_moe_use_norm=True is not understood without attn_res_block_size"):
        from_hf_config({**narrow, "attn_res_block_size": None})
    linear = {**plain["linear_attn_config"], "use_full_rank_gate": True}
    gated = model_parameters(from_hf_config({**plain, "linear_attn_config": linear})).total
    assert gated - before == 3 * (48 * 28 - (48 + 28) * 7)


@pytest.mark.parametrize("name", ["kimi-k3", NEMOTRON, "mimo-7b-base", "mimo-v2-flash", "laguna-xs.2-fp8"])
def test_kv_and_fit_answer_for_them(name, capsys):
    path = str(CONFIGS / f"{name}.json")
    assert main(["kv", "--model", path, "--tokens", "32k", "--cache", "bf16"]) == 0
    assert "1 request of 32,768 tokens: " in capsys.readouterr().out
    assert main(["fit", "--model", path, "--format", "bf16", "--hardware", "h200", "--tokens", "32k"]) == 0
    assert "fit on NVIDIA H200" in capsys.readouterr().out


FLAT_STEP = {
    "architectures": ["Step3p7FlashForCausalLM"], "model_type": "step3p7", "num_hidden_layers": 45,
    "hidden_size": 4096, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128896,
    "max_position_embeddings": 65536, "torch_dtype": "bfloat16", "intermediate_size": 11264, "sliding_window": 512,
    "layer_types": (["full_attention"] + ["sliding_attention"] * 3) * 11 + ["full_attention"],
    "first_k_dense_replace": 3, "num_experts": 288, "num_experts_per_tok": 8, "moe_intermediate_size": 1280,
    "share_expert_dim": 1280, "n_shared_experts": 1, "scoring_func": "sigmoid", "num_nextn_predict_layers": 3,
}  # fmt: skip


def test_a_flat_copy_of_step_is_read_as_its_text():
    """As NVIDIA's aiconfigurator keeps Step 3.7 Flash: without a part for the text, and without the number of heads
    that layers with a window have, which the class takes to be that of the others.
    """
    model = from_hf_config(FLAT_STEP)
    assert "num_sliding_attention_heads=64" in model.assumed
    renamed = {"n_routed_experts": FLAT_STEP["num_experts"], "model_type": "step3p5", "tie_word_embeddings": False}
    dropped = ("num_experts", "n_shared_experts", "first_k_dense_replace", "architectures", "num_nextn_predict_layers")
    text = {field: value for field, value in FLAT_STEP.items() if field not in dropped} | renamed
    assert model_parameters(model).total == real(text)[1]


def test_a_flat_copy_of_minimax_m3_says_two_sizes_twice():
    plain = small("minimax_m3_vl_text") | {"model_type": "minimax_m3"}
    again = {"moe_intermediate_size": plain["intermediate_size"], "first_k_dense_replace": 1}
    assert from_hf_config(plain | again).groups == from_hf_config(plain).groups
    for field in again:
        with pytest.raises(ValueError, match=f"{field}=9 is not understood"):
            from_hf_config(plain | again | {field: 9})


def test_minimax_m3_and_phi_4_by_their_other_names():
    for other, own in (("minimax_m3", "minimax_m3_vl_text"), ("phi4mm", "phi4_multimodal")):
        assert from_hf_config(small(own) | {"model_type": other}).groups == from_hf_config(small(own)).groups
    towers = small("phi4_multimodal") | {"model_type": "phi4mm", "embd_layer": {}, "vision_lora": {}}
    named = from_hf_config(towers).not_counted
    assert named == ("its towers for images and sound", "the adapters that go with images")

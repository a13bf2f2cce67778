"""What checkpoints leave wide, held against the parameters of the class under the names that the list means."""

import fnmatch
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.models.small_configs import small
from transformers import AutoConfig, AutoModelForCausalLM

from threeloops.cli import main
from threeloops.models.hf_config import from_hf_config
from threeloops.product_loop.sizing.left_wide import by_module, left_wide
from threeloops.product_loop.sizing.stored_weights import LEFT_WIDE, WIDE, table_bytes_in, weights_bytes_in, weights_in

SHARED, DENSE = "re:.*shared_expert.*", r"re:.*mlp\.(gate|up|gate_up|down)_proj.*"
# As makers' files have them: NVIDIA's NVFP4, Moonshot's INT4, RedHat's FP8, Unsloth's 4 bits, Qwen's GPTQ.
CASES = [
    ("qwen3_moe", ("re:.*self_attn.*", "lm_head")),
    ("qwen3_moe", ("model.layers.1.self_attn*", "model.layers.3.self_attn*", "lm_head")),
    ("qwen3_moe", ("model.layers.2.self_attn", "model.layers.0.mlp.gate")),
    ("qwen3_moe", ("self_attn", "gate")),
    ("llama", ("model.layers.0*", "model.layers.4*")),
    ("llama", ("model.layers.*.mlp",)),
    ("deepseek_v3", ("re:.*self_attn.*", SHARED, DENSE)),
    ("deepseek_v3", ("model.layers.0*", "re:.*self_attn.*", "model.layers.99*")),
    ("qwen3_next", ("*.linear_attn.*", "re:.*shared_expert.*")),
    ("qwen3_next", ("*.self_attn.*", "re:(")),
    ("llama", ("model.embed_tokens", "visual", "model.norm")),
]


def names(entry: str, parameter: str) -> bool:
    """Whether an entry of a list means this parameter."""
    if entry.startswith("re:"):
        return entry != "re:(" and re.match(entry[3:], parameter) is not None
    return (
        fnmatch.fnmatch(parameter, entry) or fnmatch.fnmatch(parameter, f"{entry}.*") or entry in parameter.split(".")
    )


def on_the_class(config: dict, listed: tuple[str, ...]) -> int:
    """Parameters of the class in its layers under these names; norms and routers stay wide in any case."""
    fields = {name: value for name, value in config.items() if name != "model_type"}
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(config["model_type"], **fields))
    return sum(
        tensor.numel()
        for name, tensor in model.named_parameters()
        if ".layers." in name
        and "norm" not in name
        and not name.endswith("mlp.gate.weight")
        and any(names(entry, name) for entry in listed)
    )


@pytest.mark.parametrize(("model_type", "listed"), CASES)
def test_what_a_list_leaves_wide_is_what_the_class_has_under_its_names(
    model_type: str, listed: tuple[str, ...]
) -> None:
    stored = {"quantization_config": {"quant_method": "fp8", "modules_to_not_convert": list(listed)}}
    config = small(model_type)
    counted = left_wide(from_hf_config(config | stored))
    assert counted == on_the_class(config, listed)
    assert counted > 0 or "visual" in listed


def test_the_bytes_of_a_published_list() -> None:
    """Kimi K2.5 keeps attention, shared experts and its dense layer in 16 bits; Unsloth's "Kimi K2.5: How to Run
    Locally" says 600 GB of disk, with its tower.
    """
    file = Path(__file__).parents[2] / "models" / "configs" / "kimi-k2.5.json"
    model = from_hf_config(file)
    assert model.stored.counted_as == "w4a16-g32"
    assert weights_bytes_in(model, "w4a16-g32") == pytest.approx(600e9, rel=0.015)
    without = replace(model, stored=replace(model.stored, left=()))
    assert weights_bytes_in(without, "w4a16-g32") < 0.97 * 600e9


def test_a_list_that_names_all_experts_means_what_lies_beside_them() -> None:
    experts = small("gemma4_text", enable_moe_block=True, num_experts=5, top_k_experts=2, moe_intermediate_size=24)
    listed = [f"model.language_model.layers.{layer}.mlp*" for layer in range(experts["num_hidden_layers"])]
    model = from_hf_config(experts | {"quantization_config": {"quant_method": "fp8", "ignore": listed}})
    assert left_wide(model) == 3 * experts["hidden_size"] * experts["intermediate_size"] * experts["num_hidden_layers"]


def test_only_the_format_of_the_checkpoint_has_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = {"quantization_config": {"quant_method": "fp8", "ignore": ["re:.*self_attn.*"]}}
    model = from_hf_config(small("llama") | stored)
    assert set(weights_in(model, "fp8")) == {"fp8", LEFT_WIDE, WIDE}
    assert weights_in(model, "nvfp4") == weights_in(from_hf_config(small("llama")), "nvfp4")
    assert sum(count for count, _ in weights_in(model, "fp8").values()) == weights_in(model, "bf16")["bf16"][0]
    file = tmp_path / "config.json"
    file.write_text(json.dumps(small("llama") | stored))
    for command in ("fit --tokens 1k", "kv --tokens 1k --cache bf16"):
        words = [*command.split(), "--model", str(file), "--weights", "fp8", "--hardware", "h100-sxm5"]
        assert main(words) == 0
        assert LEFT_WIDE in capsys.readouterr().out


def mixed(listed: dict[str, str]) -> dict:
    """As NVIDIA's files of several formats have it (Qwen3.6-35B-A3B-NVFP4)."""
    layers = {module: {"quant_algo": algo} for module, algo in listed.items()}
    return {"quantization_config": {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"} | {
        "quantized_layers": layers
    }}  # fmt: skip


@pytest.mark.parametrize("model_type", ["qwen3_moe", "qwen3_next"])
def test_a_list_of_formats_by_layer_is_counted_as_the_class_has_it(model_type: str) -> None:
    config = small(model_type)
    depth = range(config["num_hidden_layers"])
    experts = tuple(f"model.layers.{layer}.mlp.experts" for layer in depth)
    wider = tuple(f"model.layers.{layer}.self_attn.{one}_proj" for layer in depth for one in "qkvo")
    listed = dict.fromkeys(experts, "W4A16_NVFP4") | dict.fromkeys(wider, "FP8") | {"lm_head": "NVFP4"}
    model = from_hf_config(config | mixed(listed))
    held = {"nvfp4": on_the_class(config, experts), "fp8": on_the_class(config, wider)}
    assert by_module(model) == held
    parts = weights_in(model, "nvfp4")
    head = config["vocab_size"] * config["hidden_size"]
    assert parts["nvfp4"] == (held["nvfp4"] + head, 4.5)
    without = weights_in(from_hf_config(config | mixed({**listed, "lm_head": "UNQUANTIZED"})), "nvfp4")
    assert without["nvfp4"] == (held["nvfp4"], 4.5)
    assert without[WIDE] == (parts[WIDE][0] + head, 16.0)
    assert table_bytes_in(model, "nvfp4") == (head * 2, head * 4.5 / 8)
    assert parts["fp8"] == (held["fp8"], 8.0)
    assert sum(count for count, _ in parts.values()) == weights_in(model, "bf16")["bf16"][0]
    assert model.stored.words == "modelopt, nvfp4 and fp8 by a list of layers, the head in nvfp4"
    unknown = from_hf_config(config | mixed(listed | {"model.layers.0.mlp.gate_proj": "W4A8_AWQ"}))
    assert (unknown.stored.counted_as, unknown.stored.by_module) == ("", ())


def test_fused_experts_are_the_experts() -> None:
    config = small("qwen3_moe")
    experts = [f"model.layers.{layer}.mlp.experts" for layer in range(config["num_hidden_layers"])]
    fused = [f"{one}.{matrix}" for one in experts for matrix in ("gate_up_proj", "down_proj")]
    counted = by_module(from_hf_config(config | mixed(dict.fromkeys(fused, "NVFP4"))))
    assert counted == {"nvfp4": on_the_class(config, tuple(experts))}


def test_nemotron_h_keeps_its_layers_in_a_backbone() -> None:
    """NVIDIA's Nemotron-H files list backbone.layers.N.mixer; transformers' class calls these model.layers.N.mixer."""
    config = small("nemotron_h")
    depth = range(config.get("num_hidden_layers", 52))
    sides = {"FP8": ("in_proj", "out_proj"), "NVFP4": ("up_proj", "down_proj")}
    listed = {f"backbone.layers.{n}.mixer.{one}": algo for algo, ends in sides.items() for one in ends for n in depth}
    held = {
        "nvfp4": on_the_class(config, tuple(f"model.layers.{n}.mixer.{one}" for n in depth for one in sides["NVFP4"])),
    }
    counted = by_module(from_hf_config(config | mixed(listed)))
    state = tuple(f"model.layers.{n}.mixer.{one}" for n in depth for one in (*sides["FP8"], "conv1d", "A_log", "D"))
    held["fp8"] = on_the_class(config, state + tuple(f"model.layers.{n}.mixer.dt_bias" for n in depth))
    assert counted == held
    assert min(held.values()) > 0
    for some in ("backbone.layers.1.mixer*", "backbone.layers.1", "re:.*layers.1.mixer.*"):
        left = {"quantization_config": {"quant_method": "fp8", "ignore": [some]}}
        with pytest.raises(ValueError, match=r"lists all of '(backbone|model).layers.1.mixer', and which part"):
            left_wide(from_hf_config(config | left))
    ends = [f"{one}_proj" for one in "qkvo"]
    ignored = [f"backbone.layers.{n}.mixer.{end}" for n in depth for end in ends] + ["backbone.layers.0.mixer.conv1d"]
    left = {"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ignored}}
    assert left_wide(from_hf_config(config | left)) == on_the_class(config, tuple(f"re:.*mixer.{end}" for end in ends))


@pytest.mark.parametrize(
    "strange",
    [
        "tower.blocks.0.o_proj",
        "backbone.layers.1.mixer",
        "backbone.layers.1",
        "model.layers.0.mlp.other.gate_proj",
        "tower.blocks.*",
    ],
)
def test_a_list_of_what_no_layer_is_called_is_refused_where_it_would_be_counted(
    strange: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = {"model.layers.0.self_attn.o_proj": "NVFP4", strange: "FP8"}
    file = tmp_path / "config.json"
    file.write_text(json.dumps(small("llama") | mixed(listed)))
    words = ["fit", "--tokens", "1k", "--model", str(file), "--hardware", "h100-sxm5", "--weights"]
    assert main([*words, "bf16"]) == 0
    capsys.readouterr()
    assert main([*words, "nvfp4"]) == 2
    said = capsys.readouterr().err
    assert f"lists {strange!r} in fp8, and no weights of a layer that are counted here are called so" in said
    assert said.count("\n") == 1


def test_a_format_of_a_list_that_names_no_weights_is_refused() -> None:
    listed = {"model.layers.0.self_attn.o_proj": "NVFP4", "model.layers.99.self_attn.o_proj": "FP8"}
    with pytest.raises(ValueError, match=r"lists 'model.layers.99.self_attn.o_proj' in fp8, and no weights"):
        weights_in(from_hf_config(small("llama") | mixed(listed)), "nvfp4")


def test_a_head_in_fewer_bits_is_counted_unless_it_is_the_table() -> None:
    stored = {"quantization_config": {"quant_method": "gptq", "bits": 4, "lm_head": True}}
    config = small("llama", tie_word_embeddings=False)
    head = config["vocab_size"] * config["hidden_size"]
    plain, narrow = weights_in(from_hf_config(config), "gptq"), weights_in(from_hf_config(config | stored), "gptq")
    assert narrow["gptq"][0] - plain["gptq"][0] == plain[WIDE][0] - narrow[WIDE][0] == head
    tied = from_hf_config(config | stored | {"tie_word_embeddings": True})
    with pytest.raises(ValueError, match="has the head in gptq, and the head is the input table"):
        weights_in(tied, "gptq")
    assert weights_in(tied, "bf16")


def test_the_format_that_a_file_in_several_is_called_by_is_the_narrowest() -> None:
    listed = {"model.layers.0.self_attn.o_proj": "MXFP8", "model.layers.1.self_attn.o_proj": "FP8"}
    stored = from_hf_config(small("llama") | mixed(listed)).stored
    assert (stored.counted_as, [name for name, _ in stored.by_module]) == ("fp8", ["fp8", "mxfp8"])

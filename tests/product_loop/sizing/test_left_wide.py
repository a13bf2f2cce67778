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
from threeloops.product_loop.sizing.stored_weights import LEFT_WIDE, WIDE, weights_bytes_in, weights_in

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
    assert parts["nvfp4"] == (held["nvfp4"], 4.5)
    assert parts["fp8"] == (held["fp8"], 8.0)
    assert sum(count for count, _ in parts.values()) == weights_in(model, "bf16")["bf16"][0]
    assert model.stored.words == "modelopt, nvfp4 and fp8 by a list of layers"
    unknown = from_hf_config(config | mixed(listed | {"model.layers.0.mlp.gate_proj": "W4A8_AWQ"}))
    assert (unknown.stored.counted_as, unknown.stored.by_module) == ("", ())

"""How a config.json says that its weights are stored: read, or refused in one sentence, and said by every command."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.models.small_configs import small

from threeloops.cli import main
from threeloops.models.files.quantised import SaidStored, said_stored
from threeloops.models.hf_config import from_hf_config
from threeloops.product_loop.sizing.stored_weights import FORMATS

# As makers' files have it -> what is read.
SAID: list[tuple[dict[str, Any], SaidStored]] = [
    (
        {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]},
        SaidStored(words="fp8", counted_as="fp8"),
    ),
    ({"quant_method": "awq", "bits": 4, "group_size": 128}, SaidStored(words="awq, 4 bits", counted_as="awq")),
    ({"quant_method": "gptq", "bits": 8, "group_size": 128}, SaidStored(words="gptq, 8 bits")),
    ({"quant_method": "gptq", "bits": 4, "group_size": 32}, SaidStored(words="gptq, 4 bits", counted_as="gptq-g32")),
    ({"quant_method": "awq", "bits": 4, "group_size": 64}, SaidStored(words="awq, 4 bits", counted_as="awq-g64")),
    ({"quant_method": "awq", "bits": 4, "group_size": 256}, SaidStored(words="awq, 4 bits")),
    ({"quant_method": "gptq", "bits": 4, "group_size": -1}, SaidStored(words="gptq, 4 bits")),
    ({"quant_method": "mxfp4"}, SaidStored(words="mxfp4", counted_as="mxfp4")),
    (
        {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"},
        SaidStored(words="compressed-tensors, nvfp4-pack-quantized", counted_as="nvfp4"),
    ),
    (
        {"quant_method": "modelopt", "quant_algo": "NVFP4"},
        SaidStored(words="modelopt, NVFP4", counted_as="nvfp4"),
    ),
    (
        {"load_in_4bit": True, "load_in_8bit": False},
        SaidStored(words="bitsandbytes, load_in_4bit", counted_as="nf4-single"),
    ),
    (
        {"load_in_4bit": True, "bnb_4bit_use_double_quant": True},
        SaidStored(words="bitsandbytes, load_in_4bit", counted_as="nf4"),
    ),
    (
        {
            "quant_method": "compressed-tensors",
            "format": "pack-quantized",
            "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 32, "symmetric": True}}},
            "ignore": ["lm_head", "re:.*self_attn.*"],
        },
        SaidStored(words="compressed-tensors, pack-quantized", counted_as="w4a16-g32", left=("re:.*self_attn.*",)),
    ),
    (
        {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {}},
        SaidStored(words="compressed-tensors, pack-quantized"),
    ),
    (
        {"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0.mlp.gate", "model.visual", "lm_head", 7]},
        SaidStored(words="fp8", counted_as="fp8", left=("model.layers.0.mlp.gate",)),
    ),
    (
        {"quant_method": "gptq", "bits": 4, "dynamic": {"-:.*attn.*": {}, "lm_head": {}}},
        SaidStored(words="gptq, 4 bits", counted_as="gptq", left=("re:.*attn.*",)),
    ),
    ({"quant_method": "exl3", "bits": 4.25}, SaidStored(words="exl3, 4.25 bits")),
    ({"quant_method": "new_way"}, SaidStored(words="new_way")),
    ({"group_size": 64, "bits": 4}, SaidStored(words="4 bits")),
    ({}, SaidStored(words="a format of its own")),
]
REFUSED: list[tuple[Any, str]] = [
    ("fp8", """quantization_config='fp8' must be an object, like {"quant_method": "fp8"}, or be left out"""),
    ("awq", """like {"quant_method": "awq"}"""),
    (["fp8", "awq"], "quantization_config=['fp8', 'awq'] must be an object"),
    (8, "quantization_config=8 must be an object"),
    (False, "quantization_config=False must be an object"),
    ({"quant_method": ["fp8"]}, "quant_method=['fp8'], which must be one method's name, like"),
    ({"quant_method": {"weights": "fp8"}}, "which must be one method's name"),
    ({"quant_method": ""}, "which must be one method's name"),
    ({"quant_method": "a\nb"}, "which must be one method's name"),
    ({"quant_method": "awq", "bits": [4]}, "quantization_config.bits=[4] must be a number"),
    ({"quant_method": "awq", "bits": 0}, "quantization_config.bits=0 must be greater than 0"),
]
COMMANDS = {
    "kv": "--tokens 1000 --cache bf16",
    "fit": "--hardware h100-sxm --tokens 1k --weights bf16",
    "roofline": "--hardware h100-sxm --dtype bf16",
    "memory": "--recipe megatron --zero 1 --dp 8 --micro-batch 1 --sequence 64 --kernels fused --recompute full",
}


@pytest.mark.parametrize(("written", "read"), SAID)
def test_what_makers_write_is_read(written: dict[str, Any], read: SaidStored) -> None:
    assert read.counted_as in ("", *FORMATS)
    for config in (
        {"quantization_config": written},
        {"text_config": {"quantization_config": written}},
        {"quantization_config": None, "compression_config": written},
    ):
        assert said_stored(config) == read
    model = from_hf_config(small("llama", quantization_config=written))
    assert model.stored == read
    assert model == from_hf_config(small("llama"))


def test_where_nothing_is_said_nothing_is_read() -> None:
    assert from_hf_config(small("llama")).stored == SaidStored()


@pytest.mark.parametrize(("written", "told"), REFUSED)
def test_what_no_program_writes_is_refused(
    written: Any, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(small("llama", quantization_config=written)))
    for command, flags in COMMANDS.items():
        assert main([command, "--model", str(file), *flags.split()]) == 2
        said = capsys.readouterr().err
        assert told in said
        assert said.count("\n") == 1


def spoken(file: Path, command: str, flags: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([command, "--model", str(file), *flags.split()]) == 0
    return capsys.readouterr().out


def test_every_command_says_what_the_file_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(small("llama", quantization_config={"quant_method": "fp8"})))
    stored = "its config says that its weights are stored as fp8"
    ends = {
        "kv": ": --weights fp8 beside --hardware counts them",
        "fit": ", but --weights bf16 is what is counted",
        "roofline": ": --weights fp8 counts them",
        "memory": " to be served, which this does not count",
    }
    for command, flags in COMMANDS.items():
        assert f"{stored}{ends[command]}" in spoken(file, command, flags, capsys)
    asked = COMMANDS["fit"].replace("bf16", "fp8")
    assert f"{stored}, as --weights fp8 says" in spoken(file, "fit", asked, capsys)
    assert json.loads(spoken(file, "kv", f"{COMMANDS['kv']} --json", capsys))["weights_stored"] == stored + ends["kv"]
    file.write_text(json.dumps(small("llama", quantization_config={"quant_method": "new_way"})))
    other = "stored as new_way, in a format that is not counted here"
    assert f"{other}: --weights bf16 is" in spoken(file, "fit", COMMANDS["fit"], capsys)
    assert other in spoken(file, "kv", COMMANDS["kv"], capsys)
    file.write_text(json.dumps(small("llama")))
    assert "its config says" not in spoken(file, "kv", COMMANDS["kv"], capsys)


def test_a_long_list_is_cut_in_its_refusal() -> None:
    with pytest.raises(
        ValueError, match=r"^config: num_attention_heads=\[32, 32, .*… \(62 in all\)\] must be"
    ) as found:
        from_hf_config(small("llama", num_attention_heads=[32] * 62))
    assert len(str(found.value)) < 140

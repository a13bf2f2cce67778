"""Names of releases: whose model they are, which format their ending means, and that nothing is passed over."""

import json
from pathlib import Path

import pytest

from threeloops.cli import main
from threeloops.commands.released import Release, known_name, read_release
from threeloops.product_loop.sizing.stored_weights import FORMATS

# As repositories on the Hub are called -> the row of the catalogue, the format that its ending means, the ending.
RELEASES = {
    "Qwen/Qwen3-8B-FP8": ("qwen3-8b", "fp8", "FP8"),
    "neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8-dynamic": ("llama-3.1-8b", "fp8", "FP8-dynamic"),
    "nvidia/Llama-3.1-70B-Instruct-FP8": ("llama-3.1-70b", "fp8", "FP8"),
    "Qwen/Qwen2.5-32B-Instruct-AWQ": ("qwen2.5-32b", "awq", "AWQ"),
    "hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4": ("llama-3.1-70b", "awq", "AWQ-INT4"),
    "Qwen/Qwen2.5-14B-Instruct-GPTQ-Int4": ("qwen2.5-14b", "gptq", "GPTQ-Int4"),
    "Qwen/Qwen2.5-14B-Instruct-GPTQ-Int8": ("qwen2.5-14b", "int8", "GPTQ-Int8"),
    "Qwen/Qwen3-30B-A3B-Instruct-2507-FP8": ("qwen3-30b-a3b-2507", "fp8", "FP8"),
    "Qwen/Qwen3-235B-A22B-Instruct-2507": ("qwen3-235b-a22b-2507", "", ""),
    "nvidia/DeepSeek-R1-NVFP4": ("deepseek-r1", "nvfp4", "NVFP4"),
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": ("nemotron-3-nano-30b-a3b", "bf16", "BF16"),
    "unsloth/Llama-3.1-8B-Instruct-bnb-4bit": ("llama-3.1-8b", "nf4", "bnb-4bit"),
    "unsloth/Llama-3.1-8B-Instruct-unsloth-bnb-4bit": ("llama-3.1-8b", "", "unsloth-bnb-4bit"),
    "hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M": ("qwen3-8b", "q4_k_m", "Q4_K_M"),
    "unsloth/gemma-3-12b-it-GGUF": ("gemma-3-12b", "", "GGUF"),
    "Llama-3.1-8B-Instruct-Q4_K_M.gguf": ("llama-3.1-8b", "q4_k_m", "Q4_K_M"),
    "google/gemma-3-27b-it": ("gemma-3-27b", "", ""),
    "zai-org/GLM-4.5-Air-FP8": ("glm-4.5-air", "fp8", "FP8"),
    "nvidia/DeepSeek-R1-FP4": ("deepseek-r1", "nvfp4", "FP4"),
    "mlx-community/Qwen3-8B-MLX-4bit": ("qwen3-8b", "", "MLX-4bit"),
    "mlx-community/gemma-3-27b-it-6bit": ("gemma-3-27b", "", "6bit"),
    "RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16": ("llama-3.3-70b", "w4a16", "quantized.w4a16"),
    "RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8": ("llama-3.1-8b", "int8", "quantized.w8a8"),
    "Qwen/QwQ-32B-AWQ": ("qwen2.5-32b", "awq", "AWQ"),
    "microsoft/Phi-4-mini-instruct": ("phi-4-mini", "", ""),
    "deepseek-ai/DeepSeek-V3.2-Exp": ("deepseek-v3.2", "", ""),
    "google/gemma-3-12b-it-qat-q4_0-gguf": ("gemma-3-12b", "q4_0", "q4_0"),
}
KV = "--tokens 1000 --cache bf16"


def spoken(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(command.split()) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_is_its_model_and_its_ending_is_said(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    key, stored, ending = RELEASES[name]
    release = read_release(name)
    assert (release.stored, release.ending) == (stored, ending)
    assert stored in ("", *FORMATS)
    said = spoken(f"kv --model {name} {KV}", capsys)
    assert said.startswith(f"KV cache of {key}\n")
    assert (f"{name} is read as {key}; {ending} is how its weights are stored" in said) == bool(ending)
    if stored:
        assert f"--weights {stored}" in said
    assert main(["kv", "--model", name, *KV.split(), "--json"]) == 0
    assert ("model_read_as" in json.loads(capsys.readouterr().out)) == bool(ending)


def test_the_format_of_the_name_is_held_against_the_one_that_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    fit = "fit --model Llama-3.1-8B-Instruct-AWQ --hardware 4090 --tokens 4k --weights"
    assert "AWQ is how its weights are stored, as --weights awq says" in spoken(f"{fit} awq", capsys)
    assert "AWQ is how its weights are stored, but --weights fp8 is what is counted" in spoken(f"{fit} fp8", capsys)
    line = "roofline --model Llama-3.1-8B-FP8 --hardware h100-sxm --dtype bf16"
    assert "FP8 is how its weights are stored: --weights fp8 counts them" in spoken(line, capsys)
    assert "stored, as --weights e4m3 says" in spoken(f"{line} --weights e4m3", capsys)
    bits = "roofline --model Llama-3.1-8B-exl2 --hardware h100-sxm --dtype bf16"
    assert "stored, in a format that is not counted here" in spoken(bits, capsys)
    assert "not counted here: --weights awq is" in spoken(f"{bits} --weights awq", capsys)
    memory = (
        "memory --model Llama-3.1-8B-FP8 --recipe megatron --zero 1 --dp 8 --micro-batch 1 --sequence 4096 --kernels"
        " fused --recompute full"
    )
    assert "stored to be served, which this does not count" in spoken(memory, capsys)


def test_a_date_is_said_where_the_catalogue_has_the_model_without_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert read_release("DeepSeek-R1-0528-FP8") == Release(base="DeepSeek-R1", ending="FP8", stored="fp8", date="0528")
    said = spoken(f"kv --model deepseek-ai/DeepSeek-R1-0528 {KV}", capsys)
    assert "is read as deepseek-r1; 0528 is when it came out, and its context may be another than the 163,840" in said
    assert read_release("llama-3-8b-4096").date == ""
    assert known_name("DeepSeek-R2-0528", None) == "DeepSeek-R2-0528"


def test_a_name_that_is_not_known_says_that_a_path_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("gpt-7", "gpt-7-FP8"):
        assert main(["kv", "--model", name, *KV.split()]) == 2
        said = capsys.readouterr().err
        assert f"--model '{name}' is not known" in said
        assert "The path of a config.json is taken, too." in said
        assert said.count("\n") == 1
    assert main(["kv", "--model", "llama3.1-FP8", *KV.split()]) == 2
    assert "may be 'llama-3-405b', 'llama-3.1-8b' or 'llama-3.1-70b'; say which" in capsys.readouterr().err


def test_what_is_not_counted_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    # of the files that makers published: DeepSeek-R1 has one such layer, MiniMax-M2.5 three, Gemma 3 sees
    for name, told in (
        ("deepseek-r1", "1 layer for multi-token prediction"),
        ("minimax-m2.5", "3 layers for multi-token prediction"),
        ("gemma-3-12b", "its vision tower"),
        ("qwen3.5-27b", "its vision tower, 1 layer for multi-token prediction"),
        ("glm-4.5", "1 layer for multi-token prediction"),
    ):
        assert f"assumes: not counted of {name}: {told}\n" in spoken(f"kv --model {name} {KV}", capsys)
    file = Path(__file__).parents[1] / "models" / "configs" / "qwen3-vl-4b-instruct.json"
    assert "not counted of qwen3-vl-4b-instruct: its vision tower" in spoken(f"kv --model {file} {KV}", capsys)
    assert "not counted of" not in spoken(f"kv --model llama-3.1-8b {KV}", capsys)


@pytest.mark.parametrize("name", ["Qwen/Qwen3-8B@main", "Qwen/Qwen3-8B:latest", "Qwen3-8B-FP8@9f2c", " qwen3-8b "])
def test_a_revision_says_no_shape(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kv", "--model", name, *KV.split()]) == 0
    assert capsys.readouterr().out.startswith("KV cache of qwen3-8b\n")


@pytest.mark.parametrize("typed", ["int4", "4bit", "4-bit", "W4"])
def test_a_width_alone_is_asked_back(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"fit --model qwen3-8b --hardware 4090 --tokens 4k --format {typed}".split()) == 2
    told = f"threeloops: --format {typed!r} may be 'awq', 'gptq', 'w4a16', 'nf4', 'nvfp4' or 'q4_k_m'; say which\n"
    assert capsys.readouterr().err == told


def test_what_is_refused_fits_on_a_screen_and_names_its_flag(capsys: pytest.CaptureFixture[str]) -> None:
    fit = "fit --model qwen3-8b --hardware 4090 --tokens 4k --weights"
    for words, told in (
        (f"{fit} fp7", "--weights 'fp7' is not known; did you mean 'fp8'"),
        (f"{fit} fp8 --gpus 0", "--gpus 0 must be a whole number of at least 1"),
        (f"{fit} fp8 --activations 2", "--activations 2: 2 of what?"),
        ("kv --model ./models/mine --tokens 4k --cache fp8", "cannot be read (No such file or directory)"),
    ):
        assert main(words.split()) == 2
        said = capsys.readouterr().err
        assert told in said
        assert len(said) < 320


def test_a_name_says_nothing_of_modules_that_are_left_wide(capsys):
    """A path says it; gpt-oss' own format is counted as it is published."""
    unsaid = "no name says which modules a checkpoint leaves in 16 bits"
    asked = ["--hardware", "h200", "--tokens", "1k"]
    for model, weights, told in (
        ("gemma-4-31b-it-NVFP4", "nvfp4", True),
        ("qwen3-8b", "awq", True),
        ("qwen3-8b", "bf16", False),
        ("qwen3-8b", "q4_k_m", False),
        ("gpt-oss-120b", "mxfp4", False),
    ):
        assert main(["fit", "--model", model, "--weights", weights, *asked]) == 0
        assert (unsaid in capsys.readouterr().out) is told, (model, weights)

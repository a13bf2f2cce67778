"""What people paste and type: read, or refused in one sentence that helps, and never a traceback."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from tests.models.small_configs import small

from threeloops.cli import main

LLAMA = small("llama", architectures=["LlamaForCausalLM"])
TEXT = json.dumps(LLAMA)


def written(config: dict[str, Any]) -> bytes:
    return json.dumps(config).encode()


# File name -> what is in it -> what the refusal has to say; empty where it is read.
FILES: dict[str, tuple[bytes, str]] = {
    "nulls.json": (written(LLAMA | {"rope_scaling": None, "nobody_knows": None}), ""),
    "floats.json": (written(LLAMA | {"hidden_size": 48.0}), ""),
    "crlf.json": (b"\xef\xbb\xbf" + json.dumps(LLAMA, indent=2).replace("\n", "\r\n").encode(), ""),
    "utf16.json": (TEXT.encode("utf-16-le"), ""),
    "utf32.json": (TEXT.encode("utf-32"), ""),
    "word.json": (written(LLAMA | {"architectures": "LlamaForCausalLM"}), ""),
    "inside.json": (written({"model_type": "mychat", "llm_config": LLAMA, "vision_config": {}}), ""),
    "without.json": (written({"text_config": LLAMA}), ""),
    "language.json": (written({"model_type": "their_vl", "language_config": LLAMA, "vision_config": {}}), ""),
    "fraction.json": (written(LLAMA | {"hidden_size": 4096.5}), "hidden_size=4096.5 must be a whole number"),
    "endless.json": (written(LLAMA | {"nobody_knows": 10**400}), "'nobody_knows' is a field"),
    "pattern.json": (
        written(LLAMA | {"quantization_config": {"quant_method": "fp8", "ignore": ["re:a{9999999999}"]}}),
        "",
    ),
    "string.json": (written(LLAMA | {"num_hidden_layers": "32"}), "num_hidden_layers='32' must be a whole number"),
    "negative.json": (written(LLAMA | {"num_hidden_layers": -4}), "num_hidden_layers=-4 must be a whole number"),
    "headless.json": (written(LLAMA | {"num_attention_heads": 0}), "num_attention_heads=0 must be a whole number"),
    "uneven.json": (written(LLAMA | {"num_key_value_heads": 4}), "try num_key_value_heads in {1, 2, 3, 6}"),
    "nan.json": (b'{"model_type": "llama", "hidden_size": NaN}', "hidden_size=nan must be a whole number"),
    "types.json": (written(LLAMA | {"model_type": ["llama"]}), "model_type=['llama'] is not read"),
    "many.json": (written(LLAMA)[:-1] + b', "model_type": "gpt2"}', "says 'model_type' twice"),
    "list.json": (b"[" + written(LLAMA) + b"]", "holds no object with fields"),
    "null.json": (b"null", "holds no object with fields"),
    "yaml.json": (b"hidden_size: 4096\nmodel_type: llama\n", "is not JSON"),
    "python.json": (str(LLAMA).encode(), "is not JSON"),
    "cut.json": (TEXT[:60].encode(), "is not JSON"),
    "spaces.json": (b"  \n ", "is empty; give a config.json"),
    "adapter.json": (written({"r": 16, "lora_alpha": 32}), "is the config of an adapter"),
    "quantised.json": (written({"producer": {}, "quantization": {}}), "says how weights were quantised"),
    "refused.json": (written({"error": "Access to model x is restricted"}), "holds a host's answer"),
    "model.safetensors": (struct.pack("<Q", 64) + b'{"__metadata__":{}}', "is a safetensors file"),
    "model.bin": (b"PK\x03\x04" + bytes(90), "is a zip archive or a checkpoint of torch"),
    "short.gguf": (b"GGUF\x03\0\0\0", "is a GGUF file whose header is cut off or damaged"),
    "other.gguf": (b"GGUF" + b"\xff" * 90, "versions 2 and 3 are"),
    "no.gguf": (b"text" * 20, "does not begin as a GGUF file does"),
}
# What is typed -> what is said of it.
TYPED = {
    "--tokens 8Ki": "1 request of 8,192 tokens",
    "--tokens 8K": "1 request of 8,192 tokens",
    "--tokens 1,000": "1 request of 1,000 tokens",
    "--tokens 1e3": "'1e3' must be a number of tokens, like 8192, 8,192 or 8k",
    "--tokens 128k+": "'128k+' must be a number of tokens",
    "--tokens=-1": "--tokens -1 must be a whole number of at least 1",
    "--tokens 0": "--tokens 0 must be a whole number of at least 1",
    "--tokens 1k --gpus 0": "--gpus 0 must be a whole number of at least 1",
    "--tokens 1k --tp 3": "--tp 3 must divide num_heads=32; try tp in {1, 2, 4, 8, 16, 32}",
    "--tokens 1k --hardware 4090 --weights bf16 --utilisation 95": "--utilisation 95.0 is a share of the memory",
    "--tokens 1k --hardware 4090 --weights bf16 --utilisation 95%": "such requests fit",
    "--tokens 1k --hardware 24GB --weights bf16": "give 24GiB, or what nvidia-smi prints",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_or_refused_in_a_sentence(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, refused = FILES[name]
    (tmp_path / name).write_bytes(content)
    code = main(["kv", "--model", str(tmp_path / name), "--tokens", "1k", "--cache", "bf16"])
    said = capsys.readouterr()
    assert code == (2 if refused else 0), said.err
    assert refused in said.err
    assert said.err.count("\n") == bool(refused)
    assert "1 request of 1,024 tokens" in said.out or refused


@pytest.mark.parametrize("typed", TYPED)
def test_what_is_typed_is_taken_or_refused_by_its_flag(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["kv", "--model", "llama-3.1-8b", "--cache", "bf16", *typed.split()]
    refused = TYPED[typed].startswith(("'", "--", "give"))
    try:
        code = main(words)
    except SystemExit as left:
        code = left.code
    assert code == (2 if refused else 0)
    said = capsys.readouterr()
    assert TYPED[typed] in said.out + said.err
    assert not (said.out and said.err)
    assert said.err.count("\n") == refused

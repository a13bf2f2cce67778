"""Files that people give for a config.json: read in any Unicode, and named where they are something else."""

import json
import re
import struct
from pathlib import Path

import pytest
from tests.models.small_configs import small

from threeloops.cli import main
from threeloops.models.hf_config import from_hf_config

LLAMA = json.dumps(small("llama"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_any_unicode_is_read(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(LLAMA.encode(encoding))
    assert from_hf_config(tmp_path) == from_hf_config(small("llama"), name=tmp_path.name)


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 671\n"
INSTEAD: dict[str, tuple[bytes, str]] = {
    "pointer": (POINTER, "is a Git LFS pointer and not the file itself: `git lfs pull` fetches that"),
    "page": (b"<!DOCTYPE html>\n<html><title>404</title>", "is a web page: download the file itself"),
    "answer": (b"Entry not found", "holds a host's answer, 'entry not found'"),
    "gated": (b"Access to model x is restricted", "and whether it needs a login"),
    "empty": (b" \n", "is empty; give a config.json"),
    "weights": (struct.pack("<Q", 99) + b'{"__metadata__":{}}', "is a safetensors file, the weights themselves"),
    "torch": (b"PK\x03\x04rest", "is a zip archive or a checkpoint of torch"),
    "binary": (b"\x93\xff\xfe\x00", "is not text, in UTF-8 or UTF-16"),
    "open": (b"{", "is not JSON: Expecting property name"),
    "list": (b"[1]", "holds no object with fields but '[1]'"),
    "comma": (b'{"a": [1, 2,],}', "it has a comma before a closing bracket: take it out"),
    "comments": (b'// mine\n{"a": "//b" /* c */}', "it has comments, which JSON does not have: take them out"),
    "deep": (b'{"a": ' + b"[" * 100_000, "is not JSON"),
    "twice": (b'{"hidden_size": 64, "hidden_size": 32}', "says 'hidden_size' twice, as 64 and as 32: take one of them"),
}


@pytest.mark.parametrize("name", INSTEAD)
def test_what_is_none_is_named(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, told = INSTEAD[name]
    file = tmp_path / "config.json"
    file.write_bytes(content)
    assert main(["kv", "--model", str(file), "--tokens", "1k", "--cache", "bf16"]) == 2
    said = capsys.readouterr()
    assert told in said.err
    assert (said.err.count("\n"), said.out) == (1, "")


def test_a_gguf_file_that_does_not_begin_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GG")
    assert main(["kv", "--model", str(file), "--tokens", "1k", "--cache", "bf16"]) == 2
    assert "does not begin as a GGUF file does: download it again" in capsys.readouterr().err


def test_a_field_that_says_the_same_twice_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(LLAMA[:-1] + f', "hidden_size": {small("llama")["hidden_size"]}}}')
    assert from_hf_config(tmp_path) == from_hf_config(small("llama"), name=tmp_path.name)


BESIDE = {
    "an adapter (LORA) of 'org/base': give that model": {"peft_type": "LORA", "base_model_name_or_path": "org/base"},
    "an adapter (LORA): give the config.json of its base": {"peft_type": "LORA"},
    "how text is generated": {"_from_model_config": True, "eos_token_id": 2, "transformers_version": "4.51.0"},
    "generation_config.json": {"temperature": 0.6, "top_p": 0.9},
    "which file holds which weight": {"metadata": {"total_size": 1}, "weight_map": {}},
    "is the params.json of": {"dim": 4096, "n_layers": 32, "n_heads": 32},
    "tokenizer_config.json": {"tokenizer_class": "LlamaTokenizer", "model_max_length": 10},
    "(1_Pooling/config.json): give the config.json beside it": {
        "word_embedding_dimension": 768,
        "pooling_mode_mean_tokens": True,
    },
    "(config_sentence_transformers.json)": {"__version__": {"torch": "2.6.0"}, "similarity_fn_name": "cosine"},
    "(sentence_bert_config.json)": {"max_seq_length": 512, "do_lower_case": False},
    "preprocessor_config.json": {"image_processor_type": "SiglipImageProcessor"},
    "'model_type' is missing, which every config.json has": {"hidden_size": 4096},
}


@pytest.mark.parametrize("told", BESIDE)
def test_what_lies_beside_a_config_is_named(told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        from_hf_config(BESIDE[told])


def test_a_folder_without_one_says_what_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot be read \(No such file or directory\); give a config.json or the fo"):
        from_hf_config(tmp_path)
    large = tmp_path / "model.safetensors"
    with large.open("wb") as opened:
        opened.write(struct.pack("<Q", 99) + b'{"__metadata__":{}}')
        opened.truncate(17 * 2**20)
    with pytest.raises(ValueError, match=r"is a safetensors file, the weights themselves; give the config.json"):
        from_hf_config(large)


def test_the_types_that_are_read_are_listed_on_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sources", "--types"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100
    assert {"llama", "qwen3_moe", "kimi_k25"} <= set(" ".join(lines).split())


def test_an_answer_and_a_tower_of_brackets_are_named(tmp_path):
    answer, tower = tmp_path / "answer.json", tmp_path / "tower.json"
    answer.write_text('{"error": "Invalid credentials"}')
    tower.write_text("[" * 100_000)
    with pytest.raises(ValueError, match="holds a host's answer, 'Invalid credentials', and not the file"):
        from_hf_config(answer)
    with pytest.raises(ValueError, match="is not JSON: it is nested too deeply$"):
        from_hf_config(tower)


def test_a_folder_with_a_gguf_file_names_it(tmp_path: Path) -> None:
    (tmp_path / "mine-Q4_K_M.gguf").write_bytes(b"GGUF")
    with pytest.raises(ValueError, match=r"holds no config.json but mine-Q4_K_M.gguf: give that file"):
        from_hf_config(tmp_path)


def test_what_is_no_name_of_a_type_and_an_adapter_without_its_base_are_refused() -> None:
    for model_type in (["llama"], {"llama": 1}, 7, True):
        with pytest.raises(ValueError, match=r"model_type=.* is not read; `threeloops sources --types`"):
            from_hf_config({"model_type": model_type, "hidden_size": 8})
    with pytest.raises(ValueError, match="is the config of an adapter, without its base model: give that model"):
        from_hf_config({"r": 16, "lora_alpha": 32, "target_modules": ["q_proj"]})
    old = {"architectures": ["ElseLMHeadModel"], "n_embd": 256, "bos_token_id": 1, "eos_token_id": 1}
    with pytest.raises(ValueError, match="'model_type' is missing, which every config.json has"):
        from_hf_config(old | {"transformers_version": "4.33.1"})


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('LlamaConfig {"model_type": "llama"}', "begins with the name of a class, as a program prints a config"),
        ("{'model_type': 'llama', 'tie_word_embeddings': False}", "a dictionary of Python: JSON has double quotes"),
        ("# a model\nmodel_type: llama\nhidden_size: 8\n", "it looks like YAML"),
        ('{"config": {"model_type": "llama"}}', "keeps the fields of a config within 'config'"),
        ('{"model_type": "llama",}', "it has a comma before a closing bracket: take it out"),
    ],
)
def test_what_was_copied_from_elsewhere_is_told(tmp_path, written, said):
    (tmp_path / "config.json").write_text(written)
    with pytest.raises(ValueError, match=said):
        from_hf_config(tmp_path)

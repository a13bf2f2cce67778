"""config.json files as makers published them: answered as the class in transformers has it, or refused by name."""

import json
import re
from pathlib import Path

import pytest
from tests.models.small_configs import real
from transformers import AutoConfig

from threeloops.cli import main
from threeloops.models import catalogue
from threeloops.models.hf_config import SAME_CLASS, from_hf_config
from threeloops.models.hf_families import FAMILIES
from threeloops.models.parameters import model_parameters

FOLDER = Path(__file__).parent / "configs"
FILES = {path.stem: path for path in sorted(FOLDER.glob("*.json"))}
# Their classes ship with the checkpoints: tests/models/readers/test_own_code.py holds them against other things.
OWN_CLASS = {"kimi-k3", "llama-3_3-nemotron-super-49b-v1", "mimo-7b-base"}


def test_thirty_files_and_an_address_for_each():
    listed = re.findall(
        r"^\| ([^ ]+)\.json \|.*\(https://[^ ]+\) \|$", (FOLDER / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(listed) == sorted(FILES)
    assert len(FILES) >= 30
    assert FILES.keys() >= OWN_CLASS


def text_of(config: dict) -> dict:
    """The language model's own fields, under the name of its class."""
    text = dict(config.get("text_config", config))
    text["model_type"] = SAME_CLASS.get(text["model_type"], text["model_type"])
    if "tie_word_embeddings" in config:
        text["tie_word_embeddings"] = config["tie_word_embeddings"]
    return {name: value for name, value in text.items() if name not in ("auto_map", "quantization_config")}


@pytest.mark.parametrize("name", sorted(FILES.keys() - OWN_CLASS))
def test_a_published_file_is_answered_exactly(name, capsys):
    model, total = from_hf_config(FILES[name]), real(text_of(json.loads(FILES[name].read_text("utf-8"))))[1]
    assert model_parameters(model).total == total
    assert main(["kv", "--model", str(FILES[name]), "--tokens", "1000", "--cache", "bf16"]) == 0
    assert "1 request of 1,000 tokens: " in capsys.readouterr().out


# The file of a checkpoint -> the row of the catalogue that stands for it, its own or another's but for a few fields.
CATALOGUED = {
    "meta-llama-3.1-8b": "llama-3.1-8b",
    "meta-llama-3.1-70b": "llama-3.1-70b",
    "deepseek-r1": "deepseek-r1",
    "deepseek-v3.2": "deepseek-v3.2",
    "deepseek-v4-flash": "deepseek-v4-flash",
    "qwen2.5-32b": "qwen2.5-32b",
    "glm-5": "glm-5",
    "glm-5.2": "glm-5.2",
    "kimi-k2.5": "kimi-k2.5",
    "kimi-k3": "kimi-k3",
    "gemma-4-26b-a4b": "gemma-4-26b-a4b",
    "mimo-7b-base": "mimo-7b",
    "mimo-v2-flash": "mimo-v2-flash",
    "qwen3-vl-4b-instruct": "qwen3-vl-4b",
    "qwen3-vl-30b-a3b-instruct": "qwen3-vl-30b-a3b",
}


@pytest.mark.parametrize("name", CATALOGUED)
def test_a_row_of_the_catalogue_is_the_published_file(name):
    assert from_hf_config(FILES[name], name=CATALOGUED[name]) == catalogue.model(CATALOGUED[name])


# without arguments, HunYuan's classes cannot be built: their rotary positions need a factor that they have no value for
@pytest.mark.parametrize("model_type", sorted(FAMILIES.keys() - {"hunyuan_v1_dense", "hunyuan_v1_moe"}))
def test_the_sizes_that_a_class_assumes_are_read(model_type):
    """A class without arguments has the sizes of one published model: Falcon 7B, Command R, GLM-4 9B, OLMo 7B, …"""
    assumed = json.loads(AutoConfig.for_model(model_type).to_json_string(use_diff=False))
    config = assumed | {"model_type": model_type, **NOT_ASSUMED.get(model_type, {})}
    assert model_parameters(from_hf_config(config)).total == real(config)[1]


# What a class leaves open, or writes in a way that it does not read again.
ENDLESS = {"time_step_limit": [0.0, 1e308]}
NOT_ASSUMED = {
    "bamba": ENDLESS,
    "mamba2": ENDLESS,
    "dbrx": {"attn_config": {"kv_n_heads": 1, "rope_theta": 10000.0}},
    "deepseek_v2": {"num_experts_per_tok": 6},
    "dots1": {"num_experts_per_tok": 6, "n_routed_experts": 128, "n_shared_experts": 2},
    "glm4_moe": {"head_dim": 128},
    "glm4v_moe_text": {"head_dim": 128},
    "glm4v_text": {"tie_word_embeddings": False},
    "falcon_h1": ENDLESS,
    "granitemoehybrid": ENDLESS,
    "lfm2_moe": {"layer_types": (["conv"] * 3 + ["full_attention"]) * 8},
    "ministral": {"head_dim": 128},
    "nemotron": {"num_key_value_heads": 48},
    "nemotron_h": ENDLESS,
    "phi3": {"pad_token_id": 0},
    "qwen3_omni_moe_text": {"head_dim": 128, "tie_word_embeddings": False},
    "qwen3_vl_text": {"tie_word_embeddings": False},
    "qwen2_vl_text": {"tie_word_embeddings": False},
    "qwen2_5_vl_text": {"tie_word_embeddings": False},
}

"""Headers of hybrids, written by gguf itself as llama.cpp's converters fill them: read as the configs that they were
made from, with the tensors of the class of transformers as the second opinion.
"""

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from tests.models.small_configs import small
from transformers import AutoConfig, AutoModelForCausalLM

from threeloops.cli import main
from threeloops.models.hf_config import from_hf_config
from threeloops.models.parameters import model_parameters

# The file's architecture -> the config; its states are as wide as they can be there, a multiple of the model's width.
CONFIGS = {
    "qwen3next": small("qwen3_next"),
    "lfm2": small("lfm2"),
    "falcon-h1": small("falcon_h1"),
    "granitehybrid": small("granitemoehybrid"),
    "jamba": small("jamba"),
    "nemotron_h_moe": small("nemotron_h", mamba_num_heads=12, mamba_head_dim=8),
}


def variants() -> list[tuple[str, dict]]:
    dense = small("granitemoehybrid", num_local_experts=0)
    plain = small("nemotron_h", hybrid_override_pattern="M-M*-M-")
    alone = small("jamba", num_experts=1, num_experts_per_tok=1, attn_layer_period=5)
    return [
        *CONFIGS.items(),
        ("jamba", alone),
        ("granitehybrid", dense),
        ("nemotron_h", plain),
        ("lfm2", small("lfm2", vocab_size=64)),
    ]


def class_tensors(config: dict) -> dict[str, tuple[int, ...]]:
    """The class's own parameters, under their own names but for those that a reader looks at."""
    config = dict(config)
    built = AutoConfig.for_model(config.pop("model_type"), **config)
    with torch.device("meta"):
        named = dict(AutoModelForCausalLM.from_config(built).named_parameters())
    found = {name: tuple(parameter.shape) for name, parameter in named.items()}
    renamed = {}
    for name, shape in found.items():
        layer = next((part for part in name.split(".") if part.isdigit()), "")
        if "embed" in name and "norm" not in name:
            renamed["token_embd.weight"] = shape
        elif name == "lm_head.weight":
            renamed["output.weight"] = shape
        elif name.endswith("mamba.norm.weight") and config.get("mamba_rms_norm", True):
            renamed[f"blk.{layer}.ssm_norm.weight"] = shape
        elif name.endswith(("mixer.gate.weight", "feed_forward.router.weight", "block_sparse_moe.router.layer.weight")):
            renamed[f"blk.{layer}.ffn_gate_inp.weight"] = shape
        else:
            renamed[name] = shape
    return renamed


def kv_heads(config: dict, layers: int) -> list[int]:
    """KV heads of every layer; 0 where a state stands in place of attention."""
    kinds = config.get("layer_types") or config.get("hybrid_override_pattern")
    if "full_attn_idxs" in config:
        kinds = ["attention" if layer in config["full_attn_idxs"] else "conv" for layer in range(layers)]
    if "attn_layer_period" in config:
        period, offset = config["attn_layer_period"], config["attn_layer_offset"]
        kinds = ["attention" if layer % period == offset else "mamba" for layer in range(layers)]
    return [config["num_key_value_heads"] * (kind in ("attention", "full_attention", "*")) for kind in kinds]


def written(path: Path, architecture: str, config: dict, *, parts: int = 1, **changes: int) -> Path:
    """The fields that the converter of the architecture writes."""
    writer, layers = gguf.GGUFWriter(path, architecture), config["num_hidden_layers"]
    built = AutoConfig.for_model(**config)
    writer.add_uint16("split.count", parts)
    writer.add_block_count(layers)
    writer.add_embedding_length(config["hidden_size"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_head_count(config["num_attention_heads"])
    if (head := config.get("head_dim")) is not None:
        writer.add_key_length(head)
        writer.add_value_length(head)
    told = FIELDS[architecture](writer, config, built, layers) | changes
    for name, value in told.items():
        if isinstance(value, list):
            writer.add_array(f"{architecture}.{name}", value)
        elif value is not None:
            writer.add_uint32(f"{architecture}.{name}", value)
    for name, shape in class_tensors(config).items():
        writer.add_tensor(name, np.zeros(shape, np.float16))
    for step in (
        writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close,
    ):  # fmt: skip
        step()
    return path


def _qwen3_next(writer, config, built, layers) -> dict:
    return {
        "attention.head_count_kv": config["num_key_value_heads"],
        "feed_forward_length": config["intermediate_size"],
        "expert_count": config["num_experts"],
        "expert_used_count": config["num_experts_per_tok"],
        "expert_feed_forward_length": config["moe_intermediate_size"],
        "expert_shared_feed_forward_length": config["shared_expert_intermediate_size"],
        "ssm.conv_kernel": config["linear_conv_kernel_dim"],
        "ssm.state_size": config["linear_key_head_dim"],
        "ssm.group_count": config["linear_num_key_heads"],
        "ssm.time_step_rank": config["linear_num_value_heads"],
        "ssm.inner_size": config["linear_value_head_dim"] * config["linear_num_value_heads"],
        "full_attention_interval": 4,
    }


def _lfm2(writer, config, built, layers) -> dict:
    multiple = config["block_multiple_of"]
    width = multiple * -(-int(2 * config["intermediate_size"] / 3) // multiple)
    return {
        "attention.head_count_kv": kv_heads(config, layers),
        "feed_forward_length": width,
        "shortconv.l_cache": built.conv_L_cache,
    }


def _mamba2(config, inner: int, conv: int) -> dict:
    return {
        "ssm.conv_kernel": conv,
        "ssm.inner_size": inner,
        "ssm.state_size": config["mamba_d_state"],
        "ssm.time_step_rank": config["mamba_n_heads"],
        "ssm.group_count": config["mamba_n_groups"],
    }


def _falcon_h1(writer, config, built, layers) -> dict:
    return {
        "attention.head_count_kv": config["num_key_value_heads"],
        "feed_forward_length": config["intermediate_size"],
        **_mamba2(config, config["mamba_d_ssm"], built.mamba_d_conv),
    }


def _granite(writer, config, built, layers) -> dict:
    experts = config["num_local_experts"]
    return {
        "attention.head_count_kv": kv_heads(config, layers),
        "feed_forward_length": config["intermediate_size"] if experts else config["shared_intermediate_size"],
        "expert_count": experts or None,
        "expert_used_count": config["num_experts_per_tok"] if experts else None,
        "expert_shared_feed_forward_length": config["shared_intermediate_size"] if experts else None,
        **_mamba2(config, built.mamba_expand * config["hidden_size"], built.mamba_d_conv),
    }


def _jamba(writer, config, built, layers) -> dict:
    return {
        "attention.head_count_kv": kv_heads(config, layers),
        "feed_forward_length": config["intermediate_size"],
        "expert_count": config["num_experts"],
        "expert_used_count": config["num_experts_per_tok"],
        "ssm.conv_kernel": built.mamba_d_conv,
        "ssm.inner_size": built.mamba_expand * config["hidden_size"],
        "ssm.state_size": config["mamba_d_state"],
        "ssm.time_step_rank": config["mamba_dt_rank"],
    }


def _nemotron(writer, config, built, layers) -> dict:
    pattern = config["hybrid_override_pattern"]
    widths = {"-": config["intermediate_size"], "E": config["moe_intermediate_size"]}
    experts = "E" in pattern
    return {
        "attention.head_count_kv": kv_heads(config, layers),
        "feed_forward_length": [widths.get(letter, 0) for letter in pattern],
        "expert_count": config["n_routed_experts"] if experts else None,
        "expert_used_count": config["num_experts_per_tok"] if experts else None,
        "expert_shared_count": built.n_shared_experts if experts else None,
        "expert_feed_forward_length": config["moe_intermediate_size"] if experts else None,
        "expert_shared_feed_forward_length": config["moe_shared_expert_intermediate_size"] if experts else None,
        "ssm.conv_kernel": built.conv_kernel,
        "ssm.inner_size": config["mamba_num_heads"] * config["mamba_head_dim"],
        "ssm.state_size": config["ssm_state_size"],
        "ssm.time_step_rank": config["mamba_num_heads"],
        "ssm.group_count": config["n_groups"],
    }


FIELDS = {
    "qwen3next": _qwen3_next,
    "lfm2": _lfm2,
    "falcon-h1": _falcon_h1,
    "granitehybrid": _granite,
    "jamba": _jamba,
    "nemotron_h": _nemotron,
    "nemotron_h_moe": _nemotron,
}


@pytest.mark.parametrize("case", range(len(variants())))
def test_a_hybrids_header_is_the_config_it_was_made_from(tmp_path: Path, case: int) -> None:
    architecture, config = variants()[case]
    found = from_hf_config(written(tmp_path / "one.gguf", architecture, config), name="x")
    expected = from_hf_config(config, name="x")
    assert [layer.attention for layer in found.layers()] == [layer.attention for layer in expected.layers()]
    assert model_parameters(found).total == model_parameters(expected).total
    assert (found.vocab, found.tied_head, found.max_context) == (
        expected.vocab,
        expected.tied_head,
        expected.max_context,
    )


def test_the_command_counts_its_states(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "mine.gguf", "lfm2", CONFIGS["lfm2"])
    assert main(["kv", "--model", str(file), "--tokens", "1000", "--cache", "bf16"]) == 0
    # Two layers of five attend: 2 × 3 KV heads of 8 × 2 bytes each.
    assert f"{2 * 2 * 3 * 8 * 2 * 1000:,} B" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("architecture", "changed", "told"),
    [
        ("falcon-h1", {"ssm.inner_size": 43}, r"inner_size=43 does not fit ssm\.time_step_rank; give the config\.json"),
        ("lfm2", {"shortconv.l_cache": None}, r"is without lfm2\.shortconv\.l_cache"),
        (
            "granitehybrid",
            {"attention.head_count_kv": [0, 3, 0, 0, 2]},
            r"its layers have \[2, 3\] KV heads, which is not read",
        ),
        (
            "jamba",
            {"attention.head_count_kv": [3, 3, 0, 0, 3]},
            r"attn stands in layers \[0, 1, 4\], which do not repeat",
        ),
    ],
)
def test_what_does_not_fit_is_said(tmp_path: Path, architecture: str, changed: dict, told: str) -> None:
    file = written(tmp_path / "a.gguf", architecture, CONFIGS[architecture], **changed)
    with pytest.raises(ValueError, match=told):
        from_hf_config(file)


def test_a_part_of_a_file_does_not_say_where_experts_are(tmp_path: Path) -> None:
    """The first of several parts has a count of parts, and some of the tensors."""
    with pytest.raises(
        ValueError, match="it is one part of several, and which layers have experts stands in the others"
    ):
        from_hf_config(written(tmp_path / "a-00001-of-00002.gguf", "jamba", CONFIGS["jamba"], parts=2))

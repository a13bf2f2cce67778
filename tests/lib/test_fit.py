"""`threeloops fit`: the sums by hand, the way out of a card that is too small, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from threeloops.cli import main
from threeloops.models.catalogue import model, model_entry
from threeloops.models.parameters import model_parameters
from threeloops.product_loop.sizing.stored_weights import FORMATS, GROUPED, PACKED, weights_bytes_in, weights_in

ASKED = "fit --model llama-3-8b --weights q4_k_m --hardware rtx-4090 --tokens 32k"


def answer(command: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main([*command.split(), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def spoken(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(command.split()) == 0
    return capsys.readouterr().out


def test_a_chat_model_fits_a_card_for_games(capsys: pytest.CaptureFixture[str]) -> None:
    # 24,564 MiB by the driver, 4.9129 GB of weights, 128 KiB for each of 32,768 tokens
    found = answer(ASKED, capsys)
    assert found["fits"] is True
    assert found["left_bytes"] == pytest.approx(24_564 * 2**20 - 4_912_898_048 - 131_072 * 32_768)
    assert found["longest_context_by_memory"] == (24_564 * 2**20 - 4_912_898_048) // 131_072


def test_users_each_have_a_context(capsys: pytest.CaptureFixture[str]) -> None:
    one, three = (answer(f"{ASKED} --users {users}", capsys) for users in (1, 3))
    assert one["left_bytes"] - three["left_bytes"] == 2 * 131_072 * 32_768  # type: ignore[operator]


def test_one_user_waits_until_the_weights_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    """Two bytes of all parameters but the table, and 128 KiB for each of 8,192 tokens; experts not chosen are not."""
    found = answer("fit --model llama3-8b --format bf16 --hardware h100-sxm --tokens 8k", capsys)["results"]
    read = 2 * (8_030_261_248 - 128_256 * 4096) + 8192 * 131_072
    assert found["tokens_s_of_all_users_at_most"]["value"] == pytest.approx(3.35e12 / read, rel=0.01)
    few = answer("fit --model qwen3-30b-a3b --format q4_k_m --hardware 4090 --tokens 4k", capsys)["results"]
    assert few["tokens_s_of_all_users_at_most"]["value"] > 300
    assert "tokens_s_of_all_users_at_most" not in answer(f"{ASKED} --users 9", capsys)["results"]  # nothing runs there


def test_what_does_not_fit_says_what_would(capsys: pytest.CaptureFixture[str]) -> None:
    # 32.8 billion parameters in 8.5 bits are 34.8 GB: more than the card, whatever the context
    said = spoken("fit --model qwen3-32b --format q8_0 --hardware rtx-4090 --tokens 4096", capsys)
    assert "does not fit on NVIDIA GeForce RTX 4090" in said
    assert "Q5_K_M weights" in said
    assert "would fit beside this context" in said
    assert "tokens for each user would fit" not in said
    # one format narrower, the context is what is too long
    said = spoken("fit --model qwen3-32b --format q4_k_m --hardware rtx-4090 --tokens 32k", capsys)
    assert "22,892 tokens for each user would fit" in said


@pytest.mark.parametrize(
    "command",
    [
        "fit --model mistral-7b --format q4_k_m --hardware 4090 --tokens 8k",
        "kv --model mistral-7b --tokens 8192 --cache bf16 --hardware 4090 --weights bf16",
    ],
)
def test_where_memory_sets_no_limit_it_is_said_and_no_number_given(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # every layer of Mistral 7B v0.1 keeps 4,096 tokens and no more: 2 * 32 layers * 8 heads * 128 * 2 bytes * 4096
    said = spoken(command, capsys)
    assert "emory sets no limit to" in said
    assert "10,000,000" not in said
    assert answer(command, capsys)["longest_context_by_memory"] is None
    assert 2 * 32 * 8 * 128 * 2 * 4096 == 512 * 2**20
    # one full layer is enough for a limit, and a cache that does not fit beside the weights has one, too
    assert answer(command.replace("mistral-7b", "gemma-2-9b"), capsys)["longest_context_by_memory"] < 10**6


def test_several_cards_share_weights_and_heads(capsys: pytest.CaptureFixture[str]) -> None:
    """Two cards have half of the weights and of the eight KV heads each; an engine's own needs come off first."""
    two = answer(f"{ASKED} --gpus 2 --share 90% --activations 2GiB --other 1GiB", capsys)
    weights, cache = 4_912_898_048 / 2, 131_072 * 32_768 / 2
    assert two["left_bytes"] == pytest.approx(24_564 * 2**20 * 0.9 - 3 * 2**30 - weights - cache)
    said = spoken("fit --model deepseek-v3 --weights fp8 --hardware h200 --gpus 8 --tokens 32k", capsys)
    assert "fits on 8 of NVIDIA H200" in said
    assert main([*ASKED.split(), "--gpus", "3"]) == 2
    assert "--gpus 3 must divide num_heads=32" in capsys.readouterr().err


def test_an_old_name_of_a_flag_means_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    old = ASKED.replace("--weights", "--format").replace("32k", "32768") + " --utilisation 0.9"
    assert answer(old, capsys) == answer(f"{ASKED} --share 0.9", capsys)
    assert main(old.replace("q4_k_m", "q4_k_x").split()) == 2
    assert "--format 'q4_k_x' is not known" in capsys.readouterr().err


def test_what_nothing_helps_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    said = spoken("fit --model deepseek-v3 --format fp8 --hardware rtx-4090 --tokens 32k", capsys)
    assert "take a larger card, or more of them" in said


@pytest.mark.parametrize("wanted", FORMATS)
def test_every_format_holds_every_weight(wanted: str) -> None:
    llama = model("llama-3-8b")
    assert sum(number for number, _ in weights_in(llama, wanted).values()) == model_parameters(llama).total
    assert 2 < 8 * weights_bytes_in(llama, wanted) / model_parameters(llama).total <= 32


@pytest.mark.parametrize(("name", "printed_gib"), [("gpt-oss-120b", 60.8), ("gpt-oss-20b", 12.8)])
def test_gpt_oss_weighs_what_its_card_prints(name: str, printed_gib: float) -> None:
    """OpenAI, gpt-oss model card, 2025, arXiv:2508.10925, table 1: experts in MXFP4, all else in 16 bits."""
    assert weights_bytes_in(model(name), "mxfp4") / 2**30 == pytest.approx(printed_gib, abs=0.05)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("--weights q4_k_x", "--weights 'q4_k_x' is not known; did you mean 'q4_k_s' or 'q4_k_m'"),
        ("--weights int4", "--weights 'int4' may be"),
        ("--model deepseek-v4-flash", "residual streams that are mixed beside attention and MLP, whose GGUF files are"),
        ("--hardware nvlink-4", "--hardware nvlink-4: that has no arithmetic of its own"),
        ("--hardware rtx-4091", "--hardware 'rtx-4091' is not known. `threeloops sources --keys`"),
        ("--cache int", "--cache 'int' may be 'int8', 'int4' or 'int8_per_token_head'; say which"),
        ("--cache int2", "--cache 'int2' is not known; did you mean 'int"),
        ("--users 0", "--users 0"),
        ("--share 2", "--share 2.0 is a share of the memory"),
    ],
)
def test_a_wrong_word_gets_one_sentence(change: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ASKED.split(), *change.split()]) == 2
    said = capsys.readouterr()
    assert told in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize("form", ["awq", "gptq", *GROUPED])
def test_groups_weigh_what_their_packed_tensors_do(form: str) -> None:
    """One projection as AutoGPTQ and AutoAWQ pack it: eight weights and eight zeros to a 32-bit word, a 16-bit scale
    for each group; not the order of channels that GPTQ keeps besides. compressed-tensors packs no zeros.
    """
    rows, columns, group = 4096, 14336, int(form.partition("-g")[2] or 128)
    packed = {
        "qweight": np.empty((rows // 8, columns), np.int32),
        "qzeros": np.empty((rows // group, columns // 8), np.int32),
        "scales": np.empty((rows // group, columns), np.float16),
    }
    if form in PACKED:
        del packed["qzeros"]
    _, bits = weights_in(model("llama-3-8b"), form)[form]
    assert rows * columns * bits / 8 == sum(tensor.nbytes for tensor in packed.values())


def test_a_file_that_says_its_group_is_told_the_flag_that_counts_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = dict(model_entry("llama-3-8b").config) | {
        "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": True}
    }
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    asked = f"fit --model {tmp_path}/config.json --hardware rtx-4090 --tokens 8k --weights"
    assert "but --weights gptq is what is counted" in spoken(f"{asked} gptq", capsys)
    assert "as --weights gptq-g32 says" in spoken(f"{asked} gptq-g32", capsys)
    assert "as --weights GPTQ-g32 says" in spoken(f"{asked} GPTQ-g32", capsys)
    sizes = [answer(f"{asked} {form}", capsys)["weights_bytes"] for form in ("gptq", "gptq-g32")]
    assert sizes[1] - sizes[0] == pytest.approx(6_979_321_856 * (20 / 32 - 20 / 128) / 8)


def test_four_bits_of_bitsandbytes_weigh_codes_and_scales() -> None:
    """Of Llama 3.1 8B by hand: half a byte a weight of its layers' matrices, a scale for 64, a scale for 256 of those;
    table and head in 16 bits.
    """
    matrices = 32 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 4096 * 14336)
    wide = 2 * (2 * 128_256 * 4096 + 65 * 4096)
    llama = model("llama-3.1-8b")
    assert weights_bytes_in(llama, "nf4") == matrices // 2 + matrices / 64 + matrices / 64 / 256 * 4 + wide
    assert weights_bytes_in(llama, "nf4-single") == matrices // 2 + 4 * matrices / 64 + wide

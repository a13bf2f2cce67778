"""Eight questions of serving engineers at work, each answered by a command and held to figures worked out apart."""

import json

import pytest

from threeloops.cli import main

LLAMA = "--model llama-3.3-70b --weights fp8 --hardware h100-sxm"
QWEN = "--model Qwen/Qwen3-235B-A22B-Instruct-2507 --hardware h200"
CHAT = "--prompt 2k --answer 500"


def answer(command: str, capsys: pytest.CaptureFixture[str]) -> dict:
    assert main([*command.split(), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def fits(command: str, capsys: pytest.CaptureFixture[str]) -> int:
    return int(answer(command, capsys)["results"]["requests_that_fit"]["value"])


@pytest.mark.parametrize(("cache", "least"), [("bf16", 6.7), ("fp8", 13.5)])
def test_contexts_of_32k_on_two_gpus(cache: str, least: float, capsys: pytest.CaptureFixture[str]) -> None:
    """By hand: 79.1 GiB × 0.9 less 2.5 to 4 GB and 35.7 GiB of weights, over 5.4 GB of cache for each, or half."""
    asked = f"kv {LLAMA} --tp 2 --tokens 32k --share 0.9 --cache {cache}"
    lean, rich = (fits(f"{asked} --activations {some}", capsys) for some in ("2.5GB", "4GB"))
    assert least - 1 < rich <= lean <= least * 1.08


def test_experts_on_eight_gpus_with_and_without_copies_of_a_cache(capsys: pytest.CaptureFixture[str]) -> None:
    """67 in FP8: (150.75 GB × 0.9 - 235.1 GB / 8) / 1.58 GB. Four KV heads sit on two ranks each; where both
    share a cache's tokens twice as many fit.
    """
    assert fits(f"kv {QWEN} --weights fp8 --cache bf16 --tp 8 --tokens 32k --share 0.9", capsys) == 67
    asked = f"serve {QWEN} --gpus 8 --tp 8 --users 8 --prompt 32k --answer 100"
    copied, shared = (answer(asked + more, capsys)["seats"] for more in ("", " --dcp 2"))
    assert shared == pytest.approx(2 * copied, abs=2)
    assert "fits on 8" in answer(f"fit {QWEN} --weights bf16 --gpus 8 --tokens 32k", capsys)["conclusion"]


def test_times_under_a_load(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(f"serve {LLAMA} --tp 2 --gpus 2 --users 16 {CHAT}", capsys)
    assert found["times_are"] == "expected"
    assert found["bound_step_s"] < found["itl_p50_s"] < found["ttft_p50_s"] < 1


@pytest.mark.parametrize("gap", ["--itl 40ms", "--tpot 40ms"])
def test_gpus_for_a_rate_keep_what_is_promised(gap: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(f"serve {LLAMA} --tp 8 --rate 50/s {CHAT} --ttft 300ms {gap}", capsys)
    assert found["num_gpus"] == 8 * found["copies"] >= found["num_gpus_at_least"]
    assert found["ttft_p99_s"] <= 0.3
    assert found[f"{gap[2:].split()[0]}_p99_s"] <= 0.04
    assert found["copies"] >= 50 / found["copy_carries_requests_per_s"]
    more = found["copies"] - 50 / found["copy_carries_requests_per_s"]
    assert ("copies" in found["reasons"]) == (more >= 1)


def test_latents_by_copies_by_groups_and_by_shares(capsys: pytest.CaptureFixture[str]) -> None:
    """22 by hand for plain tensor parallelism, which keeps eight copies."""
    asked = "--model deepseek-v3 --weights fp8 --hardware h200"
    assert fits(f"kv {asked} --cache bf16 --tp 8 --tokens 32k --share 0.9", capsys) == 22
    load = f"serve {asked} --gpus 8 --users 8 --prompt 32k --answer 100"
    plain, groups, shares = (answer(load + how, capsys)["seats"] for how in (" --tp 8", " --dp 8", " --tp 8 --dcp 8"))
    assert shares == pytest.approx(8 * plain, abs=8)
    assert 4 * plain < groups < shares


def test_a_checkpoint_of_two_formats(capsys: pytest.CaptureFixture[str]) -> None:
    """OpenAI's files have 60.8 GiB: experts in MXFP4 and all else in 16 bits. kv and fit say the same."""
    asked = "--model gpt-oss-120b --weights mxfp4 --hardware h100-sxm --tokens 128k --share 0.9"
    found = answer(f"kv {asked} --cache bf16", capsys)["results"]
    assert found["weights_per_gpu"]["value"] / 2**30 == pytest.approx(60.8, abs=0.05)
    assert found["requests_that_fit"]["value"] == 2
    assert answer(f"fit {asked}", capsys)["results"]["weights_per_gpu"] == found["weights_per_gpu"]


def test_names_of_releases(capsys: pytest.CaptureFixture[str]) -> None:
    for name, config in {"Qwen/Qwen3-32B-FP8": "qwen3-32b", "deepseek-ai/DeepSeek-V3.2": "deepseek-v3.2"}.items():
        found = answer(f"kv --model {name} --tokens 32k --cache bf16", capsys)
        plain = answer(f"kv --model {config} --tokens 32k --cache bf16", capsys)
        assert found["results"] == plain["results"]
    assert main(["kv", "--model", "nobody/Nothing-7B", "--tokens", "1k", "--cache", "bf16"]) == 2
    assert "config.json is taken, too" in capsys.readouterr().err


def test_what_a_cache_drafts_adapters_and_a_million_tokens_cost(capsys: pytest.CaptureFixture[str]) -> None:
    asked = f"serve {LLAMA} --tp 4 --gpus 8 --users 64 {CHAT} --price 2.50"
    more = {
        "plain": "",
        "hit": " --hit 0.6",
        "drafts": " --draft-tokens 3 --acceptance 0.7 --draft-cost 0.05",
        "adapters": " --adapters 8 --adapter-rank 16",
    }
    found = {name: answer(asked + how, capsys) for name, how in more.items()}
    dollars = {name: one["results"]["a_million_tokens_of_answers"]["value"] for name, one in found.items()}
    for name, one in found.items():
        assert dollars[name] == pytest.approx(8 * 2.5 / 3600 / one["tokens_per_s"] * 1e6)
    assert max(dollars["hit"], dollars["drafts"]) < dollars["plain"] < dollars["adapters"]
    assert found["hit"]["ttft_p99_s"] < found["plain"]["ttft_p99_s"]

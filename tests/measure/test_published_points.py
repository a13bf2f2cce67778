"""Published points: which rows of a collection become points of the catalogue, and how."""

import json
from collections.abc import Mapping

import pytest

from threeloops.measure.published_points import SETTINGS_SAID, apart, grouped, text

ROW = {
    "mode": "agg",
    "model_path": "Qwen/Qwen3-32B",
    "system": "h100_sxm",
    "backend": "vllm",
    "backend_version": "0.12.0",
    "gemm_quant_mode": "",
    "tp_size": "2",
    "moe_ep_size": "1",
    "isl": "2048",
    "osl": "512",
    "batch_size": "16",
    "silicon_ttft_ms": "123.456789",
    "silicon_tpot_ms": "20.5",
}


def rows_of(*rows: Mapping[str, str]) -> list[list[float]]:
    return [row for group in grouped(rows) for row in group["rows"]]  # type: ignore[attr-defined]


def test_a_row_is_kept_in_seconds_and_once() -> None:
    assert rows_of(ROW, ROW) == [[2, 1, 2048, 512, 16, 0.1235, 0.0205]]
    (group,) = grouped([ROW])
    assert (group["model"], group["part"], group["engine"]) == ("qwen3-32b", "h100-sxm5", "vLLM")
    assert (group["format"], group["cache"], group["shortest"]) == ("bf16", "bf16", 1.0)


def test_what_is_split_or_a_mixture_or_incomplete_is_left_out() -> None:
    assert not rows_of(ROW | {"mode": "disagg"})
    assert not rows_of(ROW | {"model_path": "zhipuai/GLM-5"})
    assert not rows_of(ROW | {"tp_size": ""}, ROW | {"moe_ep_size": "0"})


def test_of_experts_one_attention_over_all_gpus_and_a_whole_cut_are_kept() -> None:
    experts = ROW | {"model_path": "MiniMaxAI/MiniMax-M2.5", "gemm_quant_mode": "fp8", "attention_dp_size": "1"}
    cut = experts | {"tp_size": "4", "moe_tp_size": "2", "moe_ep_size": "2"}
    assert rows_of(cut)[0][:2] == [4, 2]
    assert not rows_of(cut | {"attention_dp_size": "4"}), "each GPU has requests of its own"
    assert not rows_of(cut | {"moe_ep_size": "4"}), "experts over more GPUs than the attention"
    assert not rows_of(cut | {"tp_size": "16", "moe_tp_size": "4", "moe_ep_size": "4"}), "over two nodes"
    own = cut | {"model_path": "openai/gpt-oss-120b", "gemm_quant_mode": "nvfp4"}
    assert grouped([own])[0]["format"] == "mxfp4"
    assert not grouped([own | {"batch_size": "512"}]), "more than their engine seats"
    assert not grouped([own | {"gemm_quant_mode": "fp8"}]), "a format that its makers did not publish"


def test_where_every_gpu_has_requests_of_its_own() -> None:
    """Eight GPUs that share 8 groups of experts; and vLLM's four, noted as if they were sixteen."""
    own = ROW | {"model_path": "deepseek-ai/DeepSeek-R1", "backend": "trtllm", "gemm_quant_mode": "fp8"}
    own |= {"tp_size": "1", "attention_dp_size": "8", "moe_tp_size": "1", "moe_ep_size": "8"}
    assert rows_of(apart(own)) == [[1, 8, 2048, 512, 8 * 16, 8, 0.1235, 0.0205]]
    noted = own | {"backend": "vllm", "tp_size": "4", "attention_dp_size": "4", "moe_ep_size": "16"}
    assert rows_of(apart(noted)) == [[1, 4, 2048, 512, 4 * 16, 4, 0.1235, 0.0205]]
    assert not apart(noted | {"moe_ep_size": "4"})
    assert not apart(own | {"attention_dp_size": "1"})
    assert not apart(ROW | {"attention_dp_size": "", "moe_tp_size": "", "moe_ep_size": ""})


def test_where_some_runs_had_drafts_only_the_slower_of_two_is_plain() -> None:
    row = ROW | {"model_path": "deepseek-ai/DeepSeek-R1", "backend": "trtllm", "backend_version": "1.1.0rc2.post2"}
    row |= {"system": "h200_sxm", "gemm_quant_mode": "fp8", "attention_dp_size": "1", "tp_size": "8"}
    row |= {"moe_tp_size": "1", "moe_ep_size": "8"}
    twice = [row | {"silicon_tpot_ms": took} for took in ("32.2", "19.4")]
    ((*_, tpot_s),) = rows_of(*twice)
    assert tpot_s == pytest.approx(0.0322)
    assert not rows_of(row), "a single one may have had drafts"
    assert rows_of(row | {"backend_version": "1.2.0rc6.post2"}), "whose recipe had none"
    assert not rows_of(row | {"system": "gb200"}), "over two trays"


def test_settings_that_a_publisher_printed_are_the_rows() -> None:
    (group,) = grouped([ROW | {"model_path": "meta-llama/Llama-3.1-70B", "gemm_quant_mode": "fp8"}])
    assert (group["cache"], group["shortest"]) == ("fp8", 0.8)
    assert group["rounds"] == 10
    assert grouped([ROW])[0]["rounds"] is None


def test_the_file_says_where_it_is_from() -> None:
    content = json.loads(text(grouped([ROW]), commit="0123abc"))
    assert "0123abc" in content["source"]
    assert content["settings"] == SETTINGS_SAID
    assert dict(zip(content["columns"], content["groups"][0]["rows"][0], strict=True))["tpot_s"] == 0.0205

"""Published pools: which rows of a collection are runs of two pools, and how they are kept."""

import json
from typing import Any

from threeloops.facts.served_pools import ServedPool
from threeloops.measure.published_pools import file_text, grouped

ROW = {
    "mode": "disagg",
    "model_path": "deepseek-ai/DeepSeek-V3",
    "system": "gb300",
    "backend": "sglang",
    "backend_version": "0.5.8",
    "gemm_quant_mode": "nvfp4",
    "isl": "8192",
    "osl": "1024",
    "silicon_data_source": "dump; silicon_concurrency=128; measured=2026",
    **{f"prefill_{name}": value for name, value in (("num_workers", "2"), ("tp_size", "4"), ("moe_ep_size", "1"))},
    **{f"decode_{name}": value for name, value in (("num_workers", "1"), ("tp_size", "1"), ("moe_ep_size", "8"))},
    "prefill_attention_dp_size": "1",
    "decode_attention_dp_size": "8",
    "silicon_ttft_ms": "1234.56789",
    "silicon_tpot_ms": "17.5",
}


def rows_of(*rows: dict[str, str]) -> list[Any]:
    return [row for group in grouped(rows) for row in group["rows"]]  # type: ignore[attr-defined]


def test_a_row_is_kept_in_seconds_and_once() -> None:
    assert rows_of(ROW, ROW) == [((2, 4, 1, 1), (1, 1, 8, 8), 8192, 1024, 128, 1.235, 0.0175)]
    (group,) = grouped([ROW])
    assert (group["model"], group["part"], group["format"]) == ("deepseek-v3", "gb300", "nvfp4")


def test_what_leaves_something_unsaid_is_left_out() -> None:
    assert not rows_of(ROW | {"mode": "agg"})
    assert not rows_of(ROW | {"decode_num_workers": ""})
    assert not rows_of(ROW | {"silicon_data_source": "somewhere"})
    assert not rows_of(ROW | {"model_path": "zhipuai/GLM-5"})
    assert not rows_of(ROW | {"backend": "vllm"}), "whose layouts are written in two ways"
    drafted = {"system": "gb200", "backend": "trtllm", "isl": "1024"}
    asked = {"silicon_data_source": "dump; silicon_concurrency=8; measured=2025"}
    assert not rows_of(ROW | drafted | asked), "the only recipe of this load drafts"
    assert rows_of(ROW | drafted)


def test_the_file_holds_both_pools_by_name() -> None:
    content = json.loads(file_text(grouped([ROW]), commit="0123abc"))
    assert "0123abc" in content["source"]
    prefill, *_ = content["groups"][0]["rows"][0]
    assert ServedPool(**dict(zip(content["pool"], prefill, strict=True))).gpus == 8

"""Rates under load, against the files of the recordings, read as they lie there."""

import json
from pathlib import Path

import pytest

from threeloops.facts import recorded
from threeloops.operations.recorded_rates import RECORDED_PARTS, sustained_share

FILES = sorted((Path(recorded.__file__).parent / "recordings").glob("*.json"))
SIDE = 8192


def products_per_s(part: str) -> dict[str, float]:
    """Kind of recording -> how many products of 8,192 on a side the card finished in a second."""
    every = [json.loads(path.read_text(encoding="utf-8")) for path in FILES]
    return {
        case["kind"]: 1 / case["median"]
        for one in every
        if one["stamp"]["part"] == part
        for case in one["cases"]
        if case["kind"] in ("gemm", "gemm_long") and case["dtype"] == "bf16" and "median" in case
        if all(case["sizes"][name] == SIDE for name in "mnk")
    }


@pytest.mark.parametrize("part", RECORDED_PARTS)
def test_a_card_under_load_finishes_fewer_products_in_a_second(part: str) -> None:
    found = products_per_s(part)
    assert sustained_share(part, "bf16") == pytest.approx(found["gemm_long"] / found["gemm"])
    assert sustained_share(part, "fp8") == 1.0

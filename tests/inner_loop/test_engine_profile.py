"""Profiles of TensorRT as three people published them: read, added up, and refused where a line is missing."""

import json
import re

import pytest

from threeloops.inner_loop.profiled import engine_profile
from threeloops.inner_loop.profiled.engine_profile import read_profile
from threeloops.units import ms, us

# GoogLeNet on a DLA: numbers as ismetdagli/HaX-CoNN's README prints them (commit 87f5f25), long names cut
XAVIER = """[I] === Profile (1514 iterations ) ===
[I]                           Layer   Time (ms)   Avg. Time (ms)   Time %
[I]                     data to nvm       68.17             0.05      1.2
[I]  {conv1/7x7_s2,loss3/classifier}      298.26             0.20      5.4
[I]                data copy finish       49.31             0.03      0.9
[I]        prob input reformatter 0     5046.37             3.33     92.1
[I]         loss3/classifier finish        4.58             0.00      0.1
[I]                            prob       11.27             0.01      0.2
[I]                           Total     5477.95             3.62    100.0
[I]
"""
ORIN = """[11/29/2023-16:19:02] [I] === Profile (4932 iterations ) ===
[11/29/2023-16:19:02] [I]       Layer   Time (ms)   Avg. Time (ms)   Median Time (ms)   Time %
[11/29/2023-16:19:02] [I]  Reformatting CopyNode for Input Tensor 0 to {ForeignNode[...]} 202.26 0.0410 0.0379 3.7
[11/29/2023-16:19:02] [I]      {ForeignNode[conv1/7x7_s2...loss3/classifier]}  5089.98  1.0320  1.0321  93.1
[11/29/2023-16:19:02] [I]      Reformatting CopyNode for Input Tensor 0 to prob   85.65  0.0174  0.0162  1.6
[11/29/2023-16:19:02] [I]      prob       91.72           0.0186             0.0170      1.7
[11/29/2023-16:19:02] [I]      Total     5469.61           1.1090             1.1033    100.0
"""
# ResNet-18 on an A100 with Q/DQ pairs, one run each, in ticks of 1.024 µs: NVIDIA/TensorRT, trt-engine-explorer,
# examples/pytorch/resnet/A100/qat-residual and qat-residual-qgap (a pair before the global pooling as well)
TICK = 1.024 * us
GAP = (93, 70, 31, 34, 30, 34, 21, 12, 28, 26, 27, 19, 11, 26, 25, 26, 21, 10, 29, 29, 28, 15, 12, 0)
NO_GAP = (93, 71, 31, 34, 30, 34, 21, 12, 28, 27, 27, 19, 12, 26, 24, 27, 20, 11, 29, 13, 28, 68, 9, 7, 13, 0)


def as_exported(ticks: tuple[int, ...], names: dict[int, str]) -> str:
    """The layout of --exportProfile around these numbers."""
    each = [round(1.024e-3 * one, 6) for one in ticks]
    rows = [
        {"name": names.get(row, f"Conv_{row}"), "timeMs": one, "averageMs": one, "medianMs": one, "percentage": 0}
        for row, one in enumerate(each)
    ]
    return "[\n  " + "\n, ".join(json.dumps(row) for row in [{"count": 1}, *rows]) + "\n]\n"


def test_a_log_of_orin_adds_up_to_its_total() -> None:
    profile = read_profile(ORIN)
    assert (profile.runs, len(profile.layers)) == (4932, 4)
    assert profile.seconds == pytest.approx(1.1090 * ms, rel=1e-3)  # as the log's own last line
    assert [layer.kind for layer in profile.layers] == ["reformat", "whole block", "reformat", "compute"]
    assert profile.layers[1].median_s == pytest.approx(1.0321 * ms)
    shares = {kind: seconds / profile.seconds for kind, seconds in profile.by_kind().items()}
    assert shares["whole block"] == pytest.approx(0.931, abs=5e-4)
    assert shares["reformat"] == pytest.approx(0.037 + 0.016, abs=1e-3)


def test_the_older_columns_are_read_and_short_averages_come_from_the_sum() -> None:
    profile = read_profile(XAVIER)
    assert profile.seconds == pytest.approx(3.62 * ms, rel=2e-3)
    finish = next(layer for layer in profile.layers if layer.name == "loss3/classifier finish")
    assert (finish.kind, finish.median_s) == ("wait", None)
    assert finish.seconds == pytest.approx(4.58 / 1514 * ms)  # printed as 0.00
    assert profile.longest(1)[0].name == "prob input reformatter 0"  # where the GPU waits for the DLA


def test_names_may_come_last_and_the_last_profile_counts() -> None:
    """NVIDIA/TensorRT, issue 3842: the first rows of a log of 2024."""
    head = "[05/08/2024-14:05:14] [I] "
    rows = (
        "16.15 0.0077 0.0075 0.5 Reformatting CopyNode for Input Tensor 0 to a + b",
        "47.82 0.0228 0.0225 1.6 a + b",
    )
    columns = "Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer"
    log = "\n".join(head + line for line in ("=== Profile (2094 iterations ) ===", columns, *rows))
    profile = read_profile(ORIN + log)
    assert [layer.name for layer in profile.layers] == ["Reformatting CopyNode for Input Tensor 0 to a + b", "a + b"]
    assert profile.layers[1].seconds == pytest.approx(0.0228 * ms, rel=3e-3)


def test_two_exported_profiles_show_what_a_missing_pair_costs() -> None:
    """The pair in front of the pooling lets the last residual addition stay in INT8: 673 instead of 731 µs."""
    gap = read_profile(as_exported(GAP, {0: "QuantizeLinear_2", 23: "copied_squeeze_after_(Unnamed Layer* 361)"}))
    none = read_profile(
        as_exported(NO_GAP, {0: "QuantizeLinear_2", 19: "DequantizeLinear_291", 23: "QuantizeLinear_298"})
    )
    assert gap.seconds == pytest.approx(672.77 * us, rel=1e-4)
    assert none.seconds == pytest.approx(731.14 * us, rel=1e-4)
    assert none.by_kind()["quantise"] - gap.by_kind()["quantise"] == pytest.approx(20 * TICK)
    assert none.longest(3)[-1].seconds == pytest.approx(68 * TICK)
    assert gap.layers[20].seconds == pytest.approx(28 * TICK)


def test_what_is_no_profile_says_so() -> None:
    cut = re.sub(r".*ForeignNode\[conv1/7x7.*\n", "", ORIN)
    for text, words in (
        ("", "no profile in this text"),
        ("[\n  1,\n", "no profile of trtexec"),
        ('[\n  { "count" : 0 }\n]', "0 runs and 0 layers"),
        ('[\n  { "name" : "a" }\n]', "begins with a count"),
        (cut, "a line is missing"),
    ):
        with pytest.raises(ValueError, match=words):
            read_profile(text)
    assert set(engine_profile.KINDS) == {"reformat", "wait", "quantise", "whole block"}

"""A copy's memory, by hand and against `threeloops kv`'s own count of blocks."""

from dataclasses import replace

import pytest

from threeloops.facts import hardware
from threeloops.models import catalogue
from threeloops.product_loop.expected.rank_memory import rank_weight_bytes
from threeloops.product_loop.sizing.served_layout import ServedLayout

LLAMA = ServedLayout(
    model=catalogue.model("llama-3-8b"),
    part=hardware.part("h100-sxm5"),
    weights="bf16",
    cache="bf16",
    tp=1,
    memory_utilisation=0.9,
    other_bytes=2e9,
)


def test_seats_by_hand() -> None:
    """81,559 MiB x 0.9, less 8,030,261,248 x 2 and 2 GB; 63 blocks of 16 tokens, each 131,072 bytes."""
    free = 81_559 * 2**20 * 0.9 - 2 * 8_030_261_248 - 2e9
    assert LLAMA.free_bytes == pytest.approx(free)
    assert LLAMA.seats(1000) == int(free // (63 * 16 * 131_072))
    assert LLAMA.longest_context() == int(free // (16 * 131_072)) * 16


def test_two_gpus_hold_more_than_twice_the_requests() -> None:
    """Each has half of the weights and of a request's cache."""
    assert replace(LLAMA, tp=2).seats(1000) > 2 * LLAMA.seats(1000) * 1.1
    assert replace(LLAMA, cache="fp8").seats(1000) == pytest.approx(2 * LLAMA.seats(1000), abs=1)


def test_groups_hold_experts_together_and_all_else_each() -> None:
    """DeepSeek-V3 in fp8 on eight GPUs, by what rank_memory counts from its matrices; latents are kept once."""
    deepseek = catalogue.model("deepseek-v3")
    layout = replace(LLAMA, model=deepseek, part=hardware.part("h200-sxm"), weights="fp8", tp=1, dp=8)
    assert layout.gpus == 8
    assert layout.weights_bytes == pytest.approx(rank_weight_bytes(deepseek, 1, "fp8", dp=8), rel=0.01)
    whole = replace(layout, tp=8, dp=1)
    assert layout.seats(4096) > 5 * whole.seats(4096)
    assert layout.longest_context() < whole.longest_context()


def test_tokens_that_vllm_printed_for_kimi_k2(monkeypatch: pytest.MonkeyPatch) -> None:
    """46.80 GiB for caches on each of eight H200s: "GPU KV cache size: 715,072 tokens", with -dcp 8 5,721,088.

    Source: vllm-project/recipes, moonshotai/Kimi-K2-Thinking.md, "DCP Gain Analysis", November 2025
    """
    layout = replace(LLAMA, model=catalogue.model("kimi-k2"), part=hardware.part("h200-sxm"), tp=8, weights="nvfp4")
    monkeypatch.setattr(ServedLayout, "free_bytes", property(lambda _: 46.80 * 2**30))
    assert layout.longest_context() == pytest.approx(715_072, rel=2e-4)
    shared = replace(layout, dcp=8)
    assert shared.longest_context() == pytest.approx(5_721_088, rel=2e-4)
    assert shared.seats(8192) == pytest.approx(8 * layout.seats(8192), abs=8)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"tp": 3}, "tp=3 must divide heads=32"),
        ({"dcp": 2}, "dcp=2: 1 GPUs keep each cache once"),
        ({"dp": 2}, "dp=2 groups share experts, and llama-3-8b has none"),
        ({"weights": "fp7"}, "weights='fp7'"),
        ({"cache": "q4_k_m"}, "cache='q4_k_m'"),
    ],
)
def test_layouts_that_cannot_be(given: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        replace(LLAMA, **given)


def test_memory_sets_no_limit_where_every_layer_has_a_window() -> None:
    assert replace(LLAMA, model=catalogue.model("mistral-7b")).longest_context() is None
    assert (replace(LLAMA, model=catalogue.model("gemma-2-9b")).longest_context() or 10**9) < 10**7

"""Served adapters: tensors as an engine would make them, bytes and FLOPs added up again, and what a paper measured."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from threeloops.facts import hardware
from threeloops.models import catalogue
from threeloops.product_loop.expected.expected_token import PROMPTS
from threeloops.product_loop.sizing.adapter_times import (
    ServedAdapters,
    adapter_bytes,
    bound_adapters_s,
    expected_adapters_s,
    reserved_rank,
)
from threeloops.product_loop.sizing.bound_steps import bound_step_s
from threeloops.product_loop.sizing.request_lengths import RequestLengths
from threeloops.product_loop.sizing.request_times import bound_times, expected_of, expected_times
from threeloops.product_loop.sizing.served_layout import ServedLayout

LLAMA, H100 = catalogue.model("llama-3-8b"), hardware.part("h100-sxm5")
LAYOUT = ServedLayout(
    model=LLAMA, part=H100, weights="bf16", cache="bf16", tp=1, memory_utilisation=0.92, other_bytes=3e9
)
EIGHT = ServedAdapters(number=8, rank=16)
CHAT = RequestLengths(prompt=1500, kept=0, answer=300)


def adapted(inputs: int, outputs: int, rank: int) -> torch.nn.Sequential:
    """x -> B A x."""
    down, up = (torch.nn.Linear(*shape, bias=False) for shape in ((inputs, rank), (rank, outputs)))
    return torch.nn.Sequential(down, up).to(torch.bfloat16)


def of_a_layer(tp: int, rank: int) -> torch.nn.ModuleList:
    """Llama 3 8B: 32 query heads and 8 KV heads of 128, 4,096 wide, 14,336 in the MLP; one GPU's half or eighth."""
    heads, kv_heads, wide = 32 // tp, max(1, 8 // tp), 14_336 // tp
    rows = [(4096, heads * 128), (4096, kv_heads * 128), (4096, kv_heads * 128), (4096, wide), (4096, wide)]
    return torch.nn.ModuleList(adapted(*shape, rank) for shape in [*rows, (heads * 128, 4096), (wide, 4096)])


@pytest.mark.parametrize(("tp", "rank"), [(1, 16), (2, 16), (8, 64), (16, 8)])
def test_bytes_are_those_of_tensors_that_an_engine_would_make(tp: int, rank: int) -> None:
    with torch.device("meta"):
        layer = of_a_layer(tp, rank)
    held = 32 * sum(one.numel() * one.element_size() for one in layer.parameters())
    assert adapter_bytes(LLAMA, rank=rank, tp=tp) == held
    layout = replace(LAYOUT, tp=tp, adapters=ServedAdapters(number=5, rank=rank))
    assert replace(layout, adapters=None).free_bytes - layout.free_bytes == pytest.approx(5 * held)
    assert layout.seats(2000) <= replace(layout, adapters=None).seats(2000)


def test_few_tokens_read_adapters_and_many_compute() -> None:
    """16 for each input and output of seven matrices in 32 layers: 41,943,040 elements, and a step reads each once."""
    shapes = [(4096, 4096), (4096, 1024), (4096, 1024), (4096, 4096), (4096, 14_336), (4096, 14_336), (14_336, 4096)]
    elements = 32 * 16 * sum(inputs + outputs for inputs, outputs in shapes)
    one = bound_adapters_s(LLAMA, H100, EIGHT, tp=1, tokens=1, requests=1)
    assert one == pytest.approx(2 * elements / 3.35e12)
    many = bound_adapters_s(LLAMA, H100, EIGHT, tp=1, tokens=64, requests=64)
    assert many == pytest.approx(8 * one, rel=0.001), "64 requests hardly miss one of eight"
    prompt = bound_adapters_s(LLAMA, H100, EIGHT, tp=1, tokens=4096, requests=1)
    assert prompt == pytest.approx(2 * 4096 * elements / 989.4e12)


def test_what_punica_added_to_a_token() -> None:
    """2 ms, of Llama 2 on an A100 with up to 32 requests and rank 16, whoever wants what: between all of them wanting
    one adapter and each another.

    Source: Chen et al., Punica, 2023, arXiv:2310.18547, abstract and section 7
    """
    llama, a100 = catalogue.model("llama-2-7b"), hardware.part("a100-sxm4-80gb")
    given: dict[str, Any] = {"tp": 1, "tokens": 32, "requests": 32}
    same_s, other_s = (
        expected_adapters_s(llama, a100, ServedAdapters(number=number, rank=16), **given) for number in (1, 10_000)
    )
    assert same_s < 2e-3 < other_s < 2 * same_s
    assert bound_adapters_s(llama, a100, ServedAdapters(number=10_000, rank=16), **given) < same_s


def test_a_step_and_a_prompt_take_what_their_adapters_take_longer() -> None:
    layout = replace(LAYOUT, adapters=EIGHT)
    of_model: tuple[Any, ...] = (LLAMA, H100, EIGHT)
    for times, of_adapters, extra in (
        (bound_times, bound_adapters_s, {}),
        (expected_times, expected_adapters_s, {"engine": "vLLM", "ep": 1}),
    ):
        without, found = (times(one, CHAT, most=64, **extra) for one in (LAYOUT, layout))  # type: ignore[operator]
        for requests in (1, 64):
            more_s = of_adapters(*of_model, tp=1, tokens=requests, requests=requests)
            assert found.step_s(requests) - without.step_s(requests) == pytest.approx(more_s)
        more_s = of_adapters(*of_model, tp=1, tokens=1500, requests=1)
        assert found.prompt_s - without.prompt_s == pytest.approx(more_s)
    checked = bound_step_s(layout, requests=64, context=1650, checked=4)
    more_s = bound_adapters_s(*of_model, tp=1, tokens=256, requests=64)
    assert checked - bound_step_s(LAYOUT, requests=64, context=1650, checked=4) == pytest.approx(more_s)


def test_prompts_of_others_bring_their_adapters() -> None:
    plain, found = (expected_of(one, CHAT, 64, "vLLM", 1) for one in (LAYOUT, replace(LAYOUT, adapters=EIGHT)))
    prompt_s = expected_adapters_s(LLAMA, H100, EIGHT, tp=1, tokens=1500, requests=1)
    assert found.parts[PROMPTS] - plain.parts[PROMPTS] == pytest.approx(63 / 300 * prompt_s)


def test_ranks_that_vllm_reserves() -> None:
    assert [reserved_rank(rank, engine="vLLM") for rank in (1, 2, 8, 9, 100, 257)] == [1, 8, 8, 16, 128, 320]
    assert reserved_rank(100, engine="TensorRT-LLM") == 100
    with pytest.raises(ValueError, match="adapter_rank=513: vLLM reserves at most 512"):
        reserved_rank(513, engine="vLLM")


@pytest.mark.parametrize("model", ["deepseek-v3", "qwen3-235b-a22b", "qwen3-next-80b-a3b"])
def test_layers_whose_adapters_nobody_counts_are_refused(model: str) -> None:
    with pytest.raises(ValueError, match="layers with latents, states or experts; leave --adapters out"):
        adapter_bytes(catalogue.model(model), rank=16, tp=1)


@pytest.mark.parametrize(("given", "says"), [({"number": 0}, "adapters=0"), ({"rank": 0}, "adapter_rank=0")])
def test_adapters_that_cannot_be(given: dict[str, int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ServedAdapters(**{"number": 1, "rank": 8} | given)

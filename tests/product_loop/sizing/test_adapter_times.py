"""Served adapters: tensors as an engine would make them, bytes and FLOPs added up again, and what a paper measured."""

import random
from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest
import torch

from threeloops.facts import hardware
from threeloops.models import catalogue
from threeloops.product_loop.expected.expected_token import PROMPTS
from threeloops.product_loop.sizing.adapted_products import AdaptedProduct
from threeloops.product_loop.sizing.adapter_times import (
    ServedAdapters,
    adapter_bytes,
    bound_adapters_s,
    expected_adapters_s,
    reserved_rank,
)
from threeloops.product_loop.sizing.bound_steps import bound_step_s, layout_adapters_s
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


EXPERTS = {  # hidden, heads and width, KV heads, experts and width, layers of them
    "qwen3-235b-a22b": (4096, 64 * 128, 4, 128, 1536, 94),
    "gpt-oss-120b": (2880, 64 * 64, 8, 128, 2880, 36),
}


@pytest.mark.parametrize("model", EXPERTS)
@pytest.mark.parametrize(
    ("tp", "ep", "dp"), [(1, 1, 1), (4, 1, 1), (4, 4, 1), (4, 2, 1), (2, 8, 4), (1, 8, 8), (2, 1, 4)]
)
def test_every_expert_has_tensors_of_its_own_one_half_whole_on_each_gpu(model: str, tp: int, ep: int, dp: int) -> None:
    """Stacked as vLLM's fused_moe.py makes them: of gate, up and down, for the experts that are here. Of several groups
    attention's are cut inside each, as SGLang has it, and the experts' over all.
    """
    hidden, wide, kv_heads, experts, inner, layers = EXPERTS[model]
    narrow = max(1, kv_heads // tp) * wide // 64
    with torch.device("meta"):
        attention = [adapted(hidden, wide // tp, 16), *(adapted(hidden, narrow, 16) for _ in "kv")]
        attention.append(adapted(wide // tp, hidden, 16))
        here, cut = experts // ep, inner // (tp * dp // ep)
        stacks = [torch.empty(here, 16, hidden), torch.empty(here, cut, 16)] * 2
        stacks += [torch.empty(here, 16, cut), torch.empty(here, hidden, 16)]
    held = sum(one.numel() for each in attention for one in each.parameters()) + sum(one.numel() for one in stacks)
    assert adapter_bytes(catalogue.model(model), rank=16, tp=tp, ep=ep, dp=dp) == 2 * layers * held


def test_latents_have_four_matrices_two_of_them_whole_on_every_gpu() -> None:
    """DeepSeek-V3's 61 layers on eight GPUs: three with a dense MLP, 58 with a shared and 256 routed experts."""
    with torch.device("meta"):
        latents = [adapted(7168, 1536, 16), adapted(7168, 512 + 64, 16), adapted(1536, 16 * 192, 16)]
        latents += [adapted(512, 16 * 256, 16), adapted(16 * 128, 7168, 16)]
        dense, one = ([adapted(7168, width, 16)] * 2 + [adapted(width, 7168, 16)] for width in (18_432 // 8, 2048 // 8))
    sizes = [sum(each.numel() for one in some for each in one.parameters()) for some in (latents, dense, one)]
    held = 61 * sizes[0] + 3 * sizes[1] + 58 * 257 * sizes[2]
    assert adapter_bytes(catalogue.model("deepseek-v3"), rank=16, tp=8) == 2 * held


def test_read_adapters_are_counted_by_drawing_them() -> None:
    """Requests choose adapters, their tokens experts; pairs that somebody chose are read."""
    rng = random.Random(5)
    for number, experts, top_k, requests, each in (
        (8, 16, 2, 12, 1),
        (3, 32, 4, 5, 3),
        (100, 1, 1, 64, 2),
        (5, 8, 3, 1, 9),
    ):
        product = AdaptedProduct(matrices=1, inputs=1, outputs=1, experts=experts, chosen_share=top_k / experts)
        drawn = []
        for _ in range(2000):
            pairs = set()
            for _ in range(requests):
                adapter = rng.randrange(number)
                for _ in range(each):
                    pairs |= {(adapter, expert) for expert in rng.sample(range(experts), top_k)}
            drawn.append(len(pairs))
        counted = ServedAdapters(number=number, rank=8).read(product, tokens=requests * each, requests=requests)
        assert counted == pytest.approx(fmean(drawn), rel=0.02)


def test_adapters_of_experts_take_time_by_those_that_tokens_chose() -> None:
    """One token of Qwen3 235B reads the adapters of 8 of 128 experts, of each three matrices."""
    qwen = catalogue.model("qwen3-235b-a22b")
    one = sum(bound_adapters_s(qwen, H100, ServedAdapters(number=1, rank=16), tp=1, tokens=1, requests=1))
    heads = 3 * 4096 + 8192 + 2 * 512 + 8192 + 4096
    assert one == pytest.approx(2 * 94 * 16 * (heads + 8 * 3 * (4096 + 1536)) / 3.35e12)
    spread = ServedAdapters(number=1, rank=16)
    whole, cut = (sum(bound_adapters_s(qwen, H100, spread, tp=4, ep=ep, tokens=4096, requests=1)) for ep in (4, 1))
    assert whole < cut, "where all GPUs have all experts, each takes every token down to the rank"
    with pytest.raises(ValueError, match="adapters beside experts have kernels of their own, which are not timed"):
        expected_adapters_s(qwen, H100, spread, tp=4, tokens=1, requests=1)


def test_groups_share_adapters_of_experts() -> None:
    """Qwen3 235B on eight GPUs, each with requests of its own and 16 of the 128 experts; 8 requests, one a GPU."""
    qwen, number = catalogue.model("qwen3-235b-a22b"), 4
    lora = ServedAdapters(number=number, rank=16)
    given: dict[str, Any] = {"tp": 1, "dp": 8, "ep": 8, "tokens": 1, "requests": 1, "of_all": (8, 8)}
    own_s, experts_s = bound_adapters_s(qwen, H100, lora, **given)
    heads = 3 * 4096 + 8192 + 2 * 512 + 8192 + 4096
    assert own_s == pytest.approx(2 * 94 * 16 * heads / 3.35e12), "one request wants one adapter"
    rng, pairs = random.Random(3), 0  # of the 16 experts here, with the adapter of each token that is sent there
    for _ in range(4000):
        pairs += len(
            {
                (one, expert)
                for one in (rng.randrange(number) for _ in range(8))
                for expert in rng.sample(range(128), 8)
                if expert < 16
            }
        )
    assert experts_s == pytest.approx(pairs / 4000 * 2 * 94 * 16 * 3 * (4096 + 1536) / 3.35e12, rel=0.03)
    layout = ServedLayout(
        model=qwen, part=H100, weights="fp8", cache="bf16", tp=1, dp=8, ep=8, memory_utilisation=0.92, other_bytes=3e9
    )
    with_lora = replace(layout, adapters=lora)
    more_s = bound_step_s(with_lora, requests=8, context=1650) - bound_step_s(layout, requests=8, context=1650)
    assert more_s == pytest.approx(own_s + experts_s)
    assert layout_adapters_s(with_lora, own=1, requests=8, each=1) == pytest.approx((own_s, experts_s))


def test_few_tokens_read_adapters_and_many_compute() -> None:
    """16 for each input and output of seven matrices in 32 layers: 41,943,040 elements, and a step reads each once."""
    shapes = [(4096, 4096), (4096, 1024), (4096, 1024), (4096, 4096), (4096, 14_336), (4096, 14_336), (14_336, 4096)]
    elements = 32 * 16 * sum(inputs + outputs for inputs, outputs in shapes)
    one = sum(bound_adapters_s(LLAMA, H100, EIGHT, tp=1, tokens=1, requests=1))
    assert one == pytest.approx(2 * elements / 3.35e12)
    many = sum(bound_adapters_s(LLAMA, H100, EIGHT, tp=1, tokens=64, requests=64))
    assert many == pytest.approx(8 * one, rel=0.001), "64 requests hardly miss one of eight"
    prompt = sum(bound_adapters_s(LLAMA, H100, EIGHT, tp=1, tokens=4096, requests=1))
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
    assert sum(bound_adapters_s(llama, a100, ServedAdapters(number=10_000, rank=16), **given)) < same_s


def test_a_step_and_a_prompt_take_what_their_adapters_take_longer() -> None:
    layout = replace(LAYOUT, adapters=EIGHT)
    of_model: tuple[Any, ...] = (LLAMA, H100, EIGHT)
    both: list[tuple[Any, Any, dict[str, Any]]] = [
        (bound_times, lambda *of, **load: sum(bound_adapters_s(*of, **load)), {}),
        (expected_times, expected_adapters_s, {"engine": "vLLM", "ep": 1}),
    ]
    for times, of_adapters, extra in both:
        without, found = (times(one, CHAT, most=64, **extra) for one in (LAYOUT, layout))
        for requests in (1, 64):
            more_s = of_adapters(*of_model, tp=1, tokens=requests, requests=requests)
            assert found.step_s(requests) - without.step_s(requests) == pytest.approx(more_s)
        more_s = of_adapters(*of_model, tp=1, tokens=1500, requests=1)
        assert found.prompt_s - without.prompt_s == pytest.approx(more_s)
    checked = bound_step_s(layout, requests=64, context=1650, checked=4)
    more_s = sum(bound_adapters_s(*of_model, tp=1, tokens=256, requests=64))
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


@pytest.mark.parametrize("model", ["deepseek-v3.2", "qwen3-next-80b-a3b", "nemotron-3-nano-30b-a3b"])
def test_layers_whose_adapters_nobody_counts_are_refused(model: str) -> None:
    with pytest.raises(ValueError, match="leave"):
        adapter_bytes(catalogue.model(model), rank=16, tp=1)


@pytest.mark.parametrize(("given", "says"), [({"number": 0}, "adapters=0"), ({"rank": 0}, "adapter_rank=0")])
def test_adapters_that_cannot_be(given: dict[str, int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ServedAdapters(**{"number": 1, "rank": 8} | given)

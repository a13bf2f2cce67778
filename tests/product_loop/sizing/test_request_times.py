"""A replica's steps: bounds counted again from bytes and FLOPs of the whole model, and held against kernels."""

from dataclasses import replace
from statistics import median
from typing import Any

import pytest

from threeloops.facts import hardware
from threeloops.facts.served_points import served_points
from threeloops.models import catalogue
from threeloops.models.parameters import model_parameters
from threeloops.product_loop.sizing.bound_steps import bound_step_s
from threeloops.product_loop.sizing.request_lengths import RequestLengths
from threeloops.product_loop.sizing.request_times import (
    RequestTimes,
    bound_times,
    expected_times,
)
from threeloops.product_loop.sizing.served_layout import ServedLayout

LLAMA = ServedLayout(
    model=catalogue.model("llama-3-8b"),
    part=hardware.part("h100-sxm5"),
    weights="bf16",
    cache="bf16",
    tp=1,
    memory_utilisation=0.92,
    other_bytes=3e9,
)
CHAT = RequestLengths(prompt=1500, kept=0, answer=300)


def test_a_small_batch_reads_weights_and_caches() -> None:
    """Two bytes of every parameter but the table, and 2 x 32 x 8 x 128 x 2 of every token, at 3.35 TB/s."""
    parameters = model_parameters(LLAMA.model).total - 128_256 * 4096
    for requests in (1, 16):
        read_s = (2 * parameters + requests * 1650 * 2 * 32 * 8 * 128 * 2) / 3.35e12
        assert bound_times(LLAMA, CHAT, most=16).step_s(requests) == pytest.approx(read_s, rel=0.01)
        assert bound_step_s(LLAMA, requests=requests, context=1650) == pytest.approx(read_s, rel=0.01)


def test_a_large_batch_computes_and_then_reads_caches() -> None:
    """Products and attention follow one another: their times add up."""
    parameters, requests = model_parameters(LLAMA.model).total - 128_256 * 4096, 1024
    computed_s = 2 * parameters * requests / 989.4e12
    cached_s = requests * 1650 * 2 * 32 * 8 * 128 * 2 / 3.35e12
    found = bound_times(LLAMA, CHAT, most=requests).step_s(requests)
    assert found == pytest.approx(computed_s + cached_s, rel=0.03)


def test_a_long_prompt_computes_the_square_too() -> None:
    """2 FLOPs for each parameter and token, and 2 x 32 layers x 4096 x tokens squared for half of the square."""
    tokens = 16_384
    parameters = model_parameters(LLAMA.model).total - 2 * 128_256 * 4096
    flops = 2 * parameters * tokens + 2 * 32 * 4096 * tokens**2
    found = bound_times(LLAMA, RequestLengths(prompt=tokens, kept=0, answer=10), most=1).prompt_s
    assert found == pytest.approx(flops / 989.4e12, rel=0.01)


@pytest.mark.parametrize(
    "times", [bound_times, lambda *given, **most: expected_times(*given, **most, engine="vLLM", ep=1)]
)
def test_two_halves_of_a_prompt_take_as_long_as_the_whole(times: Any) -> None:
    whole, half = RequestLengths(prompt=16_384, kept=0, answer=10), RequestLengths(prompt=8192, kept=0, answer=10)
    other = replace(whole, kept=8192)
    took = [times(LLAMA, lengths, most=1).prompt_s for lengths in (whole, half, other)]
    assert took[1] + took[2] == pytest.approx(took[0], rel=0.05)
    assert took[2] > took[1]


@pytest.mark.parametrize(
    ("model", "part", "weights", "cache", "tp"),
    [
        ("llama-3-8b", "h100-sxm5", "bf16", "bf16", 1),
        ("llama-3-70b", "h200-sxm", "fp8", "fp8", 4),
        ("qwen3-235b-a22b", "h200-sxm", "fp8", "bf16", 8),
        ("gpt-oss-120b", "b200-hgx", "mxfp4", "bf16", 1),
    ],
)
def test_what_is_expected_is_never_below_the_bound(model: str, part: str, weights: str, cache: str, tp: int) -> None:
    layout = replace(LLAMA, model=catalogue.model(model), part=hardware.part(part), weights=weights, cache=cache, tp=tp)
    bound, expected = bound_times(layout, CHAT, most=256), expected_times(layout, CHAT, most=256, engine="vLLM", ep=1)
    for requests in (1, 7, 64, 256):
        assert bound.step_s(requests) < expected.step_s(requests)
    assert bound.prompt_s < expected.prompt_s


def test_a_bound_of_groups_reads_experts_together_and_caches_apart() -> None:
    """DeepSeek-V3 in 16 bits on eight H200s that have 64 requests each: every expert once, 1/8 on each GPU, all else
    whole on each, and 64 caches of latents.
    """
    deepseek = catalogue.model("deepseek-v3")
    layout = replace(LLAMA, model=deepseek, part=hardware.part("h200-sxm"), tp=1, dp=8)
    counted = model_parameters(deepseek)
    routed, table = counted.routed_experts, deepseek.vocab * deepseek.hidden
    read_s = 2 * (routed / 8 + counted.total - routed - table) / 4.8e12
    cached_s = 64 * 4000 * 61 * 576 * 2 / 4.8e12
    found = bound_step_s(layout, requests=512, context=4000)
    assert read_s + cached_s < found < 1.25 * (read_s + cached_s)  # latent attention computes more than it reads


def test_each_gpu_reads_what_it_keeps_of_a_cache() -> None:
    """Qwen3 235B on eight: 4 KV heads, so that each lies on two GPUs, or half of its tokens with dcp; and DeepSeek's
    latents, whole on each of eight. What a longer context adds is its reading.
    """
    for name, kept in (("qwen3-235b-a22b", 2 * 94 * 128 * 2), ("deepseek-v3", 61 * 576 * 2)):
        model, copies = catalogue.model(name), 2 if name.startswith("qwen") else 8
        copied = replace(LLAMA, model=model, part=hardware.part("h200-sxm"), tp=8)
        for layout, share in ((copied, 1), (replace(copied, dcp=copies), copies)):
            short, long = (bound_step_s(layout, requests=64, context=tokens) for tokens in (4000, 9000))
            read_s = 64 * 5000 * kept / share / 4.8e12
            if (name, share) == ("deepseek-v3", 8):  # a latent is read for 128 heads: now they compute for longer
                assert long - short > 1.1 * read_s
            else:
                assert long - short == pytest.approx(read_s, rel=0.02)


def test_prompts_of_groups_are_read_at_once_where_many_come() -> None:
    """Played: so many prompts on average, dealt to four groups in turn; the fullest group ends the step."""
    times = RequestTimes(decode_s=((1, 0.0), (2, 0.0)), prompt_s=1.0, shared_prompt_s=0.2, new=100, groups=4)
    for prompts in (4, 8, 12):
        fullest = max(len(range(group, prompts, 4)) for group in range(4))
        assert times.reading_s(prompts) == pytest.approx(0.2 * prompts + 0.8 * fullest)
    assert times.reading_s(0.5) == pytest.approx(0.5)
    assert times.reading_s(1) == pytest.approx(1.0)
    assert times.work_s(2, answer=8) == pytest.approx(8 / 2 * times.reading_s(2 / 8))


def test_few_users_of_a_server_wait_about_a_step() -> None:
    """Where four at a time get long answers, hardly a prompt stands between two tokens: the points of Llama 3 70B."""
    off = []
    for point in served_points():
        if point.model == "llama-3-70b" and point.requests <= 4 and point.answer >= 1024 and point.prompt <= 1024:
            changed = {"part": hardware.part(point.part), "model": catalogue.model(point.model), "tp": point.tp}
            layout = replace(LLAMA, **changed, weights=point.format, cache=point.cache)
            lengths = RequestLengths(prompt=point.mean_prompt, kept=0, answer=point.mean_answer)
            times = expected_times(layout, lengths, most=point.requests, engine=point.engine, ep=1)
            off.append(times.step_s(point.requests) / point.tpot_s - 1)
    assert len(off) > 20
    assert median(map(abs, off)) < 0.15


def test_between_two_numbers_a_step_lies_on_a_line() -> None:
    times = RequestTimes(decode_s=((1, 1.0), (2, 2.0), (4, 6.0)), prompt_s=10.0, new=9)
    assert [times.step_s(number) for number in (1, 2, 3, 4)] == [1.0, 2.0, 4.0, 6.0]
    assert times.per_new_token_s == 1.0
    assert times.work_s(4, answer=8) == 9 + 8 * 6 / 4
    with pytest.raises(ValueError, match="requests=5 must be at most 4"):
        times.step_s(5)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"prompt": 0, "kept": 0, "answer": 1}, "prompt=0"),
        ({"prompt": 5, "kept": 5, "answer": 1}, "kept=5 must be less than prompt=5"),
        ({"prompt": 5, "kept": -1, "answer": 1}, "kept=-1"),
    ],
)
def test_lengths_that_cannot_be(given: dict[str, int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        RequestLengths(**given)


def test_a_prompt_of_average_length_is_worth_its_own_tokens() -> None:
    """A step of one request is in every prompt's time, and no token's; of two requests it takes longer."""
    times = RequestTimes(decode_s=((1, 1.0), (2, 3.0)), prompt_s=5.0, new=4, prompts_s=((2, 3.0), (4, 5.0), (8, 13.0)))
    assert times.per_new_token_s == 1
    assert [times.alike(new) for new in (2, 4, 6, 8)] == [2, 4, 8, 12]

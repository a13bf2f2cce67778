"""Lengths of drawn requests, counted moment by moment."""

import pytest

from threeloops.facts import hardware
from threeloops.facts.request_traces import request_trace
from threeloops.models import catalogue
from threeloops.product_loop.sizing.request_lengths import RequestLengths, of_requests
from threeloops.product_loop.sizing.request_times import bound_times, expected_of, expected_times
from threeloops.product_loop.sizing.served_layout import ServedLayout

ASKED = ((100, 10), (3000, 50), (40, 400), (900, 2))
LLAMA = ServedLayout(
    model=catalogue.model("llama-3-8b"),
    part=hardware.part("h100-sxm5"),
    weights="bf16",
    cache="bf16",
    tp=1,
    memory_utilisation=0.92,
    other_bytes=3e9,
)


def test_a_moment_meets_long_answers_more_often() -> None:
    """One request after another, a moment a token: what the cache holds at each, and what it will hold at the end."""
    now, at_end = [], []
    for prompt, answer in ASKED:
        for made in range(answer):
            now.append(prompt + made)
            at_end.append(prompt + answer)
    lengths = of_requests(ASKED, hit=0.0)
    assert lengths.mean_context == pytest.approx(sum(now) / len(now), abs=1)
    assert lengths.mean_end == pytest.approx(sum(at_end) / len(at_end), abs=1)
    assert lengths.most == 3050


def test_of_one_length_nothing_is_weighed() -> None:
    lengths = RequestLengths(prompt=1000, kept=200, answer=100)
    alike = of_requests([(1000, 100)] * 3, hit=0.2)
    assert (lengths.mean_context, lengths.mean_end, lengths.most, lengths.new) == (1050, 1100, 1100, 800)
    assert (alike.mean_context, alike.mean_end, alike.most, alike.new) == (1050, 1100, 1100, 800)


def test_a_cache_keeps_whole_blocks_of_every_prompt() -> None:
    lengths = of_requests(ASKED, hit=0.5)
    assert [one.kept for one in lengths.each()] == [48, 1488, 16, 448]
    assert all(one.kept % 16 == 0 for one in lengths.grid())
    assert [one.prompt for one in lengths.grid()][-1] == 3000


def test_prompts_take_together_as_long_as_each_by_itself() -> None:
    """Of a trace whose prompts have up to 120,000 tokens every hundredth is timed, without the line between points."""
    sample = request_trace("mooncake-conversation-2024").sample[::100]
    lengths = of_requests(sample, hit=0.3)
    times = expected_times(LLAMA, lengths, most=8, engine="vLLM", ep=1)
    alone_s = [expected_of(LLAMA, one, 1, "vLLM", 1).prompt_s for one in lengths.each()]
    alike = [times.alike(one.new) for one in lengths.each()]
    assert sum(alike) * times.per_new_token_s == pytest.approx(sum(alone_s), rel=0.1)
    for tokens, took_s in zip(alike, alone_s, strict=True):
        assert tokens * times.per_new_token_s == pytest.approx(took_s, rel=0.2, abs=0.01)
    assert max(alike) > 1.2 * max(one.new for one in lengths.each())  # attention grows with the square


def test_a_bound_of_drawn_prompts_is_the_mean_of_bounds() -> None:
    lengths = of_requests(request_trace("azure-code-2023").sample[::50], hit=0.0)
    alone = [bound_times(LLAMA, one, most=1).prompt_s for one in lengths.each()]
    assert bound_times(LLAMA, lengths, most=8).prompt_s == pytest.approx(sum(alone) / len(alone), rel=0.05)


def test_nobody_asked() -> None:
    with pytest.raises(ValueError, match="requests=0"):
        of_requests([], hit=0.0)

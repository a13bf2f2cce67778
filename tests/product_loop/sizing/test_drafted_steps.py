"""Steps with drafts: played token by token, and what a check reads and computes, added up again."""

import random
from typing import Any

import pytest

from threeloops.facts import hardware
from threeloops.models import catalogue
from threeloops.models.parameters import model_parameters
from threeloops.product_loop.sizing.bound_steps import bound_step_s
from threeloops.product_loop.sizing.drafted_steps import Drafts, drafted_times
from threeloops.product_loop.sizing.request_lengths import RequestLengths
from threeloops.product_loop.sizing.request_times import RequestTimes, expected_times
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


@pytest.mark.parametrize(("drafted", "accepted", "cost"), [(1, 0.9, 0.1), (3, 0.7, 0.05), (5, 0.4, 0.02)])
def test_tokens_come_as_often_as_in_a_played_loop(drafted: int, accepted: float, cost: float) -> None:
    """Each draft takes its time and is accepted or not by a throw; the first that is not ends what counts."""
    rng, clock_s, made = random.Random(7), 0.0, 0
    plain_s, check_s = 0.010, 0.013
    for _ in range(40_000):
        for _draft in range(drafted):
            clock_s += cost * plain_s
        clock_s += check_s
        made += 1
        for _draft in range(drafted):
            if rng.random() >= accepted:
                break
            made += 1
    drafts = Drafts(drafted=drafted, accepted_share=accepted, cost=cost)
    plain, checking = (
        RequestTimes(decode_s=((1, seconds), (8, 2 * seconds)), prompt_s=0.110, new=1000)
        for seconds in (plain_s, check_s)
    )
    times = drafted_times(plain, checking, drafts)
    assert times.step_s(1) / drafts.yielded == pytest.approx(clock_s / made, rel=0.01)
    assert times.step_s(8) == pytest.approx(2 * times.step_s(1))
    assert times.per_new_token_s == pytest.approx(plain.per_new_token_s)


def test_a_check_computes_all_its_tokens_and_reads_each_cache_once() -> None:
    """Llama 3 8B, 64 requests of 4,000 tokens, 8 tokens of each: weights once, then 512 tokens' arithmetic."""
    parameters, cached = model_parameters(LLAMA.model).total - 128_256 * 4096, 64 * 4000 * 131_072
    found = bound_step_s(LLAMA, requests=64, context=4000, checked=8)
    assert found == pytest.approx(2 * parameters * 512 / 989.4e12 + cached / 3.35e12, rel=0.05)
    few = bound_step_s(LLAMA, requests=4, context=4000, checked=8)
    assert few == pytest.approx((2 * parameters + 4 * 4000 * 131_072) / 3.35e12, rel=0.02)


@pytest.mark.parametrize(
    ("model", "part", "weights"), [("llama-3-8b", "h100-sxm5", "bf16"), ("kimi-k2", "b200-hgx", "nvfp4")]
)
def test_what_is_expected_of_a_check_lies_between_one_token_and_as_many_requests(
    model: str, part: str, weights: str
) -> None:
    tp = 8 if model == "kimi-k2" else 1
    given: dict[str, Any] = {"model": catalogue.model(model), "part": hardware.part(part), "weights": weights, "tp": tp}
    layout = ServedLayout(**given, cache="bf16", memory_utilisation=0.92, other_bytes=3e9)
    lengths = RequestLengths(prompt=2000, kept=0, answer=200)
    how: dict[str, Any] = {"most": 128, "engine": "vLLM", "ep": 1}
    one, four = expected_times(layout, lengths, **how), expected_times(layout, lengths, **how, checked=4)
    for requests in (1, 8, 32):
        assert one.step_s(requests) < four.step_s(requests) <= one.step_s(4 * requests) * 1.001
        assert bound_step_s(layout, requests=requests, context=2100, checked=4) < four.step_s(requests)
    assert four.prompt_s == one.prompt_s


def test_an_answer_has_two_checks_at_least() -> None:
    drafts = Drafts(drafted=2, accepted_share=0.5, cost=0.0)  # 1.75 tokens
    assert [drafts.checks_of(answer) for answer in (2, 7, 700)] == [2, 4, 400]


@pytest.mark.parametrize(
    ("given", "says"),
    [({"drafted": 0}, "drafted=0"), ({"accepted_share": 1.2}, "accepted_share"), ({"cost": -0.1}, "cost")],
)
def test_drafts_that_cannot_be(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Drafts(**{"drafted": 3, "accepted_share": 0.7, "cost": 0.05} | given)

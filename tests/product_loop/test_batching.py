"""Batching: formulas against batches that are listed, and against a server that is stepped."""

import itertools
import math

import pytest

from threeloops.product_loop import batching
from threeloops.simulate.product_loop import traffic
from threeloops.simulate.product_loop.serving_policies import (
    chunked_prefill,
    continuous_batching,
    static_batching,
)
from threeloops.simulate.product_loop.serving_requests import Request
from threeloops.simulate.product_loop.serving_run import run
from threeloops.simulate.product_loop.serving_steps import AffineStep


@pytest.mark.parametrize("slots", [1, 3, 7])
def test_the_longest_of_a_batch_is_that_of_all_batches_there_are(slots: int) -> None:
    mean = 0.0
    for batch in itertools.product((12, 95), repeat=slots):
        mean += math.prod(0.2 if answer == 95 else 0.8 for answer in batch) * max(batch)
    formula = batching.expected_longest(short_tokens=12, long_tokens=95, long_share=0.2, slots=slots)
    assert formula == pytest.approx(mean)


def test_the_gain_is_what_a_server_gains() -> None:
    # every batch that there is, as often as it is likely: of three answers, each fourth one long
    batches = itertools.product((5, 5, 5, 60), repeat=3)
    waiting = traffic.at_once([answer for batch in batches for answer in batch] * 20)
    step_s = AffineStep(base_s=1.0)
    static, continuous = (
        run(waiting, step_s=step_s, policy=policy).steps
        for policy in (static_batching(slots=3), continuous_batching(slots=3, order="decode first"))
    )
    formula = batching.continuous_gain(short_tokens=5, long_tokens=60, long_share=0.25, slots=3)
    # at the end of the run some slots are empty: at most a long answer
    assert static / continuous <= formula * (1 + 1e-9)
    assert static / (continuous - 60) >= formula


def test_a_gain_needs_differing_answers() -> None:
    same = {"short_tokens": 80, "long_tokens": 80, "slots": 9}
    assert batching.continuous_gain(**same, long_share=0.3) == pytest.approx(1)
    assert batching.continuous_gain(short_tokens=8, long_tokens=80, long_share=1, slots=9) == pytest.approx(1)


@pytest.mark.parametrize("rate", [4.0, 9.0, 14.0])
def test_a_batch_gets_as_full_as_its_steps_are_long(rate: float) -> None:
    # arrivals by the clock, prompts that take no time; the whole run's mean, beginning and end included
    arrivals = [place / rate for place in range(4000)]
    requests = [Request(arrival, 1, 200) for arrival in arrivals]
    done = run(
        requests,
        step_s=AffineStep(base_s=0.004, per_decode_s=0.0002),
        policy=continuous_batching(slots=4000, order="decode first"),
    )
    running = sum(one.finished_s - one.admitted_s for one in done.moments) / done.end_s
    formula = batching.running_requests(requests_per_s=rate, output_tokens=200, base_s=0.004, per_request_s=0.0002)
    assert running == pytest.approx(formula, rel=0.02)


def test_a_smaller_chunk_than_the_least_falls_behind() -> None:
    # 40 prompts of 250 tokens a second, and one request that decodes all the time
    requests = [Request(0.0, 1, 20_000)] + [Request(place / 40, 250, 1) for place in range(2000)]
    step_s = AffineStep(base_s=0.010, per_prefill_token_s=50e-6)
    least = batching.least_chunk(prompt_tokens_per_s=10_000, decode_step_s=0.010, token_s=50e-6)
    waits = {}
    for chunk in (round(0.9 * least), round(1.1 * least)):
        policy = chunked_prefill(slots=100, token_budget=chunk + 1)
        done = run(requests, step_s=step_s, policy=policy)
        waits[chunk] = done.moments[2000].ttft_s
    behind, keeps_up = waits.values()
    # a tenth less is read than arrives while 500,000 tokens come in 50 seconds
    assert behind > 2
    assert keeps_up < 0.2


@pytest.mark.parametrize(("itl_ms", "step_ms", "token_us"), [(83, 21, 31), (50, 18, 70), (64, 23, 430)])
def test_a_step_with_the_largest_chunk_keeps_the_itl_and_one_token_more_breaks_it(
    itl_ms: int, step_ms: int, token_us: int
) -> None:
    times = {"decode_step_s": step_ms * 1e-3, "token_s": token_us * 1e-6}
    chunk = batching.largest_chunk(itl_s=itl_ms * 1e-3, **times)
    step_s = AffineStep(base_s=times["decode_step_s"], per_prefill_token_s=times["token_s"])
    gaps = []
    for read in (chunk, chunk + 1):
        requests = [Request(0.0, 1, 60), Request(0.1, 5 * read, 1)]
        policy = chunked_prefill(slots=2, token_budget=read + 1)  # the running request takes one token of it
        gaps.append(max(run(requests, step_s=step_s, policy=policy, each_token=True).moments[0].gaps_s))
    assert gaps[0] <= itl_ms * 1e-3 * (1 + 1e-9) < gaps[1]
    assert batching.largest_chunk(itl_s=times["decode_step_s"] / 2, **times) == 0


@pytest.mark.parametrize(("prompt", "budget", "running"), [(4000, 512, 112), (4001, 512, 112), (37, 9, 4), (5, 64, 7)])
def test_a_prompt_needs_the_steps_that_a_server_takes(prompt: int, budget: int, running: int) -> None:
    requests = [Request(0.0, 1, 5000) for _ in range(running)] + [Request(5.0, prompt, 1)]
    policy = chunked_prefill(slots=running + 1, token_budget=budget)
    done = run(requests, step_s=AffineStep(base_s=1.0), policy=policy)
    formula = batching.budget_steps(prompt_tokens=prompt, token_budget=budget, running=running)
    assert done.moments[-1].first_token_s - done.moments[-1].admitted_s == formula


@pytest.mark.parametrize("prompts", [[700], [300, 900, 50]])
def test_prompts_that_come_together_stop_the_others_together(prompts: list[int]) -> None:
    requests = [Request(0.0, 1, 50)] + [Request(0.1, tokens, 1) for tokens in prompts]
    step_s = AffineStep(base_s=0.02, per_prefill_token_s=1e-4)
    done = run(requests, step_s=step_s, policy=continuous_batching(slots=9), each_token=True)
    formula = batching.prefill_first_gap_s(prompt_tokens=prompts, step_s=0.02, token_s=1e-4)
    assert max(done.moments[0].gaps_s) == pytest.approx(formula)


def test_what_cannot_be_served_is_refused() -> None:
    fine = {"requests_per_s": 10, "output_tokens": 99, "base_s": 0.01, "per_request_s": 0.001}
    assert batching.running_requests(**fine) > 0
    with pytest.raises(ValueError, match="would grow without end"):
        batching.running_requests(**{**fine, "output_tokens": 100})
    fine = {"prompt_tokens_per_s": 9_999, "decode_step_s": 0.01, "token_s": 1e-4}
    assert batching.least_chunk(**fine) > 0
    with pytest.raises(ValueError, match="no chunk is large enough"):
        batching.least_chunk(**{**fine, "prompt_tokens_per_s": 10_000})
    with pytest.raises(ValueError, match="token_s=0 must be greater than 0"):
        batching.largest_chunk(itl_s=0.05, decode_step_s=0.02, token_s=0)
    assert batching.budget_steps(prompt_tokens=5, token_budget=8, running=7) == 5
    with pytest.raises(ValueError, match="no token is left for a prompt"):
        batching.budget_steps(prompt_tokens=5, token_budget=8, running=8)


@pytest.mark.parametrize(("few", "more"), [(3, 12), (8, 8), (5, 40)])
def test_more_slots_gain_what_a_server_gains(few: int, more: int) -> None:
    # caches that do not grow: every request holds as much, whatever it has made
    rates = []
    for slots in (few, more):
        done = run(
            [Request(0.0, 1, 400) for _ in range(slots)],
            step_s=AffineStep(base_s=16e9 / 2e12, per_decode_s=1e9 / 2e12),
            policy=continuous_batching(slots=slots),
        )
        first_s = done.moments[0].first_token_s
        rates.append(slots * 399 / (done.end_s - first_s))
    formula = batching.slots_gain(weights_bytes=16e9, cache_bytes_per_request=1e9, slots=few, more_slots=more)
    assert rates[1] / rates[0] == pytest.approx(formula)


@pytest.mark.parametrize(("requests", "every"), [(2, 7), (5, 3), (8, 1)])
def test_prompts_of_others_are_those_that_begin_while_one_answer_is_made(requests: int, every: int) -> None:
    """Seats that end one after another, `every` steps apart; a seat watches for as long as its answer lasts."""
    tokens, prompt_s, waited = requests * every, 0.25, 0.0
    for step in range(tokens):
        waited += prompt_s * sum(step == seat * every for seat in range(1, requests))
    counted = waited / tokens
    assert batching.others_prompts_s(requests=requests, output_tokens=tokens, prompt_s=prompt_s) == pytest.approx(
        counted
    )


def test_nobody_waits_for_others_who_is_alone() -> None:
    assert batching.others_prompts_s(requests=1, output_tokens=10, prompt_s=3.0) == 0

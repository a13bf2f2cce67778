"""One replica under a load, against what must hold of any queue."""

import math
import random
from collections import deque
from dataclasses import replace
from statistics import quantiles

import pytest

from threeloops.simulate.product_loop.serving_requests import Request
from threeloops.simulate.product_loop.serving_run import run
from threeloops.simulate.product_loop.serving_steps import StepContents
from threeloops.simulate.product_loop.sizing import replica_runs
from threeloops.simulate.product_loop.sizing.draws import arrivals_s
from threeloops.simulate.product_loop.sizing.replica_runs import (
    Replica,
    ReplicaStep,
    SpreadSizes,
    TracedSizes,
    at_rate,
    largest_rate,
    with_users,
)

STEP = ReplicaStep(decode_s=tuple(0.01 + 0.0002 * requests for requests in range(41)), per_new_token_s=1e-4)
SERVER = Replica(step=STEP, max_num_seqs=40, max_num_batched_tokens=540, mixed=True)
CHAT = SpreadSizes(new=1000, answer=100)


def test_what_comes_in_goes_out() -> None:
    """Tokens a second are the rate times the answer, and Little's law gives how many are inside."""
    seen = at_rate(SERVER, CHAT, requests_per_s=4, requests=2000, seed=3)
    assert seen.tokens_per_s == pytest.approx(4 * 100, rel=0.06)
    stay_s = seen.ttft_s[0] + 99 * seen.tpot_s[0]
    assert seen.inside == pytest.approx(4 * stay_s, rel=0.1)


def test_jumps_over_steps_change_nothing() -> None:
    """Without each token a run takes many steps at once, and comes to the same moments."""
    load = {"requests_per_s": 4, "requests": 500, "seed": 3}
    slow, quick = (at_rate(SERVER, CHAT, **load, each_token=each_token) for each_token in (True, False))
    assert quick.ttft_s == pytest.approx(slow.ttft_s)
    assert quick.tpot_s == pytest.approx(slow.tpot_s)
    assert quick.inside == pytest.approx(slow.inside)
    assert math.isnan(quick.itl_s[1])


def test_a_run_that_jumps_sees_the_tokens_of_one_that_does_not() -> None:
    """A step model that cannot add up steps is taken step by step; gaps are then counted from the tokens' moments."""
    arrivals, sizes = arrivals_s(requests_per_s=4, requests=400, seed=3), CHAT.drawn(400, 3)
    given = [Request(at, *sized) for at, sized in zip(arrivals, sizes, strict=True)]
    for order in ("decode first", "prefill first"):
        server = replace(SERVER, mixed=order == "decode first")
        slow = run(given, step_s=lambda contents: STEP(contents), policy=server.policy, each_token=True)
        quick = run(given, step_s=STEP, policy=server.policy, each_token=True)
        for one, other in zip(slow.moments, quick.moments, strict=True):
            assert len(other.token_s) == other.request.output_tokens
            assert other.token_s == pytest.approx(one.token_s, abs=1e-9)
        gaps = sorted(gap for one in slow.moments[100:] for gap in one.gaps_s)
        seen = at_rate(server, CHAT, requests_per_s=4, requests=400, seed=3)
        assert seen.itl_s[1] == pytest.approx(gaps[round(0.99 * (len(gaps) - 1))], rel=1e-3)
        assert seen.itl_s[0] == pytest.approx(gaps[len(gaps) // 2], rel=1e-3)


def test_requests_in_time_are_those_of_the_runs_goodput() -> None:
    arrivals, sizes = arrivals_s(requests_per_s=4, requests=400, seed=3), CHAT.drawn(400, 3)
    given = [Request(at, *sized) for at, sized in zip(arrivals, sizes, strict=True)]
    played = run(given, step_s=STEP, policy=SERVER.policy)
    seen = at_rate(SERVER, CHAT, requests_per_s=4, requests=400, seed=3)
    promised = {"ttft_s": seen.ttft_s[0], "tpot_s": seen.tpot_s[0]}
    late = replace(played, moments=played.moments[100:])  # the server is no longer empty
    assert seen.in_time(**promised) * 300 == pytest.approx(late.goodput_per_s(**promised) * late.end_s)
    assert 0.1 < seen.in_time(**promised) < seen.in_time(ttft_s=promised["ttft_s"]) < seen.in_time() == 1


def test_what_cannot_win_is_left_early(monkeypatch: pytest.MonkeyPatch) -> None:
    fills = 1 / (1000 * 1e-4 + 100 * STEP.decode_s[40] / 40)
    asked = {"most_per_s": fills, "promised_s": {"ttft": 0.5}, "seed": 3}
    runs: list[float] = []
    monkeypatch.setattr(replica_runs, "at_rate", lambda *of, **at: runs.append(at["seed"]) or at_rate(*of, **at))
    most = largest_rate(SERVER, CHAT, **asked).requests_per_s
    all_of_it = runs.copy()
    runs.clear()
    assert largest_rate(SERVER, CHAT, **asked, beyond_per_s=0.5 * most).requests_per_s == most
    assert runs == all_of_it
    runs.clear()
    assert largest_rate(SERVER, CHAT, **asked, beyond_per_s=1.3 * most).requests_per_s <= 1.3 * most
    assert len(runs) < len(all_of_it)
    assert set(runs) == {4}, "nothing that cannot win is confirmed"


def test_nobody_else_there() -> None:
    """A prompt of 500 to 1,500 tokens takes one to three steps of 539 beside the chunk."""
    seen = at_rate(SERVER, CHAT, requests_per_s=0.01, requests=200, seed=3)
    assert 0.0102 + 0.05 < seen.ttft_s[0] < 3 * 0.0102 + 0.15
    assert seen.itl_s == pytest.approx((0.0102, 0.0102))


def test_at_the_largest_rate_promises_are_kept_and_not_far_beyond() -> None:
    promised = {"ttft": 0.5, "itl": 0.07}
    fills = 1 / (1000 * 1e-4 + 100 * STEP.decode_s[40] / 40)
    found = largest_rate(SERVER, CHAT, most_per_s=fills, promised_s=promised, seed=3)
    for rate, kept in ((found.requests_per_s, True), (1.3 * found.requests_per_s, False)):
        seen = at_rate(SERVER, CHAT, requests_per_s=rate, requests=3000, seed=3)
        assert all(seen.late_s(name) <= seconds for name, seconds in promised.items()) == kept
    assert found.late_s > promised[found.broken]
    nothing = largest_rate(SERVER, CHAT, most_per_s=fills, promised_s={}, seed=3)
    assert (nothing.requests_per_s, nothing.broken) == (fills * 15 / 16, "")
    never = largest_rate(SERVER, CHAT, most_per_s=fills, promised_s={"ttft": 0.01}, seed=3)
    assert (never.requests_per_s, never.broken) == (0, "ttft")


def test_users_who_ask_again_fill_their_seats() -> None:
    seen = with_users(SERVER, CHAT, rounds=4, seed=3)
    assert seen.inside == pytest.approx(40, rel=0.03)
    full_s = STEP.decode_s[40] + 40 / 100 * 1000 * 1e-4  # each step brings as many prompt tokens as it ends answers
    assert seen.tokens_per_s == pytest.approx(40 / full_s, rel=0.1)


def test_an_engine_that_reads_prompts_first_keeps_others_waiting() -> None:
    mixed, first = (
        with_users(Replica(step=STEP, max_num_seqs=40, max_num_batched_tokens=540, mixed=mixed), CHAT, rounds=4, seed=3)
        for mixed in (True, False)
    )
    assert first.itl_s[1] > mixed.itl_s[1]
    assert first.ttft_s[0] < mixed.ttft_s[0]
    assert math.isclose(first.tokens_per_s, mixed.tokens_per_s, rel_tol=0.3)


def test_recorded_requests_keep_prompt_and_answer_together() -> None:
    """Long prompts with short answers: apart, every fourth pair would be one that nobody asked."""
    asked = ((2000, 1), (50, 300))
    drawn = TracedSizes(sizes=asked).drawn(1000, seed=3)
    assert set(drawn) == {(2000, 2), (50, 300)}
    assert 400 < sum(prompt == 2000 for prompt, _ in drawn) < 600
    seen = at_rate(SERVER, TracedSizes(sizes=asked), requests_per_s=3, requests=2000, seed=3)
    assert seen.tokens_per_s == pytest.approx(3 * 151, rel=0.06)


def test_groups_wait_for_the_one_that_reads_most() -> None:
    """Of 0.1 ms a token a quarter is shared: alone a prompt of 1,000 takes it all, four of four groups take a quarter
    four times and the rest once.
    """
    step = ReplicaStep(decode_s=STEP.decode_s, per_new_token_s=1e-4, groups=4, per_shared_token_s=0.25e-4, prompt=1000)
    decode_s = STEP.decode_s[8]
    for tokens, takes_s in ((1000, 0.1), (500, 0.05), (2000, 0.05 + 0.075), (4000, 0.1 + 0.075), (8000, 0.2 + 0.15)):
        contents = StepContents(prefill_tokens=tokens, decodes=8, cached_tokens=0)
        assert step(contents) == pytest.approx(decode_s + takes_s)


class Group:
    """One engine of several that take their steps together."""

    def __init__(self) -> None:
        self.unread: deque[list[float]] = deque()  # arrival, tokens to read, tokens to answer
        self.answering: list[list[float]] = []  # latest token's moment, tokens left

    def chunk(self, most: int) -> int:
        """Tokens of a step, by taking one after another."""
        left = most
        for waiting in self.unread:
            left -= min(left, int(waiting[1]))
        return most - left

    def ended(self, now: float, tokens: int, firsts_s: list[float], gaps_s: list[float]) -> None:
        """A step has ended, which has read so many tokens of prompts."""
        gaps_s += [now - one[0] for one in self.answering]
        self.answering = [[now, one[1] - 1] for one in self.answering if one[1] > 1]
        while tokens:
            first = self.unread[0]
            some = min(tokens, int(first[1]))
            first[1], tokens = first[1] - some, tokens - some
            if not first[1]:
                firsts_s.append(now - first[0])
                self.answering.append([now, first[2] - 1])
                self.unread.popleft()


def test_groups_that_read_in_chunks_are_played_each_by_itself() -> None:
    """Four engines with queues of their own, each request dealt to the emptiest, a step as long as its longest chunk
    takes: the first token and the gaps are about those of one replica with four groups.
    """
    own_s, shared_s, chunk, groups, rng = 0.75e-4, 0.25e-4, 200, 4, random.Random(5)
    arrivals, now = deque[float](), 0.0
    for _ in range(3000):
        now += rng.expovariate(5)
        arrivals.append(now)
    played, now, firsts_s, gaps_s = [Group() for _ in range(groups)], 0.0, list[float](), list[float]()
    while arrivals or any(one.unread or one.answering for one in played):
        while arrivals and arrivals[0] <= now:
            emptiest = min(played, key=lambda one: len(one.unread) + len(one.answering))
            emptiest.unread.append([arrivals.popleft(), rng.randint(500, 1500), rng.randint(50, 150)])
        chunks, decodes = [one.chunk(chunk) for one in played], sum(len(one.answering) for one in played)
        if not decodes and not any(chunks):
            now = arrivals[0]
            continue
        now += STEP.decode_s[max(1, decodes)] + shared_s * sum(chunks) + own_s * max(chunks)
        for one, tokens in zip(played, chunks, strict=True):
            one.ended(now, tokens, firsts_s, gaps_s)
    step = ReplicaStep(
        decode_s=STEP.decode_s,
        per_new_token_s=own_s + shared_s,
        groups=groups,
        per_shared_token_s=shared_s,
        prompt=chunk,
    )
    server = Replica(step=step, max_num_seqs=40, max_num_batched_tokens=40 + groups * chunk, mixed=True, chunk=chunk)
    seen = at_rate(server, CHAT, requests_per_s=5, requests=3000, seed=3)
    first, gap = quantiles(firsts_s, n=100), quantiles(gaps_s, n=100)
    assert seen.ttft_s == pytest.approx((first[49], first[98]), rel=0.2)
    assert seen.itl_s == pytest.approx((gap[49], gap[98]), rel=0.15)
    assert max(gaps_s) < STEP.decode_s[40] + chunk * (own_s + groups * shared_s) + 1e-9

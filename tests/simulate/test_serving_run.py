"""The serving simulator against queueing theory where that is exact, and against what may never happen."""

import itertools
import math
import random
import statistics

import numpy as np
import pytest

from threeloops.facts import request_traces
from threeloops.product_loop import queueing
from threeloops.simulate.product_loop import decoding, traffic
from threeloops.simulate.product_loop.serving_policies import (
    KVBlocks,
    Policy,
    chunked_prefill,
    continuous_batching,
    static_batching,
)
from threeloops.simulate.product_loop.serving_pools import Pool, Scaling, pooled, scaled, split
from threeloops.simulate.product_loop.serving_requests import Request
from threeloops.simulate.product_loop.serving_run import run
from threeloops.simulate.product_loop.serving_steps import AffineStep, StepContents

BATCHES = 40


def mean_and_bound(values):
    """The mean, and five standard errors of it by batch means: neighbours in a queue are not independent."""
    means = [float(part.mean()) for part in np.array_split(np.asarray(values), BATCHES)]
    return statistics.fmean(means), 5 * statistics.stdev(means) / math.sqrt(BATCHES)


def agrees(values, theory, *, besides=0.0):
    mean, bound = mean_and_bound(values)
    print(f"mean {mean:.4g}, theory {theory:.4g}, bound ±{bound:.2g}")
    assert bound < 0.25 * theory, "the run is too short to tell"
    assert abs(mean - theory) <= bound + besides


@pytest.mark.parametrize("constant", [False, True])
def test_one_slot_is_a_queue_with_one_server(constant):
    # service is reading the prompt, a microsecond a token; the answer is a single token that comes with it
    rng = np.random.default_rng(5)
    number, service_s = 80_000, 0.5
    tokens = np.full(number, service_s * 1e6) if constant else np.ceil(rng.exponential(service_s * 1e6, number))
    arrivals = traffic.poisson(requests_per_s=1.4, requests=number, seed=6)
    requests = traffic.together(arrivals, tokens.astype(int), np.ones(number, int))
    step_s = AffineStep(base_s=0.0, per_prefill_token_s=1e-6)
    waited = run(requests, step_s=step_s, policy=continuous_batching(slots=1)).waited_s
    theory = queueing.mg1_wait_s(requests_per_s=1.4, service_s=service_s, service_cv=0.0 if constant else 1.0)
    agrees(waited, theory)


def test_slots_that_do_not_slow_one_another_are_erlangs_servers():
    # every step takes a millisecond whatever is in it, so an answer takes as long as it has tokens; whoever comes
    # during a step waits for its end, at most a step
    rng = np.random.default_rng(7)
    number, slots, step_s, rate = 60_000, 4, 1e-3, 5.2
    outputs = np.maximum(1, np.rint(rng.exponential(500, number))).astype(int)
    requests = traffic.together(
        traffic.poisson(requests_per_s=rate, requests=number, seed=8), np.ones(number, int), outputs
    )
    policy = continuous_batching(slots=slots, order="decode first")
    waited = run(requests, step_s=AffineStep(base_s=step_s), policy=policy).waited_s
    theory = queueing.mmc_wait_s(requests_per_s=rate, service_s=0.5, servers=slots)
    agrees(waited, theory, besides=step_s)


def test_whom_a_server_without_a_queue_turns_away_is_erlangs_share():
    rng = np.random.default_rng(9)
    number, slots, rate = 40_000, 5, 8.0
    outputs = np.maximum(1, np.rint(rng.gamma(4.0, 125, number))).astype(int)  # any service times will do
    requests = traffic.together(
        traffic.poisson(requests_per_s=rate, requests=number, seed=10), np.ones(number, int), outputs
    )
    policy = Policy(name="no queue", slots=slots, shed_at=0)
    shed = [moments.shed for moments in run(requests, step_s=AffineStep(base_s=1e-3), policy=policy).moments]
    agrees(shed, queueing.erlang_b(requests_per_s=rate, service_s=0.5, servers=slots), besides=2e-3)


def test_littles_law_holds_in_any_run():
    # heads are counted along the time axis, lengths of stay request by request
    requests = traffic.drawn(traffic.AZURE_CONVERSATION_2023, requests=3000, seed=3)
    step_s = AffineStep(base_s=8e-3, per_prefill_token_s=4e-5, per_decode_s=2e-4, per_cached_token_s=1e-7)
    done = run(requests, step_s=step_s, policy=chunked_prefill(slots=32, token_budget=512))
    events = sorted(
        [(one.request.arrival_s, 1) for one in done.moments] + [(one.finished_s, -1) for one in done.moments]
    )
    heads = area = before = 0
    for moment, change in events:
        area, heads, before = area + heads * (moment - before), heads + change, moment
    rate = len(requests) / done.end_s
    stay_s = float(np.mean(done.each(lambda one: one.request_s)))
    assert area / done.end_s == pytest.approx(queueing.littles_law(requests_per_s=rate, seconds=stay_s))


@pytest.mark.parametrize("slots", [2, 3, 7])
def test_static_and_continuous_take_the_steps_that_are_counted_elsewhere(slots):
    for seed in range(30):
        rng = random.Random(seed)
        outputs = [rng.randint(1, 40) for _ in range(rng.randint(1, 25))]
        requests, step_s = traffic.at_once(outputs), AffineStep(base_s=1.0)
        held = run(requests, step_s=step_s, policy=static_batching(slots=slots), keep_steps=True)
        refilled = run(requests, step_s=step_s, policy=continuous_batching(slots=slots, order="decode first"))
        assert (held.steps, paid_rows(held)) == decoding.held_batches(outputs, slots=slots)
        steps, _ = decoding.refilled_batch(outputs, slots=slots)
        assert refilled.steps == refilled.end_s == steps


def paid_rows(done):
    """Rows of all steps: a prompt of one token is a row as well."""
    return sum(step.contents.decodes + step.contents.prefill_tokens for step in done.kept)


@pytest.mark.parametrize(
    "policy",
    [
        static_batching(slots=8),
        continuous_batching(slots=8),
        continuous_batching(slots=8, order="decode first"),
        chunked_prefill(slots=8, token_budget=64),
    ],
    ids=lambda policy: policy.name,
)
def test_every_token_is_made_once_and_never_by_more_than_the_slots(policy):
    requests = traffic.drawn(traffic.AZURE_CODE_2023, requests=120, seed=4)
    step_s = AffineStep(base_s=0.02, per_prefill_token_s=1e-5, per_cached_token_s=1e-7)
    done = run(requests, step_s=step_s, policy=policy, keep_steps=True, each_token=True)
    assert [len(one.token_s) for one in done.moments] == [request.output_tokens for request in requests]
    assert all(one.token_s == sorted(set(one.token_s)) for one in done.moments)
    assert all(one.request.arrival_s <= one.admitted_s < one.first_token_s <= one.finished_s for one in done.moments)
    assert sum(step.contents.prefill_tokens for step in done.kept) == sum(one.prompt_tokens for one in requests)
    assert max(step.contents.decodes for step in done.kept) <= policy.slots
    assert all(before.end_s <= after.begin_s for before, after in itertools.pairwise(done.kept))
    assert sum(step.end_s - step.begin_s for step in done.kept) == pytest.approx(done.busy_s)
    turns = sorted((one.admitted_s, one.released_s, one.slot) for one in done.moments)
    for slot in range(policy.slots):
        mine = [(begin, end) for begin, end, taken in turns if taken == slot]
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(mine))


def test_a_chunk_budget_bounds_every_step():
    requests = traffic.drawn(traffic.AZURE_CODE_2023, requests=80, seed=11, requests_per_s=10)
    policy = chunked_prefill(slots=16, token_budget=256)
    done = run(requests, step_s=AffineStep(base_s=0.01, per_prefill_token_s=5e-5), policy=policy, keep_steps=True)
    assert max(step.contents.prefill_tokens + step.contents.decodes for step in done.kept) == 256


def test_a_preempted_request_computes_again_or_pays_for_its_swap():
    requests = [Request(0.0, 8, 20), Request(0.0, 8, 20)]  # 27 cached tokens each by their ends, and room for 40
    step_s = AffineStep(base_s=1.0)
    policy = continuous_batching(slots=2)
    one = {"num_blocks": 10, "block_tokens": 4}
    again = run(requests, step_s=step_s, policy=policy, blocks=KVBlocks(**one), keep_steps=True)
    swap = KVBlocks(**one, preemption="swap", swap_s_per_block=0.25)
    swapped = run(requests, step_s=step_s, policy=policy, blocks=swap, keep_steps=True)
    assert [moments.preempted for moments in again.moments] == [0, 1]
    # 12 decode steps bring both to 20 cached tokens, five blocks each; the second then reads its 8 + 13 tokens again
    assert sum(step.contents.prefill_tokens for step in again.kept) == 8 + 8 + 21
    assert sum(step.contents.prefill_tokens for step in swapped.kept) == 8 + 8
    # the swapped one decodes the token that the other gets by reading; five blocks go out and five come in
    assert swapped.end_s == again.end_s + 2 * 5 * 0.25


def test_a_prefix_is_read_once_while_it_is_remembered():
    step_s = AffineStep(base_s=0.0, per_prefill_token_s=1e-3, per_decode_s=1e-3)
    requests = [Request(10.0 * turn, 100, 5, "system", 64) for turn in range(6)]
    policy = continuous_batching(slots=4)
    roomy = run(requests, step_s=step_s, policy=policy, blocks=KVBlocks(num_blocks=100, prefix_cache=True))
    assert [one.reused_tokens for one in roomy.moments] == [0, 64, 64, 64, 64, 64]
    assert roomy.moments[1].ttft_s == pytest.approx(0.036)
    # others come in between and need every block: the prefix is forgotten
    between = [Request(10.0 * turn + 5, 108, 5) for turn in range(6)]
    tight = KVBlocks(num_blocks=7, prefix_cache=True)
    crowded = run([*requests, *between], step_s=step_s, policy=policy, blocks=tight)
    assert sum(one.reused_tokens for one in crowded.moments) == 0


def test_the_greater_priority_goes_first():
    requests = [Request(0.0, 1, 5), Request(1.0, 1, 5), Request(2.0, 1, 5, priority=1)]
    policy = Policy(name="priorities", slots=1, by_priority=True)
    done = run(requests, step_s=AffineStep(base_s=1.0), policy=policy)
    assert [one.admitted_s for one in done.moments] == [0.0, 10.0, 5.0]


def test_whole_prompts_enter_a_step_until_the_limit():
    requests = [Request(0.0, tokens, 2) for tokens in (300, 200, 150, 900, 10)]
    policy = continuous_batching(slots=8, max_prefill_tokens=500)
    done = run(requests, step_s=AffineStep(base_s=1.0), policy=policy, keep_steps=True)
    # 300 + 200 fill the first step; 150 and 900 would be too many, so 900 goes alone, and 10 with nobody after it
    assert [step.contents.prefill_tokens for step in done.kept] == [500, 150, 900, 10, 0]
    assert [one.first_token_s for one in done.moments] == [1.0, 1.0, 2.0, 3.0, 4.0]
    unlimited = run(requests, step_s=AffineStep(base_s=1.0), policy=continuous_batching(slots=8), keep_steps=True)
    assert [step.contents.prefill_tokens for step in unlimited.kept] == [1560, 0]
    with pytest.raises(ValueError, match="leave one out"):
        Policy(name="both", slots=2, token_budget=64, max_prefill_tokens=64)


def test_a_step_reads_so_much_of_one_prompt_and_goes_on_with_the_next() -> None:
    """Two prompts of 100 tokens, 30 of each a step in a budget of 64: side by side, and the rest of it to a third."""
    policy = Policy(name="capped", slots=4, token_budget=64, long_prefill_token_threshold=30)
    done = run([Request(0.0, 100, 2)] * 3, step_s=AffineStep(base_s=1.0), policy=policy, keep_steps=True)
    assert [step.contents.prefill_tokens for step in done.kept[:2]] == [64, 64]
    assert [one.first_token_s for one in done.moments] == pytest.approx([4.0, 4.0, 6.0])
    with pytest.raises(ValueError, match="give a token_budget, too"):
        Policy(name="whole", slots=2, long_prefill_token_threshold=30)
    with pytest.raises(ValueError, match="long_prefill_token_threshold=0"):
        Policy(name="none", slots=2, token_budget=64, long_prefill_token_threshold=0)


def test_a_watermark_keeps_blocks_free_for_those_who_run():
    # blocks of 4; each request has 8 + 20 tokens, seven blocks at its end; a pool of 12 holds one and a half
    requests = [Request(0.0, 8, 20), Request(0.0, 8, 20)]
    alone = {"step_s": AffineStep(base_s=1.0), "policy": continuous_batching(slots=2)}
    greedy = run(requests, **alone, blocks=KVBlocks(num_blocks=12, block_tokens=4))
    assert [one.admitted_s for one in greedy.moments] == [0.0, 0.0]
    assert sum(one.preempted for one in greedy.moments) == 1
    # nine of twelve stay free: the second one waits for the end of the first, and nobody is preempted
    careful = run(requests, **alone, blocks=KVBlocks(num_blocks=12, block_tokens=4, watermark=0.75))
    assert careful.moments[0].admitted_s == 0.0
    assert careful.moments[1].admitted_s == careful.moments[0].finished_s
    assert sum(one.preempted for one in careful.moments) == 0
    with pytest.raises(ValueError, match=r"watermark=1\.5"):
        KVBlocks(num_blocks=12, watermark=1.5)


def test_a_request_that_can_never_fit_is_refused():
    fits, too_long = Request(0.0, 64, 17), Request(0.0, 64, 18)
    blocks = KVBlocks(num_blocks=5)
    step_s, policy = AffineStep(base_s=1.0), continuous_batching(slots=2)
    assert run([fits], step_s=step_s, policy=policy, blocks=blocks).steps == 17
    with pytest.raises(ValueError, match="request 0 needs 6 blocks by its end; the pool has 5"):
        run([too_long], step_s=step_s, policy=policy, blocks=blocks)


def test_a_pool_of_one_is_a_server():
    requests = traffic.drawn(traffic.AZURE_CONVERSATION_2023, requests=400, seed=12)
    step_s, policy = AffineStep(base_s=0.01, per_prefill_token_s=5e-5), continuous_batching(slots=16)
    alone = run(requests, step_s=step_s, policy=policy)
    assert pooled(requests, pool=Pool(step_s=step_s, policy=policy)) == alone
    never = Scaling(least=1, most=1, target=1, start_s=0.0, stop_after_s=0.0)
    one = scaled(requests, pool=Pool(step_s=step_s, policy=policy), scaling=never)
    assert one.run == alone
    assert one.server_s == alone.end_s


def test_a_ready_server_takes_over_whoever_waits():
    # four come at once to one server with one slot; the second server is ordered at 0 and ready at 10
    requests = [Request(0.0, 1, 20) for _ in range(4)]
    pool = Pool(step_s=AffineStep(base_s=1.0), policy=continuous_batching(slots=1))
    done = scaled(requests, pool=pool, scaling=Scaling(least=1, most=2, target=1, start_s=10.0, stop_after_s=100.0))
    assert [one.admitted_s for one in done.run.moments] == [0.0, 10.0, 20.0, 30.0]
    assert (done.orders_s, done.server_s) == ([0.0], 100.0)  # both are paid from 0 to 50


def test_an_idle_server_ends_and_is_ordered_again():
    requests = [Request(0.0, 1, 5), Request(0.0, 1, 5), Request(50.0, 1, 5), Request(50.0, 1, 5)]
    pool = Pool(step_s=AffineStep(base_s=1.0), policy=continuous_batching(slots=1))
    done = scaled(requests, pool=pool, scaling=Scaling(least=1, most=2, target=1, start_s=1.0, stop_after_s=8.0))
    # the second one: ordered at 0, ready at 1, busy until 6, gone at 14; ordered again at 50, done at 56
    assert done.orders_s == [0.0, 50.0]
    assert done.server_s == 56 + 14 + 6


def test_split_pools_send_every_answer_over_once():
    requests = [Request(0.0, 100, 11), Request(0.0, 200, 1), Request(0.5, 100, 6)]
    reading = Pool(step_s=AffineStep(base_s=0.0, per_prefill_token_s=0.01), policy=continuous_batching(slots=1))
    making = Pool(step_s=AffineStep(base_s=0.0, per_decode_s=0.1), policy=continuous_batching(slots=4))
    done = split(requests, prefill=reading, decode=making, transfer_s=lambda request: request.prompt_tokens / 1000)
    # read at 1, 3 and 4; the first is there at 1.1 and makes ten more tokens alone, the last at 4.1 and makes five
    assert [one.first_token_s for one in done.moments] == pytest.approx([1, 3, 4])
    assert [one.finished_s for one in done.moments] == pytest.approx([2.1, 3, 4.6])


def test_jumps_need_not_be_asked_for():
    # any callable is a model: this one has a price that is no sum
    def step_s(contents: StepContents) -> float:
        return max(0.010, 1e-4 * (contents.prefill_tokens + contents.decodes))

    requests = [Request(0.0, 300, 4), Request(0.0, 100, 3)]
    done = run(requests, step_s=step_s, policy=continuous_batching(slots=2))
    assert [one.finished_s for one in done.moments] == pytest.approx([0.07, 0.06])


@pytest.mark.parametrize("key", request_traces.KEYS)
def test_drawn_lengths_are_the_published_ones_means_and_dependence_too(key):
    whole, chosen = request_traces.request_trace(key), traffic.as_published(key)
    requests = traffic.drawn(chosen, requests=60_000, seed=13)
    prompts = np.array([request.prompt_tokens for request in requests])
    outputs = np.array([request.output_tokens for request in requests])
    for told, lengths in ((whole.prompt, prompts), (whole.answer, outputs)):
        assert lengths.mean() == pytest.approx(told.mean, rel=0.03)
        assert np.quantile(lengths, [0.5, 0.9, 0.99]) == pytest.approx([told.p50, told.p90, told.p99], rel=0.08)
    assert np.corrcoef(prompts, outputs)[0, 1] == pytest.approx(whole.correlation, abs=0.02)
    rate = len(requests) / requests[-1].arrival_s
    assert rate == pytest.approx(whole.requests / whole.seconds, rel=0.03 * chosen.gap_cv)


@pytest.mark.parametrize("gap_cv", [0.0, 0.5, 1.0, 3.0])
def test_gaps_have_the_mean_and_the_spread_that_were_asked_for(gap_cv):
    arrivals = traffic.bursts(requests_per_s=5, gap_cv=gap_cv, requests=200_000, seed=14)
    between = np.diff(arrivals, prepend=0.0)
    assert between.mean() == pytest.approx(0.2, rel=0.03)
    assert between.std() / between.mean() == pytest.approx(gap_cv, rel=0.03, abs=1e-9)


def test_a_trace_is_taken_as_it_is():
    assert traffic.together([0.25, 1], [10, 20], [3, 4]) == [Request(0.25, 10, 3), Request(1.0, 20, 4)]

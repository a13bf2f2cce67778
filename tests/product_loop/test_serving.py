"""Serving, queues and drafts: formulas against requests that are walked through one by one."""

import math
import statistics
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threeloops.product_loop import batching, queueing, serving, speculative
from threeloops.simulate.product_loop import decoding, queue

milliseconds = st.integers(1, 200).map(lambda ms: Fraction(ms, 1000))


@given(ttft=milliseconds, itl=milliseconds, tokens=st.integers(2, 80))
def test_the_last_token_arrives_when_the_formula_says(ttft: Fraction, itl: Fraction, tokens: int) -> None:
    last = decoding.arrival_times(ttft_s=ttft, itl_s=itl, output_tokens=tokens)[-1]
    total = serving.request_s(ttft_s=float(ttft), itl_s=float(itl), output_tokens=tokens)
    assert total == pytest.approx(float(last))
    assert serving.tpot_s(request_s=total, ttft_s=float(ttft), output_tokens=tokens) == pytest.approx(float(itl))


@given(deadline=milliseconds, ttft=milliseconds, itl=milliseconds)
def test_tokens_before_a_deadline(deadline: Fraction, ttft: Fraction, itl: Fraction) -> None:
    counted = decoding.tokens_by(deadline, ttft_s=ttft, itl_s=itl)
    assert serving.most_output_tokens(deadline_s=float(deadline), ttft_s=float(ttft), itl_s=float(itl)) == counted


@given(outputs=st.lists(st.integers(1, 30), min_size=1, max_size=8))
def test_a_batch_that_is_held_together_pays_for_its_longest(outputs: list[int]) -> None:
    steps, paid = decoding.held_batches(outputs, slots=len(outputs))
    assert paid == batching.static_batch_tokens_paid(outputs)
    assert steps == max(outputs)


@given(outputs=st.lists(st.integers(1, 30), min_size=1, max_size=30), slots=st.integers(1, 8))
def test_refilling_pays_for_what_is_produced_and_never_takes_longer(outputs: list[int], slots: int) -> None:
    steps, paid = decoding.refilled_batch(outputs, slots=slots)
    assert paid == sum(outputs)
    assert steps <= decoding.held_batches(outputs, slots=slots)[0]
    served = batching.refilled_slots(outputs, slots=slots)
    assert steps == max(map(sum, served))
    assert sorted(tokens for slot in served for tokens in slot) == sorted(outputs)


@given(requests=st.integers(1, 60), shared=st.integers(0, 500), own=st.integers(0, 99), every=st.integers(1, 20))
def test_a_remembered_beginning_is_computed_once_per_miss(requests: int, shared: int, own: int, every: int) -> None:
    misses = -(-requests // every)
    predicted = serving.prefilled_tokens(
        requests=requests, shared_tokens=shared, own_tokens=own, hit_share=1 - misses / requests
    )
    assert predicted == pytest.approx(
        decoding.prefilled(requests=requests, shared=shared, own=own, forgotten_every=every), abs=1e-5
    )


@given(weights=st.integers(1, 500), cache=st.integers(1, 50), budget=st.integers(1, 2000))
def test_the_largest_batch_of_an_itl(weights: int, cache: int, budget: int) -> None:
    counted = decoding.most_together(step_s=1, weights_bytes=weights, cache_bytes=cache, bytes_per_s=budget)
    assert (
        serving.largest_batch_within_itl(
            itl_s=1, weights_bytes=weights, cache_bytes_per_request=cache, memory_bytes_per_s=budget
        )
        == counted
    )


@given(share=st.integers(5, 95), service=st.integers(1, 100), servers=st.integers(1, 12))
def test_queue_formulas_against_a_count_of_heads(share: int, service: int, servers: int) -> None:
    service_s = service / 100
    arrivals = share / 100 * servers / service_s
    counted = queue.mean_wait_s(requests_per_s=arrivals, service_s=service_s, servers=servers)
    assert queueing.mmc_wait_s(requests_per_s=arrivals, service_s=service_s, servers=servers) == pytest.approx(
        counted, rel=1e-6
    )
    found_busy = queue.waiting_share(requests_per_s=arrivals, service_s=service_s, servers=servers)
    assert queueing.erlang_c(requests_per_s=arrivals, service_s=service_s, servers=servers) == pytest.approx(
        found_busy, rel=1e-6
    )


def test_erlang_b_of_fifteen_lines_as_published() -> None:
    # erlang.com, "How much traffic can a trunk group handle?": 15 lines of which one call in a hundred is blocked
    # carry 8.108 erlangs
    assert queueing.erlang_b(requests_per_s=8.108, service_s=1, servers=15) == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize(
    ("share", "servers", "offered"), [(0.001, 7, 1.6), (0.01, 5, 1.4), (0.01, 9, 3.8), (0.02, 8, 3.6), (0.05, 9, 5.4)]
)
def test_erlang_b_between_the_loads_that_a_table_rounds_to_tenths(share: float, servers: int, offered: float) -> None:
    """Carrier Grade Voice over IP, 2nd edition, appendix A: the load that so many channels carry at this share of
    blocked calls.
    """
    low, high = (
        queueing.erlang_b(requests_per_s=offered + half, service_s=1, servers=servers) for half in (-0.05, 0.05)
    )
    assert low < share < high


@given(offered=st.integers(1, 300), service=st.integers(1, 100), servers=st.integers(1, 12))
def test_erlang_b_against_a_count_of_heads_that_cannot_exceed_the_servers(
    offered: int, service: int, servers: int
) -> None:
    arrivals, service_s = offered / service, service / 10
    counted = queue.heads(requests_per_s=arrivals, service_s=service_s, servers=servers, most=servers + 1)
    full = counted[servers] if len(counted) > servers else 0.0  # the count ends where hardly anybody ever stands
    told = queueing.erlang_b(requests_per_s=arrivals, service_s=service_s, servers=servers)
    assert told == pytest.approx(full, abs=1e-9)


@pytest.mark.parametrize(
    "service", [lambda rng: 1.0, lambda rng: rng.expovariate(1.0)], ids=["constant", "exponential"]
)
def test_erlang_b_against_customers_who_go_away_whatever_their_service_times(service) -> None:
    gone = queue.turned_away(
        customers=200_000, servers=3, gap=lambda rng: rng.expovariate(2.0), service=service, seed=2
    )
    batches = [statistics.fmean(gone[start : start + 10_000]) for start in range(0, len(gone), 10_000)]
    error = statistics.stdev(batches) / len(batches) ** 0.5
    assert abs(statistics.fmean(gone) - queueing.erlang_b(requests_per_s=2, service_s=1, servers=3)) < 4 * error


@given(share=st.integers(5, 95), servers=st.integers(1, 40))
def test_more_requests_wait_than_would_have_been_turned_away(share: int, servers: int) -> None:
    """C = B / (1 - load * (1 - B)), the identity that the books print between the two: whoever waits stands in the
    way of others.
    """
    pool = {"requests_per_s": share / 100 * servers, "service_s": 1.0, "servers": servers}
    lost, waits = queueing.erlang_b(**pool), queueing.erlang_c(**pool)
    assert lost < waits
    assert waits * (1 - share / 100 * (1 - lost)) == pytest.approx(lost)


@given(share=st.integers(2, 90), service=st.integers(1, 100))
def test_constant_service_against_a_count_of_those_left_behind(share: int, service: int) -> None:
    arrivals, service_s = share / service, service / 100
    counted = queue.mean_wait_of_constant_service_s(requests_per_s=arrivals, service_s=service_s)
    assert queueing.mg1_wait_s(requests_per_s=arrivals, service_s=service_s, service_cv=0) == pytest.approx(
        counted, rel=1e-6
    )


@given(tokens=st.integers(1, 300), chunk=st.integers(1, 64), step=st.integers(0, 30), token=st.integers(1, 9))
def test_a_prompt_read_chunk_by_chunk(tokens: int, chunk: int, step: int, token: int) -> None:
    spent, left = 0, tokens
    while left:
        part = min(chunk, left)
        spent, left = spent + step + part * token, left - part
    assert serving.chunked_prefill_s(tokens=tokens, chunk=chunk, decode_step_s=step, token_s=token) == spent


@given(kept=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_goodput_counts_who_kept_both_promises(kept: list[tuple[bool, bool]]) -> None:
    late, slow = sum(not first for first, _ in kept), sum(not between for _, between in kept)
    both = sum(not first and not between for first, between in kept)
    predicted = serving.goodput_per_s(requests=len(kept), late_first=late, slow_between=slow, both=both, seconds=2)
    assert predicted == sum(first and between for first, between in kept) / 2


@given(rent=st.integers(1, 20), price=st.sampled_from((1, 2, 3, 4, 6, 8)))
def test_a_machine_of_ones_own_pays_from_so_many_tokens_on(rent: int, price: int) -> None:
    """The interface's bill grows by a million tokens at a time until it has reached a day's rent."""
    rented, bill, millions = 24 * rent, 0, 0
    while bill < rented:
        bill, millions = bill + price, millions + 1
    assert (
        math.ceil(serving.break_even_tokens_per_day(dollars_per_hour=rent, dollars_per_million=price) / 1e6 - 1e-9)
        == millions
    )


def test_queue_formulas_against_customers_who_come_and_wait() -> None:
    """Half a million customers at 70 % load; the bound is five standard errors over batches, far from any of the
    slips.
    """
    services = {1.0: lambda rng: rng.expovariate(1.0), 0.0: lambda rng: 1.0}
    for cv, service in services.items():
        waited = queue.waits(
            customers=400_000, servers=1, gap=lambda rng: rng.expovariate(0.7), service=service, seed=1
        )
        batches = [statistics.fmean(waited[start : start + 20_000]) for start in range(0, len(waited), 20_000)]
        error = statistics.stdev(batches) / len(batches) ** 0.5
        assert (
            abs(statistics.fmean(waited) - queueing.mg1_wait_s(requests_per_s=0.7, service_s=1, service_cv=cv))
            < 5 * error
        )


@given(arrivals=st.integers(1, 30), slots=st.integers(1, 9))
def test_little_holds_in_a_run_whatever_the_order(arrivals: int, slots: int) -> None:
    """Requests one a second, each staying `slots` seconds: count heads in the middle of every second of a long
    run.
    """
    stays = [(start, start + slots) for start in range(arrivals + 10 * slots)]
    middle = range(slots, arrivals + 9 * slots)
    present = statistics.fmean(sum(begin <= moment + 0.5 < end for begin, end in stays) for moment in middle)
    assert present == pytest.approx(queueing.littles_law(requests_per_s=1, seconds=slots))


@given(accepted=st.integers(0, 100), drafted=st.integers(0, 10))
def test_drafts_walked_token_by_token(accepted: int, drafted: int) -> None:
    walked = decoding.tokens_per_check(accepted=Fraction(accepted, 100), drafted=drafted)
    assert speculative.tokens_per_check(accepted_share=accepted / 100, drafted=drafted) == pytest.approx(float(walked))


@pytest.mark.parametrize(
    ("accepted", "drafted", "operations", "faster"),
    [
        (0.6, 2, 1.53, 1.96),
        (0.7, 3, 1.58, 2.53),
        (0.8, 2, 1.23, 2.44),
        (0.8, 5, 1.63, 3.69),
        (0.9, 2, 1.11, 2.71),
        (0.9, 10, 1.60, 6.86),
    ],
)
def test_the_table_of_the_paper(accepted: float, drafted: int, operations: float, faster: float) -> None:
    """Leviathan et al., 2023, table 1, printed for a draft model that costs nothing."""
    assert speculative.speedup(accepted_share=accepted, drafted=drafted, draft_cost=0) == pytest.approx(
        faster, abs=0.006
    )
    assert speculative.extra_operations(accepted_share=accepted, drafted=drafted, draft_operations=0) == pytest.approx(
        operations, abs=0.006
    )


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: queueing.mm1_wait_s(requests_per_s=2, service_s=0.5), "grow without end"),
        (lambda: queueing.erlang_b(requests_per_s=2, service_s=0, servers=1), "service_s=0 must be greater than 0"),
        (
            lambda: queueing.erlang_b(requests_per_s=2, service_s=0.5, servers=0),
            "servers=0 must be a whole number of at least 1",
        ),
        (lambda: queueing.littles_law(requests_per_s=-1, seconds=1), "requests_per_s=-1 must be at least 0"),
        (lambda: serving.tpot_s(request_s=1, ttft_s=2, output_tokens=3), "shorter than ttft_s"),
        (lambda: serving.tpot_s(request_s=1, ttft_s=0.5, output_tokens=1), "output_tokens=1"),
        (lambda: serving.replicas(requests_per_s=1, seconds=1, slots=1, headroom=1), "leaves no slot"),
        (lambda: batching.static_batch_tokens_paid([]), "is empty"),
        (lambda: serving.goodput_per_s(requests=5, late_first=3, slow_between=3, both=0, seconds=1), "do not fit"),
        (
            lambda: serving.prefill_s(tokens=10, flops_per_token=1e9, peak_flops_per_s=1e12, utilisation=50),
            "utilisation=50",
        ),
    ],
)
def test_nonsense_is_refused(call: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()  # type: ignore[operator]


def test_a_load_above_one_overflows_a_queue_and_only_loses_more_where_nobody_waits() -> None:
    # one request in three finds the server free
    assert queueing.erlang_b(requests_per_s=2, service_s=1, servers=1) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="grow without end"):
        queueing.erlang_c(requests_per_s=2, service_s=1, servers=1)


@pytest.mark.parametrize(("requests", "gpus", "prompt", "answer"), [(4, 2, 30, 10), (7, 8, 5, 50), (1, 1, 9, 1)])
def test_what_one_user_sees_of_a_total_is_what_a_clock_counts(
    requests: int, gpus: int, prompt: int, answer: int
) -> None:
    whole_s, handled = 12.5, 0
    for _ in range(requests):
        handled += sum(1 for _ in range(prompt)) + sum(1 for _ in range(answer))
    seen = serving.user_tokens_per_s(
        total_tokens_per_gpu_s=handled / whole_s / gpus,
        num_gpus=gpus,
        requests=requests,
        prompt_tokens=prompt,
        output_tokens=answer,
    )
    assert seen == pytest.approx(answer / whole_s)

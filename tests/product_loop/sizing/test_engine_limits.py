"""Limits of a step, found again by trying every number."""

import random

import pytest

from threeloops.product_loop.sizing.engine_limits import Promises, engine_limits, most_requests
from threeloops.product_loop.sizing.request_lengths import RequestLengths
from threeloops.product_loop.sizing.request_times import RequestTimes


def drawn(seed: int) -> tuple[RequestTimes, RequestLengths, int, float]:
    rng = random.Random(seed)
    first, seats = rng.uniform(0.002, 0.02), rng.randint(1, 300)
    last = first + seats * rng.uniform(1e-5, 3e-4)
    lengths = RequestLengths(prompt=rng.randint(100, 4000), kept=0, answer=rng.randint(10, 900))
    prompt_s = first + lengths.new * rng.uniform(1e-5, 2e-4)
    times = RequestTimes(
        decode_s=((1, first), (seats, last)) if seats > 1 else ((1, first),), prompt_s=prompt_s, new=lengths.new
    )
    return times, lengths, seats, rng.uniform(1.5, 4) * first


@pytest.mark.parametrize("seed", range(40))
def test_the_most_requests_are_those_of_a_walk(seed: int) -> None:
    times, lengths, seats, itl_s = drawn(seed)

    def takes_s(requests: int) -> float:
        """One step of a steady state: as many prompt tokens come as its requests bring over their answers."""
        return times.step_s(requests) + requests / lengths.answer * lengths.new * times.per_new_token_s

    walk = [requests for requests in range(1, seats + 1) if takes_s(requests) <= itl_s]
    if not walk:
        with pytest.raises(ValueError, match="a step of a single request takes"):
            most_requests(times, lengths, seats=seats, promised=Promises(itl_s=itl_s))
        return
    assert most_requests(times, lengths, seats=seats, promised=Promises(itl_s=itl_s)) == max(walk)
    assert most_requests(times, lengths, seats=seats, promised=Promises(ttft_s=1.0)) == seats


@pytest.mark.parametrize("seed", range(40))
def test_a_full_step_takes_no_longer_than_promised(seed: int) -> None:
    times, lengths, seats, itl_s = drawn(seed)
    try:
        limits = engine_limits(times, lengths, seats=seats, promised=Promises(itl_s=itl_s), share=0.7, tokens=8192)
    except ValueError:
        return
    chunk = limits.max_num_batched_tokens - limits.max_num_seqs
    full_s = times.step_s(limits.max_num_seqs) + chunk * times.per_new_token_s
    assert full_s <= itl_s + times.per_new_token_s or limits.max_num_batched_tokens == 8192
    one_more_s = full_s + 2 * times.per_new_token_s
    assert one_more_s > itl_s or limits.max_num_batched_tokens == 8192


def test_groups_read_a_chunk_each_in_the_time_of_a_promise() -> None:
    """Four groups, of whose token a quarter is shared: found by trying every chunk. In all 7.5 µs x chunk of each one's
    own and 2.5 µs x 4 chunks of all.
    """
    times = RequestTimes(decode_s=((1, 0.010), (64, 0.016)), prompt_s=0.020, shared_prompt_s=0.0025, new=1000, groups=4)
    lengths = RequestLengths(prompt=1000, kept=0, answer=400)
    limits = engine_limits(times, lengths, seats=64, promised=Promises(itl_s=0.030), share=0.5, tokens=65_536)
    step_s = times.step_s(limits.max_num_seqs)
    walk = max(chunk for chunk in range(8000) if step_s + 7.5e-6 * chunk + 2.5e-6 * 4 * chunk <= 0.030)
    assert limits.chunk(4) == walk
    assert limits.max_num_batched_tokens == limits.max_num_seqs + 4 * walk


def test_without_a_promise_between_tokens_all_seats_are_taken() -> None:
    times, lengths, seats, _ = drawn(3)
    limits = engine_limits(times, lengths, seats=seats, promised=Promises(ttft_s=0.5), share=1.0, tokens=8192)
    assert (limits.max_num_seqs, limits.max_num_batched_tokens) == (seats, 8192)


@pytest.mark.parametrize("given", [{"ttft_s": 0.0}, {"itl_s": -1.0}])
def test_a_promise_is_a_time(given: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Promises(**given)

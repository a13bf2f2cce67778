"""Shared blocks by themselves (no token lost, no block in two hands), and then as the count that the formulas of paging
must meet; and the stream of requests that runs over a paged pool.
"""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threeloops.product_loop import kv_paging
from threeloops.simulate.product_loop import serving_faults
from threeloops.simulate.product_loop.request_stream import StreamedRequest, play, random_requests
from threeloops.simulate.product_loop.shared_blocks import NoRoomError, SharedBlocks

ACTIONS = st.tuples(
    st.sampled_from("abcd"), st.sampled_from(["admit", "append", "fork", "release"]), st.integers(0, 30)
)


@settings(max_examples=150, deadline=None)
@given(block_tokens=st.integers(1, 5), keeps=st.booleans(), steps=st.lists(ACTIONS, max_size=40))
def test_every_request_reads_its_own_text(block_tokens: int, keeps: bool, steps: list[tuple[str, str, int]]) -> None:
    """Whatever is shared, copied or evicted: a table's blocks spell the request's own tokens, and nothing is lost."""
    pool = SharedBlocks(num_blocks=40, block_tokens=block_tokens, keeps_prefixes=keeps)
    texts: dict[str, list[int]] = {}
    for name, action, number in steps:
        try:
            if action == "admit" and name not in texts:
                text = [7] * (number // 2) + [number] * (number % 4 + 1)
                hit = pool.admit(name, text)
                assert hit < len(text)
                texts[name] = list(text)
            elif action == "append" and name in texts:
                pool.append(name, number)
                texts[name].append(number)
            elif action == "fork" and name in texts and name + "'" not in texts:
                pool.fork(name, name + "'")
                texts[name + "'"] = list(texts[name])
            elif action == "release" and name in texts:
                pool.release(name)
                del texts[name]
        except NoRoomError:
            pass
        for request, text in texts.items():
            assert [token for block in pool.table(request) for token in pool.held[block]] == text
        named = [block for request in texts for block in pool.table(request)]
        assert {block: named.count(block) for block in set(named)} == {
            block: users for block, users in pool.users.items() if users
        }
        assert sorted([*set(named), *pool.waiting, *pool.empty]) == list(range(40))


def test_requests_with_one_beginning_take_the_blocks_of_the_formula() -> None:
    for shared, own, requests in ((100, 30, 5), (96, 30, 5), (10, 3, 4), (0, 50, 3), (64, 1, 7)):
        pool = SharedBlocks(num_blocks=400, block_tokens=16)
        for request in range(requests):
            pool.admit(str(request), [1] * shared + [100 + request] * own)
        assert pool.used_blocks == kv_paging.shared_prefix_blocks(
            requests=requests, shared_tokens=shared, own_tokens=own, block_tokens=16
        )


def test_branches_copy_what_the_formula_says() -> None:
    for prompt in (100, 96, 15, 16, 17):
        for branches in (1, 3, 6):
            pool = SharedBlocks(num_blocks=400, block_tokens=16)
            pool.admit("0", [1] * prompt)
            for branch in range(1, branches):
                pool.fork("0", str(branch))
            for step in range(20):
                for branch in range(branches):
                    pool.append(str(branch), 1000 * branch + step)
            assert pool.copies == kv_paging.copied_blocks(branches=branches, prompt_tokens=prompt, block_tokens=16)
            assert pool.used_blocks == kv_paging.shared_prefix_blocks(
                requests=branches, shared_tokens=prompt, own_tokens=20, block_tokens=16
            )


def test_a_beginning_is_found_again_after_its_request_has_ended() -> None:
    pool = SharedBlocks(num_blocks=6, block_tokens=4)
    pool.admit("a", list(range(10)))
    pool.release("a")
    assert (pool.used_blocks, len(pool.waiting)) == (0, 2)
    assert pool.admit("b", [*range(8), 99]) == 8
    assert pool.evictions == 0


def test_a_cycle_one_longer_than_the_cache_finds_nothing() -> None:
    """The least recently used is exactly what comes next."""
    rates = {}
    for documents in (4, 5):
        pool = SharedBlocks(num_blocks=4 * 3 + 1, block_tokens=8)  # three blocks a document, one for the question
        for turn in range(40):
            pool.admit("r", [turn % documents] * 24 + [1000 + turn])
            pool.release("r")
        rates[documents] = pool.hit_rate
    assert rates[4] == pytest.approx(36 / 40 * 24 / 25)
    assert rates[5] == 0


def test_without_room_nothing_changes() -> None:
    pool = SharedBlocks(num_blocks=3, block_tokens=4)
    pool.admit("a", [1] * 8)
    with pytest.raises(NoRoomError, match="'b' needs 2 blocks"):
        pool.admit("b", [2] * 8)
    assert "b" not in pool.tables
    assert pool.used_blocks == 2
    with pytest.raises(ValueError, match="'a' is there already"):
        pool.admit("a", [3])


# --- formulas of paging ---


def test_the_mean_last_block_is_nearly_half_empty() -> None:
    """Over lengths that spread evenly over whole blocks, exactly (block - 1) / 2 slots."""
    for block in (1, 16, 33):
        empty = [kv_paging.blocks(tokens=n, block_tokens=block) * block - n for n in range(1, 20 * block + 1)]
        assert sum(empty) / len(empty) == pytest.approx(kv_paging.mean_unwritten_slots(block_tokens=block))


@pytest.mark.parametrize(("tokens", "latency_ms"), [(1, 0), (40, 3), (700, 12)])
def test_a_cache_comes_over_the_link_or_is_computed_token_by_token(tokens: int, latency_ms: int) -> None:
    """A link that carries 2 bytes a millisecond, 6 bytes a token; a model that reads a token in 4 milliseconds."""
    fetched = latency_ms
    waiting = 6 * tokens
    while waiting > 0:
        fetched, waiting = fetched + 1, waiting - 2
    computed = sum(4 for _token in range(tokens))
    latency_s = latency_ms / 1000
    assert kv_paging.fetch_s(cache_bytes=6 * tokens, bytes_per_s_one_way=2000, latency_s=latency_s) == pytest.approx(
        fetched / 1000
    )
    assert kv_paging.recompute_s(tokens=tokens, prefill_tokens_per_s=250) == pytest.approx(computed / 1000)


def test_at_the_break_even_fetching_takes_as_long_as_computing() -> None:
    numbers = {"cache_bytes_per_token": 131_072.0, "prefill_tokens_per_s": 25_000.0}
    for rate, latency in ((20e9, 0.004), (5e9, 0.05)):
        tokens = kv_paging.shortest_worth_fetching(**numbers, bytes_per_s_one_way=rate, latency_s=latency)
        for length, quicker in ((0.9 * tokens, False), (1.1 * tokens, True)):
            fetched = kv_paging.fetch_s(cache_bytes=length * 131_072, bytes_per_s_one_way=rate, latency_s=latency)
            computed = kv_paging.recompute_s(tokens=round(length), prefill_tokens_per_s=25_000)
            assert (fetched < computed) == quicker
    edge = kv_paging.break_even_bytes_per_s(**numbers)
    assert kv_paging.shortest_worth_fetching(**numbers, bytes_per_s_one_way=edge, latency_s=0.001) == math.inf
    assert kv_paging.shortest_worth_fetching(**numbers, bytes_per_s_one_way=1.01 * edge, latency_s=0.001) < math.inf


# --- a stream of requests ---


def test_everybody_is_served_and_written_never_exceeds_reserved() -> None:
    requests = random_requests(25, seed=4, every=3, prompt=(5, 90), answer=(3, 60))
    for block_tokens in (200, 16, 1):
        stream = play(requests, pool_tokens=800, block_tokens=block_tokens)
        assert all(moment.written <= moment.reserved <= 800 for moment in stream.moments)
        tokens = sum(request.answer for request in requests)
        assert sum(moment.running for moment in stream.moments) == tokens  # one token a step and request, none twice


def test_one_token_blocks_waste_nothing_and_long_ones_most() -> None:
    requests = random_requests(25, seed=4, every=3, prompt=(5, 90), answer=(3, 60))
    shares = [play(requests, pool_tokens=800, block_tokens=block).written_share for block in (1, 16, 200)]
    assert shares[0] == 1
    assert shares[0] > shares[1] > shares[2]


def test_the_unwritten_slots_are_those_of_last_blocks() -> None:
    """With room for all, blocks of 16 leave (16 - 1) / 2 slots a request empty, to the accuracy of the sample."""
    rng = random.Random(8)
    requests = [StreamedRequest(arrives=0, prompt=rng.randint(1, 320), answer=rng.randint(40, 80)) for _ in range(150)]
    stream = play(requests, pool_tokens=200 * 400, block_tokens=16)
    steps = [moment for moment in stream.moments if moment.running == 150]
    mean = sum(moment.unwritten / moment.running for moment in steps) / len(steps)
    assert mean == pytest.approx(kv_paging.mean_unwritten_slots(block_tokens=16), rel=0.1)


def test_who_comes_last_is_sent_back_first_and_computes_again() -> None:
    requests = [StreamedRequest(arrives=0, prompt=8, answer=8), StreamedRequest(arrives=0, prompt=7, answer=8)]
    stream = play(requests, pool_tokens=24, block_tokens=4)
    assert stream.preemptions >= 1
    assert stream.recomputed >= 8
    assert stream.moments[-1].running == 1  # the second one ends alone
    with pytest.raises(ValueError, match="a request of 16 tokens does not fit"):
        play(requests, pool_tokens=12, block_tokens=4)


# --- traces of a server in which something is wrong ---


def test_the_night_shows_blocks_that_belong_to_nobody() -> None:
    hours = serving_faults.night()
    assert {hour.running for hour in hours[:4]} == {20}
    own = [math.ceil(hour.running_tokens / 16) + hour.running for hour in hours]  # the most that they can need
    assert hours[0].used_blocks - own[0] < hours[3].used_blocks - own[3]
    assert hours[0].refused == 0 < hours[-1].refused
    assert all(hour.kept_blocks == 0 for hour in hours)


def test_the_morning_falls_to_nothing_only_where_tenants_come_in_turn() -> None:
    in_turn = [hour.hit_rate for hour in serving_faults.morning(tenants=(7, 8, 9), in_turn=True)]
    at_random = [hour.hit_rate for hour in serving_faults.morning(tenants=(7, 8, 9), in_turn=False)]
    assert in_turn[1] > 0.85
    assert in_turn[2] < 0.2
    assert at_random[2] > 0.6

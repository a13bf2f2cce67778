"""Two pools with users: held to the formula of both, and by hand."""

import math
from typing import Any

import pytest

from threeloops.product_loop.expected.pool_times import pools_at
from threeloops.simulate.product_loop.sizing.pool_runs import DecodeCopy, at_pool_rate, with_pool_users
from threeloops.simulate.product_loop.sizing.replica_runs import Replica, ReplicaRun, ReplicaStep

DECODE_S = (0.0, *(0.008 + 0.0001 * requests for requests in range(1, 401)))
COPY = DecodeCopy(decode_s=DECODE_S, max_num_seqs=400)


@pytest.mark.parametrize(("users", "servers"), [(16, 2), (64, 2), (128, 1), (400, 8)])
def test_many_users_get_what_the_formula_says(users: int, servers: int) -> None:
    """Where decoding binds and where reading does; the formula knows no single request."""
    seen = with_pool_users(
        [(0.05, 200)], users=users, servers=servers, copies=[COPY] * 2, handover_s=0.0, rounds=4, seed=1
    )
    told = pools_at(
        users,
        answer=200,
        prompt_s=0.05,
        reads_per_s=servers / 0.05,
        step_s=lambda requests: DECODE_S[max(1, round(requests / 2))],
    )
    assert seen.tokens_per_s / 200 == pytest.approx(told.requests_per_s, rel=0.02)
    assert seen.tpot_s[0] == pytest.approx(told.tpot_s, rel=0.03)
    assert seen.inside == pytest.approx(told.decoding, rel=0.05)


def alone(**other: Any) -> Any:
    given: dict[str, Any] = {"users": 1, "servers": 1, "copies": [COPY], "handover_s": 0.0, "rounds": 3, "seed": 1}
    size = other.pop("size", (0.2, 3))
    return with_pool_users([size], **given | other)


def test_one_user_by_hand() -> None:
    """0.2 s to read, then two steps of 8.1 ms; with a handover its second token waits for it."""
    one = alone()
    assert one.ttft_s == pytest.approx((0.2, 0.2))
    assert one.itl_s == pytest.approx((0.0081, 0.0081))
    assert one.tokens_per_s == pytest.approx(3 / (0.2 + 2 * 0.0081), rel=0.05)
    handed = alone(handover_s=0.1)
    assert handed.ttft_s == pytest.approx((0.2, 0.2))
    assert handed.itl_s[1] == pytest.approx(0.1081)
    assert handed.tpot_s[0] == pytest.approx(0.1 / 2 + 0.0081)


def test_two_users_wait_for_one_server_or_for_one_seat() -> None:
    """Read in turns, the second begins when the first is read; a copy with a single seat takes them in turns, too."""
    one, two = alone(), alone(users=2)
    assert two.ttft_s[0] == pytest.approx(0.4 - 2 * 0.0081)
    assert two.tpot_s == pytest.approx(one.tpot_s)
    narrow, long = DecodeCopy(decode_s=DECODE_S, max_num_seqs=1), {"size": (0.01, 101), "users": 2, "servers": 2}
    taken_s = 100 * 0.0081  # the seat, by whoever has it: the other has read in the meantime, and waits for the rest
    seated = alone(**long, copies=[narrow])
    assert seated.tpot_s == pytest.approx(((2 * taken_s - 0.01) / 100,) * 2)
    assert alone(**long, copies=[narrow] * 2).tpot_s == pytest.approx((0.0081, 0.0081))


@pytest.mark.parametrize("given", [{"users": 0}, {"servers": 0}, {"copies": []}, {"rounds": 0}])
def test_what_cannot_be_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(given))}=0"):
        alone(**given)


def behind(sizes: list[tuple[float, int]], *, rate: float, seats: int = 200) -> ReplicaRun:
    """Every request of one of two copies, whose steps take 8 ms however many are inside."""
    step = ReplicaStep(decode_s=(0.0, *[0.008] * seats), per_new_token_s=0.0)
    copy = Replica(step=step, max_num_seqs=seats, max_num_batched_tokens=seats + 1, mixed=True)
    given: dict[str, Any] = {"servers": 1, "copies": 2, "copy": copy, "handover_s": 0.1, "requests": 4000, "seed": 1}
    each_s = at_pool_rate(sizes, requests_per_s=rate, **given)
    assert len(each_s) == 3000
    nothing: dict[str, Any] = dict.fromkeys(["ttft_s", "itl_s", "tpot_s"], (0.0, 0.0))
    return ReplicaRun(**nothing, tokens_per_s=0.0, inside=0.0, each_s=each_s)


def test_requests_in_time_behind_one_server_are_those_of_a_queue() -> None:
    """Poisson arrivals meet a server that is busy half of the time: half of them do not wait, and one in
    exp(0.5) (1 - 0.5) waits no longer than a reading more (Erlang's M/D/1).
    """
    seen = behind([(0.1, 101)], rate=5.0)
    assert seen.in_time(ttft_s=0.1001) == pytest.approx(0.5, abs=0.03)
    assert seen.in_time(ttft_s=0.2001) == pytest.approx(math.exp(0.5) * 0.5, abs=0.03)
    gaps_s = [gap_s for _, gap_s in seen.each_s]
    assert min(gaps_s) == pytest.approx(0.009)  # a step, and a hundredth of the handover
    assert 0.00905 < max(gaps_s) < 0.009 + 0.008 / 100 + 1e-9  # and of a step that had begun


def test_a_request_keeps_its_two_times_together() -> None:
    """Where every second prompt is long, and has the short answer that the handover makes late, a promise that both
    would break by themselves is kept by the other half; and nobody keeps both if it is the other way round.
    """
    promised = {"ttft_s": 0.15, "tpot_s": 0.010}
    assert behind([(0.2, 11), (0.1, 401)], rate=0.1).in_time(**promised) == pytest.approx(0.5, abs=0.04)
    assert behind([(0.1, 11), (0.2, 401)], rate=0.1).in_time(**promised) < 0.01


def test_who_waits_for_a_seat_has_a_longer_gap() -> None:
    """Half as many seats as are asked for: the wait grows, and none is as fast as with room for all."""
    roomy, narrow = (behind([(0.01, 101)], rate=10.0, seats=seats) for seats in (200, 4))
    assert roomy.in_time(tpot_s=0.0091) > 0.99
    assert narrow.in_time(tpot_s=0.0091) < 0.5

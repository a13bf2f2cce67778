"""Two pools with users: held to the formula of both, and by hand."""

from typing import Any

import pytest

from threeloops.product_loop.expected.pool_times import pools_at
from threeloops.simulate.product_loop.sizing.pool_runs import DecodeCopy, with_pool_users

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

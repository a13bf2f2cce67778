"""Prefill runs: against a queue that is played otherwise, and asked for what cannot be."""

import pytest

from threeloops.simulate.product_loop.queue import waits
from threeloops.simulate.product_loop.sizing.prefill_runs import fewest_servers, first_tokens_s


@pytest.mark.parametrize(("servers", "rate"), [(1, 6.0), (4, 30.0)])
def test_waits_are_those_of_a_queue_with_servers(servers: int, rate: float) -> None:
    """The same shares late, from other draws of another player."""
    half_s, late_s = first_tokens_s([0.1], servers=servers, requests_per_s=rate, requests=40_000, seed=1)
    other = sorted(
        0.1 + wait_s
        for wait_s in waits(
            customers=40_000,
            servers=servers,
            gap=lambda rng: rng.expovariate(rate),
            service=lambda _: 0.1,
            seed=2,
        )
    )
    assert half_s == pytest.approx(other[len(other) // 2], rel=0.1)
    assert late_s == pytest.approx(other[int(0.99 * len(other))], rel=0.15)


def test_the_fewest_servers_keep_the_promise_and_one_fewer_does_not() -> None:
    readings, load = (0.05, 0.1, 0.15), {"requests_per_s": 38.0, "seed": 1}
    servers, (half_s, late_s) = fewest_servers(readings, **load, promised_s=0.3, together=1)
    assert servers > 38 * 0.1
    assert half_s < late_s <= 0.3
    fewer = first_tokens_s(readings, **load, servers=servers - 1, requests=12_000)
    assert fewer[1] > 0.3
    assert fewest_servers(readings, **load, promised_s=0.3, together=4)[0] % 4 == 0


def test_a_large_pool_keeps_its_promise_in_a_run_that_is_much_longer() -> None:
    """Two hundred servers, busy for 99.85 % of their time, look in time until their queue has grown."""
    readings, rate = (0.25, 0.5, 0.75), 399.4
    servers, _ = fewest_servers(readings, requests_per_s=rate, promised_s=1.0, together=1, seed=1)
    kept, broken = (
        first_tokens_s(readings, servers=many, requests_per_s=rate, requests=150_000, seed=7)[1]
        for many in (servers, 200)
    )
    assert kept < 1.2  # a percentile of one run is good to about a fifth
    assert broken > 1.4


def test_a_prompt_that_takes_longer_than_promised_is_refused() -> None:
    with pytest.raises(ValueError, match=r"up to 0\.15 s to read, and the first token is promised within 0\.1 s"):
        fewest_servers((0.05, 0.15), requests_per_s=1.0, promised_s=0.1, together=1, seed=1)

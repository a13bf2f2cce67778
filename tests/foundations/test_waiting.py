"""Waiting: Erlang's B against the sum that Erlang wrote, in exact fractions, and at its ends."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threeloops.foundations import waiting
from threeloops.training_loop.run import reliability


@given(tenths=st.integers(1, 400), servers=st.integers(0, 60))
def test_the_recursion_is_the_sum(tenths: int, servers: int) -> None:
    load = Fraction(tenths, 10)
    terms = [load**places / math.factorial(places) for places in range(servers + 1)]
    assert waiting.blocked_share(offered_load=tenths / 10, servers=servers) == pytest.approx(
        float(terms[-1] / sum(terms))
    )


def test_ends() -> None:
    assert waiting.blocked_share(offered_load=5, servers=0) == 1  # nobody to serve: everybody is lost
    assert waiting.blocked_share(offered_load=1e-9, servers=1) == pytest.approx(1e-9)
    # ten are served, the rest is lost
    assert waiting.blocked_share(offered_load=1e6, servers=10) == pytest.approx(1 - 10 / 1e6, rel=1e-6)


def test_a_run_with_spares_loses_what_servers_without_a_queue_lose() -> None:
    """A run with no spare stands still while its one broken node is repaired: repair / (time between failures +
    repair).
    """
    assert reliability.spare_wait_share(failures_per_s=1 / 300, repair_s=400, spares=0) == pytest.approx(400 / 700)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="offered_load=0 must be greater than 0"):
        waiting.blocked_share(offered_load=0, servers=1)
    with pytest.raises(ValueError, match="servers=-1 must be a whole number of at least 0"):
        waiting.blocked_share(offered_load=1, servers=-1)

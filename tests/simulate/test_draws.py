"""Draws without numpy are numpy's, bit by bit; so what a page simulates is what the command does."""

import random
from itertools import pairwise

import numpy as np
import pytest

from threeloops.simulate.product_loop import traffic
from threeloops.simulate.product_loop.sizing.draws import Draws, arrivals_s, quantiles

SEEDS = (0, 1, 2, 7, 12345, 2**32 - 1)
LIMITS = (1, 2, 3, 7, 2000, 3 * 2**30, 2**32 - 1)  # of three quarters of 32 bits every fourth draw is drawn again


@pytest.mark.parametrize("seed", SEEDS)
def test_every_draw_is_numpys(seed: int) -> None:
    assert [Draws(seed).bits() for _ in range(1)] == np.random.PCG64(seed).random_raw(1).tolist()
    ours, theirs = Draws(seed), np.random.default_rng(seed)
    for limit in LIMITS:  # halves of 64 bits are kept from one call to the next
        assert [ours.below(limit) for _ in range(301)] == theirs.integers(limit, size=301).tolist()
        assert [ours.share() for _ in range(300)] == theirs.random(300).tolist()
    drawn = [ours.exponential() for _ in range(20_000)]
    assert drawn == pytest.approx(theirs.standard_exponential(20_000).tolist(), rel=1e-12)
    assert max(drawn) > 8 > 1e-3 > min(drawn), "tail and lowest layer were met"


def test_arrivals_are_those_of_traffic() -> None:
    for rate, seed in ((0.01, 1), (3.7, 2), (900.0, 3)):
        ours = arrivals_s(requests_per_s=rate, requests=3000, seed=seed)
        assert ours == pytest.approx(traffic.poisson(requests_per_s=rate, requests=3000, seed=seed).tolist(), rel=1e-12)
        assert all(before < after for before, after in pairwise(ours))


def test_quantiles_are_numpys() -> None:
    rng = random.Random(4)
    for _ in range(300):
        values = [rng.expovariate(1) for _ in range(rng.randrange(1, 60))]
        shares = [0.0, 0.5, 0.99, 1.0, rng.random()]
        assert quantiles(values, shares) == pytest.approx(np.quantile(values, shares).tolist(), rel=1e-13)


def test_what_cannot_be_drawn_is_refused() -> None:
    for words, wrong in {
        "seed": lambda: Draws(-1),
        "more than 32 bits": lambda: Draws(2**32),
        "limit": lambda: Draws(1).below(0),
        "limit=4294967296": lambda: Draws(1).below(2**32),
        "no quantiles": lambda: quantiles([], [0.5]),
    }.items():
        with pytest.raises(ValueError, match=words):
            wrong()

"""Stragglers: the mean of a maximum, by formula and by drawing every rank of every step.

Statistical bound: the drawn mean lies within 4 standard errors of the formula, and that standard error is below 1 %
of what the maximum adds.
"""

import itertools
import math

import numpy
import pytest

from threeloops.simulate.training_loop import slowest_rank
from threeloops.training_loop.run import stragglers


def held(steps, formula, added):
    error = float(steps.std(ddof=1)) / math.sqrt(len(steps))
    assert error < 0.01 * added
    assert abs(float(steps.mean()) - formula) < 4 * error


@pytest.mark.parametrize("ranks", [1, 7, 100, 1024])
def test_normal_ranks(ranks):
    steps = slowest_rank.steps_s(
        ranks=ranks, steps=20_000, seed=ranks, rank_s=lambda rng, shape: rng.normal(1.0, 0.02, shape)
    )
    held(
        steps,
        stragglers.slowest_normal_s(mean_s=1.0, deviation_s=0.02, ranks=ranks),
        0.02 if ranks == 1 else float(steps.mean()) - 1,
    )


@pytest.mark.parametrize("ranks", [1, 5, 64, 1024])
def test_exponential_delays(ranks):
    steps = slowest_rank.steps_s(
        ranks=ranks, steps=20_000, seed=ranks, rank_s=lambda rng, shape: 1 + rng.exponential(0.05, shape)
    )
    formula = stragglers.slowest_exponential_s(base_s=1.0, delay_s=0.05, ranks=ranks)
    held(steps, formula, formula - 1)


@pytest.mark.parametrize(("probability", "ranks"), [(0.1, 5), (0.001, 700), (0.3, 1)])
def test_rare_stalls(probability, ranks):
    steps = slowest_rank.steps_s(
        ranks=ranks, steps=60_000, seed=2, rank_s=lambda rng, shape: 1 + 0.5 * (rng.random(shape) < probability)
    )
    formula = stragglers.stalled_s(step_s=1.0, stall_s=0.5, probability=probability, ranks=ranks)
    held(steps, formula, formula - 1)


def test_known_means_of_normal_maxima():
    # Exact: 1/sqrt(pi) for two, 3/(2 sqrt(pi)) for three. Tippett, Biometrika 17, 1925: 1.53875 for ten, 3.24144 for
    # a thousand.
    known = {1: 0.0, 2: 1 / math.sqrt(math.pi), 3: 1.5 / math.sqrt(math.pi), 10: 1.53875, 1000: 3.24144}
    for ranks, mean in known.items():
        assert stragglers.slowest_normal_s(mean_s=0.0, deviation_s=1.0, ranks=ranks) == pytest.approx(mean, abs=2e-5)


def test_every_outcome_of_a_few_ranks():
    probability, ranks = 0.2, 6
    mean = sum(
        probability ** sum(stalled) * (1 - probability) ** (ranks - sum(stalled)) * (1.7 if any(stalled) else 1.0)
        for stalled in itertools.product((False, True), repeat=ranks)
    )
    assert stragglers.stalled_s(step_s=1.0, stall_s=0.7, probability=probability, ranks=ranks) == pytest.approx(mean)


def test_ranks_wait_for_the_slowest_second_by_second():
    steps = numpy.random.default_rng(3).normal(1.0, 0.05, size=(200, 16))
    waited = paid = 0.0
    for ranks_s in steps:
        slowest_s = max(ranks_s)
        for rank_s in ranks_s:
            waited, paid = waited + slowest_s - rank_s, paid + slowest_s
    typical_s, step_s = steps.mean(), steps.max(axis=1).mean()
    assert stragglers.waiting_share(typical_s=typical_s, step_s=step_s) == pytest.approx(waited / paid)


def test_more_ranks_wait_longer_and_lose_more():
    times = [stragglers.slowest_normal_s(mean_s=1.0, deviation_s=0.03, ranks=ranks) for ranks in (1, 8, 64, 512)]
    assert times == sorted(times)
    assert stragglers.waiting_share(typical_s=1.0, step_s=times[0]) == pytest.approx(0, abs=1e-12)
    assert stragglers.waiting_share(typical_s=1.0, step_s=1.25) == pytest.approx(0.2)


def test_drawing_in_pieces_draws_every_step():
    steps = slowest_rank.steps_s(ranks=900_000, steps=5, seed=1, rank_s=lambda rng, shape: numpy.full(shape, 2.0))
    assert steps.tolist() == [2.0] * 5


@pytest.mark.parametrize("wrong", [{"ranks": 0}, {"deviation_s": -1}, {"mean_s": -1}])
def test_refusals(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        stragglers.slowest_normal_s(**({"mean_s": 1.0, "deviation_s": 0.1, "ranks": 2} | wrong))
    with pytest.raises(ValueError, match="no faster"):
        stragglers.waiting_share(typical_s=2.0, step_s=1.0)
    with pytest.raises(ValueError, match="at least 1"):
        slowest_rank.steps_s(ranks=0, steps=1, seed=0, rank_s=lambda rng, shape: rng.random(shape))

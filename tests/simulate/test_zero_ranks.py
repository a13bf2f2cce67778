"""One step on every rank: against the formulas of bytes and traffic, against steps that really compute, and against
what must hold at every moment.
"""

import itertools

import numpy as np
import pytest

from threeloops.simulate.training_loop.traffic import zero_step
from threeloops.simulate.training_loop.zero_ranks import NEW, play
from threeloops.training_loop.memory import rank_states
from threeloops.training_loop.network import traffic

SETTINGS = list(itertools.product((0, 1, 2, 3), (2, 3, 5, 8), (1, 4)))


@pytest.mark.parametrize(("stage", "ranks", "layers"), SETTINGS)
def test_what_is_kept_between_steps_is_the_formula_without_its_gradients(stage: int, ranks: int, layers: int) -> None:
    size = rank_states.ParameterBuckets(split_matrices=1e6)
    states = rank_states.model_states(parameters=size, recipe="zero-paper", zero_stage=stage, dp=ranks, tp=1, pp=1)
    played = play(stage=stage, ranks=ranks, layers=layers)
    assert played.rest_bytes == pytest.approx((states.total_bytes - states.gradients_bytes) / 1e6)
    extra = {0: 0, 1: 0, 2: 2, 3: 4}[stage] * (1 - 1 / ranks) / layers  # a layer's whole gradient, and whole weights
    assert played.most_bytes <= states.total_bytes / 1e6 + extra + 1e-9


@pytest.mark.parametrize(("stage", "ranks", "layers"), SETTINGS)
def test_what_is_sent_is_the_formula_and_what_a_step_that_computes_sends(stage: int, ranks: int, layers: int) -> None:
    played = play(stage=stage, ranks=ranks, layers=layers)
    size = {"num_parameters": 1e6, "dp": ranks, "bytes_per_gradient": 1, "bytes_per_parameter": 1}
    assert played.sent_models == pytest.approx(
        traffic.data_parallel_traffic(zero_stage=stage, **size).total_bytes / 1e6
    )
    values = np.ones(120)  # as many for every number of ranks
    computed = zero_step(values, [[1.0]] * ranks, stage=stage, learning_rate=0.1)
    assert played.sent_models == pytest.approx(computed.sent_bytes[0] / values.nbytes)


@pytest.mark.parametrize(("stage", "ranks", "layers"), SETTINGS)
def test_nothing_is_computed_without_what_it_needs_and_all_ranks_end_updated(
    stage: int, ranks: int, layers: int
) -> None:
    everything = set(range(ranks))
    played = play(stage=stage, ranks=ranks, layers=layers)
    for moment in played.moments:
        for rank, kept in enumerate(moment.kept):
            if moment.what in ("forward", "backward"):
                assert set(kept[moment.layer - 1].weights) == everything
            if moment.what == "update":
                assert all(len(one.gradients[shard]) == ranks for one in kept for shard in one.optimiser)
            assert all(rank in one.weights and rank in one.optimiser for one in kept), "everybody keeps its own shard"
    for kept in played.moments[-1].kept:
        assert all(set(one.weights.values()) == {NEW} and not one.gradients for one in kept)
    owned = [shard for kept in played.moments[-1].kept for shard in kept[0].optimiser]
    assert sorted(owned) == sorted(list(everything) * (ranks if stage == 0 else 1))


def test_what_cannot_be_played_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="stage=4 must be 0, 1, 2 or 3"):
        play(stage=4, ranks=2, layers=2)
    with pytest.raises(ValueError, match="ranks=1"):
        play(stage=1, ranks=1, layers=2)

"""Two halves of a batch: the bound on a layer against a played schedule."""

import random

import pytest

from threeloops.product_loop.experts import two_batches
from threeloops.product_loop.experts.two_batches import LayerTimes
from threeloops.simulate.product_loop.experts.played_batches import play

LAYERS = 200  # so many that the first and last count for little


def counted_s(times: LayerTimes, batches: int) -> float:
    """Seconds a layer, played."""
    stages = (times.attention_s, times.dispatch_s, times.experts_s, times.combine_s)
    return play(stages_s=stages, batches=batches, num_layers=LAYERS).finished_s / LAYERS


def drawn(seed: int) -> LayerTimes:
    rng = random.Random(seed)
    return LayerTimes(
        attention_s=rng.uniform(1, 4), dispatch_s=rng.uniform(0.2, 2), experts_s=rng.uniform(0.5, 3), combine_s=1
    )


def test_one_batch_takes_its_stages_in_turn() -> None:
    for seed in range(20):
        assert counted_s(drawn(seed), 1) == pytest.approx(two_batches.in_turn_s(drawn(seed)))


def test_no_schedule_beats_the_bound_and_the_greedy_one_comes_close() -> None:
    over = []
    for seed in range(200):
        bound = two_batches.hidden_s(drawn(seed))
        over.append(counted_s(drawn(seed), 2) / bound)
    assert min(over) > 1 - 1e-9
    assert sum(over) / len(over) < 1.1
    assert max(over) < 1.34


def test_the_bound_is_reached_where_computing_and_exchanging_alternate_evenly() -> None:
    even = LayerTimes(attention_s=2, dispatch_s=2, experts_s=2, combine_s=2)
    assert counted_s(even, 2) == pytest.approx(two_batches.hidden_s(even), rel=0.02)
    gain = counted_s(LayerTimes(attention_s=4, dispatch_s=4, experts_s=4, combine_s=4), 1) / counted_s(even, 2)
    whole = LayerTimes(attention_s=4, dispatch_s=4, experts_s=4, combine_s=4)
    assert gain == pytest.approx(two_batches.in_turn_s(whole) / two_batches.hidden_s(even), rel=0.02)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="attention_s"):
        LayerTimes(attention_s=0, dispatch_s=1, experts_s=1, combine_s=1)
    with pytest.raises(ValueError, match="batches"):
        play(stages_s=(1, 1, 1, 1), batches=0, num_layers=1)

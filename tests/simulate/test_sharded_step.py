"""FSDP's step on a clock: against what must hold whatever the times, and against sums written down by hand."""

import itertools
import random

import pytest
from tests.each import each

from threeloops.simulate.training_loop.sharded_step import PlayedStep, play

EVEN = {"forward_s": 1.0, "backward_s": 2.0, "gather_s": 1.0, "scatter_s": 1.0}


def drawn(seed: int) -> tuple[dict[str, float], PlayedStep]:
    rng = random.Random(seed)
    times = {name: rng.choice((0.25, 0.5, 1.0, 1.5, 3.0)) for name in EVEN}
    asked = {"layers": rng.randint(1, 7), "ahead": rng.randint(0, 4), "keep": rng.random() < 0.5}
    return {**times, **asked}, play(**times, **asked)


@each("seed", range(200))
def test_nobody_does_two_things_at_once_and_nothing_is_computed_without_its_weights(seed: int) -> None:
    asked, run = drawn(seed)
    for network in (True, False):
        spans = sorted((one.start_s, one.end_s) for one in run.work if one.on_network is network)
        assert all(first[1] <= second[0] + 1e-9 for first, second in itertools.pairwise(spans))
    for one in run.work:
        if one.what in ("forward", "backward"):
            (place,) = [w for w in run.whole if w.layer == one.layer and w.start_s < one.start_s < w.end_s]
            assert place.start_s + asked["gather_s"] <= one.start_s + 1e-9
    layers = int(asked["layers"])
    gathers = [one.layer for one in run.work if one.what == "gather"]
    scatters = [one.layer for one in run.work if one.what == "scatter"]
    assert sorted(scatters) == list(range(1, layers + 1))
    assert len(gathers) == (layers if asked["keep"] else 2 * layers - 1), "the last layer stays for its backward pass"
    assert run.most_whole <= (layers if asked["keep"] else min(layers, 1 + int(asked["ahead"])))


def test_without_gathering_ahead_everything_is_in_turn() -> None:
    for layers in (1, 2, 5):
        run = play(layers=layers, **EVEN, ahead=0, keep=False)
        assert run.finished_s == (2 * layers - 1) * 1 + layers * (1 + 2 + 1)


def test_where_the_network_is_quick_the_device_waits_at_both_ends_alone() -> None:
    run = play(layers=6, forward_s=1.0, backward_s=2.0, gather_s=0.25, scatter_s=0.25, ahead=1, keep=False)
    assert run.waits_s == pytest.approx(0.25 + 0.25)


def test_where_the_network_is_slow_it_sets_the_pace() -> None:
    run = play(layers=6, forward_s=1.0, backward_s=1.0, gather_s=8.0, scatter_s=8.0, ahead=1, keep=False)
    busy = sum(one.end_s - one.start_s for one in run.work if one.on_network)
    # It rests while the last layer's two passes run, of which its scatter and the next gather know nothing yet.
    assert busy == (11 + 6) * 8
    assert busy < run.finished_s <= busy + 2 + 1


def test_what_cannot_be_played_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="layers=0"):
        play(layers=0, **EVEN, ahead=1, keep=False)
    with pytest.raises(ValueError, match="ahead=-1"):
        play(layers=2, **EVEN, ahead=-1, keep=False)

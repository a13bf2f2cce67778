"""The explorer of ZeRO on every rank, from state to text: no browser needed."""

import itertools

import pytest

from threeloops.widgets.training_loop import zero_ranks as widget
from threeloops.widgets.training_loop.zero_ranks_view import LAYERS, RANKS, SAYS, WAYS, State, last_step, view


def test_every_step_of_every_setting_can_be_shown() -> None:
    for stage, ranks, layers in itertools.product(WAYS.values(), RANKS, LAYERS):
        last = last_step(stage, ranks, layers)
        shown = [view(State(stage=stage, ranks=ranks, layers=layers, step=step)) for step in range(last + 1)]
        assert len({one.summary for one in shown}) == last + 1
        assert all(len(one.rows) == ranks for one in shown)
        assert SAYS["start"] in shown[0].summary
        assert SAYS["end"] in shown[-1].summary


def test_a_gradient_that_is_not_summed_yet_and_old_weights_are_low() -> None:
    for stage, step, name in (
        (0, 4, "memory"),
        (1, 11, "compute"),
    ):  # a backward pass; the first gather after the update
        drawn = view(State(stage=stage, ranks=2, layers=3, step=step)).figure.body["layer"][0]["data"]["values"]
        assert len({round(box["y2"] - box["y"], 3) for box in drawn if box["kind"] == name}) == (1 if stage == 0 else 2)


def test_another_way_is_shown_from_its_beginning_and_impossible_ones_are_one_sentence() -> None:
    explorer = widget.explorer()
    explorer.turn(step=5)
    explorer.turn(stage=1)
    assert explorer.state.step == 0
    with pytest.raises(ValueError, match="stage=7 must be one of 0, 1, 2, 3"):
        State(stage=7, ranks=2, layers=2, step=0)
    with pytest.raises(ValueError, match="step=99 must be at most 17"):
        State(stage=3, ranks=4, layers=3, step=99)

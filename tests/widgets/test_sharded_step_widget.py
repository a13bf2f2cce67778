"""The sharded step explorer, from state to text: no browser needed."""

import itertools

import pytest

from threeloops.widgets.training_loop import sharded_step as widget
from threeloops.widgets.training_loop.sharded_step_view import AFTER, AHEAD, GATHERS, LAYERS, State, moments, view


def test_every_step_of_every_setting_can_be_shown() -> None:
    for setting in itertools.product(LAYERS, GATHERS.values(), AHEAD.values(), AFTER.values()):
        layers, gather_s, ahead, keep = setting
        last = len(moments(*setting)) - 1
        for step in (0, 1, last // 2, last):
            shown = view(State(layers=layers, gather_s=gather_s, ahead=ahead, keep=keep, step=step))
            assert len(shown.rows) == layers
        assert "Whole on this GPU: no layer" in shown.summary, "all weights are shards again in the end"


def test_gathering_ahead_shortens_the_step_and_costs_a_layer() -> None:
    titles = [view(State(layers=4, gather_s=1.0, ahead=ahead, keep=False, step=0)).figure.title for ahead in (0, 1)]
    assert titles == [
        "The device waits for 47.8 % of the step; at most 1 layer whole",  # 11 of 23, in turn
        "The device waits for 14.3 % of the step; at most 2 layers whole",  # the first gather and the last scatter
    ]


def test_another_setting_is_shown_whole_and_impossible_ones_are_one_sentence() -> None:
    explorer = widget.explorer()
    explorer.turn(keep=True)
    assert explorer.state.step == len(moments(3, 1.0, 1, True)) - 1
    with pytest.raises(ValueError, match="layers=9 must be one of 2, 3, 4, 5"):
        State(layers=9, gather_s=1.0, ahead=1, keep=False, step=0)
    with pytest.raises(ValueError, match="step=99 must be at most"):
        State(layers=3, gather_s=1.0, ahead=1, keep=False, step=99)

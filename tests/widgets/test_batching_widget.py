"""The batching explorer, from state to text: no browser needed."""

import re

import pytest

from threeloops.widgets.product_loop import batching as widget
from threeloops.widgets.product_loop.batching_view import KINDS, RATES, SLOTS, STEPS, State, moment, requests, view


def dots(shown, panel):
    """What the drawing's dots say, without those of the queue."""
    values = shown.figure.body["hconcat"][panel]["layer"][2]["data"]["values"]
    return [dot for dot in values if dot["row"]]


@pytest.mark.parametrize("rate", RATES)
def test_every_request_is_in_one_place_at_every_step(rate: float) -> None:
    for kind in KINDS:
        for step in range(STEPS + 1):
            now = moment(kind, rate, step)
            arrived = sum(one.arrival_s <= step for one in requests(rate))
            assert len(now.waiting) + len(now.works) + now.answered == arrived
            assert len(now.works) + len(now.held) <= SLOTS
            assert kind == "static" or not now.held
            assert not now.waiting or len(now.works) == SLOTS or kind == "static"


@pytest.mark.parametrize("rate", RATES)
def test_a_step_makes_a_token_for_everyone_who_works(rate: float) -> None:
    for kind in KINDS:
        for step in range(STEPS):
            now = moment(kind, rate, step)
            assert moment(kind, rate, step + 1).tokens == now.tokens + len(now.works)


def test_static_falls_behind_once_the_slots_are_asked_for() -> None:
    quiet, busy = ({kind: moment(kind, rate, STEPS).tokens for kind in KINDS} for rate in (min(RATES), max(RATES)))
    assert quiet["static"] == quiet["continuous"]
    assert busy["continuous"] > 1.5 * busy["static"]


def test_dots_stand_where_their_tokens_are() -> None:
    for step in (0, 17, 33, STEPS):
        shown = view(State(rate=0.5, step=step))
        for panel, kind in enumerate(KINDS):
            now = moment(kind, 0.5, step)
            assert len(dots(shown, panel)) == len(now.works) + len(now.held)
            ended = {str(one.place + 1): one.request.output_tokens for one in now.held}
            assert {dot["who"]: dot["x"] for dot in dots(shown, panel) if dot["what"].startswith("has")} == ended
        assert [row[5] for row in shown.rows] == [str(moment(kind, 0.5, step).tokens) for kind in KINDS]


def test_the_summary_says_who_waits_and_who_is_held() -> None:
    assert view(State(rate=0.5, step=30)).summary == (
        "Step 30 of 60. Static: 11 waiting, 2 of 4 slots make a token, 2 held by requests that have ended, 3 answered."
        " Continuous: 2 waiting, 4 of 4 slots make a token, 10 answered."
    )


@pytest.mark.parametrize(
    ("rate", "step", "message"),
    [
        (0.6, 0, "rate=0.6 must be one of 0.2, 0.3, 0.4, 0.5, 0.7"),
        (0.5, 61, "step=61 must be at most 60"),
        (0.5, -1, "step=-1 must be a whole number of at least 0"),
    ],
)
def test_impossible_states_are_refused(rate: float, step: int, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        State(rate=rate, step=step)


def test_a_turned_control_changes_state_figure_and_words() -> None:
    explorer = widget.explorer()
    before = explorer.panel.shown
    explorer.turn(step=41)
    explorer.turn(rate=0.7)
    assert explorer.state == State(rate=0.7, step=41)
    assert "Step 41 of 60" in explorer.view.summary
    assert explorer.panel.shown != before

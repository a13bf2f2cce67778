"""The schedule explorer, from state to text: no browser needed."""

import itertools
import math
import re

import pytest

from threeloops.widgets.driving import schedule as widget
from threeloops.widgets.driving.schedule_view import EDF, MAP, PERCEPTION, RATE, RULES, SWAPPED, WHOLE, State, view

STATES = [
    State(rule=rule, perception=perception, map=cost)
    for rule, perception, cost in itertools.product(RULES, (4, 12, 13, 20), (2, 10, 20))
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: f"{state.rule}-{state.perception}-{state.map}")
def test_what_is_counted_is_never_more_than_the_formula_says(state: State) -> None:
    for _, _, period, _, told, counted, late in view(state).rows:
        longest = int(counted.removesuffix(" ms"))
        if re.fullmatch(r"\d+ ms", told):
            assert longest <= int(told.removesuffix(" ms"))
        if state.rule in (RATE, SWAPPED) and re.fullmatch(r"\d+ ms", told):
            assert longest == int(told.removesuffix(" ms"))
        assert (longest > int(period.removesuffix(" ms"))) == (late != "0")


def test_the_story_of_the_chapter() -> None:
    late = {rule: view(State(rule=rule, perception=13, map=10)).summary for rule in RULES}
    assert "Late: map" in late[RATE]
    assert "Late: perception" in late[SWAPPED]
    assert late[EDF].endswith("No task is late.")
    assert "Late: control" in late[WHOLE]
    assert view(State(rule=RATE, perception=12, map=10)).summary.endswith("No task is late.")


def test_a_core_that_is_asked_for_too_much_is_said_to_be() -> None:
    shown = view(State(rule=EDF, perception=PERCEPTION[1], map=MAP[1]))
    assert "asked for 131 % of the time" in shown.summary
    assert math.isclose(3 / 10 + 20 / 33 + 20 / 50, 1.306, abs_tol=1e-3)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"rule": "first come", "perception": 12, "map": 10}, "rule='first come' is not known"),
        ({"rule": RATE, "perception": 21, "map": 10}, "perception=21 must be at most 20"),
        ({"rule": RATE, "perception": 12, "map": 1}, "map=1 must be a whole number of at least 2"),
    ],
)
def test_impossible_states_are_refused(state: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        State(**state)  # type: ignore[arg-type]


def test_a_turned_control_changes_state_figure_and_words() -> None:
    explorer = widget.explorer()
    before = explorer.panel.shown
    explorer.turn(perception=13)
    explorer.turn(rule=EDF)
    assert explorer.state == State(rule=EDF, perception=13, map=10)
    assert "busy 89.4 %" in explorer.view.summary
    assert explorer.panel.shown != before

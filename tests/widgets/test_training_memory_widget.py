"""Memory timeline figure and the training memory explorer, from state to text: no browser needed."""

import re

import pytest

from threeloops.figures import still
from threeloops.figures.training_loop.memory_timeline import memory_timeline
from threeloops.training_loop.memory.fit import rank_memory
from threeloops.widgets.training_loop import memory as widget
from threeloops.widgets.training_loop.memory_view import (
    MICRO_BATCHES,
    RECOMPUTE,
    SEQUENCE,
    ZERO_STAGES,
    State,
    film,
    training,
    view,
)

FINE = {"micro_batch": 1, "recompute": "nothing", "zero_stage": 1, "host": "nothing", "cross_entropy": "plain"}


# --- the figure ---


def test_columns_pile_up_to_the_total() -> None:
    figure = memory_timeline(
        {"a": [2, 3], "b": [1, 0]}, moments=["first", "last"], base=10, title="A finding", caption="What to see."
    )
    columns = figure.body["layer"][0]["data"]["values"]
    assert [(column["low"], column["high"]) for column in columns] == [(0, 2), (2, 3), (0, 3)]
    assert "first: b 1" in still.svg(figure.spec)
    assert "Most: 3.00 B at first (a 2.00 B, b 1.00 B)" in figure.alt


def test_a_limit_is_drawn_and_said() -> None:
    figure = memory_timeline(
        {"a": [2e9]}, moments=["now"], base=10, title="A finding", caption="What to see.", limit=("the card", 8e9)
    )
    assert "the card: 8.00 GB" in figure.alt
    assert "the card" in still.svg(figure.spec)


@pytest.mark.parametrize(
    ("parts", "moments", "message"),
    [
        ({}, ["now"], "0 parts at 1 moments"),
        ({"a": [1]}, [], "1 parts at 0 moments"),
        ({"a": [1, 2]}, ["now"], "'a' has 2 values for 1 moments"),
    ],
)
def test_what_cannot_be_drawn_is_refused(parts: dict[str, list[float]], moments: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        memory_timeline(parts, moments=moments, base=2, title="A finding", caption="What to see.")


# --- from state to text ---


@pytest.mark.parametrize("recompute", RECOMPUTE)
@pytest.mark.parametrize("zero_stage", ZERO_STAGES.values())
@pytest.mark.parametrize("host", ["nothing", "optimiser"])
def test_every_state_can_be_shown(recompute: str, zero_stage: int, host: str) -> None:
    for micro_batch in (MICRO_BATCHES[0], MICRO_BATCHES[-1]):
        state = State(
            micro_batch=micro_batch, recompute=recompute, zero_stage=zero_stage, host=host, cross_entropy="plain"
        )
        shown = view(state)
        assert shown.table.count("<tr>") == 1 + len(shown.rows)
        assert ("Host memory:" in shown.summary) == (host == "optimiser")
        assert ("runs twice." in shown.summary and "Nothing runs twice." not in shown.summary) == (
            recompute != "nothing"
        )


def test_the_peak_is_that_of_training_fit() -> None:
    for recompute in ("nothing", "every layer"):
        state = State(**{**FINE, "recompute": recompute})
        told = rank_memory(training(state), stage=0, micro_batch=1, sequence=SEQUENCE)
        assert film(state).peak.total_bytes == pytest.approx(told.total_bytes)


def test_more_sharding_never_needs_more_except_for_what_is_gathered() -> None:
    peaks = [film(State(**{**FINE, "zero_stage": stage})).peak for stage in (0, 1, 2, 3)]
    assert peaks[0].total_bytes > peaks[1].total_bytes > peaks[2].total_bytes > peaks[3].total_bytes
    assert [peak.bytes_by_part[-1] > 0 for peak in peaks] == [False, False, False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"micro_batch": 5}, "micro_batch=5 must be one of 1, 2, 3, 4, 6, 8"),
        ({"recompute": "all"}, "recompute='all' is not known"),
        ({"zero_stage": 4}, "zero_stage=4 must be one of 0, 1, 2, 3"),
        ({"host": "disk"}, "host='disk' is not known"),
    ],
)
def test_impossible_states_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        State(**{**FINE, **change})


# --- the controls ---


def test_a_turned_control_changes_state_figure_and_words() -> None:
    explorer = widget.explorer()
    before = explorer.panel.shown
    assert "22.3 GiB too many" in explorer.view.summary
    explorer.turn(recompute="every layer")
    assert explorer.state.recompute == "every layer"
    assert "it fits with 9.69 GiB to spare" in explorer.view.summary
    assert explorer.panel.shown != before
    explorer.turn(micro_batch=2)
    explorer.turn(zero_stage=3)
    explorer.turn(host="optimiser")
    assert explorer.state == State(
        micro_batch=2, recompute="every layer", zero_stage=3, host="optimiser", cross_entropy="plain"
    )

"""Pipeline figures and the explorer, from state to text: no browser needed."""

import re

import pytest

from threeloops.figures import still
from threeloops.figures.training_loop import pipeline_gantt
from threeloops.simulate.training_loop.pipeline_schedules import Work, run
from threeloops.widgets.training_loop import pipeline as widget
from threeloops.widgets.training_loop.pipeline_view import (
    SCHEDULES,
    STAGES,
    State,
    micro_batch_choices,
    moments,
    played,
    view,
)

FINE = {"schedule": "1f1b", "pp": 4, "micro_batches": 8, "step": 4}


# --- figures ---


def test_every_pass_has_a_bar_with_words() -> None:
    done = played("dualpipe", 4, 8)
    figure = pipeline_gantt.gantt(done, title="A finding", caption="What to see.")
    bars = next(layer["data"]["values"] for layer in figure.body["layer"] if layer["mark"]["type"] == "rect")
    assert len(bars) == sum(len(slot.passes) for slots in done.operations for slot in slots)
    assert "rank 1: forward (F) of micro-batch 1, 0 to 1" in still.svg(figure.spec)
    assert all(0 <= bar["top"] < bar["bottom"] <= 4 for bar in bars)


def test_a_figure_up_to_now_shows_no_more() -> None:
    figure = pipeline_gantt.gantt(played("1f1b", 4, 8), title="A finding", caption="What to see.", now_s=4)
    bars = next(layer["data"]["values"] for layer in figure.body["layer"] if layer["mark"]["type"] == "rect")
    assert max(bar["start"] for bar in bars) < 4
    assert len(bars) == 4 + 3 + 2 + 1


def test_a_panel_names_its_schedules_and_fits_the_page() -> None:
    figure = pipeline_gantt.panel(
        {name: played(key, 4, 8) for name, key in SCHEDULES.items()}, title="Six of them", caption="What to see."
    )
    for name in SCHEDULES:
        assert f"{name}: 4 ranks" in figure.alt
    assert still.size(figure.png())[0] <= 640
    with pytest.raises(ValueError, match="at least one"):
        pipeline_gantt.panel({}, title="A finding", caption="What to see.")


def test_units_are_said() -> None:
    even = Work(forward_s=0.002, input_gradient_s=0.002, weight_gradient_s=0.002)
    done = run(schedule="1f1b", pp=2, micro_batches=2, work=even, send_s=0)
    assert (
        "2 ranks, 18 ms long"
        in pipeline_gantt.gantt(done, title="A finding", caption="What to see.", unit_s=1e-3, unit="ms").alt
    )


# --- from state to text ---


def test_the_summary_says_who_works_and_who_waits() -> None:
    assert (
        view(State(**FINE)).summary
        == "Step 4 of 31, time 4: rank 1 waits; rank 2 waits; rank 3 waits; rank 4 runs B1. In flight: 4, 3, 2, 1."
    )
    last = view(State(**{**FINE, "step": 31}))
    assert last.summary.count("is done") == 4
    assert last.figure.title == "1F1B: ranks are idle for 27.3 % of the step"  # 3 / 11


@pytest.mark.parametrize("schedule", SCHEDULES.values())
def test_every_step_of_every_setting_can_be_shown(schedule: str) -> None:
    for pp in STAGES:
        for micro_batches in micro_batch_choices(schedule, pp):
            last = len(moments(schedule, pp, micro_batches)) - 1
            for step in {0, 1, last // 2, last}:
                shown = view(State(schedule=schedule, pp=pp, micro_batches=micro_batches, step=step))
                assert len(shown.rows) == pp
                assert shown.table.count("<tr>") == pp + 1
                assert all(float(row[2]) <= float(row[3]) for row in shown.rows)


def test_stepping_reaches_every_peak() -> None:
    shown = [view(State(**{**FINE, "step": step})).rows for step in range(32)]
    for rank in range(4):
        assert max(rows[rank][2] for rows in shown) == shown[0][rank][3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schedule": "fifo"}, "schedule='fifo' is not known"),
        ({"pp": 5}, "pp=5 must be one of 2, 4, 6, 8"),
        ({"micro_batches": 7}, "micro_batches=7 must be one of 1, 2, 4, 8, 12, 16"),
        ({"step": 32}, "step=32 must be at most 31"),
        ({"step": -1}, "step=-1 must be a whole number of at least 0"),
    ],
)
def test_impossible_states_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        State(**{**FINE, **change})


# --- the controls ---


def test_a_turned_control_changes_state_figure_and_words() -> None:
    explorer = widget.explorer()
    before = explorer.panel.shown
    explorer.turn(step=7)
    assert explorer.state.step == 7
    assert "Step 7 of 31" in explorer.view.summary
    assert explorer.panel.shown != before


def test_another_schedule_takes_the_nearest_number_of_micro_batches_and_starts_at_its_end() -> None:
    explorer = widget.explorer(State(schedule="gpipe", pp=4, micro_batches=1, step=0))
    explorer.turn(schedule="dualpipe")
    assert explorer.state.micro_batches == 8
    assert explorer.state.step == explorer.controls["step"].values[-1] == len(moments("dualpipe", 4, 8)) - 1
    explorer.turn(pp=8)
    assert explorer.state.micro_batches == 16
    explorer.turn(schedule="1f1b")
    explorer.turn(micro_batches=4)
    assert "8 stages, 4 micro-batches" in explorer.view.figure.caption

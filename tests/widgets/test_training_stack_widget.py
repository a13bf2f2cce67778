"""Step bars and the training-stack explorer, from state to text: no browser needed."""

import itertools
import re

import pytest

from threeloops.figures import still
from threeloops.figures.training_loop import step_bars
from threeloops.training_loop.updates.optimisation_stack import PRECISIONS, UPDATES, Setup
from threeloops.widgets.training_loop import stack as widget
from threeloops.widgets.training_loop.stack_view import MICRO_BATCHES, START, WORKERS, step, view

BEST = Setup(workers=16, precision="bf16", compiled=True, update="fused")


def test_bars_end_where_their_pieces_do() -> None:
    figure = step_bars.step_bars(
        {"loader": {"load": 0.2}, "device": {"a": 0.1, "b": 0.05}}, title="A finding", caption="What to see."
    )
    marks = figure.body["layer"][0]["data"]["values"]
    assert [(mark["row"], mark["start"], mark["end"]) for mark in marks] == [
        ("loader", 0, 200),
        ("device", 0, 100),
        ("device", 100, pytest.approx(150)),
    ]
    assert "The step takes 200 ms." in figure.alt
    assert "device, b: 50 ms" in still.svg(figure.spec) or "device, b: 50.0 ms" in still.svg(figure.spec)


@pytest.mark.parametrize(
    ("rows", "message"),
    [({}, "rows is empty"), ({"a": {"x": 0.0}}, "must be greater than 0"), ({"a": {"x": -1.0}}, "at least 0")],
)
def test_bars_of_nothing_are_refused(rows: dict[str, dict[str, float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        step_bars.step_bars(rows, title="A finding", caption="What to see.")


def test_the_summary_says_who_sets_the_pace_and_what_fits() -> None:
    first, best = view(START).summary, view(BEST).summary
    assert "the loader is the bottleneck" in first
    assert "It does not fit" in first
    assert "the device is the bottleneck" in best
    assert "It fits" in best


def test_figure_and_table_agree_with_the_library() -> None:
    shown, now = view(BEST), step(BEST)
    told_s = float(re.search(r"The step takes ([\d.]+) ms", shown.figure.alt)[1]) / 1000  # type: ignore[index]
    assert told_s == pytest.approx(now.total_s, rel=0.01)
    assert f"{step(START).total_s / now.total_s:.2f} times as fast" in shown.figure.title
    assert shown.table.count("<tr>") == 1 + len(shown.rows)


def test_every_setting_can_be_shown_and_fits_its_place() -> None:
    for number, (workers, precision, compiled, update, micro, again) in enumerate(
        itertools.product(WORKERS, PRECISIONS, (False, True), UPDATES, MICRO_BATCHES, (False, True))
    ):
        shown = view(
            Setup(
                workers=workers,
                precision=precision,
                compiled=compiled,
                update=update,
                micro_batches=micro,
                checkpointing=again,
            )
        )
        assert "is the bottleneck" in shown.summary
        if number % 97 == 0:
            assert still.size(shown.figure.png())[0] <= 640


def test_a_turned_control_changes_state_figure_and_words() -> None:
    explorer = widget.explorer()
    before = explorer.panel.shown
    explorer.turn(workers=16)
    explorer.turn(precision="bf16")
    assert explorer.state == Setup(workers=16, precision="bf16")
    assert explorer.panel.shown != before
    assert explorer.view.summary == explorer.view.summary
    assert "the device is the bottleneck" in explorer.view.summary

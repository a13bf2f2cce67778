"""Curves that the reader draws: whatever is drawn is told what it looks like. No browser needed."""

from typing import Any

import pytest

from threeloops.widgets.drawn_curve import CLOSE, Question, State, drawing, farthest, flat, verdict
from threeloops.widgets.inner_loop import drawn_rate, drawn_speedup
from threeloops.widgets.product_loop import drawn_wait

every = pytest.mark.parametrize(
    "question", [drawn_rate.QUESTION, drawn_speedup.QUESTION, drawn_wait.QUESTION], ids=["rate", "speedup", "wait"]
)


def on_sliders(question: Question, curve: Any) -> dict[str, float]:
    """The nearest that the sliders can draw."""
    values = question.values(curve)
    nearest = (min(question.heights, key=lambda height, value=value: abs(height - value)) for value in values)
    return {f"p{number}": height for number, height in enumerate(nearest, 1)}


@every
def test_the_curve_itself_is_right_and_every_slip_is_told_what_it_is(question: Question) -> None:
    explorer = drawing(question)
    explorer.turn(**on_sliders(question, question.truth), shown=True)
    assert explorer.view.summary.startswith("Right: within ")
    for told, curve in question.slips.items():
        explorer.turn(**on_sliders(question, curve))
        assert explorer.view.summary == told
        assert farthest(question.values(curve), question.values(question.truth)) > CLOSE, "a slip that would be right"


@every
def test_what_looks_like_no_slip_is_told_where_it_is_farthest_off(question: Question) -> None:
    values = list(question.values(question.truth))
    values[3] *= 3
    said = verdict(question, values)
    assert said.startswith(f"Farthest off at {question.at[3]:g}: you drew {question.unit(values[3])}")
    assert said.endswith("That is 3 times too much.")
    values[3] /= 9
    assert verdict(question, values).endswith("That is 3 times too little.")


@every
def test_nothing_of_the_curve_is_given_away_before_it_is_asked_for(question: Question) -> None:
    explorer = drawing(question)
    hidden = explorer.message.chart + explorer.message.shown
    assert "as it is" not in explorer.view.figure.alt
    assert all(question.unit(value) not in explorer.view.summary for value in question.values(question.truth))
    explorer.turn(shown=True)
    assert explorer.view.summary == "You have drawn nothing yet."
    assert question.answer not in hidden
    assert question.answer in explorer.message.shown


def test_the_truth_is_what_amdahl_and_the_queue_say() -> None:
    assert drawn_speedup.speedup(2048) == pytest.approx(1 / (0.05 + 0.95 / 2048))
    assert drawn_wait.wait(0.9) == pytest.approx(9)  # 0.9 / 0.1


def test_a_question_has_as_many_places_as_there_are_sliders() -> None:
    question = drawn_wait.QUESTION
    assert isinstance(flat(question), State)
    with pytest.raises(ValueError, match="5 places; a question has 6"):
        Question(**{name: getattr(question, name) for name in question.__slots__} | {"at": question.at[:5]})

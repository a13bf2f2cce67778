"""The pictures of a request's life, of the engine, and of predictions beside measurements."""

import pytest

from threeloops.figures import still
from threeloops.figures.product_loop import engine_plan, predicted_measured, request_life
from threeloops.simulate.product_loop.serving_requests import Moments, Request


def life() -> Moments:
    one = Moments(place=0, request=Request(1.0, 900, 4))
    one.admitted_s, one.first_token_s, one.finished_s, one.token_s = 1.2, 1.5, 1.9, [1.5, 1.6, 1.8, 1.9]
    return one


def test_a_life_has_its_stages_one_after_the_other_and_every_token() -> None:
    bars, spans, _, strokes = (
        layer["data"]["values"] for layer in request_life.request_life(life(), title="A", caption="B").body["layer"]
    )
    assert [(bar["stage"], round(bar["from"]), round(bar["to"])) for bar in bars] == [
        ("waits for a slot", 0, 200),
        ("prefill", 200, 500),
        ("decode", 500, 900),
    ]
    assert [round(span["to"]) for span in spans] == [500, 900]
    assert [round(stroke["at"]) for stroke in strokes] == [500, 600, 800, 900]


@pytest.mark.parametrize("plan", [engine_plan.engine, engine_plan.our_server])
def test_plans_fit_on_the_page_and_every_box_is_named_in_words(plan) -> None:
    figure = plan()
    assert figure.body["width"] <= 640
    boxes = [row["text"] for row in figure.body["layer"][1]["data"]["values"]]
    drawn = still.svg(figure.spec)
    assert all(text in drawn for text in boxes)


def test_pairs_are_drawn_as_given() -> None:
    figure = predicted_measured.predicted_measured({"a": (0.002, 0.003), "b": (0.1, 0.05)}, title="A", caption="B")
    points = figure.body["layer"][1]["data"]["values"]
    assert [(row["name"], row["way"], round(row["ms"])) for row in points] == [
        ("a", "predicted", 2),
        ("a", "measured", 3),
        ("b", "predicted", 100),
        ("b", "measured", 50),
    ]
    with pytest.raises(ValueError, match="give at least one pair"):
        predicted_measured.predicted_measured({}, title="A", caption="B")

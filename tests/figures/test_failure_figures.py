"""The pictures of failures: what is drawn is what was given."""

import json

import pytest

from threeloops.figures import still
from threeloops.figures.training_loop import goodput_curve, one_failure, step_maxima


def test_curves_and_marks_are_where_they_were_given():
    curves = {"often": [(60, 0.7), (600, 0.9)], "seldom": [(60, 0.6), (600, 0.8)]}
    figure = goodput_curve.goodput_curve(
        curves, marks={"Young": (300, 0.85)}, title="A finding", caption="What to see."
    )
    lines, points = (layer["data"]["values"] for layer in figure.body["layer"])
    assert [(row["run"], row["interval"], row["goodput"]) for row in lines] == [
        ("often", 1, 0.7),
        ("often", 10, 0.9),
        ("seldom", 1, 0.6),
        ("seldom", 10, 0.8),
    ]
    assert points == [{"mark": "Young", "interval": 5, "goodput": 0.85}]
    assert figure.alt.startswith("Best goodput: often 90.0 % at 10.0 min, seldom 80.0 % at 10.0 min.")
    assert "Young at 5.00 min, 85.0 %" in figure.alt
    assert json.dumps(figure.spec)
    assert "seldom" in still.svg(figure.spec)


def test_every_step_is_in_one_bin():
    figure = step_maxima.step_maxima(
        {1: [0.101, 0.102, 0.111], 8: [0.141]}, bin_s=0.01, title="A finding", caption="What to see."
    )
    rows = figure.body["data"]["values"]
    for name in ("1 rank", "8 ranks"):
        assert sum(row["share"] for row in rows if row["ranks"] == name) == pytest.approx(1)
    assert next(row["ms"] for row in rows if row["ranks"] == "8 ranks" and row["share"] == 1) == pytest.approx(145)
    assert "8 ranks: 1 step, mean 141 ms" in figure.alt
    assert "8 ranks" in still.svg(figure.spec)


def test_a_failure_is_drawn_to_scale_and_its_costs_add_up():
    clock = {"interval_s": 2400, "save_s": 300, "fails_after_s": 1200, "detect_s": 600, "restart_s": 300}
    figure = one_failure.one_failure(**clock, title="A finding", caption="What to see.")
    boxes = figure.body["layer"][0]["data"]["values"]
    widths = [box["x2"] - box["x"] for box in boxes if box["kind"] == "control"]
    assert (widths[0] + 2) / (widths[1] + 2) == pytest.approx(600 / 300)
    assert "costs 35.0 min" in figure.alt
    assert "again" in still.svg(figure.spec)


def test_refusals():
    with pytest.raises(ValueError, match="must be at most"):
        one_failure.one_failure(
            interval_s=1, save_s=1, fails_after_s=2, detect_s=1, restart_s=1, title="a", caption="b"
        )
    with pytest.raises(ValueError, match="0 curves"):
        goodput_curve.goodput_curve({}, marks={}, title="a", caption="b")
    with pytest.raises(ValueError, match="goodput=1.1"):
        goodput_curve.goodput_curve({"a": [(1, 1.1)]}, marks={}, title="a", caption="b")
    with pytest.raises(ValueError, match="at least one step"):
        step_maxima.step_maxima({1: []}, bin_s=0.1, title="a", caption="b")

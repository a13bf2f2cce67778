"""The pictures of a faster chain: what is drawn is what was given."""

import json

import pytest

from threeloops.figures import still
from threeloops.figures.driving import encoder_plan, price_of_speed


def test_one_encoder_stands_in_place_of_three() -> None:
    figure = encoder_plan.encoder_plan(
        ("boxes", "road", "lanes"),
        pictures="6 pictures",
        encoder="51",
        head="1.5",
        unit="GFLOP",
        title="A finding",
        caption="What to see.",
    )
    drawn = figure.body["layer"][0]["data"]["values"]
    assert sum(box["kind"] == "compute" for box in drawn) == 3 + 1
    assert sum(box["kind"] == "memory" for box in drawn) == 3 + 3
    assert all(
        a["x2"] <= b["x"] or b["x2"] <= a["x"] or a["y2"] <= b["y"] or b["y2"] <= a["y"]
        for a in drawn
        for b in drawn
        if a is not b
    ), "boxes overlap"
    assert "encoder" in still.svg(figure.spec)


def test_every_way_stands_at_its_time_and_its_score() -> None:
    ways = {"as trained": (0.030, 0.9), "INT8": (0.012, 0.89)}
    figure = price_of_speed.price_of_speed(ways, score="AP", title="A finding", caption="What to see.")
    points = figure.body["layer"][0]["data"]["values"]
    assert [(point["ms"], point["score"]) for point in points] == [(30.0, 0.9), (12.0, 0.89)]
    low, high = figure.body["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert low < 0.89 - 0.04
    assert high > 0.9 + 0.04
    assert json.dumps(figure.spec)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        price_of_speed.price_of_speed({}, score="AP", title="", caption="")
    with pytest.raises(ValueError, match="name at least one"):
        encoder_plan.encoder_plan((), pictures="6", encoder="1", head="1", unit="", title="", caption="")

"""Figures of experts on many GPUs: what is drawn, read back from the drawing."""

import json

import pytest

from threeloops.figures import still
from threeloops.figures.product_loop.expert_ways import expert_ways
from threeloops.figures.product_loop.two_halves import two_halves
from threeloops.simulate.product_loop.experts.played_batches import play

WORDS = {"title": "Two ways of one token", "caption": "Four experts."}


def ways(chosen=((1, 0), (1, 3), (2, 1), (2, 2)), home=2):
    return expert_ways(chosen, home=home, gpus=4, **WORDS)


def test_it_is_plain_data_small_and_no_wider_than_a_page():
    figure = ways()
    json.dumps(figure.spec)
    picture = figure.png()
    assert len(picture) < 60_000
    assert still.size(picture)[0] <= 720


def test_lines_are_the_copies_that_the_words_count():
    layers = ways().body["layer"]
    network, inside = (len(layer["data"]["values"]) for layer in layers[-2:])
    assert (network, inside) == (2 + 4, 3)
    assert "2 copies on the network, 3 over NVLink" in ways().alt
    assert ways().alt.endswith("A copy for each expert: 4 copies on the network.")
    one = ways(chosen=((1, 2),))
    assert [len(layer["data"]["values"]) for layer in one.body["layer"][-2:]] == [1 + 1, 0]


def test_boxes_lie_in_each_other_or_apart():
    plan = ways().body["layer"][0]["data"]["values"]
    for index, a in enumerate(plan):
        for b in plan[index + 1 :]:
            apart = a["x2"] <= b["x"] or b["x2"] <= a["x"] or a["y2"] <= b["y"] or b["y2"] <= a["y"]
            inside = a["x"] <= b["x"] and b["x2"] <= a["x2"] and a["y"] <= b["y"] and b["y2"] <= a["y2"]
            assert apart or inside, (a, b)


@pytest.mark.parametrize(
    ("chosen", "home", "told"), [((), 2, "empty"), (((0, 1),), 2, "node"), (((1, 4),), 2, "lie"), (((1, 1),), 4, "lie")]
)
def test_refusals(chosen, home, told):
    with pytest.raises(ValueError, match=told):
        ways(chosen=chosen, home=home)


def test_halves_are_drawn_as_they_were_played():
    played = play(stages_s=(3e-4, 1e-4, 2e-4, 1e-4), batches=2, num_layers=5)
    figure = two_halves(played, layers=2, **WORDS)
    rectangles = figure.body["layer"][0]["data"]["values"]
    assert len(rectangles) == 2 + 2 * 2 * 4  # names of rows; layers, halves, stages
    assert figure.alt.count("att A") == figure.alt.count("com B") == 2
    assert still.size(figure.png())[0] <= 780


def test_no_layer_is_refused():
    with pytest.raises(ValueError, match="layers"):
        two_halves(play(stages_s=(1, 1, 1, 1), batches=2, num_layers=1), layers=0, **WORDS)

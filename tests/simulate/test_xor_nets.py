"""Many small nets against torch's own training of one, and the pictures of what became of them."""

import json

import numpy
import pytest
import torch

from threeloops.figures.foundations import decision_regions, matrix_map
from threeloops.figures.training_loop import loss_curves, stacked_shares
from threeloops.simulate.foundations import xor_nets


@pytest.mark.parametrize(
    ("activation", "layer"), [("relu", torch.nn.ReLU), ("tanh", torch.nn.Tanh), ("none", torch.nn.Identity)]
)
def test_every_net_is_trained_as_torch_would_train_it(activation, layer):
    inner, outer = xor_nets.start(nets=3, hidden=4, seed=5)
    nets = xor_nets.train_from(inner, outer, steps=60, learning_rate=0.1, activation=activation, note_every=1)
    model = torch.nn.Sequential(torch.nn.Linear(2, 4), layer(), torch.nn.Linear(4, 1)).double()
    with torch.no_grad():
        for parameter, value in zip(
            model.parameters(), (inner[1, :, :2], inner[1, :, 2], outer[1:2, :-1], outer[1, -1:]), strict=True
        ):
            parameter.copy_(torch.from_numpy(value))
    sgd, rows, wanted = (
        torch.optim.SGD(model.parameters(), lr=0.1),
        torch.from_numpy(xor_nets.CORNERS),
        torch.from_numpy(xor_nets.TARGETS),
    )
    losses = []
    for _ in range(60):
        sgd.zero_grad()
        loss = torch.nn.functional.mse_loss(model(rows)[:, 0], wanted)
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    assert nets.losses[:, 1] == pytest.approx(losses, rel=1e-9)
    assert nets.answers(xor_nets.CORNERS)[1] == pytest.approx(model(rows)[:, 0].tolist(), rel=1e-9)


def test_the_starts_are_within_the_bounds_of_torch():
    inner, outer = xor_nets.start(nets=500, hidden=9, seed=1)
    assert numpy.abs(inner).max() == pytest.approx(torch.nn.Linear(2, 9000).weight.abs().max().item(), rel=0.01)
    assert numpy.abs(outer).max() == pytest.approx(1 / 3, rel=0.01)


def test_the_share_that_learns_is_the_one_found_elsewhere():
    # 2,000 seeds of a torch net in an independent run: 25.8 % learnt, 39.9 % at 1/4, 27.8 % at 1/6. Standard error of
    # a share of 500: 2 points.
    found = xor_nets.kinds(xor_nets.train(nets=500, hidden=2, steps=1500, learning_rate=0.1, activation="relu", seed=3))
    shares = {name: number / 500 for name, number in found.items()}
    assert shares["learnt"] == pytest.approx(0.258, abs=0.06)
    assert shares["all alike"] == pytest.approx(0.399, abs=0.06)
    assert shares["one right, three alike"] == pytest.approx(0.278, abs=0.06)
    assert shares["still moving"] < 0.01


def test_without_a_bend_nothing_is_learnt():
    found = xor_nets.kinds(xor_nets.train(nets=40, hidden=5, steps=1500, learning_rate=0.1, activation="none", seed=1))
    assert found["all alike"] == 40


def test_a_net_written_by_hand_is_left_alone():
    # x1 + x2 - 2 relu(x1 + x2 - 1): one unit that is never cut off, one that bends. The gradient is zero.
    inner, outer = numpy.array([[[1.0, 1, 0.5], [1, 1, -1]]]), numpy.array([[1.0, -2, -0.5]])
    nets = xor_nets.train_from(inner, outer, steps=3, learning_rate=0.1, activation="relu")
    assert nets.answers(xor_nets.CORNERS)[0].tolist() == [0, 1, 1, 0]
    assert (nets.inner == inner).all()
    assert xor_nets.unit_kinds(nets) == ["1 bent, 1 straight"]


def test_steps_that_are_too_long_end_nowhere():
    found = xor_nets.kinds(xor_nets.train(nets=20, hidden=2, steps=300, learning_rate=3.0, activation="none", seed=1))
    assert found["diverged"] == 20


def test_dead_units_stay_dead():
    inner, outer = numpy.array([[[-1.0, -1, -0.5], [1, 1, -1]]]), numpy.array([[0.7, 0.3, 0.1]])
    nets = xor_nets.train_from(inner, outer, steps=500, learning_rate=0.1, activation="relu")
    assert (nets.inner[0, 0] == inner[0, 0]).all()
    assert "1 dead" in xor_nets.unit_kinds(nets)[0]


def test_refusals():
    with pytest.raises(ValueError, match="activation='rel' is not known"):
        xor_nets.train(nets=1, hidden=2, steps=1, learning_rate=0.1, activation="rel", seed=1)
    with pytest.raises(ValueError, match="nets=0 must be a whole number"):
        xor_nets.start(nets=0, hidden=2, seed=1)


# --- figures ---

NETS = xor_nets.train(nets=8, hidden=2, steps=400, learning_rate=0.1, activation="relu", seed=2, note_every=50)
WORDS = {"title": "A finding", "caption": "What to see."}


def test_the_words_of_a_region_are_the_answers_of_that_net():
    figure = decision_regions.decision_regions(NETS, {"the third": 2}, **WORDS)
    assert ", ".join(f"{value:.2f}" for value in NETS.answers(xor_nets.CORNERS)[2]) in figure.alt
    assert [row["says"] for row in figure.body["hconcat"][0]["layer"][-1]["data"]["values"]] == [
        f"{v:.2f}" for v in NETS.answers(xor_nets.CORNERS)[2]
    ]


@pytest.mark.parametrize("weights", [(1.0, 1.0, -1.0), (2.0, -1.0, 0.3), (0.0, 1.0, -0.4)])
def test_a_unit_is_zero_along_its_line(weights):
    points = decision_regions.switching_line(weights)
    assert len(points) == 2
    assert all(weights[0] * x + weights[1] * y + weights[2] == pytest.approx(0, abs=1e-8) for x, y in points)


def test_a_quarter_turn_puts_the_letter_where_complex_numbers_put_it():
    after = [matrix_map.moved(((0, -1), (1, 0)), point) for point in matrix_map.LETTER]
    assert after == [((1j * complex(*point)).real, (1j * complex(*point)).imag) for point in matrix_map.LETTER]


def test_a_map_shows_what_is_drawn_and_no_more_and_keeps_angles():
    turned = matrix_map.matrix_map({"as it is": ((1, 0), (0, 1)), "quarter turn": ((0, -1), (1, 0))}, **WORDS)
    for panel in turned.body["hconcat"]:
        spans = {axis: panel["layer"][0]["encoding"][axis]["scale"]["domain"] for axis in "xy"}
        assert spans == {"x": pytest.approx([-1.5 - 0.25, 1 + 0.25]), "y": pytest.approx([-0.25, 1.5 + 0.25])}
        units = [panel[size] / (spans[axis][1] - spans[axis][0]) for size, axis in (("width", "x"), ("height", "y"))]
        assert units[0] == pytest.approx(units[1], rel=0.01)


def test_bars_are_as_long_as_their_shares():
    figure = stacked_shares.stacked_shares({"a": {"x": 30, "y": 90}, "b": {"x": 1, "y": 3}}, what="share", **WORDS)
    ends = [(row["row"], row["start"], row["end"]) for row in figure.body["layer"][0]["data"]["values"]]
    assert ends == [("a", 0, 0.25), ("a", 0.25, 1), ("b", 0, 0.25), ("b", 0.25, 1)]


def test_pictures_are_plain_data_and_small():
    curves = {"first": list(zip(NETS.steps, NETS.losses[:, 0].tolist(), strict=True))}
    for figure in (
        decision_regions.decision_regions(NETS, {"a": 0, "b": 1, "c": 2, "d": 3}, **WORDS),
        loss_curves.loss_curves(curves, highest=0.5, **WORDS),
        matrix_map.matrix_map({"shear": ((1, 0.5), (0, 1))}, **WORDS),
        stacked_shares.stacked_shares({"a": {"x": 1, "y": 2}}, what="share", **WORDS),
    ):
        json.dumps(figure.spec)
        assert len(figure.png()) < 60_000


def test_figures_refuse_what_they_cannot_draw():
    with pytest.raises(ValueError, match="must be below 8, the number of nets"):
        decision_regions.decision_regions(NETS, {"a": 8}, **WORDS)
    with pytest.raises(ValueError, match="moves the letter beyond"):
        matrix_map.matrix_map({"large": ((5, 0), (0, 5))}, **WORDS)
    with pytest.raises(ValueError, match="all rows need the same outcomes"):
        stacked_shares.stacked_shares({"a": {"x": 1}, "b": {"y": 1}}, what="share", **WORDS)
    with pytest.raises(ValueError, match="'one' has 1 points; a line needs two"):
        loss_curves.loss_curves({"one": [(0, 1.0)]}, highest=1, **WORDS)

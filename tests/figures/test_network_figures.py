"""A net unit by unit, and a backward pass station by station: what is drawn is what the formulas say."""

import pytest

from threeloops.figures import still
from threeloops.figures.foundations import network_plans
from threeloops.foundations import chain_rule


def texts(figure):
    return [row["text"] for row in figure.body["layer"][1]["data"]["values"]]


def test_every_unit_sees_every_unit_before_it():
    figure = network_plans.dense_network([3, 2, 4], title="A finding", caption="What to see.")
    drawn, shafts = (figure.body["layer"][layer]["data"]["values"] for layer in (0, 2))
    assert [sum(box["x"] == x for box in drawn) for x in sorted({box["x"] for box in drawn})] == [3, 2, 4]
    assert len(shafts) == 3 * 2 + 2 * 4
    assert texts(figure).count("3 weights, 1 bias") == 2
    assert texts(figure).count("2 weights, 1 bias") == 4
    assert figure.alt.startswith("20 parameters")  # 2 * 4 + 4 * 3
    with pytest.raises(ValueError, match="at least inputs and outputs"):
        network_plans.dense_network([3], title="A finding", caption="What to see.")


@pytest.mark.parametrize("first", [0.5, -0.5])
def test_derivatives_stand_below_their_values(first):
    net = chain_rule.TwoLayers(first=first, second=2.0)
    figure = network_plans.there_and_back(net, x=3, target=4, title="A finding", caption="What to see.")
    by, said = chain_rule.gradients(net, x=3, target=4), texts(figure)
    assert said[said.index("loss by w1") + 1] == f"{by.first:g}"
    assert said[said.index("loss by w2") + 1] == f"{by.second:g}"
    nudged = [
        chain_rule.loss(chain_rule.TwoLayers(first=1, second=answer), x=1, target=4)  # the loss of a given answer
        for answer in (chain_rule.answer(net, 3) - 1e-4, chain_rule.answer(net, 3) + 1e-4)
    ]
    assert float(said[said.index("the answer") + 1]) == pytest.approx((nudged[1] - nudged[0]) / 2e-4)
    assert "loss by" in still.svg(figure.spec)

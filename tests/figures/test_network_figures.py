"""Nets, backward passes and processors: what is drawn is what the formulas say."""

import pytest

from threeloops.figures import still
from threeloops.figures.foundations import network_plans, pipeline_stages, processor_history, vector_core
from threeloops.foundations import chain_rule, instruction_pipelines, processor_peak


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


def test_a_core_has_as_many_lanes_as_the_peak_counts():
    figure = vector_core.vector_core(cores=40, units=2, lanes=8, title="A finding", caption="What to see.")
    per_cycle = processor_peak.flops_per_cycle(vector_bits=512, element_bits=64, fma_units=2)
    assert 2 * texts(figure).count("a × b + c") == per_cycle
    assert f"40 such cores: {40 * per_cycle:,} operations per cycle" in texts(figure)
    with pytest.raises(ValueError, match="lanes=16 do not fit"):
        vector_core.vector_core(cores=1, units=1, lanes=16, title="A finding", caption="What to see.")


def test_machines_end_when_the_formula_says():
    stages = ["fetch", "decode", "execute"]
    steps = pipeline_stages.machines({"one": 1, "three": 3}, instructions=7, stages=stages)
    for name, width in {"one": 1, "three": 3}.items():
        ends = 1 + max(step.cycle for step in steps if step.panel == name)
        assert ends == instruction_pipelines.pipelined_cycles(instructions=7, stages=3, width=width)
    assert 1 + max(step.cycle for step in steps) == 7 * 3


def test_every_respect_of_a_processor_has_a_panel_of_its_own():
    points = processor_history.catalogue_points(["xeon-x5690", "epyc-9654"])
    figure = processor_history.processor_history(points, title="A finding", caption="What to see.")
    panels = figure.body["vconcat"]
    assert [panel["encoding"]["y"]["axis"]["title"] for panel in panels] == ["clock (GHz)", "cores", "FLOP per cycle"]
    assert [len(panel["data"]["values"]) for panel in panels[1:]] == [2, 2]
    assert len({str(panel["encoding"]["x"]["scale"]) for panel in panels}) == 1  # the years are common
    assert "clock (GHz)" in still.svg(figure.spec)

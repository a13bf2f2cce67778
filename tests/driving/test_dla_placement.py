"""Pieces on a DLA by formula against every order in which a graph can run, and the limits of the table."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threeloops.driving import dla_placement
from threeloops.driving.dla_placement import GraphNode
from threeloops.facts import dla_layers
from threeloops.simulate.driving import dla_turns


@given(st.data(), st.integers(1, 7))
@settings(max_examples=150, deadline=None)
def test_the_fewest_loadables_are_those_of_the_best_order(data: st.DataObject, count: int) -> None:
    after = [data.draw(st.sets(st.integers(0, place - 1)) if place else st.just(set())) for place in range(count)]
    on_dla = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    nodes = [
        GraphNode(name=str(place), op="Conv" if fits else "Erf", after=tuple(needs))
        for place, (needs, fits) in enumerate(zip(after, on_dla, strict=True))
    ]
    assert dla_placement.loadables(nodes) == dla_turns.fewest([sorted(needs) for needs in after], on_dla=on_dla)


def test_a_setting_outside_the_table_falls_back() -> None:
    wide = GraphNode(name="a", op="Conv", settings={"kernel": (3, 33), "stride": (1, 1)})
    assert dla_placement.fallback(wide) == "kernel 33 of Conv is outside 1 to 32"
    assert not dla_placement.fallback(GraphNode(name="b", op="Conv", settings={"kernel": (32, 32), "groups": (64,)}))
    grouped = GraphNode(name="c", op="ConvTranspose", settings={"kernel": (2, 2), "groups": (2,)})
    assert "groups 2" in dla_placement.fallback(grouped)
    with pytest.raises(ValueError, match="after"):
        GraphNode(name="d", op="Conv", after=(-1,))


def test_a_rewrite_says_what_the_dla_has() -> None:
    """Each operator that a rewrite names is a layer of the table, unless the sentence says what it stands in for."""
    for op, instead in dla_layers.REWRITES.items():
        node = GraphNode(name="a", op=op)
        assert dla_placement.fallback(node)
        assert dla_placement.rewrite(node) == instead
        named = set(re.findall(r"\b(?:ReLU|Add|Clip|Mul|Sigmoid|Pow|AveragePool|Conv)\b", instead))
        assert named
        assert {{"ReLU": "Relu"}.get(name, name) for name in named} <= set(dla_layers.LAYER_OF)
    assert dla_placement.rewrite(GraphNode(name="b", op="Conv")) == ""
    assert dla_placement.rewrite(GraphNode(name="c", op="LSTM")) == ""
    assert set(dla_layers.LIMITS) <= set(dla_layers.LAYER_OF.values())

"""Pieces on a DLA by formula against every order in which a graph can run, and the limits of the table."""

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


def test_what_is_to_be_rewritten_is_no_layer_and_its_parts_are() -> None:
    assert not set(dla_layers.REWRITES) & set(dla_layers.LAYER_OF)
    assert {"Add", "Clip", "Mul", "Div", "Pow"} <= set(dla_layers.LAYER_OF)
    assert set(dla_layers.LIMITS) <= set(dla_layers.LAYER_OF.values())

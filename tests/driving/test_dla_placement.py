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


@given(
    pieces=st.integers(1, 12),
    gpu=st.integers(1, 300),
    hand_over=st.integers(0, 500),
    megabytes=st.integers(0, 40),
    bandwidth=st.integers(50, 300),
)
def test_fall_back_takes_what_the_clock_says(
    pieces: int, gpu: int, hand_over: int, megabytes: int, bandwidth: int
) -> None:
    """Against a chain that is walked, an uneven one: the DLA's parts grow from the first to the last."""
    parts = [1e-4 * (place + 1) for place in range(pieces + 1)]
    layers = [("dla", parts[0])]
    for part in parts[1:]:
        layers += [("gpu", gpu * 1e-6), ("dla", part)]
    passed_s = megabytes * 1e6 / (bandwidth * 1e9)
    walked = dla_turns.chain_s(layers, hand_over_s=hand_over * 1e-6, write_s=passed_s, read_s=passed_s)
    told = dla_placement.with_fallback_s(
        alone_s=sum(parts),
        pieces=pieces,
        gpu_s=gpu * 1e-6,
        hand_over_s=hand_over * 1e-6,
        tensor_bytes=megabytes * 1e6,
        memory_bytes_per_s=bandwidth * 1e9,
    )
    assert told == pytest.approx(walked, rel=1e-9)


def test_fall_back_refuses_no_piece() -> None:
    whole = {"alone_s": 4e-3, "gpu_s": 3e-5, "hand_over_s": 2e-4, "tensor_bytes": 5e6, "memory_bytes_per_s": 2e11}
    with pytest.raises(ValueError, match="pieces"):
        dla_placement.with_fallback_s(**whole, pieces=0)
    with pytest.raises(ValueError, match="hand_over_s"):
        dla_placement.with_fallback_s(**whole | {"hand_over_s": -1e-6}, pieces=2)

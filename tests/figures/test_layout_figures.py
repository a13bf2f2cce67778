"""The pictures of experts, of a causal ring, of rails and of autocast: what is drawn is what was counted."""

import itertools

import numpy as np
import pytest

from threeloops.figures import look, overlap_rows, still
from threeloops.figures.training_loop import autocast_lanes, expert_routes, rail_map, ring_waits
from threeloops.simulate.training_loop import context_ring, expert_routing, traffic

CHOICES = expert_routing.router(num_experts=6, top_k=2, skew=1.0, seed=3).choices(np.random.default_rng(0), tokens=9)
QUERIES, KEYS, VALUES = (np.random.default_rng(0).normal(size=(24, heads, 4)) for heads in (2, 1, 1))


def test_a_line_leaves_its_frame_where_the_network_counts_bytes():
    figure = expert_routes.expert_routes(
        CHOICES.tolist(), num_experts=6, ranks=3, title="A finding", caption="What to see."
    )
    boxes, crossing, staying = (figure.body["layer"][place]["data"]["values"] for place in (0, -2, -1))
    frames = [box for box in boxes if box["kind"] == "frame"]

    def frame_of(x):
        return next(number for number, frame in enumerate(frames) if frame["x"] <= x <= frame["x2"])

    assert len(crossing) + len(staying) == CHOICES.size
    assert all(frame_of(line["x"]) != frame_of(line["x2"]) for line in crossing)
    assert all(frame_of(line["x"]) == frame_of(line["x2"]) for line in staying)
    exchange = traffic.expert_exchange([np.ones((3, 1))] * 3, list(CHOICES.reshape(3, 3, 2)), experts_per_rank=2)
    assert sum(exchange.sent_bytes) == 2 * 8 * len(crossing)  # there and back
    assert figure.alt.startswith(f"{len(crossing)} of {CHOICES.size} copies leave")
    assert "expert 5" in still.svg(figure.spec)


def test_experts_that_do_not_come_out_even_are_refused():
    with pytest.raises(ValueError, match="ranks=4 must divide experts=6"):
        expert_routes.copies_of([[0]] * 4, num_experts=6, ranks=4)
    with pytest.raises(ValueError, match="ranks=2 must divide tokens=3"):
        expert_routes.copies_of([[0]] * 3, num_experts=6, ranks=2)


def test_a_ring_is_drawn_as_long_as_its_fullest_ranks():
    pairs = {
        name: context_ring.ring_attention(QUERIES, KEYS, VALUES, ranks=3, zigzag=zigzag).pairs
        for name, zigzag in (("in order", False), ("zigzag", True))
    }
    figure = ring_waits.ring_waits(pairs, title="A finding", caption="What to see.")
    left = overlap_rows.NAME + 12
    drawn = [box for box in figure.body["layer"][0]["data"]["values"] if box["x"] >= left]
    pixels = overlap_rows.WIDTH / max(sum(map(max, steps)) for steps in pairs.values())
    rows = sorted({box["y"] for box in drawn})
    for row, (steps, rank) in zip(rows, itertools.product(pairs.values(), range(3)), strict=True):
        work = [box["x2"] - box["x"] + 2 for box in drawn if box["y"] == row and box["kind"] == "compute"]
        assert sum(work) == pytest.approx(sum(step[rank] for step in steps) * pixels)
        ends = max(box["x2"] + 1 for box in drawn if box["y"] == row)
        assert ends == pytest.approx(left + sum(map(max, steps)) * pixels)
    assert "in order: 164 pairs of time for 100 of work" in figure.alt  # 36 + 64 + 64
    assert "rank 0 computes 100 and waits 0, rank 1 computes 100 and waits 0" in figure.alt
    assert "waits" in still.svg(figure.spec)


def test_only_the_ring_by_node_uses_cables_to_a_spine():
    figure = rail_map.rail_map(nodes=3, gpus_per_node=4, place=2, title="A finding", caption="What to see.")
    thick = figure.body["layer"][-1]
    assert thick["mark"]["color"] == look.ORANGE
    ends = sorted({line["y2"] for line in thick["data"]["values"]})
    assert ends == [rail_map.LEAF, rail_map.SPINE, rail_map.PANEL + rail_map.GAP + rail_map.LEAF]
    by_rail = [line for line in thick["data"]["values"] if line["y2"] == ends[-1]]
    assert len(by_rail) == 3
    assert len({line["x2"] for line in by_rail}) == 1
    assert "leaf 2 and stays below the spines" in figure.alt
    assert "wired by rail" in still.svg(figure.spec)
    with pytest.raises(ValueError, match="place=4 must lie below gpus_per_node=4"):
        rail_map.rail_map(nodes=3, gpus_per_node=4, place=4, title="a", caption="b")


def test_an_operation_stands_in_the_lane_of_what_it_writes():
    seen = [("rsqrt", "float32"), ("mm", "bfloat16"), ("silu", "bfloat16"), ("mm", "bfloat16"), ("add", "float32")]
    figure = autocast_lanes.autocast_lanes(seen, title="A finding", caption="What to see.")
    drawn = [box for box in figure.body["layer"][0]["data"]["values"] if box["kind"] != "off"]
    assert [(box["kind"], round((box["x2"] - box["x"] + 2) * 5 / overlap_rows.WIDTH)) for box in drawn] == [
        ("memory", 1),
        ("compute", 3),
        ("memory", 1),
    ]
    assert len({box["y"] for box in drawn}) == 2
    assert figure.alt.startswith("3 of 5 operations write bfloat16")
    assert "SiLU" in still.svg(figure.spec)
    with pytest.raises(ValueError, match="spans is empty"):
        autocast_lanes.autocast_lanes([], title="A finding", caption="What to see.")

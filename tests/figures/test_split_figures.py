"""The pictures of a layer on several GPUs: what is drawn is what was given."""

import json

import pytest

from threeloops.figures import overlap_rows, still
from threeloops.figures.boxes import KINDS
from threeloops.figures.training_loop import (
    memory_timeline,
    overlap_step,
    recomputed_passes,
    shard_stages,
    split_block,
    split_passes,
    split_shares,
)
from threeloops.simulate.training_loop import overlapped_step

SHARES = {kind for _, _, kind, _ in shard_stages.SHARES}
ROWS = [stage * (shard_stages.HEIGHT + shard_stages.GAP) for stage in range(4)]


def test_every_gpu_has_its_columns_and_its_rows():
    figure = split_block.split_mlp(gpus=3, hidden=100, wide=600, title="A finding", caption="What to see.")
    drawn = figure.body["layer"][0]["data"]["values"]
    assert sum(box["kind"] == "compute" for box in drawn) == 2 * 3  # a block of A and a block of B each
    assert sum(box["kind"] == "control" for box in drawn) == 1  # joined once
    assert {box["kind"] for box in drawn} <= set(KINDS)
    assert all(
        a["x2"] <= b["x"] or b["x2"] <= a["x"] or a["y2"] <= b["y"] or b["y2"] <= a["y"]
        for a in drawn
        for b in drawn
        if a is not b
    ), "boxes overlap"
    assert "GPU 3 multiplies X by columns 401 to 600 of A" in figure.alt
    assert "A3" in still.svg(figure.spec)


def test_shares_are_where_they_were_given():
    figure = split_shares.split_shares(
        {"inside": [(1, 1.0), (8, 0.76)], "outside": [(16, 0.25)]}, title="A finding", caption="What to see."
    )
    rows = figure.body["layer"][0]["data"]["values"]
    assert [(row["link"], row["tp"], row["share"]) for row in rows] == [
        ("inside", 1, 1.0),
        ("inside", 8, 0.76),
        ("outside", 16, 0.25),
    ]
    assert "outside: 16 GPUs 25.0 %" in figure.alt
    assert json.dumps(figure.spec)


def test_refusals():
    with pytest.raises(ValueError, match="gpus=7 must divide wide=600"):
        split_block.split_mlp(gpus=7, hidden=100, wide=600, title="a", caption="b")
    with pytest.raises(ValueError, match="gpus=5 must be at most 4"):
        split_block.split_mlp(gpus=5, hidden=100, wide=600, title="a", caption="b")
    with pytest.raises(ValueError, match="0 curves"):
        split_shares.split_shares({}, title="a", caption="b")
    with pytest.raises(ValueError, match=r"share=1.2 must lie between 0 and 1"):
        split_shares.split_shares({"inside": [(2, 1.2)]}, title="a", caption="b")


def test_each_pass_has_one_all_reduce_and_the_sequence_none():
    both = split_passes.both_passes(title="A finding", caption="What to see.")
    along = split_passes.along_the_sequence(title="A finding", caption="What to see.")
    for figure, exchanges in ((both, 2), (along, 3)):
        drawn = figure.body["layer"][0]["data"]["values"]
        assert sum(box["kind"] == "control" for box in drawn) == exchanges
        assert all(
            a["x2"] <= b["x"] or b["x2"] <= a["x"] or a["y2"] <= b["y"] or b["y2"] <= a["y"]
            for a in drawn
            for b in drawn
            if a is not b
        ), "boxes overlap"
    assert both.alt.count("all-reduce") == 2
    assert "all-gather" in along.alt
    assert "reduce-scatter" in along.alt
    assert "all-gather" in still.svg(along.spec)


def test_a_stage_keeps_what_the_formula_says():
    figure = shard_stages.shard_stages(gpus=4, title="A finding", caption="What to see.")
    drawn = figure.body["layer"][0]["data"]["values"]
    kept = [sum(box["x2"] - box["x"] for box in drawn if box["kind"] in SHARES and box["y"] == y) for y in ROWS]
    formula = [16, 4 + 12 / 4, 2 + 14 / 4, 16 / 4]  # bytes a parameter, Rajbhandari et al., 2019
    assert [width / kept[0] for width in kept] == pytest.approx([size / 16 for size in formula])


def test_the_gathers_stand_where_the_simulator_put_them():
    figure = shard_stages.gathers_beside_work(title="A finding", caption="See.")
    assert "gather 2 from 4 to 5 gathers" in figure.alt
    assert "backward 1 from 8 to 10 gathers" in figure.alt
    assert "scatter" in still.svg(figure.spec)


def test_a_step_is_drawn_as_it_was_played():
    played = overlapped_step.play(forward_s=1, slices_s=[1, 1], sends_s=[0.5, 2], update_s=1)
    figure = overlap_step.overlap_step(played, title="A finding", caption="What to see.")
    drawn = [box for box in figure.body["layer"][0]["data"]["values"] if box["kind"] != "off"]
    pixels = overlap_rows.WIDTH / 6  # forward 1, backward 2, the last bucket 2, update 1
    spans = sorted((span.start_s, span.end_s) for span in played.spans)
    left = overlap_rows.NAME + 12
    assert sorted((box["x"] - left - 1, box["x2"] - left + 1) for box in drawn) == [
        pytest.approx((start * pixels, end * pixels)) for start, end in spans
    ]
    with pytest.raises(ValueError, match="spans is empty"):
        overlap_rows.overlap_rows([], title="A finding", caption="What to see.")


def test_recomputing_is_drawn_as_longer_and_lower():
    sizes = {"num_layers": 3, "block_bytes": 34, "input_bytes": 2}
    figure = recomputed_passes.recomputed_passes(**sizes, title="A finding", caption="What to see.")
    drawn = [box for box in figure.body["layer"][0]["data"]["values"] if box["kind"] != "off"]
    second = recomputed_passes.PASS + recomputed_passes.BARS + recomputed_passes.GAP
    rows = [[box for box in drawn if (box["y"] >= second) is below] for below in (False, True)]
    work = [[box for box in row if box["kind"] != "memory"] for row in rows]
    kept = [[box for box in row if box["kind"] == "memory"] for row in rows]
    widths = [max(box["x2"] for box in row) - min(box["x"] for box in row) for row in work]
    assert widths[1] / widths[0] == pytest.approx(4 / 3, rel=0.01)
    assert sum(box["kind"] == "control" for box in work[1]) == 3  # each layer once more
    most = [max(box["y2"] - box["y"] for box in row) for row in kept]
    assert most[1] / most[0] == pytest.approx((3 * 2 + 34 - 2) / (3 * 34))
    assert "F1, F2, F3, F3, B3, F2, B2, F1, B1" in figure.alt
    assert "F3" in still.svg(figure.spec)


def test_a_letter_stands_in_the_part_that_it_names():
    parts = {"a": [5, 5], "thin": [0.1, 0], "b": [0, 9]}
    figure = memory_timeline.memory_timeline(
        parts, moments=["up, one", "down, two"], base=10, title="A finding", caption="What to see."
    )
    columns, letters = (layer["data"]["values"] for layer in figure.body["layer"])
    assert {column["part"] for column in columns} == {"A a", "thin", "B b"}
    for row in letters:
        under = [
            column
            for column in columns
            if column["from"] < row["at"] < column["to"] and column["low"] < row["height"] < column["high"]
        ]
        assert [column["part"][0] for column in under] == [row["letter"]]
    drawn = still.svg(figure.spec)
    assert all(phase in drawn for phase in (">up<", ">down<"))

"""The pictures of matrix products: what is drawn is what was counted, and the words say the same."""

import json
import re

import pytest

from threeloops.figures import still
from threeloops.figures.inner_loop import fragment_map, quantised_share, tile_hierarchy, tile_ladder, unit_turns
from threeloops.inner_loop import gemm_tiles
from threeloops.simulate.inner_loop import tensor_core
from threeloops.simulate.inner_loop.unit_turns import pipeline

SAID = {"title": "A finding", "caption": "What to see."}
RUNGS = [
    tile_ladder.Rung(kernel=kernel, level=level, intensity=intensity, ridge=ridge)
    for kernel, level, intensity, ridge in (
        ("naive", "device memory", 0.25, 9.6),
        ("tile", "device memory", 16.0, 9.6),
        ("tile", "shared memory", 0.24, 1.0),
    )
]
CUTS = [
    tile_hierarchy.Cut(name=name, rows=rows, columns=columns)
    for name, rows, columns in (("result", 1024, 512), ("block", 128, 128), ("warp", 64, 32))
]


def holders(operand):
    rows, columns = tensor_core.places(operand)
    height, width = tensor_core.SHAPES[operand]
    held = {
        (row, column): lane
        for row, column, lane in zip(rows.ravel(), columns.ravel(), list(range(32)) * len(rows), strict=True)
    }
    return [[held[row, column] for column in range(width)] for row in range(height)]


def test_the_saw_is_drawn_from_the_shares_given():
    sides = range(256, 1024, 64)
    saw = [
        (side, gemm_tiles.tile_quantisation(m=side, n=side, tile_m=128, tile_n=128, num_sms=12, blocks_per_sm=1).share)
        for side in sides
    ]
    figure = quantised_share.quantised_share({"128 by 128": saw}, counted=saw[3:5], **SAID)
    drawn = [(row["side"], row["share"]) for row in figure.spec["layer"][0]["data"]["values"]]
    assert drawn == saw
    labels = re.findall(r'aria-label="([\d,]+: [\d.]+ % counted)"', still.svg(figure.spec))
    assert [label.split(":")[0] for label in labels] == [f"{side:,}" for side, _ in saw[3:5]]
    assert "2 points counted" in figure.alt


def test_a_rung_knows_whether_it_has_reached_its_ridge():
    figure = tile_ladder.tile_ladder(RUNGS, **SAID)
    assert (
        figure.alt
        == "device memory: naive 0.25 of 9.6, short by 38 times; tile 16 of 9.6, reaches it. shared memory: tile 0.24"
        " of 1, short by 4.2 times."
    )
    labels = re.findall(r'aria-label="([^"]*(?:reaches it|short by)[^"]*)"', still.svg(figure.spec))
    assert sorted(labels) == sorted(rung.words for rung in RUNGS)


def test_the_rate_of_a_kernel_is_drawn_below_its_intensities():
    figure = tile_ladder.tile_ladder(RUNGS, **SAID, timed={"naive": 5.62e12, "tile": 9.27e12})
    assert figure.alt.endswith("Timed: naive at 5.62 TFLOP/s, tile at 9.27 TFLOP/s.")
    assert [row["text"] for row in figure.body["vconcat"][-1]["data"]["values"]] == ["5.62", "9.27"]
    labels = re.findall(r'aria-label="(\w+ [\d.]+ TFLOP/s)"', still.svg(figure.spec))
    assert labels == ["naive 5.62 TFLOP/s", "tile 9.27 TFLOP/s"]


def test_a_kernels_second_line_is_said_after_its_name():
    rung = tile_ladder.Rung(kernel="tile\n8 B, 2 FLOP", level="L2", intensity=4.0, ridge=2.0)
    assert tile_ladder.tile_ladder([rung], **SAID).alt == "L2: tile, 8 B, 2 FLOP 4 of 2, reaches it."


def test_a_number_stands_on_the_side_of_its_point_that_has_no_stroke():
    for panel in tile_ladder.tile_ladder(RUNGS, **SAID).body["vconcat"]:
        sides = {
            layer["transform"][0]["filter"]["equal"]: layer["mark"]["align"]
            for layer in panel["layer"]
            if layer["mark"]["type"] == "text" and "transform" in layer
        }
        # a stroke is where a point still has to go, or has come from
        assert sides == {"short of the ridge point": "right", "beyond it": "left"}


def test_a_pipeline_is_drawn_stage_by_stage_and_the_consumers_are_said_first():
    turns = pipeline(stages=2, steps=3, load_cycles=300, matrix_cycles=100).turns
    figure = unit_turns.unit_turns(unit_turns.stage_bars(turns, stages=2), **SAID)
    labels = re.findall(r'aria-label="([^"]* \d+ [\d,]+ to [\d,]+)"', still.svg(figure.spec))
    assert sorted(labels) == sorted(
        [f"loads {step} {start} to {start + 300}" for step, start in ((0, 0), (1, 0), (2, 400))]
        + 2 * [f"multiplies {step} {start} to {start + 100}" for step, start in ((0, 300), (1, 400), (2, 700))]
        + ["waits for an empty stage 2 0 to 400"]
    )
    assert figure.alt.startswith(
        "consumers: multiplies 3 times, 300 cycles from 300; ends at 800. stage 1: loads 1 time,"
    )
    assert "waits for an empty stage" in still.svg(figure.spec)


def test_a_map_of_memory_does_not_speak_of_lanes():
    figure = fragment_map.fragment_map({"rows": [[0, 1], [1, 0]]}, marked=1, said="column {} lies at", **SAID)
    assert figure.alt == (
        "rows, 2 by 2: column 1 lies at row 0, column 1 and row 1, column 0. Row by row: rows: 0 1; 1 0."
    )


def test_cuts_say_how_many_pieces_there_are():
    figure = tile_hierarchy.tile_hierarchy(CUTS, **SAID)
    assert figure.alt == "result 1,024 by 512, cut into 32 of block 128 by 128, cut into 8 of warp 64 by 32."
    cells = [len(layer["data"]["values"]) for layer in figure.spec["layer"] if layer["mark"].get("stroke") == "#595959"]
    assert cells == [32, 8]
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", still.svg(figure.spec))
    assert {cut.words for cut in CUTS} <= set(labels)


def test_a_map_shows_every_element_and_fills_those_of_one_lane():
    figure = fragment_map.fragment_map({"a": holders("a"), "c": holders("c")}, marked=5, **SAID)
    drawn = [row for panel in figure.spec["hconcat"] for row in panel["data"]["values"]]
    assert len(drawn) == 256
    assert [(row["row"], row["column"]) for row in drawn[128:] if row["mine"]] == [(1, 2), (1, 3), (9, 2), (9, 3)]
    assert "lane 5 holds row 1, columns 2, 3 and row 9, columns 2, 3." in figure.alt


def test_figures_are_plain_data_and_small():
    saw = [(side, side / 5000) for side in range(256, 4096, 8)]
    figures = (
        quantised_share.quantised_share({"one": saw, "other": saw}, counted=saw[:3], **SAID),
        tile_ladder.tile_ladder(RUNGS, **SAID),
        tile_ladder.tile_ladder(RUNGS, **SAID, timed={"naive": 5.62e12}),
        tile_hierarchy.tile_hierarchy(CUTS, **SAID),
        fragment_map.fragment_map({name: holders(name) for name in "abc"}, marked=5, **SAID),
    )
    for figure in figures:
        json.dumps(figure.spec)
        assert len(figure.png()) < 64_000


REFUSED = [
    (lambda: quantised_share.quantised_share({}, counted=[], **SAID), "lines is empty"),
    (
        lambda: quantised_share.quantised_share({"a": [(128, 50)]}, counted=[], **SAID),
        "share of a at 128=50 must lie between 0 and 1",
    ),
    (lambda: tile_ladder.tile_ladder([], **SAID), "rungs is empty"),
    (lambda: tile_ladder.Rung(kernel="a", level="b", intensity=1.0, ridge=0), "ridge=0 must be greater than 0"),
    (lambda: tile_hierarchy.tile_hierarchy(CUTS[:1], **SAID), "cuts needs at least two sizes"),
    (
        lambda: tile_hierarchy.tile_hierarchy([CUTS[1], CUTS[0]], **SAID),
        "rows of result=1024 must divide rows of block=128",
    ),
    (lambda: fragment_map.fragment_map({}, marked=0, **SAID), "matrices is empty"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()

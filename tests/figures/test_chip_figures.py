"""The pictures of the chip: what is drawn is what was counted, and each says in words what it shows."""

import json
import re

import pytest

from threeloops.facts import hardware
from threeloops.figures import boxes, still
from threeloops.figures.inner_loop import (
    chip_layout,
    fp8_datapath,
    issue_shares,
    memory_levels,
    ridge_history,
    warp_rows,
)
from threeloops.simulate.inner_loop import warp_scheduler

WORDS = {"title": "A finding", "caption": "What to see."}
H100 = (18, 18, 16, 16, 16, 16, 16, 16)
UNITS = chip_layout.Units(
    fp32_lanes=128,
    int32_lanes=64,
    fp64_lanes=64,
    matrix_units=4,
    special_units=16,
    load_store_units=32,
    registers_per_partition="64 KB",
    shared="256 KB",
)
CURVE = issue_shares.Curve(name="one load", predicted=((1, 0.1), (10, 1.0)), counted=((1, 0.1), (4, 0.4)))


def chip(groups=H100, sites=6):
    return chip_layout.chip(groups, sms_per_column=2, stacks=5, sites=sites, l2="25 MB", stack="16 GB", **WORDS)


def levels():
    return [
        level
        for key in ("h100-sxm5", "a100-sxm4-80gb")
        for level in memory_levels.levels_of(hardware.part(key), chip=key[:4].upper())
    ]


def entries():
    return [
        ridge_history.Entry(part="A100", year=2020, ridge_point=153),
        ridge_history.Entry(part="H100", year=2022, ridge_point=295),
    ]


def played(warps, loads):
    return warp_scheduler.play(
        warps=warps, turns=5, loads=loads, instructions=3 * loads, latency_cycles=18, policy="greedy"
    )


def turns(start=21, cycles=42):
    plays = {"alone": played(1, 1), "three warps, two loads": played(3, 2)}
    return warp_rows.warp_rows(plays, start=start, cycles=cycles, **WORDS)


FIGURES = {
    "chip": chip,
    "multiprocessor": lambda: chip_layout.multiprocessor(UNITS, **WORDS),
    "fp8": lambda: fp8_datapath.fp8_datapath(**WORDS),
    "levels": lambda: memory_levels.memory_levels(levels(), **WORDS),
    "ridge": lambda: ridge_history.ridge_history(entries(), **WORDS),
    "shares": lambda: issue_shares.issue_shares([CURVE], **WORDS),
    "turns": turns,
}


@pytest.mark.parametrize("make", FIGURES.values(), ids=FIGURES.keys())
def test_figures_are_plain_data_small_and_no_wider_than_a_page(make):
    figure = make()
    json.dumps(figure.spec)
    picture = figure.png()
    assert len(picture) < 60_000
    assert still.size(picture)[0] <= 720
    assert len(figure.alt.split()) >= 12


def test_every_multiprocessor_is_drawn_and_those_switched_off_are_empty():
    rectangles = chip().body["layer"][0]["data"]["values"]
    small = [row for row in rectangles if row["x2"] - row["x"] < 20]
    assert sum(row["kind"] == "compute" for row in small) == sum(H100) == hardware.part("h100-sxm5")["sms"]
    assert sum(row["kind"] == "off" for row in small) == 144 - 132
    assert chip().alt.startswith("132 of 144 multiprocessors are in use")


@pytest.mark.parametrize("make", [chip, FIGURES["multiprocessor"], FIGURES["fp8"]])
def test_boxes_of_a_plan_lie_in_each_other_or_apart(make):
    plan = make().body["layer"][0]["data"]["values"]
    for index, a in enumerate(plan):
        for b in plan[index + 1 :]:
            apart = a["x2"] <= b["x"] or b["x2"] <= a["x"] or a["y2"] <= b["y"] or b["y2"] <= a["y"]
            inside = a["x"] <= b["x"] and b["x2"] <= a["x2"] and a["y"] <= b["y"] and b["y2"] <= a["y2"]
            assert apart or inside, (a, b)


def test_a_multiprocessor_has_four_equal_quarters():
    texts = [row["text"] for row in FIGURES["multiprocessor"]().body["layer"][1]["data"]["values"]]
    assert texts.count("32 FP32 lanes") == texts.count("16 INT32 lanes") == texts.count("1 tensor core") == 4


def test_levels_and_ridges_are_drawn_where_their_values_are():
    rows = memory_levels.memory_levels(levels(), **WORDS).body["data"]["values"]
    assert [row["size"] for row in rows[:3]] == [33, 33, 50]  # MiB of an H100: registers, L1 with shared memory, L2
    labels = re.findall(r'aria-label="([^"]*FLOP/B)"', still.svg(ridge_history.ridge_history(entries(), **WORDS).spec))
    assert labels == ["A100 (2020): 153 FLOP/B", "H100 (2022): 295 FLOP/B"]


def test_counted_shares_are_points_and_in_the_words():
    figure = issue_shares.issue_shares([CURVE], **WORDS)
    assert [(row["warps"], row["share"]) for row in figure.body["layer"][1]["data"]["values"]] == [(1, 10), (4, 40)]
    assert "one load: counted 1 warp 10.0 %, 4 warps 40.0 %." in figure.alt


def test_a_curve_is_counted_where_it_is_predicted():
    kind = {"loads": 4, "instructions": 36, "latency_cycles": 700}
    curve = issue_shares.curve_of("four loads", kind, predict_for=range(1, 17), count_for=(1, 8, 16))
    predicted = dict(curve.predicted)
    assert len(predicted) == 16
    assert all(share == pytest.approx(predicted[warps]) for warps, share in curve.counted)


def test_every_cycle_of_a_warp_is_drawn_as_it_was_played():
    for view, play in zip(turns().body["vconcat"], (played(1, 1), played(3, 2)), strict=True):
        bars = view["data"]["values"]
        drawn = {
            cycle for bar in bars if bar["state"] == "issues" for cycle in range(int(bar["start"]), int(bar["end"]))
        }
        assert drawn == {cycle for cycle in play.issue_cycles if 21 <= cycle < 63}
        assert all(21 <= bar["start"] < bar["end"] <= 63 for bar in bars)
        waits = [bar for bar in bars if bar["state"] != "issues" and bar["start"] > 21 and bar["end"] < 63]
        assert {bar["end"] - bar["start"] for bar in waits} == {18 - 1}  # the load's own cycle is an issue
    assert turns().alt.startswith("alone: the scheduler issues in 19.0 %")


def test_refusals():
    with pytest.raises(ValueError, match="must be even"):
        chip(sites=5)
    with pytest.raises(ValueError, match="plan is empty"):
        boxes.boxes([], alt="", **WORDS)
    with pytest.raises(ValueError, match="kind='cpu' is not known"):
        boxes.Box(x=0, y=0, width=1, height=1, kind="cpu")
    with pytest.raises(ValueError, match="order of their years"):
        ridge_history.ridge_history(entries()[::-1], **WORDS)
    with pytest.raises(ValueError, match="1 or 2 can be drawn"):
        memory_levels.memory_levels([], **WORDS)
    with pytest.raises(ValueError, match="must last for 1021 cycles"):
        turns(cycles=1000)
    with pytest.raises(ValueError, match="share=1.5"):
        issue_shares.Curve(name="x", predicted=(), counted=((1, 1.5),))

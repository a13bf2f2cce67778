"""Attention's figures: what is drawn where, read back from the drawing."""

import itertools
import re
import xml.etree.ElementTree as ET

import pytest

from threeloops.figures import look, still
from threeloops.figures.figure import Figure
from threeloops.figures.inner_loop import attention_traffic, tile_walk, unit_turns
from threeloops.figures.inner_loop.attention_traffic import Counted
from threeloops.figures.inner_loop.tile_walk import Panel
from threeloops.figures.inner_loop.unit_turns import Bar
from threeloops.simulate.inner_loop import unit_turns as played_turns


def drawn(figure: Figure) -> dict[str, ET.Element]:
    """Marks of the drawing by the words that a screen reader finds on them."""
    marks = ET.fromstring(still.svg(figure.spec)).iter("{http://www.w3.org/2000/svg}path")
    return {mark.get("aria-label"): mark for mark in marks if mark.get("aria-label")}


def traffic(counted: list[Counted]) -> Figure:
    curve = [(point.fast_bytes, point.moved_bytes) for point in counted]
    return attention_traffic.attention_traffic(
        counted, predicted=curve, unfused_bytes=16e6, once_bytes=1e6, title="A finding", caption="What to see."
    )


def test_twice_the_memory_is_one_step_right_and_half_the_bytes_one_step_down() -> None:
    points = [Counted(fast_bytes=2.0 ** (14 + i), moved_bytes=32e6 / 2**i) for i in range(5)]
    figure = traffic(points)
    places = [
        tuple(map(float, re.findall(r"[-\d.]+", drawn(figure)[point.sentence].get("transform")))) for point in points
    ]
    steps = {(round(x2 - x1, 1), round(y2 - y1, 1)) for (x1, y1), (x2, y2) in itertools.pairwise(places)}
    assert len(steps) == 1, "both axes are logarithmic: equal factors are equal steps"
    assert places[-1][0] - places[0][0] == pytest.approx(look.PLOT_WIDTH, abs=0.5)


def test_traffic_says_every_value_in_words() -> None:
    figure = traffic([Counted(fast_bytes=2**16, moved_bytes=6.29e6), Counted(fast_bytes=2**17, moved_bytes=3.15e6)])
    for words in (
        "scores written out 16.0 MB",
        "every tensor once 1.00 MB",
        "64.0 KiB: 6.29 MB counted",
        "128 KiB: 3.15 MB counted",
    ):
        assert words in figure.alt
    svg = still.svg(figure.spec)
    assert "scores written out" in svg
    assert "fast memory (KiB)" in svg


def test_bars_are_as_long_as_they_last_and_groups_differ_in_letter_and_colour() -> None:
    bars = [
        Bar(row="two: matrix", group="A", start=0, end=10),
        Bar(row="two: matrix", group="B", start=10, end=40),
        Bar(row="two: exponential", group="A", start=10, end=20),
    ]
    figure = unit_turns.unit_turns(bars, title="A finding", caption="What to see.")
    marks = drawn(figure)
    first, long = marks["A 0 to 10"], marks["B 10 to 40"]
    widths = [float(re.search(r"h([\d.]+)", mark.get("d"))[1]) for mark in (first, long)]
    assert widths[1] / widths[0] == pytest.approx(3, rel=0.01)
    assert first.get("fill") == marks["A 10 to 20"].get("fill") != long.get("fill")
    assert figure.alt == (
        "Bars on a clock, in cycles. two: matrix: busy 40 of the first 40: A 0 to 10, B 10 to 40."
        " two: exponential: busy 10 of the first 20: A 10 to 20."
    )


def test_turns_become_bars_by_run_and_unit() -> None:
    turns = played_turns.play(groups=2, tiles=2, matrix_cycles=4, exponential_cycles=1).turns
    names = {"exponential": "exponentials", "matrix": "tensor cores"}
    bars = unit_turns.bars({"one": turns[:1], "two": turns}, names=names)
    assert list(dict.fromkeys(bar.row for bar in bars)) == [
        "one: tensor cores",
        "two: exponentials",
        "two: tensor cores",
    ]
    assert {bar.group for bar in bars} == {"A", "B"}
    assert sum(bar.end - bar.start for bar in bars[1:]) == sum(turn.end - turn.start for turn in turns)


def test_a_tile_lights_up_the_parts_of_the_strips_that_meet_in_it() -> None:
    rows = ("ddd", "dn.", "...")
    walk = Panel(name="one kernel", left="Q", top="K", right="O", tiles=rows, note="One tile exists.")
    figure = tile_walk.tile_walk([walk], title="A finding", caption="What to see.")
    boxes, words = figure.body["layer"][0]["data"]["values"], figure.body["layer"][1]["data"]["values"]
    lit = [box for box in boxes if box["kind"] == "compute"]
    assert len(lit) == 4, "the tile itself, one block of Q, one of K, one of O"
    across, down = ([(box[near], box[near + "2"]) for box in lit] for near in ("y", "x"))
    assert sorted(map(across.count, across)) == [1, 3, 3, 3], "Q, the tile and O on one level"
    assert sorted(map(down.count, down)) == [1, 1, 2, 2], "K above the tile"
    assert {row["text"] for row in words} == {"one kernel", "Q", "K", "O", "done", "now", "One tile exists."}
    assert figure.alt == "one kernel: One tile exists. Of 3 by 3 tiles, 4 done, 1 on the chip now, 4 to come."


def test_a_product_needs_a_whole_row_and_a_whole_column() -> None:
    panel = Panel(name="product", left="A", top="B", tiles=("....", ".n..", "....", "...."), note="Two.", depth=4)
    figure = tile_walk.tile_walk([panel, panel], title="A finding", caption="What to see.")
    lit = [box for box in figure.body["layer"][0]["data"]["values"] if box["kind"] == "compute"]
    assert len(lit) == 2 * (4 + 4 + 1)
    assert figure.body["width"] <= 640


def test_refusals() -> None:
    with pytest.raises(ValueError, match="panels is empty"):
        tile_walk.tile_walk([], title="A", caption="B")
    with pytest.raises(ValueError, match="as many tiles wide as high"):
        Panel(name="p", left="Q", top="K", tiles=("d", "dd"), note="n")
    with pytest.raises(ValueError, match="tile='x'"):
        Panel(name="p", left="Q", top="K", tiles=("x",), note="n")
    with pytest.raises(ValueError, match="bars is empty"):
        unit_turns.unit_turns([], title="A", caption="B")
    with pytest.raises(ValueError, match="end=3 of 'matrix' must lie behind start=3"):
        Bar(row="matrix", group="A", start=3, end=3)
    with pytest.raises(ValueError, match="need at least one entry each"):
        traffic([])
    with pytest.raises(ValueError, match="moved_bytes=0 must be greater than 0"):
        Counted(fast_bytes=1, moved_bytes=0)

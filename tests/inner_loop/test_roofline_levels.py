"""Roofs by level: the slowest of several clocks, traffic counted by real caches, and the charts that show them."""

import itertools
import re
from typing import Any

import pytest

from threeloops.facts import hardware
from threeloops.facts.clock_history import clock_points
from threeloops.figures import labels, look, still
from threeloops.figures.figure import Figure
from threeloops.figures.foundations import pipeline_stages, processor_history
from threeloops.figures.inner_loop import roofline as charts
from threeloops.figures.inner_loop import working_set
from threeloops.figures.inner_loop.roofline_names import along
from threeloops.figures.inner_loop.roofline_names import signs as roof_signs
from threeloops.figures.inner_loop.roofline_scale import Scale
from threeloops.inner_loop import roofline_levels
from threeloops.operations import roofline
from threeloops.simulate.foundations import instruction_pipeline, processor_cache

# --- the slowest clock ---


def test_memories_that_answer_in_every_cycle_hand_over_byte_by_byte() -> None:
    handed = sum(1 for _cycle in range(70) for _unit in range(6) for _byte in range(16))
    assert roofline_levels.on_chip_bytes_per_s(units=6, bytes_per_cycle=16, clock_hz=70) == handed


def test_a_matrix_by_vector_twice_is_held_by_the_level_that_its_matrix_fits() -> None:
    # A row-by-row product with a matrix of 64 KiB, read twice: counted line by line through 16 KiB and 256 KiB.
    levels = [
        processor_cache.Cache(sets=32, ways=8, line_bytes=64),
        processor_cache.Cache(sets=256, ways=16, line_bytes=64),
    ]
    passed = processor_cache.read_through(levels, (address for _ in range(2) for address in range(0, 64 * 1024, 4)))
    assert passed == [2 * 64 * 1024, 64 * 1024]
    moved = {"L2": float(passed[0]), "memory": float(passed[1])}
    rates = {"L2": 50e9, "memory": 10e9}
    flops = 2 * 2 * 64 * 1024 / 4
    found = roofline_levels.level_times(flops=flops, moved_bytes=moved, peak_flops_per_s=50e9, bytes_per_s=rates)
    clocks = {"compute": flops / 50e9, "L2": 0.0, "memory": 0.0}
    for name in moved:  # one line at a time
        for _ in range(int(moved[name]) // 64):
            clocks[name] += 64 / rates[name]
    assert found.lower_bound_s == pytest.approx(max(clocks.values()))
    assert found.bound == max(clocks, key=clocks.__getitem__) == "memory"


def test_equal_times_are_called_compute() -> None:
    equal = roofline_levels.LevelTimes(compute_s=2.0, level_s={"HBM": 2.0, "L2": 1.0})
    assert (equal.bound, equal.lower_bound_s) == ("compute", 2.0)


def test_one_level_is_the_plain_roofline() -> None:
    work = roofline.Work(flops=3e12, moved_bytes=40e9)
    plain = roofline.time(work, peak_flops_per_s=312e12, memory_bytes_per_s=2e12)
    by_level = roofline_levels.level_times(
        flops=3e12, moved_bytes={"memory": 40e9}, peak_flops_per_s=312e12, bytes_per_s={"memory": 2e12}
    )
    assert (by_level.lower_bound_s, by_level.bound) == (plain.lower_bound_s, plain.bound)


def test_published_on_chip_rates() -> None:
    # NVIDIA's A100: 5,120 bytes per cycle from the L2; Table 3 of doi:10.1016/j.ultsonch.2023.106546 prints 7219 GB/s
    # for it.
    a100 = hardware.part("a100-sxm4-80gb")
    l2 = roofline_levels.on_chip_bytes_per_s(
        units=1, bytes_per_cycle=a100["l2_bytes_per_cycle"], clock_hz=a100["boost_clock_hz"]
    )
    assert l2 == pytest.approx(7219e9, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"moved_bytes": {"L2": 1.0}}, "moved_bytes names ['L2'] and bytes_per_s names ['L2', 'memory']"),
        ({"moved_bytes": {}, "bytes_per_s": {}}, "at least one"),
        ({"bytes_per_s": {"L2": 0.0, "memory": 1.0}}, "bytes_per_s['L2']=0.0 must be greater than 0"),
        ({"flops": -1}, "flops=-1 must be at least 0"),
    ],
)
def test_impossible_levels_are_refused(change: dict[str, object], message: str) -> None:
    fine = {
        "flops": 1.0,
        "moved_bytes": {"L2": 1.0, "memory": 1.0},
        "peak_flops_per_s": 1.0,
        "bytes_per_s": {"L2": 1.0, "memory": 1.0},
    }
    roofline_levels.level_times(**fine)
    with pytest.raises(ValueError, match=re.escape(message)):
        roofline_levels.level_times(**{**fine, **change})


# --- the charts ---


def slope_names(figure: Figure) -> list[dict[str, Any]]:
    """What is written along the slopes, without the pale ground under it."""
    marks = [(layer["mark"], layer["data"]["values"][0]) for layer in figure.body["layer"]]
    return [row for mark, row in marks if mark.get("angle") and "stroke" not in mark]


def test_a_roofline_draws_every_slope_and_says_it() -> None:
    point = charts.Point(name="kernel", arithmetic_intensity=2.0, flops_per_s=4e12, bound="memory")
    figure = charts.roofline(
        [point],
        roofs={"bf16": 312e12},
        memory_bytes_per_s=2e12,
        slopes={"L2": 7.2e12, "measured": 1.8e12},
        title="Three slopes",
        caption="One chip.",
    )
    assert figure.alt.startswith("Roofline. Memory 2.00 TB/s, L2 7.20 TB/s, measured 1.80 TB/s; bf16 peak")
    texts = [row["text"] for row in slope_names(figure)]
    assert texts == ["memory 2.00 TB/s", "L2 7.20 TB/s", "measured 1.80 TB/s"]
    blue = [layer for layer in figure.body["layer"] if layer["mark"].get("strokeDash") == [3, 3]]
    ends = [layer["data"]["values"][-1] for layer in blue]
    assert all(end["y"] == pytest.approx(312e12) for end in ends)  # a slope ends where it meets the roof
    assert ends[0]["x"] < ends[1]["x"]  # the faster memory meets it earlier
    assert figure.png().startswith(still.SIGNATURE)


def test_a_slope_is_named_beside_the_point_that_stands_on_it() -> None:
    on = [
        charts.Point(name=f"on {rate:.0e}", arithmetic_intensity=1 / 6, flops_per_s=rate / 6, bound="memory")
        for rate in (68e9, 23e9, 6e9)
    ]
    rates = {"memory_bytes_per_s": 6e9, "slopes": {"512 KiB": 68e9, "8 MiB": 23e9}}
    figure = charts.roofline(on, roofs={"fp32": 41.7e9}, memory="256 MiB", **rates, title="t", caption="c")
    named = slope_names(figure)
    # the shortest slope has room for its name alone
    assert [row["text"] for row in named] == ["256 MiB 6.00 GB/s", "512 KiB", "8 MiB 23.0 GB/s"]
    assert all(row["x"] > 1 / 6 for row in named)  # to the right of the points
    assert "512 KiB 68.0 GB/s" in figure.alt


def test_names_of_two_slopes_close_together_stand_apart() -> None:
    scale = Scale(top=1e12, decades=3)
    first = along("8 MiB", 87e9, 99e9, [], scale)
    second = along("512 KiB", 102e9, 99e9, [], scale, first.boxes)
    assert not any(box.meets(other) for box in first.boxes for other in second.boxes)
    assert along("512 KiB", 102e9, 99e9, [], scale).begin != second.begin


def test_what_is_written_on_a_crowded_chart_covers_nothing_else() -> None:
    # Four roofs a factor of two apart and two kernels at the ends of the upper two: what once was written one over
    # the other.
    ops = {"product of 1,024 rows, fp8": (1365, 1979e12), "the same, bf16": (683, 989e12)}
    points = [
        charts.Point(name=name, arithmetic_intensity=x, flops_per_s=y, bound="compute") for name, (x, y) in ops.items()
    ]
    roofs = {"fp8": 1979e12, "bf16": 989e12, "tf32": 495e12, "fp32": 66.9e12}
    layers = charts.roofline(points, roofs=roofs, memory_bytes_per_s=3.35e12, title="t", caption="c").body["layer"]
    scale = Scale(top=1e16, decades=5)
    rows = [row for layer in layers if layer["mark"]["type"] == "rule" for row in layer["data"]["values"]]
    marks = [labels.Mark(x=scale.x(row["x"]), y=scale.y(row["y"]), name=row["name"]) for row in rows]
    spots = [labels.Spot(row=scale.y(row["row"]), side=row["away"]) for row in rows]
    names = [spot.text(mark) for spot, mark in zip(spots, marks, strict=True)]
    places = [point.place for point in points]
    signs = [sign.box for sign in roof_signs(roofs, dict.fromkeys(roofs, 3.35e12), places, scale).values()]
    assert not any(one.meets(other) for one, other in itertools.combinations(names + signs, 2))
    assert not any(
        names[0 if n else 1].meets(spot.leader(mark)) for n, (spot, mark) in enumerate(zip(spots, marks, strict=True))
    )
    for peak in roofs.values():
        roof = labels.Line(scale.x(peak / 3.35e12), scale.y(peak), look.PLOT_WIDTH, scale.y(peak))
        assert not any(box.crossed(roof) for box in [*names, *signs])


def test_a_level_that_binds_is_named_in_the_key_and_in_words() -> None:
    near = charts.Point(name="small tiles", arithmetic_intensity=32, flops_per_s=231e12, bound="memory", level="L2")
    far = charts.Point(name="large tiles", arithmetic_intensity=64, flops_per_s=312e12, bound="compute", level="L2")
    figure = charts.roofline(
        [near, far], roofs={"bf16": 312e12}, memory_bytes_per_s=2e12, slopes={"L2": 7.2e12}, title="t", caption="c"
    )
    assert "small tiles: L2-bound" in figure.alt
    assert "large tiles: compute-bound" in figure.alt
    assert figure.body["layer"][-1]["encoding"]["color"]["scale"]["domain"] == ["compute", "L2"]


def test_a_chart_without_points_has_no_key() -> None:
    figure = charts.roofline([], roofs={"bf16": 312e12}, memory_bytes_per_s=2e12, title="t", caption="c")
    assert "-bound" not in still.svg(figure.spec)


def test_two_machines_on_one_chart_keep_their_own_ridge_points() -> None:
    both = {
        "roofs": {"GPU": 20e12, "CPU": 6e12},
        "memory_bytes_per_s": 2e12,
        "slopes": {"CPU memory": 0.4e12},
        "title": "t",
        "caption": "c",
    }
    alt = charts.roofline([], under={"CPU": "CPU memory"}, **both).alt
    assert "GPU peak 20.0 TFLOP/s, ridge point 10 FLOP/B; CPU peak 6.00 TFLOP/s, ridge point 15 FLOP/B" in alt
    with pytest.raises(ValueError, match="slope='L2' is not known"):
        charts.roofline([], under={"CPU": "L2"}, **both)


def test_working_set_marks_only_what_is_on_the_chart() -> None:
    curve = working_set.Curve(name="reads", unit="B/s", readings=((2.0**14, 5e10), (2.0**20, 2e10)))
    figure = working_set.working_set([curve], marks={"L1": 2.0**15, "L3": 2.0**30}, title="t", caption="c")
    assert "marked: L1 32.0 KiB." in figure.alt
    assert "L3" not in figure.alt
    assert "16.0 KiB 50.0 GB/s, 1.00 MiB 20.0 GB/s" in figure.alt
    assert figure.png().startswith(still.SIGNATURE)
    with pytest.raises(ValueError, match="from the smallest size"):
        working_set.Curve(name="reads", unit="B/s", readings=((2.0, 1.0), (1.0, 1.0)))
    with pytest.raises(ValueError, match="of one unit"):
        working_set.working_set(
            [curve, working_set.Curve(name="x", unit="s", readings=((1.0, 1.0),))], marks={}, title="t", caption="c"
        )


def test_names_of_caches_stand_above_every_curve_and_apart() -> None:
    curve = working_set.Curve(name="reads", unit="B/s", readings=((2.0**14, 5e10), (2.0**20, 7e10), (2.0**26, 1e10)))
    figure = working_set.working_set(
        [curve], marks={"L1": 2.0**15, "TLB": 1.5 * 2.0**15, "L2": 2.0**21}, title="t", caption="c"
    )
    named = [
        layer["encoding"]["y"]["value"]
        for layer in figure.body["layer"]
        if layer["mark"]["type"] == "text" and "stroke" not in layer["mark"]
    ]
    (top,) = {
        layer["encoding"]["y"]["scale"]["domain"][1]
        for layer in figure.body["layer"]
        if layer["mark"]["type"] == "line"
    }
    assert len(set(named[:2])) == 2  # two caches of nearly one size: on rows of their own
    assert max(named) + 8 < working_set.HEIGHT * (1 - 7e10 / top)


def test_pipeline_figure_says_when_each_machine_is_done() -> None:
    stages = ["fetch", "decode", "execute"]
    places = instruction_pipeline.flow(instructions=4, stages=3, width=1)
    steps = [
        pipeline_stages.Step(panel="overlapped", instruction=p.instruction, stage=stages[p.stage], cycle=p.cycle)
        for p in places
    ]
    figure = pipeline_stages.pipeline_stages(steps, stages=stages, title="t", caption="c")
    assert "overlapped: 4 instructions, the last one done in cycle 6." in figure.alt
    assert figure.png().startswith(still.SIGNATURE)
    with pytest.raises(ValueError, match="stage='write' is not known"):
        pipeline_stages.pipeline_stages(
            [pipeline_stages.Step(panel="a", instruction=0, stage="write", cycle=0)],
            stages=stages,
            title="t",
            caption="c",
        )


def test_clocks_rose_ten_thousandfold_and_stopped() -> None:
    points = clock_points()
    assert [point.year for point in points] == sorted(point.year for point in points)
    fastest = {
        span: max(p.clock_hz for p in points if span[0] <= p.year < span[1])
        for span in ((1971, 1980), (2003, 2006), (2015, 2023))
    }
    assert fastest[(2003, 2006)] / fastest[(1971, 1980)] > 500
    assert fastest[(2015, 2023)] / fastest[(2003, 2006)] < 1.2  # fifteen years later


def test_history_figure_names_every_series() -> None:
    points = [
        processor_history.Point(series=name, year=year, value=value)
        for name, year, value in (("a", 2000, 1.0), ("a", 2010, 10.0), ("b", 2005, 2.0))
    ]
    figure = processor_history.processor_history(points, title="t", caption="c")
    assert "a: 2 points, from 1 in 2000 to 10 in 2010. b: 1 point, from 2 in 2005 to 2 in 2005." in figure.alt
    assert figure.png().startswith(still.SIGNATURE)

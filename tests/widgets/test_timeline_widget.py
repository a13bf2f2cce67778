"""Timeline figures and the explorer, from state to text: no browser needed. tests/chapters/test_browser_timeline.py
turns the same controls by keyboard.
"""

import itertools
import re

import pytest

from threeloops.figures import still
from threeloops.figures.inner_loop import timeline
from threeloops.inner_loop.trace import Interval, Reading, Trace
from threeloops.simulate.inner_loop import ill_jobs
from threeloops.widgets.inner_loop import timeline as widget
from threeloops.widgets.inner_loop.timeline_view import GRADIENTS, KERNELS, READS, State, view

WORST = {"workers": 1, "reads": "in every layer", "kernels": "one by one", "gradients": "after backward"}


def step_s(**change: object) -> float:
    return view(State(**{**WORST, **change})).step_s


# --- figures ---


def test_every_row_and_counter_has_a_band_and_words() -> None:
    trace = ill_jobs.trace("starved loader", seed=1)
    figure = timeline.timeline(trace, title="A finding", caption="What to see.", counters=timeline.COUNTERS)
    drawn = still.svg(figure.spec)
    for name in (*timeline.ROWS, *timeline.COUNTERS):
        assert f"{name}: " in figure.alt
        assert f">{name}<" in drawn
    assert "CPU: wait for batch" in drawn


def test_bars_that_overlap_get_lanes_and_neighbours_that_nobody_can_tell_apart_are_one() -> None:
    bars = [Interval(row="loader", name="batch", start_s=s, end_s=s + 1) for s in (0, 0.5, 1, 1.5)]
    many = [Interval(row="GPU", name="matmul", start_s=n * 2e-4, end_s=(n + 0.99) * 2e-4) for n in range(10_000)]
    body = timeline.timeline(Trace(intervals=(*bars, *many)), title="A finding", caption="What to see.").body
    values = body["layer"][0]["data"]["values"]
    assert len({value["top"] for value in values if value["row"] == "loader"}) == 2
    assert sum(value["row"] == "GPU" for value in values) == 1


def test_a_range_too_narrow_for_its_name_is_named_behind_its_end() -> None:
    lengths = {"forward": (0.0, 0.05), "tiny": (0.05, 0.051), "optimiser": (0.096, 0.1)}
    trace = Trace(
        intervals=tuple(Interval(row="ranges", name=name, start_s=a, end_s=b) for name, (a, b) in lengths.items())
    )
    figure = timeline.timeline(trace, title="t", caption="c", rows=("ranges",), labelled=("ranges",))
    longest = [bar for bar in trace.of("ranges") if bar.length_s > (trace.end_s - trace.start_s) / 10]
    assert figure.alt.startswith(f"ranges: {longest[0].name} ")
    assert all(bar.name in figure.alt for bar in longest)
    layers = figure.body["layer"]
    inside, behind = (
        [row["name"] for row in layer["data"]["values"]] for layer in layers if layer["mark"]["type"] == "text"
    )
    assert (inside, behind) == (["forward"], ["optimiser"])  # behind "tiny" there is another bar


def test_memory_has_room_to_rise_in_a_panel() -> None:
    readings = tuple(
        Reading(counter=name, at_s=at, value=value)
        for at, value in ((0.0, 0.5), (1.0, 1.0))
        for name in ("tensor cores", "allocated")
    )
    trace = Trace(intervals=(Interval(row="GPU", name="matmul", start_s=0, end_s=1),), readings=readings)
    (view,) = timeline.panel({"A": trace}, title="t", caption="c").body["concat"]
    (areas,) = (layer["data"]["values"] for layer in view["layer"] if layer["mark"]["type"] == "area")
    rises = {
        name: float.__sub__(*(row["top"] for row in areas if row["counter"] == name))
        for name in ("tensor cores", "allocated")
    }
    assert rises["allocated"] == pytest.approx(timeline.TALL * rises["tensor cores"])
    assert view["height"] == timeline.SMALL_BAND * (2 + timeline.TALL)


def test_a_panel_names_its_traces_and_unknown_rows_are_refused() -> None:
    trace = ill_jobs.trace("memory leak", seed=1)
    figure = timeline.panel({"A": trace, "B": trace}, title="Two of them", caption="What to see.")
    assert "A: From 0 to" in figure.alt
    assert "B: From 0 to" in figure.alt
    assert still.size(figure.png())[0] <= 640
    with pytest.raises(
        ValueError, match="row='GPUs' is not known. Known: loader, CPU, copies, GPU, network, step, tensor cores"
    ):
        timeline.timeline(trace, title="A finding", caption="What to see.", rows=("GPUs",))
    with pytest.raises(ValueError, match="at least one"):
        timeline.panel({}, title="A finding", caption="What to see.")


# --- from state to text ---


def test_every_repair_uncovers_the_next_illness() -> None:
    told = []
    state = dict(WORST)
    for change in (
        {},
        {"workers": 4},
        {"reads": "never"},
        {"gradients": "during backward"},
        {"kernels": "compiled"},
        {"workers": 8},
    ):
        state |= change
        told.append(view(State(**state)).summary.partition("per step. ")[2])
    assert told == [
        "First suspect: starved loader.",
        "First suspect: hidden syncs.",
        "First suspect: exposed communication.",
        "First suspect: launch-bound.",
        "First suspect: starved loader.",
        "No suspect: the device computes for four fifths of the time or more.",
    ]


def test_no_repair_makes_a_step_longer() -> None:
    for reads, kernels, gradients in itertools.product(READS, KERNELS, GRADIENTS):
        times = [step_s(workers=workers, reads=reads, kernels=kernels, gradients=gradients) for workers in (1, 3, 8)]
        assert all(after <= before * 1.03 for before, after in itertools.pairwise(times)), (reads, kernels, gradients)
    for workers, kernels in itertools.product((1, 2, 8), KERNELS):
        late, early = (step_s(workers=workers, kernels=kernels, gradients=gradients) for gradients in GRADIENTS)
        assert early <= late * 1.03


def test_one_worker_sets_the_pace_whatever_else_is_repaired() -> None:
    best = step_s(reads="never", kernels="compiled, captured", gradients="during backward")
    assert best == pytest.approx(16e-3, rel=0.05)  # one batch, one worker: 16 ms
    assert step_s() == pytest.approx(best, rel=0.06)


def test_times_in_the_table_add_up_to_the_step() -> None:
    shown = view(State(**WORST))
    total = sum(float(re.sub(r"[^\d.]", "", cells[1])) for cells in shown.rows)
    assert total == pytest.approx(100, abs=0.5)
    assert "waiting for a batch</th>" in shown.table
    assert shown.figure.title in shown.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workers": 0}, "workers=0 must be a whole number of at least 1"),
        ({"reads": "often"}, "reads='often' is not known"),
        ({"kernels": "fast"}, "kernels='fast' is not known"),
        ({"gradients": "never"}, "gradients='never' is not known"),
    ],
)
def test_impossible_states_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        State(**{**WORST, **change})


# --- the controls ---


def test_a_turned_control_changes_state_figure_and_words() -> None:
    explorer = widget.explorer()
    before = explorer.panel.shown
    explorer.turn(workers=4)
    assert explorer.state.workers == 4
    assert "4 workers" in explorer.view.summary
    assert explorer.panel.shown != before
    explorer.turn(reads="never")
    explorer.turn(kernels="compiled")
    explorer.turn(gradients="during backward")
    assert explorer.state == State(workers=4, reads="never", kernels="compiled", gradients="during backward")

"""Figures of schedules and chains: what they draw and what they say."""

import pytest

from threeloops.figures.driving import journey, lanes, task_gantt
from threeloops.simulate.driving.hand_overs import Stage, follow
from threeloops.simulate.driving.task_schedule import Periodic, Section, play

LOCK = Section(after=1, length=2, lock="map")
TASKS = [
    Periodic(name="control", cost=2, period=10, first=2, deadline=3, section=Section(after=0, length=1, lock="map")),
    Periodic(name="map", cost=5, period=20, section=LOCK),
]


def bars(figure: object) -> list[dict[str, object]]:
    return next(
        layer["data"]["values"]
        for layer in figure.body["layer"]  # type: ignore[attr-defined]
        if layer["mark"]["type"] == "rect"
    )


def test_a_gantt_shows_who_runs_who_waits_and_who_is_late() -> None:
    figure = task_gantt.task_gantt(play(TASKS, until=20), unit="ms", title="A lock", caption="Two tasks.")
    kinds = {bar["kind"] for bar in bars(figure)}
    assert kinds == {"waits", "runs", "holds the lock"}
    assert "control: released at 2, 12; responses 3, 2 ms." in figure.alt
    late = task_gantt.task_gantt(
        play([TASKS[0], Periodic(name="map", cost=5, period=20, deadline=6)], until=20),
        unit="ms",
        title="Late",
        caption="Two tasks.",
    )
    assert "1 late" in late.alt
    assert any(bar["kind"] == "runs, late" for bar in bars(late))
    assert late.png()


def test_bars_end_with_the_picture() -> None:
    figure = task_gantt.task_gantt(play(TASKS, until=4), unit="ms", title="Cut", caption="Two tasks.")
    assert max(float(str(bar["end"])) for bar in bars(figure)) <= 4


def test_a_journey_marks_the_runs_that_carry_the_event() -> None:
    stages = {"see": Stage(period=4, response=3, first=1), "act": Stage(period=5, response=2)}
    figure = journey.journey(stages, follow(list(stages.values()), event=1), unit="ms", title="Way", caption="Two.")
    assert [(bar["start"], bar["end"]) for bar in bars(figure) if bar["kind"] == "runs"] == [(5, 8), (10, 12)]
    assert figure.alt.endswith("In all 11 ms.")
    assert figure.png()


def test_refusals() -> None:
    with pytest.raises(ValueError, match="kind"):
        lanes.Bar(lane=0, start=0, end=1, kind="sleeps")
    with pytest.raises(ValueError, match="kind"):
        lanes.Mark(lane=0, at=0, kind="asleep")

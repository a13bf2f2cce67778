"""The deadline explorer, from state to text: no browser needed."""

import itertools
import re
from dataclasses import replace

import pytest

from threeloops.facts import recorded_drive
from threeloops.units import ms
from threeloops.widgets.driving import deadline as widget
from threeloops.widgets.driving import deadline_replay as replay
from threeloops.widgets.driving.deadline_view import START, State, view

SWITCHES = ("shared", "int8", "predicted", "queue", "crowded")
STATES = [
    replace(START, **dict(zip(SWITCHES, on, strict=True)))
    for on in itertools.product((False, True), repeat=len(SWITCHES))
]


def found(**changes: object) -> float:
    state = replace(START, **changes)
    return replay.whole(state.chain, predicted=state.predicted).found_share


def test_the_recording_is_whole() -> None:
    drive = recorded_drive.drive()
    assert set(drive.stamp) == {"hardware", "software", "measured"}
    assert all(drive.stamp.values())
    assert all(frame.cars for frame in drive.frames)
    for clock in recorded_drive.CLOCKS:
        for way in recorded_drive.WAYS:
            rows = drive.milliseconds[clock][way]
            assert len(rows) == len(drive.frames)
            assert all(len(row) == len(drive.stages) and min(row) >= 0 for row in rows)


@pytest.mark.parametrize("state", STATES[::3], ids=str)
def test_nobody_uses_an_answer_before_it_is_ready(state: State) -> None:
    ready = dict(replay.answers(state.chain))
    for moment in range(0, replay.moments() + 1, 7):
        now_s = moment * replay.period_s() / replay.PER_FRAME
        shown = replay.replayed(state.chain, predicted=state.predicted, moment=moment)
        if shown.frame is None:
            assert all(at > now_s for at in ready.values())
            continue
        assert ready[shown.frame] <= now_s
        assert shown.age_s == pytest.approx(now_s - shown.frame * replay.period_s())
        assert not [frame for frame, at in ready.items() if frame > shown.frame and at <= now_s]


def test_a_worker_takes_one_frame_at_a_time() -> None:
    for state in STATES:
        made = replay.answers(state.chain)
        taken = [sum(stages) for stages in replay.stage_seconds(state.chain)]
        for (_, earlier), (frame, ready) in itertools.pairwise(made):
            begun = ready - taken[frame]
            assert begun >= max(earlier, frame * replay.period_s()) - 1e-9
        if state.queue:
            assert len(made) == len(taken), "a queue loses nothing"


def test_every_repair_brings_boxes_nearer() -> None:
    assert found() < 0.3
    assert found(predicted=True) > 2 * found()
    assert found(shared=True, int8=True) > 2 * found()
    assert found(shared=True, int8=True, predicted=True) > found(shared=True, int8=True)
    assert found(queue=True) < found(), "a queue of a chain that is too slow only grows"


def test_neighbours_leave_the_median_in_time_and_make_the_tail_late() -> None:
    quiet, crowded = (
        sorted(sum(stages) * ms for stages in recorded_drive.drive().milliseconds[clock]["shared int8"])
        for clock in recorded_drive.CLOCKS
    )
    middle = len(quiet) // 2
    assert quiet[-1] < replay.period_s()
    assert crowded[middle] < replay.period_s() < crowded[-1]
    assert crowded[-1] > 3 * quiet[middle]


def test_without_repairs_boxes_trail_and_with_them_they_lie_on_the_cars() -> None:
    plain = replay.replayed(START.chain, predicted=False, moment=START.moment)
    repaired = replay.replayed(START.chain, predicted=True, moment=START.moment)
    assert plain.frame == repaired.frame
    assert repaired.found > plain.found
    assert sorted(repaired.off_m)[len(repaired.off_m) // 2] < sorted(plain.off_m)[len(plain.off_m) // 2]


def test_before_the_first_answer_it_says_so() -> None:
    shown = view(replace(START, moment=0))
    assert "no answer is ready yet" in shown.summary


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slower": 3.0}, "slower=3.0 must be one of 0.5, 1.0, 2.0, 4.0"),
        ({"moment": 10_000}, "moment=10000 must be at most"),
        ({"moment": -1}, "moment=-1 must be a whole number"),
    ],
)
def test_impossible_states_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        replace(START, **changes)


def test_a_turned_control_changes_state_figure_and_words() -> None:
    explorer = widget.explorer()
    before = explorer.panel.shown
    explorer.turn(predicted=True)
    explorer.turn(moment=37)
    assert explorer.state == replace(START, predicted=True, moment=37)
    assert explorer.view.summary.startswith("At 0.31 s")
    assert explorer.panel.shown != before

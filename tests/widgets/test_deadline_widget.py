"""The deadline explorer, from state to text: no browser needed."""

import itertools
import re
import statistics
from dataclasses import replace

import pytest

from threeloops.facts import recorded_drive
from threeloops.units import ms
from threeloops.widgets.driving import deadline as widget
from threeloops.widgets.driving import deadline_replay as replay
from threeloops.widgets.driving.deadline_replay import RECORDED
from threeloops.widgets.driving.deadline_view import OWN_S, STAGES, START, State, view

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


def test_a_time_of_ones_own_is_the_stages_median_on_a_quiet_processor_with_one_backbone() -> None:
    """Each frame keeps its part of what was recorded: the slow ones stay slow."""
    own = tuple(5 * ms if name == "heads" else None for name in STAGES)
    recorded, mine = (replay.stage_seconds(replace(START, shared=True, own=told).chain) for told in (RECORDED, own))
    heads = STAGES.index("heads")
    assert statistics.median(frame[heads] for frame in mine) == pytest.approx(5 * ms)
    for seen, frame in zip(recorded, mine, strict=True):
        assert frame[heads] / seen[heads] == pytest.approx(mine[0][heads] / recorded[0][heads])
        assert frame[:heads] == pytest.approx(seen[:heads])
        assert frame[heads + 1 :] == pytest.approx(seen[heads + 1 :])


@pytest.mark.parametrize("state", STATES[::5], ids=str)
def test_times_of_ones_own_like_the_recorded_ones_change_nothing(state: State) -> None:
    told = [sum(frame) for frame in replay.stage_seconds(state.chain)]
    same = replace(state, own=replay.recorded_s())
    assert [sum(frame) for frame in replay.stage_seconds(same.chain)] == pytest.approx(told)
    twice = replace(state, own=tuple(2 * one for one in replay.recorded_s()))
    assert [sum(frame) for frame in replay.stage_seconds(twice.chain)] == pytest.approx([2 * one for one in told])


def test_three_backbones_take_three_times_the_readers_backbone_and_lift() -> None:
    """By the factor of the recording, in which a backbone of its own lifts its own features."""
    own = tuple({"backbone": 20 * ms, "lift": 4 * ms}.get(name) for name in STAGES)
    backbone = STAGES.index("backbone")
    apart = statistics.median(frame[backbone] for frame in replay.stage_seconds(replace(START, own=own).chain))
    assert apart == pytest.approx(3 * 24 * ms, rel=0.15)


def test_the_chain_of_the_text_answers_every_second_picture() -> None:
    """5, 22, 13 and 5 ms: 45 ms of work on each frame, a frame every 33.3 ms."""
    own = tuple({"preprocess": 5, "backbone": 22, "heads": 13, "plan": 5}.get(name, 0) * ms for name in STAGES)
    shown = view(replace(START, shared=True, own=own))
    assert shown.figure.title.startswith("45.")
    assert "a frame, late" in shown.figure.title
    assert replay.whole(replace(START, shared=True, own=own).chain, predicted=True).answers_per_s == pytest.approx(
        15, abs=1
    )


def test_a_chain_of_no_work_is_as_fresh_as_the_camera() -> None:
    state = replace(START, own=(0.0,) * len(STAGES))
    assert replay.whole(state.chain, predicted=False).largest_age_s < replay.period_s()
    assert view(state).figure.title.startswith("0 s a frame, in time")


def test_slower_stages_never_find_more_and_the_axis_reaches_the_slowest_frame() -> None:
    for crowded in (False, True):
        slow = replace(START, crowded=crowded, own=(60 * ms,) * len(STAGES))
        (bars, _) = view(slow).figure.body["vconcat"]
        ends = bars["layer"][0]["encoding"]["x"]["scale"]["domain"]
        worst = max(sum(frame) for frame in replay.stage_seconds(slow.chain))
        assert worst / ms <= ends[1] <= worst / ms + 20
        assert replay.whole(slow.chain, predicted=True).found_share < found(predicted=True)


@pytest.mark.parametrize(
    ("own", "message"),
    [((0.01,), "own_s has 1 times; the chain has 7 stages"), ((-0.01,) + (None,) * 6, "own_s[0]=-0.01 must be")],
)
def test_impossible_times_are_refused(own: tuple[float | None, ...], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        replay.Chain(way="shared fp32", clock="quiet", own_s=own, queue=False)


def test_the_slider_sets_the_chosen_stage_and_no_other() -> None:
    explorer = widget.explorer()
    explorer.turn(own_s=20 * ms)
    explorer.turn(stage="heads")
    assert explorer.state.own_s is None, "another stage is chosen: its own time is shown"
    explorer.turn(own_s=4 * ms)
    explorer.turn(stage="backbone")
    assert explorer.state.own_s == 20 * ms
    assert dict(zip(STAGES, explorer.state.own, strict=True)) == dict.fromkeys(STAGES) | {
        "backbone": 20 * ms,
        "heads": 4 * ms,
    }
    assert explorer.controls["stage"].notes[STAGES.index("heads")] == "4.00 ms"
    assert explorer.view.summary.endswith("Your times: backbone 20.0 ms, heads 4.00 ms.")
    for stage in ("heads", "backbone"):
        explorer.turn(stage=stage)
        explorer.turn(own_s=None)
    assert explorer.view.figure.title == view(START).figure.title


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("end", [OWN_S[1], OWN_S[-1]], ids=["none", "most"])
def test_every_stage_goes_to_both_ends(stage: str, end: float) -> None:
    explorer = widget.explorer()
    explorer.turn(stage=stage)
    explorer.turn(own_s=end)
    assert "cannot be shown" not in explorer.view.summary
    (bars, _) = explorer.view.figure.body["vconcat"]
    row = next(row for row in bars["layer"][0]["data"]["values"] if row["stage"] == stage)
    assert (row["to"] > row["from"]) == (end > 0 or stage in ("backbone", "lift"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stage": "head"}, "stage='head' is not known; did you mean 'heads'"),
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

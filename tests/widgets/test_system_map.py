"""System map, from state to text: no browser needed. tests/chapters/test_browser_system.py chooses stages by click
and by keyboard.
"""

import re

import pytest

from threeloops import contents
from threeloops.simulate.inner_loop import step as player
from threeloops.simulate.training_loop.collectives import simulated
from threeloops.widgets import system_map, system_view
from threeloops.widgets.system_stages import STAGES
from threeloops.widgets.system_view import GPUS, NODE, State, step, view

# --- the numbers ---


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_the_exchange_inside_a_node_is_what_walking_pieces_take(gpus: int) -> None:
    inside, _ = system_view.rates()
    elements = 40 * gpus
    walked = simulated(op="all_reduce", algorithm="ring", ranks=gpus, elements=elements).seconds(
        alpha_s=0, bytes_per_s_one_way=inside
    )
    assert step(gpus).device_s["all-reduce"] == pytest.approx(walked * system_view.GRADIENT_BYTES / (8 * elements))


def test_between_nodes_each_gpu_carries_its_share_of_the_gradients() -> None:
    # 64 GPUs are 8 nodes. Inside: 2 x 7/8 of 2.6 GB at 450 GB/s, 10.1 ms; between: 2 x 7/8 of an eighth of that at 50
    # GB/s, 11.4 ms.
    assert step(64).device_s["all-reduce"] == pytest.approx(0.0101 + 0.0114, rel=0.01)


@pytest.mark.parametrize("gpus", [8, 64, 256])
def test_a_step_takes_what_it_takes_when_played_on_a_clock(gpus: int) -> None:
    shown = step(gpus)
    played = player.play(
        num_steps=60, workers=1, batch_s=shown.loader_s, queue=2, stages=tuple(shown.device_s.values())
    )
    assert played.pace_s(skip=20) == pytest.approx(shown.total_s)


def test_the_pace_setter_changes_and_then_more_gpus_bring_nothing() -> None:
    assert "training is the bottleneck" in view(State(stage="data", gpus=128)).numbers
    assert "the loader is the bottleneck" in view(State(stage="data", gpus=256)).numbers
    assert step(512).total_s == step(256).total_s == system_view.LOADER_S
    # 64.01 s over 0.4 s, on twice the GPUs too
    assert "160 times as fast" in view(State(stage="data", gpus=512)).numbers
    assert "efficiency of 31.3 %" in view(State(stage="data", gpus=512)).numbers
    assert "1 GPU: a step takes 64.0 s" in view(State(stage="data", gpus=1)).numbers


# --- from state to text ---


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_says_what_can_be_done_and_where_it_is_taught(stage: str) -> None:
    shown = view(State(stage=stage, gpus=64))
    for lever in STAGES[stage].levers:
        assert lever in shown.summary
    assert f"Taught in: {STAGES[stage].taught}." in shown.summary
    assert f"Chosen: {STAGES[stage].name}." in shown.figure.alt
    assert re.search(rf"● {STAGES[stage].name}\b", str(shown.figure.body))
    assert str(shown.figure.body).count("●") == 1


@pytest.mark.parametrize("gpus", GPUS)
def test_every_number_of_gpus_is_shown_in_picture_text_and_table(gpus: int) -> None:
    shown = view(State(stage="training", gpus=gpus))
    assert shown.figure.title.startswith(f"{gpus} GPU")
    assert sum(note.endswith(", bottleneck") for note in shown.notes.values()) == 1
    assert max(len(note) for note in shown.notes.values()) <= 18, "a longer note would leave its box"
    for row in shown.rows:
        assert ", ".join(row.cells) in shown.text
        assert f">{row.cells[1]}</td>" in shown.table
    assert sum(row.share for row in shown.rows[1:]) == pytest.approx(1) or shown.rows[0].share == 1


def test_impossible_states_are_refused() -> None:
    State(stage="vehicle", gpus=2 * NODE)
    for change, message in (
        ({"stage": "trainnig"}, "stage='trainnig' is not known; did you mean 'training'"),
        ({"gpus": 0}, "gpus=0 must be a whole number of at least 1"),
        ({"gpus": 12}, "gpus=12 must be at most 8, or a multiple of it"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            State(**{"stage": "vehicle", "gpus": 16, **change})


# --- the controls ---


def test_a_chosen_stage_and_a_moved_slider_change_state_map_and_words() -> None:
    explorer = system_map.explorer()
    explorer.turn(stage="serving")
    assert explorer.state == State(stage="serving", gpus=64)
    assert explorer.view.summary.startswith("Serving (product loop)")
    explorer.turn(gpus=256)
    assert explorer.state == State(stage="serving", gpus=256)
    assert system_map.controls(explorer.state)[0].notes[1] == "400 ms, bottleneck"
    assert "160 times as fast" in explorer.view.summary


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_leads_to_a_part_of_the_book(stage: str) -> None:
    (link,) = system_map.links(State(stage=stage, gpus=64))
    parts = {(f"Open part {place.name}", place.copy) for place in contents.places(contents.book_root())}
    assert (link.words, link.notebook) in parts

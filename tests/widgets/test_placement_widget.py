"""The placement explorer, from state to text: no browser needed."""

import itertools

import pytest

from threeloops.driving import soc_fit
from threeloops.facts import hardware
from threeloops.simulate.driving import shared_bus
from threeloops.widgets.driving import placement as widget
from threeloops.widgets.driving.placement_view import (
    CAMERA_ON,
    CHIPS,
    IN_MEMORY,
    State,
    bars,
    engine_of,
    memory_bytes_per_s,
    stages_of,
    view,
)

STATES = [
    State(chip=chip, camera=camera, in_memory=share)
    for chip, camera, share in itertools.product(CHIPS, CAMERA_ON, IN_MEMORY)
]
SLICE_S = 20e-6


def bandwidth(state: State) -> float:
    clock_hz = 2133e6 if CHIPS[state.chip][1] == "15w" else 3200e6  # NVIDIA's power modes of Orin
    full = hardware.part(CHIPS[state.chip][0])["memory_bytes_per_s"]
    return full * clock_hz / 3200e6


def test_only_the_smallest_mode_lowers_the_memorys_rate() -> None:
    for state in STATES:
        assert memory_bytes_per_s(state) == pytest.approx(bandwidth(state))


def test_every_state_can_be_shown_and_its_longest_bar_is_the_period() -> None:
    for state in STATES:
        shown, rows = view(state), bars(state)
        longest = max(sum(pieces.values()) for pieces in rows.values())
        assert longest == pytest.approx(soc_fit.period_s(stages_of(state), memory_bytes_per_s=bandwidth(state)))
        assert shown.rows[list(CHIPS).index(state.chip)][2] in shown.summary
        assert state.chip in shown.figure.title


@pytest.mark.parametrize("state", STATES[::5], ids=lambda state: f"{state.chip}-{state.camera}-{state.in_memory}")
def test_frames_in_slices_never_come_faster_than_the_view_says(state: State) -> None:
    stages = stages_of(state)
    ends = shared_bus.frame_slices(
        [shared_bus.jobs_of(stages, slice_s=SLICE_S)] * 8, bus_bytes_per_slice=bandwidth(state) * SLICE_S
    )
    least = soc_fit.period_s(stages, memory_bytes_per_s=bandwidth(state))
    assert ends[-1] * SLICE_S >= 8 * least * (1 - 1e-9)
    assert ends[0] * SLICE_S >= soc_fit.frame_latency_s(stages, memory_bytes_per_s=bandwidth(state)) * (1 - 1e-9)


def test_a_chip_without_dlas_says_so_and_uses_its_gpu() -> None:
    state = State(chip="Thor T5000", camera="dla", in_memory=1.0)
    assert engine_of(state) == "gpu"
    assert "No DLA is listed for Thor T5000." in view(state).summary


def test_a_control_changes_the_words() -> None:
    shown = widget.explorer()
    before = shown.view.summary
    shown.turn(camera="dla")
    assert shown.state.camera == "dla"
    assert shown.view.summary != before
    shown.turn(chip="AGX Orin 64GB, 30 W")
    shown.turn(in_memory=0.5)
    assert "the DLAs are the bottleneck" in shown.view.summary
    assert "AGX Orin 64GB, 30 W" in shown._repr_mimebundle_()[0]["text/plain"]


def test_unknown_states_are_refused() -> None:
    with pytest.raises(ValueError, match="chip='Orin' is not known"):
        State(chip="Orin", camera="gpu", in_memory=1.0)
    with pytest.raises(ValueError, match="in_memory=0.3 must be one of"):
        State(chip="Thor T5000", camera="gpu", in_memory=0.3)

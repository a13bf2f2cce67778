"""Roofline explorer, from state to text: no browser needed. tests/chapters/test_browser.py turns the same controls by
keyboard.
"""

import re

import pytest

from threeloops.facts import hardware
from threeloops.widgets.inner_loop import roofline, roofline_view
from threeloops.widgets.inner_loop.roofline_layer import precisions
from threeloops.widgets.inner_loop.roofline_view import State, view

FINE = {"accelerator": "h100-sxm5", "precision": "bf16", "phase": "decode", "batch": 8, "sequence": 2048}


def rows(**change: object) -> dict[str, roofline_view.Row]:
    return {row.name: row for row in view(State(**{**FINE, **change})).rows}


# --- from state to text ---


def test_decode_of_few_requests_waits_for_memory() -> None:
    shown = view(State(**FINE))
    assert {row.bound for row in shown.rows} == {"memory"}
    assert shown.figure.title == "All 11 operations of the layer are memory-bound"


def test_products_cross_the_ridge_point_when_the_batch_does() -> None:
    # An H100's ridge point is 989.4e12 / 3.35e12 = 295 FLOP/B, and in decode with bf16 a wide product does nearly one
    # FLOP per byte and request.
    assert rows(batch=256)["gate up projection"].bound == "memory"
    assert rows(batch=384)["gate up projection"].bound == "compute"


def test_no_batch_helps_attention_in_decode() -> None:
    # Four query heads share a KV head: 4 FLOP per byte of cache at most, whatever the batch (Pope et al., 2022,
    # arXiv:2211.05102, section 3.3).
    intensities = [rows(batch=batch)["attention"].arithmetic_intensity for batch in (1, 32, 1024)]
    assert intensities == pytest.approx([intensities[0]] * 3)
    assert 3.9 < intensities[0] < 4


def test_eight_bits_double_intensity_and_roof_so_the_bound_stays() -> None:
    for name, wide in rows().items():
        narrow = rows(precision="fp8")[name]
        assert narrow.arithmetic_intensity == pytest.approx(2 * wide.arithmetic_intensity)
        assert narrow.bound == wide.bound


def test_four_bit_weights_speed_up_decode_and_not_prefill() -> None:
    def product_s(**change: object) -> float:
        return rows(**change)["gate up projection"].lower_bound_s

    # weights are nearly all of the bytes
    assert product_s(precision="fp16") / product_s(precision="int4 weights") == pytest.approx(4, rel=0.02)
    assert product_s(precision="fp16", phase="prefill") == product_s(precision="int4 weights", phase="prefill")


def test_more_bandwidth_alone_helps_decode_alone() -> None:
    decode = rows()["attention"].lower_bound_s / rows(accelerator="h200-sxm")["attention"].lower_bound_s
    assert decode == pytest.approx(4.8 / 3.35)
    prefill = (
        rows(phase="prefill")["attention"].lower_bound_s
        / rows(accelerator="h200-sxm", phase="prefill")["attention"].lower_bound_s
    )
    assert prefill == pytest.approx(1, rel=1e-3)


def test_launches_can_be_the_bound() -> None:
    shown = view(State(**FINE, launch_overhead_s=5e-6))
    assert "overhead-bound" in shown.figure.title
    assert {row.bound for row in shown.rows} == {"memory", "overhead"}


def test_the_summary_says_where_the_controls_stand_and_whether_it_fits() -> None:
    # Llama 3 8B in bf16: 131,072 bytes of keys and values per token. 8 x 2,048 of them are 2 GiB; 512 x 8,192 are 512
    # GiB.
    assert "Decode, batch 8, 2,048 tokens of context, bf16, on NVIDIA H100" in view(State(**FINE)).summary
    assert "2.00 GiB of keys and values fit in" in view(State(**FINE)).summary
    assert "512 GiB of keys and values do not fit in" in view(State(**{**FINE, "batch": 512, "sequence": 8192})).summary


def test_every_operation_is_in_the_figure_the_text_and_the_table() -> None:
    shown = view(State(**FINE))
    for row in shown.rows:
        assert row.name in shown.figure.alt
        assert row.sentence in shown.text
        assert re.search(rf"{row.name}</th><td[^>]*>{row.bound}<", shown.table)
    assert shown.table.count("<tr>") == len(shown.rows) + 1


@pytest.mark.parametrize("accelerator", roofline_view.ACCELERATORS)
def test_every_setting_of_the_controls_can_be_shown(accelerator: str) -> None:
    for precision in precisions(accelerator):
        for phase in roofline_view.PHASES:
            for batch, sequence in ((1, 128), (1, 8192), (1024, 128), (1024, 8192), (roofline.BATCHES[5], 2048)):
                state = State(accelerator=accelerator, precision=precision, phase=phase, batch=batch, sequence=sequence)
                assert len(view(state).rows) == 11, state


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accelerator": "h100"}, "accelerator='h100' is not known; did you mean"),
        (
            {"accelerator": "a100-sxm4-80gb", "precision": "fp8"},
            "precision='fp8' has no peak on a100-sxm4-80gb; it has fp16, bf16, int8, int4 weights",
        ),
        ({"phase": "training"}, "phase='training' is not known"),
        ({"batch": 0}, "batch=0 must be a whole number of at least 1"),
        ({"sequence": 8193}, "sequence=8193 must be at most 8192, the longest context of llama-3-8b"),
        ({"launch_overhead_s": -1}, "launch_overhead_s=-1 must be at least 0"),
    ],
)
def test_impossible_states_are_refused(change: dict[str, object], message: str) -> None:
    State(**{**FINE, "sequence": 8192})
    with pytest.raises(ValueError, match=re.escape(message)):
        State(**{**FINE, **change})


# --- the controls ---


def test_a_turned_control_changes_state_figure_and_words() -> None:
    explorer = roofline.explorer()
    before = explorer.panel.shown
    explorer.turn(batch=64)
    assert explorer.state.batch == 64
    assert "batch 64," in explorer.view.summary
    assert explorer.panel.shown != before


def test_a_chip_without_the_precision_takes_one_that_it_has() -> None:
    explorer = roofline.explorer()
    explorer.turn(accelerator="v100-sxm2-32gb")  # no bf16
    assert explorer.state.precision == "fp16"
    assert explorer.controls["precision"].values == ("fp16", "int4 weights")
    explorer.turn(precision="int4 weights")
    explorer.turn(accelerator="h100-sxm5")
    assert explorer.state.precision == "int4 weights"
    assert "NVIDIA H100" in explorer.view.summary


def test_an_explorer_starts_at_any_state_even_between_the_marks() -> None:
    state = State(**{**FINE, "batch": 7, "sequence": 3000})
    explorer = roofline.explorer(state)
    assert explorer.state == state
    assert {7, 3000} <= {*explorer.controls["batch"].values, *explorer.controls["sequence"].values}


# --- further roofs ---


def test_every_memory_has_a_slope_of_its_own() -> None:
    # 5,120 bytes per cycle at 1.41 GHz are 7.2 TB/s (NVIDIA, A100 whitepaper); 108 SMs with 32 banks of 4 bytes at
    # the same clock are 19.5 TB/s.
    shown = view(State(**{**FINE, "accelerator": "a100-sxm4-80gb", "roofs": "of every memory"}))
    assert "Memory 2.04 TB/s, L2 7.22 TB/s, shared memory 19.5 TB/s" in shown.figure.alt
    assert "On the chip: L2 7.22 TB/s, shared memory 19.5 TB/s." in shown.summary
    assert "L2" not in view(State(**{**FINE, "accelerator": "a100-sxm4-80gb"})).figure.alt


def test_every_precision_has_a_roof_of_its_own() -> None:
    alt = view(State(**FINE, roofs="of every precision")).figure.alt
    assert "fp8, int8 peak 1.98 PFLOP/s" in alt
    assert "tf32 peak 495 TFLOP/s" in alt


def test_measured_matmuls_hang_below_the_roof_of_their_chip() -> None:
    for accelerator in ("a100-sxm4-80gb", "h100-sxm5", "h200-sxm", "b200-hgx"):
        chip = hardware.part(accelerator)
        dots = roofline_view.measured_matmuls(accelerator, "bf16")
        assert len(dots) > 20
        for intensity, rate in dots:
            assert rate < min(chip.peak_flops_per_s("bf16"), intensity * chip["memory_bytes_per_s"])
    shown = view(State(**FINE, roofs="with measured matmuls"))
    assert "measured calls, from" in shown.figure.alt
    assert "of other shapes, as others timed them on this chip." in shown.summary
    assert "measured calls" not in view(State(**FINE)).figure.alt


def test_a_chip_without_measured_matmuls_says_so() -> None:
    shown = view(State(**{**FINE, "accelerator": "l4"}, roofs="with measured matmuls"))
    assert "No times of matmuls in" in shown.summary


@pytest.mark.parametrize("accelerator", roofline_view.ACCELERATORS)
@pytest.mark.parametrize("roofs", roofline_view.ROOFS)
def test_every_choice_of_roofs_can_be_shown(accelerator: str, roofs: str) -> None:
    for precision in precisions(accelerator):
        assert (
            len(
                view(
                    State(
                        accelerator=accelerator,
                        precision=precision,
                        phase="decode",
                        batch=8,
                        sequence=2048,
                        roofs=roofs,
                    )
                ).rows
            )
            == 11
        )


def test_the_menu_of_roofs_redraws() -> None:
    explorer = roofline.explorer()
    explorer.turn(roofs="of every memory")
    assert explorer.state.roofs == "of every memory"
    assert "On the chip" in explorer.view.summary


# --- what can be dragged ---


def test_a_turned_roof_is_the_chips_own_times_what_the_slider_says() -> None:
    # A100: 312 TFLOP/s and 2.039 TB/s; four times the one and half the other meet at 8 times the ridge point
    shown = view(State(**{**FINE, "accelerator": "a100-sxm4-80gb"}, compute_times=4.0, memory_times=0.5))
    assert "ridge point 1,224 FLOP/B" in shown.summary
    assert "on an NVIDIA A100 SXM4 80GB with 4 times the FLOP/s and 0.5 times the bandwidth." in shown.figure.caption
    own, half = rows(), {row.name: row for row in view(State(**FINE, memory_times=0.5)).rows}
    for name in own:  # all of them wait for memory
        assert half[name].lower_bound_s == pytest.approx(2 * own[name].lower_bound_s)


def test_the_pointer_holds_the_roofs_where_they_are_drawn_and_every_operation_that_moves_with_the_batch() -> None:
    explorer = roofline.explorer()
    held = roofline.held(explorer.state)
    assert [drag.control for drag in held[-2:]] == ["compute_times", "memory_times"]
    for drag in held:
        places, control = drag.places, explorer.controls[drag.control]
        assert len(places) == len(control.values)
        x, y = drag.hold[0]
        now = {"x": x, "y": drag.hold[-1][1], "y/x": y / x}[drag.along]
        assert places[control.place(getattr(explorer.state, drag.control))] == pytest.approx(now)
    drawn = {(point["x"], point["y"]) for point in explorer.view.figure.body["layer"][-1]["data"]["values"]}
    assert {drag.hold[0] for drag in held[:-2]} <= drawn
    assert len(held) - 2 == 4  # the four products; attention and the vector operations stay where they are

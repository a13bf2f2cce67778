"""Rare cases: by formula, as a report prints them, and drawn step by step."""

import pytest

from threeloops.driving import data_engine, rare_cases
from threeloops.simulate.driving import rare_draws
from threeloops.units import GFLOP, TFLOP, day, hour, km, mile


def test_a_report_on_road_safety_prints_the_same_miles() -> None:
    """Kalra and Paddock: 275 million miles without a fatality, against 1.09 in 100 million miles, at 95 %."""
    rate = 1.09 / (100e6 * mile)
    told = rare_cases.metres_to_see(events_per_m=rate, confidence=0.95)
    assert told / mile == pytest.approx(275e6, rel=0.005)


def test_three_over_the_rate_sees_the_case_in_nineteen_drives_of_twenty() -> None:
    for confidence in (0.5, 0.95):
        steps = rare_cases.metres_to_see(events_per_m=1 / 200, confidence=confidence)
        counted = rare_draws.share_of_drives(steps=round(steps), one_in=200, drives=4_000, seed=3)
        assert counted == pytest.approx(confidence, abs=0.025)  # three deviations of 4,000 draws


def test_clips_and_their_cost_are_those_that_a_drive_fires() -> None:
    rates = {"events_per_m": 1 / 100, "found_share": 1 / 4, "false_per_m": 1 / 50}
    drive = rare_draws.fired(steps=200_000, one_in=100, found_one_in=4, false_one_in=50, seed=2)
    assert rare_cases.clips_per_m(**rates) == pytest.approx(sum(drive) / 200_000, rel=0.05)
    told = rare_cases.label_cost(found=drive.right, clip_cost=2.0, **rates)
    assert told == pytest.approx(2.0 * sum(drive), rel=0.15)  # 500 right ones: three deviations


def test_certainty_is_refused() -> None:
    with pytest.raises(ValueError, match="endless"):
        rare_cases.metres_to_see(events_per_m=1e-9, confidence=1.0)


def test_a_week_of_retraining_is_the_chapters_gpu_hours() -> None:
    """Part 8 trains a detector of 552 GFLOP a scene on 240 million scenes in 319 GPU-hours: in a week two GPUs."""
    told = {"examples": 10e6, "passes": 24, "forward_flops": 552 * GFLOP, "utilisation": 0.35}
    gpus = data_engine.retraining_gpus(**told, peak_flops_per_s=989.4 * TFLOP, seconds=7 * day)
    assert gpus * 7 * day / hour == pytest.approx(319, rel=0.002)
    half = data_engine.retraining_gpus(**told, peak_flops_per_s=989.4 * TFLOP, seconds=3.5 * day)
    assert half == pytest.approx(2 * gpus)
    with pytest.raises(ValueError, match="utilisation"):
        data_engine.retraining_gpus(**told | {"utilisation": 0.0}, peak_flops_per_s=TFLOP, seconds=day)


def test_simulated_metres_are_driven_second_by_second() -> None:
    driven, seconds = 0.0, 0
    while driven < 50 * km:
        driven, seconds = driven + 12.5, seconds + 1
    assert data_engine.simulation_gpu_s(metres=50 * km, speed_m_per_s=12.5, gpu_s_per_s=3.5) == 3.5 * seconds


def test_a_denoised_second_is_the_chapters_and_is_made_place_by_place() -> None:
    """Part 7 prints 3.55 s of an H100 for a denoiser of GAIA-1's size; here also step by step, with small numbers."""
    gaia = {"frames_per_s": 6.25, "steps": 30, "places": 18 * 32, "num_parameters": 6.5e9, "utilisation": 0.4}
    assert data_engine.denoised_gpu_s(**gaia, peak_flops_per_s=989.4 * TFLOP) == pytest.approx(3.55, rel=0.002)
    flops = sum(2 * 700 for _frame in range(3) for _step in range(4) for _place in range(5))
    few = {"frames_per_s": 3, "steps": 4, "places": 5, "num_parameters": 700, "utilisation": 0.25}
    assert data_engine.denoised_gpu_s(**few, peak_flops_per_s=1e6) == pytest.approx(flops / 0.25e6)
    with pytest.raises(ValueError, match="steps"):
        data_engine.denoised_gpu_s(**few | {"steps": 0}, peak_flops_per_s=1e6)
    with pytest.raises(ValueError, match="utilisation"):
        data_engine.denoised_gpu_s(**few | {"utilisation": 1.5}, peak_flops_per_s=1e6)

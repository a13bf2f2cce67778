"""Figures of part 1 of the driving chapter: what they draw is what was counted."""

from fractions import Fraction

import pytest

from threeloops.driving import information_age
from threeloops.figures import still
from threeloops.figures.driving.answer_ages import answer_ages
from threeloops.figures.driving.sensor_chain import SENSORS, STAGES, sensor_chain
from threeloops.simulate.driving import picture_age
from threeloops.units import fmt_seconds

MS = Fraction(1, 1000)


def test_a_tooth_falls_to_the_latency_and_grows_to_the_largest_age() -> None:
    answers = [
        (float(exposed), float(ready))
        for exposed, ready in picture_age.regular(latency=45 * MS, period=30 * MS, frames=8)
    ]
    figure = answer_ages({"a way": answers}, until_s=0.2, title="Ages", caption="Computed.")
    ages = [row["age"] for row in figure.body["layer"][0]["data"]["values"]]
    assert min(ages) == pytest.approx(45)
    largest = information_age.largest_age_s(latency_s=0.045, period_s=0.030, lost_in_a_row=0)
    assert max(ages) == pytest.approx(largest * 1000)
    assert "6 answers" in figure.alt


def test_the_mean_over_whole_periods_is_the_formulas() -> None:
    answers = [
        (float(exposed), float(ready))
        for exposed, ready in picture_age.regular(latency=45 * MS, period=30 * MS, frames=8)
    ]
    figure = answer_ages({"a way": answers}, until_s=0.045 + 5 * 0.030, title="Ages", caption="Computed.")
    told = information_age.mean_age_s(latency_s=0.045, period_s=0.030)
    assert f"mean {fmt_seconds(told)}" in figure.alt


def test_a_way_without_answers_is_refused() -> None:
    with pytest.raises(ValueError, match="each with an answer"):
        answer_ages({"a way": []}, until_s=0.2, title="Ages", caption="Computed.")


def test_all_sensors_and_stages_are_named_and_fit() -> None:
    figure = sensor_chain(title="From light to brake", caption="A sketch.")
    assert all(text.split("\n")[0] in figure.alt for text in (*SENSORS, *STAGES))
    width, _ = still.size(figure.png())
    assert width <= 640

"""Closing in: every formula against bodies that are moved along in short steps, and against printed tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threeloops.driving import closing, latency_budget
from threeloops.facts import road_rules
from threeloops.simulate.driving import closing as moved
from threeloops.units import foot, hour, km, mile

speeds, reactions, brakes = st.floats(1, 60), st.floats(0, 2), st.floats(1, 10)


def test_stopping_distances_are_the_printed_ones_within_their_rounding() -> None:
    """AASHTO rounds up to the next five feet."""
    for mph, feet in road_rules.STOPPING_SIGHT_FEET.items():
        metres = latency_budget.stopping_distance_m(
            speed_m_per_s=mph * mile / hour,
            reaction_s=road_rules.STOPPING_SIGHT_REACTION_S,
            deceleration_m_per_s2=road_rules.STOPPING_SIGHT_FEET_PER_S2 * foot,
        )
        assert 0 <= feet - metres / foot < 5, mph


def test_following_distances_are_the_printed_ones_within_their_rounding() -> None:
    for kmh, (gap_s, metres) in road_rules.TIME_GAPS.items():
        computed = latency_budget.distance_m(speed_m_per_s=kmh * km / hour, seconds=gap_s)
        assert computed == pytest.approx(metres, abs=0.0501), kmh


def test_times_to_collision_are_the_printed_ones_within_their_rounding() -> None:
    for kmh, printed in road_rules.CUT_IN_TTC_S.items():
        needed = closing.time_to_collision_needed_s(
            closing_m_per_s=kmh * km / hour,
            reaction_s=road_rules.CUT_IN_REACTION_S,
            deceleration_m_per_s2=road_rules.CUT_IN_DECELERATION_M_PER_S2,
        )
        assert needed == pytest.approx(printed, abs=0.0051), kmh


def test_brakes_that_must_bite_at_once_leave_nothing_and_are_not_refused() -> None:
    """From 12 m/s at 6 m/s2 a car stops in 12 m, which it would have driven in one second."""
    assert closing.before_braking_s(time_to_collision_s=1, closing_m_per_s=12, deceleration_m_per_s2=6) == 0


@given(speed=speeds, gap=st.floats(0, 300), reaction=reactions, braking=brakes)
def test_a_car_reaches_the_obstacle_as_fast_as_predicted(
    speed: float, gap: float, reaction: float, braking: float
) -> None:
    asked = {"speed_m_per_s": speed, "gap_m": gap, "reaction_s": reaction, "deceleration_m_per_s2": braking}
    predicted, driven = closing.impact_speed_m_per_s(**asked), moved.speed_at_obstacle(**asked)
    assert predicted**2 == pytest.approx(driven**2, rel=1e-6, abs=1e-6 * speed**2)


@given(speed=speeds, reaction=reactions, braking=brakes)
def test_the_time_that_is_needed_is_that_of_the_least_gap(speed: float, reaction: float, braking: float) -> None:
    least = moved.least_gap(closing_m_per_s=speed, reaction_s=reaction, deceleration_m_per_s2=braking)
    needed = closing.time_to_collision_needed_s(
        closing_m_per_s=speed, reaction_s=reaction, deceleration_m_per_s2=braking
    )
    assert least / speed == pytest.approx(needed, rel=1e-6)
    seen_s = least / speed * (1 + 2e-6)  # the least gap is found in small steps
    left = closing.before_braking_s(time_to_collision_s=seen_s, closing_m_per_s=speed, deceleration_m_per_s2=braking)
    assert left == pytest.approx(reaction, abs=4e-6 * seen_s)


@given(acceleration=st.floats(-9, 9), age=st.floats(0.01, 1))
def test_a_box_that_keeps_its_speed_misses_a_car_that_does_not(acceleration: float, age: float) -> None:
    counted = moved.apart_after(acceleration_m_per_s2=acceleration, age_s=age, speed_m_per_s=30)
    predicted = closing.missed_by_prediction_m(acceleration_m_per_s2=acceleration, age_s=age)
    assert counted == pytest.approx(predicted, abs=1e-9)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: closing.before_braking_s(time_to_collision_s=0.5, closing_m_per_s=20, deceleration_m_per_s2=6),
            "too short",
        ),
        (
            lambda: closing.impact_speed_m_per_s(speed_m_per_s=10, gap_m=-1, reaction_s=1, deceleration_m_per_s2=6),
            "gap_m=-1",
        ),
    ],
)
def test_nonsense_is_refused(call: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()  # type: ignore[operator]

"""A vehicle's latency budget: every formula against a car or a pipeline that is moved along in small steps."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threeloops.driving import latency_budget
from threeloops.simulate.driving import vehicle

speeds = st.floats(1, 60)
reactions = st.floats(0, 2)
brakes = st.floats(1, 10)


@given(speed=speeds, reaction=reactions, braking=brakes)
def test_a_car_braked_in_small_steps_stops_where_the_formula_says(
    speed: float, reaction: float, braking: float
) -> None:
    driven = vehicle.metres_to_standstill(speed_m_per_s=speed, reaction_s=reaction, deceleration_m_per_s2=braking)
    predicted = latency_budget.stopping_distance_m(
        speed_m_per_s=speed, reaction_s=reaction, deceleration_m_per_s2=braking
    )
    assert driven == pytest.approx(predicted, rel=1e-6)


def test_the_road_engineers_table_agrees() -> None:
    """AASHTO's table for 100 km/h (2.5 s, 3.4 m/s^2): 69.5 m and 114.7 m, with its coefficients rounded to two digits
    (0.039 for 1 / 25.92).
    """
    assert latency_budget.stopping_distance_m(
        speed_m_per_s=100 / 3.6, reaction_s=2.5, deceleration_m_per_s2=3.4
    ) == pytest.approx(184.2, rel=0.01)


@given(sight=st.floats(5, 300), reaction=reactions, braking=brakes)
def test_at_the_highest_speed_the_car_stops_just_in_sight(sight: float, reaction: float, braking: float) -> None:
    speed = latency_budget.highest_speed_m_per_s(sight_m=sight, reaction_s=reaction, deceleration_m_per_s2=braking)
    assert vehicle.metres_to_standstill(
        speed_m_per_s=speed, reaction_s=reaction, deceleration_m_per_s2=braking
    ) == pytest.approx(sight, rel=1e-6)


@given(stages=st.lists(st.integers(1, 20), min_size=1, max_size=5), slack=st.integers(0, 5))
def test_frames_that_never_wait_take_the_sum_and_leave_at_the_cameras_rate(stages: list[int], slack: int) -> None:
    period = Fraction(max(stages) + slack, 1000)
    seconds = [Fraction(stage, 1000) for stage in stages]
    finished = vehicle.frames_through(seconds, period=period, frames=30)
    assert all(
        float(done - arrived) == pytest.approx(latency_budget.pipeline_latency_s([float(s) for s in seconds]))
        for arrived, done in finished
    )
    rate = float(29 / (finished[-1][1] - finished[0][1]))
    assert rate == pytest.approx(
        latency_budget.pipeline_frames_per_s([float(s) for s in seconds], camera_frames_per_s=float(1 / period))
    )


@given(late=st.integers(0, 100), parts=st.integers(1, 8))
def test_waiting_for_all_is_late_when_any_is(late: int, parts: int) -> None:
    counted = vehicle.late_share(late=Fraction(late, 100), parts=parts)
    assert float(counted) == pytest.approx(latency_budget.any_late_share(late_share=late / 100, parts=parts), abs=1e-12)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: latency_budget.stopping_distance_m(speed_m_per_s=20, reaction_s=1, deceleration_m_per_s2=0),
            "deceleration_m_per_s2=0 must be greater",
        ),
        (lambda: latency_budget.speedup_needed(deadline_s=0.03, stage_s=0.01, others_s=0.03), "leave nothing"),
        (lambda: latency_budget.pipeline_latency_s([]), "is empty"),
        (lambda: latency_budget.pipeline_latency_s([0.1, -1]), "stage 2=-1"),
        (lambda: latency_budget.any_late_share(late_share=5, parts=2), "between 0 and 1"),
    ],
)
def test_nonsense_is_refused(call: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()  # type: ignore[operator]

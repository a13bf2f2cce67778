"""Closing in: two cars, or a car and an obstacle, that come nearer; how much time is left, what a rule leaves for
computing, and how fast one hits what one saw too late.

>>> round(time_to_collision_needed_s(closing_m_per_s=20 / 3.6, reaction_s=0.25, deceleration_m_per_s2=6), 2)
0.71
"""

import math

from threeloops import checks


def time_to_collision_needed_s(*, closing_m_per_s: float, reaction_s: float, deceleration_m_per_s2: float) -> float:
    """The least time to collision from which braking still avoids contact with a car that keeps its speed.

    Formula:  reaction time + closing speed / (2 * deceleration): the stopping distance, seen from the car ahead, over
              the closing speed
    Assumes:  constant deceleration after the reaction time (sensing, computing, brakes building up)
    Source:   the cut-in rule of Regulation (EU) 2022/1426, Annex III, in KBA's table of 6 speeds (2026); UN Regulation
              No. 157, paragraph 5.2.5.2, has the same form with another reaction time
    Counted:  simulate.driving.closing.least_gap

    >>> time_to_collision_needed_s(closing_m_per_s=12, reaction_s=0.35, deceleration_m_per_s2=6)
    1.35
    """
    checks.non_negative(closing_m_per_s=closing_m_per_s, reaction_s=reaction_s)
    checks.positive(deceleration_m_per_s2=deceleration_m_per_s2)
    return reaction_s + closing_m_per_s / (2 * deceleration_m_per_s2)


def before_braking_s(*, time_to_collision_s: float, closing_m_per_s: float, deceleration_m_per_s2: float) -> float:
    """What a time to collision leaves for everything before the brakes bite.

    Formula:  time to collision - closing speed / (2 * deceleration)
    Raises:   ValueError if even brakes that bite at once come too late
    Source:   by definition of uniform deceleration
    Counted:  simulate.driving.closing.least_gap

    >>> before_braking_s(time_to_collision_s=1.5, closing_m_per_s=12, deceleration_m_per_s2=6)
    0.5
    """
    needed = time_to_collision_needed_s(
        closing_m_per_s=closing_m_per_s, reaction_s=0, deceleration_m_per_s2=deceleration_m_per_s2
    )
    checks.positive(time_to_collision_s=time_to_collision_s)
    if needed > time_to_collision_s:
        raise ValueError(f"time_to_collision_s={time_to_collision_s} is too short: braking alone takes {needed:.3g} s")
    return time_to_collision_s - needed


def impact_speed_m_per_s(
    *, speed_m_per_s: float, gap_m: float, reaction_s: float, deceleration_m_per_s2: float
) -> float:
    """The speed at which a car reaches a standing obstacle; 0 if it stops before.

    Formula:  sqrt(v^2 - 2 a (gap - v t)); v if the gap is used up before the brakes bite
    Assumes:  as the stopping distance: constant speed while reacting, then constant deceleration
    Source:   by definition of uniform deceleration
    Counted:  simulate.driving.closing.speed_at_obstacle

    >>> round(impact_speed_m_per_s(speed_m_per_s=20, gap_m=45, reaction_s=0.5, deceleration_m_per_s2=5), 2)
    7.07
    """
    checks.positive(speed_m_per_s=speed_m_per_s, deceleration_m_per_s2=deceleration_m_per_s2)
    checks.non_negative(gap_m=gap_m, reaction_s=reaction_s)
    braking_m = max(0.0, gap_m - speed_m_per_s * reaction_s)
    return math.sqrt(max(0.0, speed_m_per_s**2 - 2 * deceleration_m_per_s2 * braking_m))


def missed_by_prediction_m(*, acceleration_m_per_s2: float, age_s: float) -> float:
    """How far off a box is that was moved on at constant velocity, when its car brakes or accelerates.

    Formula:  |acceleration| * age^2 / 2
    Assumes:  the velocity at the moment of the picture is known exactly; the acceleration begins there and is constant
    Source:   by definition of uniform acceleration
    Counted:  simulate.driving.closing.apart_after

    >>> round(missed_by_prediction_m(acceleration_m_per_s2=-6, age_s=0.1), 2)
    0.03
    """
    checks.number(acceleration_m_per_s2=acceleration_m_per_s2)
    checks.non_negative(age_s=age_s)
    return abs(acceleration_m_per_s2) * age_s**2 / 2

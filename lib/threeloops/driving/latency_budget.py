"""Latency budgets of a vehicle: metres per millisecond, and what a deadline leaves for a model.

>>> round(stopping_distance_m(speed_m_per_s=31.3, reaction_s=0.25, deceleration_m_per_s2=6.0), 1)
89.5
"""

import math
from collections.abc import Sequence

from threeloops import checks


def distance_m(*, speed_m_per_s: float, seconds: float) -> float:
    """Metres that a vehicle covers at constant speed: what a latency costs before anything is done about it.

    Formula:  speed * time
    Source:   by definition of a constant speed
    Counted:  drills.latency_budget.closing.ONCOMING

    >>> distance_m(speed_m_per_s=30, seconds=0.033)
    0.99
    """
    checks.non_negative(speed_m_per_s=speed_m_per_s, seconds=seconds)
    return speed_m_per_s * seconds


def stopping_distance_m(*, speed_m_per_s: float, reaction_s: float, deceleration_m_per_s2: float) -> float:
    """Metres from the moment when something becomes visible to standstill.

    Formula:  speed * reaction time + speed^2 / (2 * deceleration)
    Assumes:  level road, constant speed while reacting (sensing, computing, actuating), constant deceleration from
              then on
    Source:   AASHTO, A Policy on Geometric Design of Highways and Streets, 7th ed., 2018, section 3.2.2 (0.278 V t +
              0.039 V^2 / a in km/h)
    Counted:  simulate.driving.vehicle.metres_to_standstill

    >>> stopping_distance_m(speed_m_per_s=20, reaction_s=0.5, deceleration_m_per_s2=5)
    50.0
    """
    checks.positive(deceleration_m_per_s2=deceleration_m_per_s2)
    return distance_m(speed_m_per_s=speed_m_per_s, seconds=reaction_s) + speed_m_per_s**2 / (2 * deceleration_m_per_s2)


def highest_speed_m_per_s(*, sight_m: float, reaction_s: float, deceleration_m_per_s2: float) -> float:
    """The speed at which the stopping distance is just the distance that can be seen.

    Formula:  -a t + sqrt((a t)^2 + 2 a sight): the positive root of v t + v^2 / (2 a) = sight
    Assumes:  as stopping_distance_m
    Source:   AASHTO, A Policy on Geometric Design of Highways and Streets, 7th ed., 2018, section 3.2.2 (the
              stopping distance, solved for the speed)
    Counted:  simulate.driving.vehicle.metres_to_standstill

    >>> highest_speed_m_per_s(sight_m=50, reaction_s=0.5, deceleration_m_per_s2=5)
    20.0
    """
    checks.positive(sight_m=sight_m, deceleration_m_per_s2=deceleration_m_per_s2)
    checks.non_negative(reaction_s=reaction_s)
    braking = deceleration_m_per_s2 * reaction_s
    return math.sqrt(braking**2 + 2 * deceleration_m_per_s2 * sight_m) - braking


def pipeline_latency_s(stages_s: Sequence[float]) -> float:
    """Seconds from a frame's arrival to its result, when stages work on different frames at the same time.

    Formula:  sum of the stages
    Assumes:  frames arrive no faster than the slowest stage takes them, so that none waits between stages
    Source:   by definition
    Counted:  simulate.driving.vehicle.frames_through
    """
    _check_stages(stages_s)
    return sum(stages_s)


def pipeline_frames_per_s(stages_s: Sequence[float], *, camera_frames_per_s: float) -> float:
    """Frames per second that come out: latency and rate are two promises, and one does not follow from the other.

    Formula:  min(camera's rate, 1 / slowest stage)
    Assumes:  frames are let in evenly and never wait between stages; where whole camera frames are dropped instead,
              it is an upper bound (stages of 10, 20 and 15 ms that
              drop what would wait pass 30 of 60 pictures, not 50)
    Source:   Hennessy and Patterson, Computer Architecture, 6th ed., 2017, appendix C.1 (the slowest stage sets a
              pipeline's rate)
    Counted:  simulate.driving.vehicle.frames_through

    >>> pipeline_frames_per_s([0.010, 0.020, 0.015], camera_frames_per_s=60)  # though each frame takes 45 ms
    50.0
    """
    _check_stages(stages_s)
    checks.positive(camera_frames_per_s=camera_frames_per_s)
    return min(camera_frames_per_s, 1 / max(stages_s))


def oldest_picture_s(*, latency_s: float, frames_per_s: float) -> float:
    """The longest time from an event to the first reaction that can know of it.

    Formula:  one frame time + latency
    Assumes:  exposure is instantaneous; the event falls just after one exposure and is first seen in the next
    Source:   by definition: a picture is used until the next answer
    Counted:  simulate.driving.picture_age.age_before_each

    >>> round(oldest_picture_s(latency_s=0.042, frames_per_s=30), 4)
    0.0753
    """
    checks.non_negative(latency_s=latency_s)
    checks.positive(frames_per_s=frames_per_s)
    return 1 / frames_per_s + latency_s


def speedup_needed(*, deadline_s: float, stage_s: float, others_s: float) -> float:
    """How many times faster one stage must become for the chain to meet its deadline.

    Formula:  stage / (deadline - others)
    Raises:   ValueError if the others alone miss the deadline: no speed-up of this stage would help
    Source:   by definition of a break-even
    Counted:  drills.latency_budget.chain.NEEDED

    >>> round(speedup_needed(deadline_s=0.033, stage_s=0.024, others_s=0.018), 2)
    1.6
    """
    checks.positive(deadline_s=deadline_s, stage_s=stage_s)
    checks.non_negative(others_s=others_s)
    if others_s >= deadline_s:
        raise ValueError(
            f"others_s={others_s} leave nothing of deadline_s={deadline_s}; shorten the other stages first"
        )
    return stage_s / (deadline_s - others_s)


def any_late_share(*, late_share: float, parts: int) -> float:
    """How often a result is late that waits for all of its parts.

    Formula:  1 - (1 - late share)^parts
    Assumes:  every part is late independently of the others, and equally often
    Source:   Dean and Barroso, The Tail at Scale, Communications of the ACM 56(2), 2013, doi:10.1145/2408776.2408794
              (1 in 100, 100 servers: 63 %)
    Counted:  simulate.driving.vehicle.late_share

    >>> round(any_late_share(late_share=0.01, parts=100), 2)
    0.63
    """
    checks.fraction(late_share=late_share)
    checks.count(parts=parts)
    return 1 - (1 - late_share) ** parts


def _check_stages(stages_s: Sequence[float]) -> None:
    if not stages_s:
        raise ValueError("stages_s is empty; a pipeline needs at least one stage")
    for place, seconds in enumerate(stages_s, 1):
        checks.positive(**{f"stage {place}": seconds})

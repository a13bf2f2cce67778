"""Two bodies that close in, moved along in short steps: nothing here knows where they end up."""


def speed_at_obstacle(
    *, speed_m_per_s: float, gap_m: float, reaction_s: float, deceleration_m_per_s2: float, steps: int = 100
) -> float:
    """Drive on while reacting, then brake until the car stands or the obstacle is reached.

    >>> round(speed_at_obstacle(speed_m_per_s=20, gap_m=40, reaction_s=1.0, deceleration_m_per_s2=8), 2)
    8.94
    """
    left = gap_m
    for _ in range(steps):  # reacting
        left -= speed_m_per_s * reaction_s / steps
        if left <= 0:
            return speed_m_per_s
    speed, tick = speed_m_per_s, speed_m_per_s / deceleration_m_per_s2 / steps
    for _ in range(steps):  # braking
        slower = max(0.0, speed - deceleration_m_per_s2 * tick)
        moved = (speed + slower) / 2 * tick
        if moved > left:
            return _inside(speed, left, deceleration_m_per_s2, tick)
        left, speed = left - moved, slower
    return 0.0


def _inside(speed: float, left: float, deceleration: float, tick: float) -> float:
    """The speed at the moment of contact, somewhere within a step: halve the step until it is found."""
    early, late = 0.0, tick
    for _ in range(60):
        middle = (early + late) / 2
        reached = (speed + speed - deceleration * middle) / 2 * middle >= left
        early, late = (early, middle) if reached else (middle, late)
    return speed - deceleration * late


def least_gap(*, closing_m_per_s: float, reaction_s: float, deceleration_m_per_s2: float) -> float:
    """Try gaps, halving the interval, until the follower just does not touch the car ahead.

    >>> round(least_gap(closing_m_per_s=10, reaction_s=1.0, deceleration_m_per_s2=5), 3)
    20.0
    """
    near, far = 0.0, closing_m_per_s * reaction_s + closing_m_per_s**2 / deceleration_m_per_s2
    for _ in range(50):
        middle = (near + far) / 2
        touched = speed_at_obstacle(
            speed_m_per_s=closing_m_per_s,
            gap_m=middle,
            reaction_s=reaction_s,
            deceleration_m_per_s2=deceleration_m_per_s2,
            steps=20,
        )
        near, far = (middle, far) if touched > 0 else (near, middle)
    return far


def apart_after(*, acceleration_m_per_s2: float, age_s: float, speed_m_per_s: float, steps: int = 200) -> float:
    """A car that accelerates or brakes, and a box that keeps the speed of the picture: metres between them.

    >>> round(apart_after(acceleration_m_per_s2=-4, age_s=0.5, speed_m_per_s=20), 3)
    0.5
    """
    car = box = 0.0
    speed, tick = speed_m_per_s, age_s / steps
    for _ in range(steps):
        later = speed + acceleration_m_per_s2 * tick
        car += (speed + later) / 2 * tick
        box += speed_m_per_s * tick
        speed = later
    return abs(car - box)

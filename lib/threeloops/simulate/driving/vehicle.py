"""A vehicle and its frame pipeline, moved along in small steps: nothing here knows a formula for where
they end up.
"""

import itertools
from collections.abc import Sequence
from fractions import Fraction

STILL = 1e-9  # of the speed at the start: less is rounding


def metres_to_standstill(
    *, speed_m_per_s: float, reaction_s: float, deceleration_m_per_s2: float, steps: int = 1000
) -> float:
    """Drive on while reacting, then brake in short steps until the wheels stand still.

    >>> round(metres_to_standstill(speed_m_per_s=20, reaction_s=1.0, deceleration_m_per_s2=5), 3)
    60.0
    """
    position_m = 0.0
    for _ in range(steps):
        position_m += speed_m_per_s * reaction_s / steps
    tick_s, speed = speed_m_per_s / deceleration_m_per_s2 / steps, speed_m_per_s
    while speed > STILL * speed_m_per_s:
        slower = max(0.0, speed - deceleration_m_per_s2 * tick_s)
        position_m += (speed + slower) / 2 * tick_s
        speed = slower
    return position_m


def fastest_that_stops(*, sight_m: float, reaction_s: float, deceleration_m_per_s2: float) -> float:
    """Try speeds, halving the interval, until the car just stops in sight.

    >>> round(fastest_that_stops(sight_m=60, reaction_s=1.0, deceleration_m_per_s2=5), 3)
    20.0
    """
    slow, fast = 0.0, 200.0
    for _ in range(60):
        middle = (slow + fast) / 2
        if (
            metres_to_standstill(
                speed_m_per_s=middle, reaction_s=reaction_s, deceleration_m_per_s2=deceleration_m_per_s2, steps=50
            )
            <= sight_m
        ):
            slow = middle
        else:
            fast = middle
    return slow


def frames_through(stages: Sequence[Fraction], *, period: Fraction, frames: int) -> list[tuple[Fraction, Fraction]]:
    """(arrival, finish) of every frame that is not dropped: one frame per stage, and a frame that finds the first
    stage busy is lost.

    >>> [tuple(map(int, frame)) for frame in frames_through([Fraction(3), Fraction(5)], period=Fraction(4), frames=3)]
    [(0, 8), (4, 13), (8, 18)]
    """
    free_at = [Fraction(0)] * len(stages)
    finished = []
    for frame in range(frames):
        now = arrival = frame * period
        if free_at[0] > arrival:
            continue
        for place, takes in enumerate(stages):
            now = max(now, free_at[place]) + takes
            free_at[place] = now
        finished.append((arrival, now))
    return finished


def longest_to_reaction(*, latency: Fraction, period: Fraction, moments: int) -> Fraction:
    """Let something happen at many moments between two exposures; the longest time until a result knows of it, as the
    moment nears the exposure just missed.
    """
    waits = [(period - period * moment / moments) + latency for moment in range(moments)]
    return max(waits)


def late_share(*, late: Fraction, parts: int) -> Fraction:
    """Go through every combination of late and punctual parts, and add up the chances of those in which any is
    late.

    >>> late_share(late=Fraction(1, 100), parts=2)
    Fraction(199, 10000)
    """
    total = Fraction(0)
    for outcome in itertools.product((True, False), repeat=parts):
        if any(outcome):
            chance = Fraction(1)
            for is_late in outcome:
                chance *= late if is_late else 1 - late
            total += chance
    return total

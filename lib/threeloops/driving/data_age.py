"""Age of data: how old the newest result is when it is used, along a chain of stages with their own clocks, and when a
frame takes too long.

>>> stages = [(0.033, 0.020), (0.100, 0.050), (0.010, 0.002)]  # period, response
>>> round(worst_reaction_s(stages), 3)
0.215
"""

import math
from collections.abc import Sequence

from threeloops import checks

POLICIES = ("queue", "skip", "abort", "degrade")


def worst_reaction_s(stages: Sequence[tuple[float, float]]) -> float:
    """The longest time from an event to the first output that knows of it: every hand-over may just be missed.

    Formula:  sum over stages of (period + response time)
    Assumes:  each stage starts every period by its own clock, reads the newest value at its start and writes at its
              end; clocks are not aligned. The oldest data that an output is made of, until the next one replaces it,
              has the same bound
    Source:   Davare, Zhu, Di Natale, Pinello, Kanajan and Sangiovanni-Vincentelli, Design Automation Conference, 2007,
              doi:10.1145/1278480.1278553; the age: Günzel et al., ECRTS, 2023, doi:10.4230/LIPIcs.ECRTS.2023.10
    Counted:  simulate.driving.hand_overs.slowest
    """
    checks.count(stages=len(stages))
    for period, response in stages:
        checks.positive(period=period, response=response)
    return math.fsum(period + response for period, response in stages)


def oldest_after_late_frame_s(*, policy: str, period_s: float, usual_s: float, late_s: float) -> float:
    """How old the newest result gets around a single frame that takes longer than a period.

    Formula:  queue     max(period + late, late + usual): the next frame waits and is worked on as it is
              skip      max(period + late, ceil(late / period) * period + usual): what arrives meanwhile is dropped
              abort     2 * period + usual: given up when the next frame comes
              degrade   2 * period: a cheap result of this frame stands in time, whatever happens
              none of them less than period + usual, which it is in quiet times
    Assumes:  usual_s <= period_s < late_s; age counts from the frame's capture; the next frames take the usual time.
              With "queue" nothing is dropped; it holds for the first frames after the late one
    Source:   Kaul, Yates and Gruteser, Real-time status: how often should one update?, INFOCOM, 2012 (age)
    Counted:  simulate.driving.late_frames.play

    >>> oldest_after_late_frame_s(policy="skip", period_s=0.025, usual_s=0.020, late_s=0.040)
    0.07
    """
    checks.one_of(POLICIES, policy=policy)
    checks.positive(period_s=period_s, usual_s=usual_s, late_s=late_s)
    if not usual_s <= period_s < late_s:
        raise ValueError(f"usual_s={usual_s} <= period_s={period_s} < late_s={late_s} does not hold")
    return {
        "queue": max(period_s + late_s, late_s + usual_s),
        "skip": max(period_s + late_s, math.ceil(late_s / period_s) * period_s + usual_s),
        "abort": 2 * period_s + usual_s,
        "degrade": 2 * period_s,
    }[policy]

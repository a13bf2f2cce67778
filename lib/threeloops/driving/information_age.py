"""Age of information: how old the picture is behind the newest answer, at the moment when the answer is used.

The age grows by a second per second and falls back to the latency whenever a result arrives.

>>> mean_age_s(latency_s=0.045, period_s=0.033)
0.0615
>>> largest_age_s(latency_s=0.045, period_s=0.033, lost_in_a_row=1)
0.111
"""

import math
from collections.abc import Sequence

from threeloops import checks


def mean_age_s(*, latency_s: float, period_s: float) -> float:
    """Mean age of the newest answer, over all moments at which somebody may use it.

    Formula:  latency + period / 2
    Assumes:  a result every period, each after the same latency; the user's moments have nothing to do with the
              camera's
    Source:   Yates and others, Age of Information, 2020, arXiv:2007.08564 (area under the sawtooth)
    Counted:  simulate.driving.picture_age.mean_age

    >>> round(mean_age_s(latency_s=0.027, period_s=0.03), 3)
    0.042
    """
    return mean_age_over_gaps_s(latency_s=latency_s, gaps_s=(period_s,))


def mean_age_over_gaps_s(*, latency_s: float, gaps_s: Sequence[float]) -> float:
    """Mean age where pictures that got an answer follow each other at these gaps, over and over.

    Formula:  latency + sum of gap^2 / (2 * sum of gaps): a long gap counts twice, for its length and for its height
    Assumes:  each answer after the same latency
    Raises:   ValueError without a gap
    Source:   Yates and others, Age of Information, 2020, arXiv:2007.08564 (area under the sawtooth)
    Counted:  simulate.driving.picture_age.mean_age

    >>> round(mean_age_over_gaps_s(latency_s=0.045, gaps_s=(0.03, 0.03, 0.06)), 4)  # every fourth frame lost
    0.0675
    """
    if not gaps_s:
        raise ValueError("gaps_s is empty; say how far apart the answered pictures are")
    checks.non_negative(latency_s=latency_s)
    for place, gap in enumerate(gaps_s, 1):
        checks.positive(**{f"gap {place}": gap})
    return latency_s + sum(gap**2 for gap in gaps_s) / (2 * sum(gaps_s))


def largest_age_s(*, latency_s: float, period_s: float, lost_in_a_row: int) -> float:
    """The age just before the next answer arrives.

    Formula:  latency + (lost frames + 1) * period
    Assumes:  as mean_age_s, with so many frames in a row that got no answer
    Source:   by definition: the newest answer is old when the next one comes
    Counted:  simulate.driving.picture_age.age_before_each

    >>> round(largest_age_s(latency_s=0.027, period_s=0.0333, lost_in_a_row=0), 4)
    0.0603
    """
    checks.non_negative(latency_s=latency_s)
    checks.positive(period_s=period_s)
    checks.count(at_least=0, lost_in_a_row=lost_in_a_row)
    return latency_s + (lost_in_a_row + 1) * period_s


def answered_every_s(*, busy_s: float, period_s: float) -> float:
    """Seconds between two pictures that get an answer, where one frame at a time is worked on and whatever arrives in
    the meantime is dropped.

    Formula:  ceil(busy / period) * period: whoever just misses a frame waits for the next one
    Assumes:  busy_s: how long a frame keeps the first stage busy (for a chain that is not pipelined: its latency)
    Source:   by definition: work begins with a frame
    Counted:  simulate.driving.picture_age.one_at_a_time

    >>> answered_every_s(busy_s=0.045, period_s=0.033)
    0.066
    """
    checks.positive(busy_s=busy_s, period_s=period_s)
    ratio = busy_s / period_s
    nearest = round(ratio)
    whole = nearest if nearest and math.isclose(ratio, nearest, rel_tol=1e-9) else math.ceil(ratio)
    return whole * period_s


def queued_latency_s(*, busy_s: float, period_s: float, frame: int) -> float:
    """Seconds from exposure to answer of the n-th frame, where no frame is dropped and all wait in a queue.

    Formula:  busy + (n - 1) * max(0, busy - period)
    Assumes:  one frame at a time; the queue is empty when the first frame comes
    Source:   by definition: each answer takes longer than the frames' period
    Counted:  simulate.driving.picture_age.queued

    >>> round(queued_latency_s(busy_s=0.045, period_s=0.033, frame=100), 3)
    1.233
    """
    checks.positive(busy_s=busy_s, period_s=period_s)
    checks.count(frame=frame)
    return busy_s + (frame - 1) * max(0.0, busy_s - period_s)

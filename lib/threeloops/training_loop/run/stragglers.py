"""Stragglers: a synchronous step ends when its slowest rank does, so its time is a maximum, and a maximum grows with
the number it is taken over.

>>> (
...     round(slowest_normal_s(mean_s=1.0, deviation_s=0.02, ranks=1), 4),
...     round(slowest_normal_s(mean_s=1.0, deviation_s=0.02, ranks=1024), 4),
... )
(1.0, 1.065)

Source: David, Nagaraja, Order Statistics, 3rd ed., 2003, sections 2.1 and 3.1
"""

import math

from threeloops import checks

REACH, STEPS = 12.0, 4800  # standard deviations on either side of the mean, and pieces they are cut into


def slowest_exponential_s(*, base_s: float, delay_s: float, ranks: int) -> float:
    """Mean seconds of a step when each rank needs base_s and a delay that is exponential with mean delay_s.

    Formula:  base_s + delay_s * (1 + 1/2 + … + 1/ranks)
    Assumes:  independent delays, drawn anew in every step
    Source:   Rényi, 1953 (order statistics of the exponential); David, Nagaraja, 2003, section 2.5
    Counted:  simulate.training_loop.slowest_rank.steps_s

    >>> slowest_exponential_s(base_s=1.0, delay_s=0.1, ranks=2)
    1.15
    """
    checks.non_negative(base_s=base_s, delay_s=delay_s)
    checks.count(ranks=ranks)
    return base_s + delay_s * math.fsum(1 / rank for rank in range(1, ranks + 1))


def slowest_normal_s(*, mean_s: float, deviation_s: float, ranks: int) -> float:
    """Mean seconds of a step when the times of its ranks are normal.

    Formula:  mean_s + deviation_s * integral of (1 - F(x)^ranks) for x > 0, less that of F(x)^ranks for x < 0; F the
              standard normal distribution
    Assumes:  independent times, drawn anew in every step; deviation_s well below mean_s, since a normal time may be
              negative and a real one not
    Counted:  simulate.training_loop.slowest_rank.steps_s

    >>> (
    ...     round(slowest_normal_s(mean_s=0.0, deviation_s=1.0, ranks=2), 6),
    ...     round(1 / math.sqrt(math.pi), 6),
    ... )  # known exactly for two
    (0.56419, 0.56419)
    """
    checks.non_negative(mean_s=mean_s, deviation_s=deviation_s)
    checks.count(ranks=ranks)
    width = REACH / STEPS
    above = math.fsum(-math.expm1(ranks * math.log1p(-_normal_tail(width * (i + 0.5)))) for i in range(STEPS))
    below = math.fsum(_normal_tail(width * (i + 0.5)) ** ranks for i in range(STEPS))
    return mean_s + deviation_s * width * (above - below)


def stalled_s(*, step_s: float, stall_s: float, probability: float, ranks: int) -> float:
    """Mean seconds of a step in which each rank, with a small probability, stops for stall_s: garbage collection, a
    page fault, a retransmission.

    Formula:  step_s + stall_s * (1 - (1 - probability)^ranks)
    Assumes:  independent ranks; stalls that overlap cost no more than one
    Counted:  simulate.training_loop.slowest_rank.steps_s

    >>> round(stalled_s(step_s=1.0, stall_s=0.5, probability=0.001, ranks=1000), 3)
    1.316
    """
    checks.positive(step_s=step_s)
    checks.non_negative(stall_s=stall_s)
    checks.fraction(probability=probability)
    checks.count(ranks=ranks)
    return step_s + stall_s * (1 - (1 - probability) ** ranks)


def waiting_share(*, typical_s: float, step_s: float) -> float:
    """The share of a step in which an average rank only waits for the slowest.

    Formula:  1 - typical_s / step_s
    Units:    typical_s is the mean over ranks, step_s the mean of their maximum
    Counted:  tests.training_loop.test_stragglers.test_ranks_wait_for_the_slowest_second_by_second
    """
    checks.positive(typical_s=typical_s, step_s=step_s)
    if typical_s > step_s:
        raise ValueError(
            f"typical_s={typical_s!r} must be at most step_s={step_s!r}: the slowest rank is no faster than the"
            " average one"
        )
    return 1 - typical_s / step_s


def _normal_tail(x: float) -> float:
    """The chance that a standard normal number exceeds x."""
    return math.erfc(x / math.sqrt(2)) / 2

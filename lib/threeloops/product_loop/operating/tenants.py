"""Tenants of one service: token buckets, fair shares of what there is, and clients that try again.

>>> fair_shares(capacity=10, demands=[2, 4, 9])
[2, 4, 4.0]
"""

from collections.abc import Sequence

from threeloops import checks


def bucket_most(*, depth: float, refill_per_s: float, window_s: float) -> float:
    """The most that a token bucket lets through in a window.

    Formula:  depth + refill * window
    Units:    tokens of the model here; any unit that the bucket counts
    Assumes:  the bucket is full when the window begins
    Source:   by definition: what is there, and what comes in
    Counted:  drills.queues.tenancy.BUCKET

    >>> bucket_most(depth=10_000, refill_per_s=500, window_s=60)
    40000
    """
    checks.positive(depth=depth, refill_per_s=refill_per_s, window_s=window_s)
    return depth + refill_per_s * window_s


def bucket_wait_s(*, wanted: float, left: float, refill_per_s: float) -> float:
    """How long a request waits until its bucket holds what it takes; 0 where it does already.

    Formula:  max(0, wanted - left) / refill
    Source:   by definition
    Counted:  drills.queues.tenancy.WAIT

    >>> bucket_wait_s(wanted=6000, left=1500, refill_per_s=300)
    15.0
    """
    checks.positive(wanted=wanted, refill_per_s=refill_per_s)
    checks.non_negative(left=left)
    return max(0.0, wanted - left) / refill_per_s


def fair_shares(*, capacity: float, demands: Sequence[float]) -> list[float]:
    """Max-min fair shares: each gets what it asks for, or as much as any other that gets less than it asks for.

    Formula:  smallest demand first: min(demand, what is left / how many are left)
    Raises:   ValueError where nothing is asked for
    Source:   by definition of max-min fairness: no share can grow without shrinking one that is no larger
    Counted:  drills.queues.tenancy.FAIR
    """
    checks.positive(capacity=capacity)
    if not demands:
        raise ValueError("demands is empty; give the demand of each tenant")
    shares, left = [0.0] * len(demands), capacity
    for waiting, place in enumerate(sorted(range(len(demands)), key=lambda at: demands[at])):
        checks.non_negative(demand=demands[place])
        shares[place] = min(demands[place], left / (len(demands) - waiting))
        left -= shares[place]
    return shares


def attempts_per_request(*, failing: float, retries: int) -> float:
    """Attempts that reach a service for each request, with clients that try again at once.

    Formula:  (1 - failing^(retries + 1)) / (1 - failing); retries + 1 where everything fails
    Units:    failing: probability that an attempt fails
    Assumes:  attempts fail independently; clients give up after so many retries
    Source:   Ulrich, Addressing Cascading Failures, in Site Reliability Engineering, Google, 2016, chapter 22 (retries
              as load); the sum by definition
    Counted:  drills.queues.tenancy.RETRIES

    >>> attempts_per_request(failing=0.5, retries=2), attempts_per_request(failing=1, retries=3)
    (1.75, 4)
    """
    checks.fraction(failing=failing)
    checks.count(at_least=0, retries=retries)
    return retries + 1 if failing == 1 else (1 - failing ** (retries + 1)) / (1 - failing)

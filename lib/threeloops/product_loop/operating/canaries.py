"""Canaries: a new version that gets a share of the requests before it gets all of them.

>>> round(canary_requests(fault_share=0.01, chance=0.95))
298
"""

import math

from threeloops import checks


def canary_requests(*, fault_share: float, chance: float) -> float:
    """Requests until a fault that hits such a share of them has shown itself at least once, with that probability.

    Formula:  ln(1 - chance) / ln(1 - fault share)
    Assumes:  requests fail independently; one failure is enough to notice
    Raises:   ValueError for a share or a chance of 0 or 1
    Source:   by definition: the probability that none of n fails is (1 - share)^n
    Counted:  drills.capacity.scaling.CANARY
    """
    checks.fraction(fault_share=fault_share, chance=chance)
    if fault_share in (0, 1) or chance in (0, 1):
        raise ValueError(f"fault_share={fault_share!r} and chance={chance!r} must lie between 0 and 1, both left out")
    return math.log(1 - chance) / math.log(1 - fault_share)


def requests_hurt(
    *, rate_per_s: float, canary_share: float, fault_share: float, noticed_s: float, back_s: float
) -> float:
    """Requests that a faulty version spoils before it is gone.

    Formula:  rate * canary share * fault share * (noticed + back)
    Units:    noticed_s from the first request until the fault is seen; back_s to send requests elsewhere again
    Assumes:  a steady rate; the old version has none of these faults
    Source:   by definition
    Counted:  drills.capacity.scaling.HURT

    >>> requests_hurt(rate_per_s=100, canary_share=0.05, fault_share=0.1, noticed_s=250, back_s=50)
    150.0
    """
    checks.positive(rate_per_s=rate_per_s, noticed_s=noticed_s)
    checks.non_negative(back_s=back_s)
    checks.fraction(canary_share=canary_share, fault_share=fault_share)
    return rate_per_s * canary_share * fault_share * (noticed_s + back_s)

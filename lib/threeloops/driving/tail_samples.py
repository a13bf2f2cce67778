"""Tails of measured latencies: how many frames it takes to speak of a percentile, what a percentile allows in an hour,
and what a deadline allows a tail to be.

>>> frames_to_see(share=0.999, confidence=0.95), frames_to_see(share=0.99, confidence=0.95)
(2995, 299)
"""

import math

from threeloops import checks
from threeloops.units import hour


def frames_to_see(*, share: float, confidence: float) -> int:
    """Frames until the slowest of them is beyond a percentile with this confidence.

    Formula:  smallest n with 1 - share^n >= confidence: ceil(ln(1 - confidence) / ln(share))
    Units:    share 0.999 stands for p99.9
    Assumes:  frames are independent and alike. Late frames come in groups, so this is the least
    Source:   Wilks, Annals of Mathematical Statistics 12(1), 1941, doi:10.1214/aoms/1177731788 (tolerance limits)
    Counted:  simulate.driving.tail_draws.frames_until
    """
    _inside(share=share, confidence=confidence)
    frames = max(1, math.ceil(math.log(1 - confidence) / math.log(share)) - 1)  # one less, in case of rounding
    while 1 - share**frames < confidence:
        frames += 1
    return frames


def late_share_at_most(*, frames: int, confidence: float) -> float:
    """The largest share of late frames that a test without a late frame leaves possible.

    Formula:  1 - (1 - confidence)^(1/n), about 3 / n at 95 % (the rule of three)
    Assumes:  as frames_to_see
    Source:   Hanley and Lippman-Hand, JAMA 249(13), 1983, doi:10.1001/jama.1983.03330370053031
    Counted:  simulate.driving.tail_draws.frames_until

    >>> round(late_share_at_most(frames=300, confidence=0.95), 5)
    0.00994
    """
    checks.count(frames=frames)
    _inside(confidence=confidence)
    return float(1 - (1 - confidence) ** (1 / frames))


def rank_above(*, frames: int, share: float, confidence: float) -> int | None:
    """Which of the sorted frames (1 is the fastest) lies above a percentile with this confidence; None if no frame
    does.

    Formula:  smallest r with sum over k >= r of C(n, k) share^k (1 - share)^(n - k) <= 1 - confidence: the chance that
              r frames or more are faster than the percentile
    Assumes:  as frames_to_see
    Source:   David and Nagaraja, Order Statistics, 3rd ed., 2003, section 7.1
    Measured: measure.driving.frame_loop.at_most

    >>> [rank_above(frames=n, share=0.99, confidence=0.95) for n in (298, 300, 1000)]
    [None, 300, 996]
    """
    checks.count(frames=frames)
    _inside(share=share, confidence=confidence)
    above, rank = 0.0, frames + 1
    while rank > 1:
        above += math.exp(
            _log_choices(frames, rank - 1) + (rank - 1) * math.log(share) + _log_rest(frames, rank, share)
        )
        if above > 1 - confidence:
            break
        rank -= 1
    return rank if rank <= frames else None


def _log_choices(frames: int, chosen: int) -> float:
    return math.lgamma(frames + 1) - math.lgamma(chosen + 1) - math.lgamma(frames - chosen + 1)


def _log_rest(frames: int, rank: int, share: float) -> float:
    return (frames - rank + 1) * math.log(1 - share)


def misses_per_hour(*, late_share: float, frames_per_s: float) -> float:
    """Late frames in an hour.

    Formula:  late share * frames/s * 3600
    Source:   by definition
    Counted:  simulate.driving.tail_draws.late_in_an_hour

    >>> round(misses_per_hour(late_share=0.001, frames_per_s=30))
    108
    """
    checks.fraction(late_share=late_share)
    checks.positive(frames_per_s=frames_per_s)
    return late_share * frames_per_s * hour


def allowed_tail_ratio(*, deadline_s: float, median_s: float, fixed_s: float = 0.0) -> float:
    """How many times its median a stage may take at the percentile that must meet the deadline.

    Formula:  (deadline - fixed) / median
    Assumes:  what comes beside the stage takes fixed_s always
    Raises:   ValueError if the fixed part alone fills the deadline
    Source:   by definition
    Counted:  drills.deadlines.tails.RATIO

    >>> round(allowed_tail_ratio(deadline_s=1 / 30, median_s=0.027), 2)
    1.23
    """
    checks.positive(deadline_s=deadline_s, median_s=median_s)
    checks.non_negative(fixed_s=fixed_s)
    if fixed_s >= deadline_s:
        raise ValueError(f"fixed_s={fixed_s} leaves nothing of deadline_s={deadline_s}; shorten the fixed part")
    return (deadline_s - fixed_s) / median_s


def _inside(**shares: float) -> None:
    for name, share in shares.items():
        checks.fraction(**{name: share})
        if share in (0, 1):
            raise ValueError(f"{name}={share} must lie strictly between 0 and 1: no number of frames makes it certain")

"""Checkpoint levels: saves in the memory of other machines, often, for the failures that memory survives; saves on
disk, seldom, for the others.

>>> memory = Level(interval_s=60, stall_s=0.5, restart_s=120, share=0.9)
>>> disk = Level(interval_s=3600, stall_s=20, restart_s=600, share=0.1)
>>> round(lost_share([memory, disk], mtbf_s=3 * 3600, detect_s=60), 3)
0.054

Source: Vaidya, A Case for Two-Level Distributed Recovery Schemes, SIGMETRICS 1995;
        Wang et al., GEMINI, SOSP 2023, doi:10.1145/3600006.3613145 (saves in the memory of peers)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One kind of save, and the failures that are recovered from it."""

    interval_s: float  # work between two saves of this kind
    stall_s: float  # training stands still for that long
    restart_s: float  # from the failure noticed to steps that run again
    share: float  # of all failures

    def __post_init__(self) -> None:
        checks.positive(interval_s=self.interval_s)
        checks.non_negative(stall_s=self.stall_s, restart_s=self.restart_s)
        checks.fraction(share=self.share)


def lost_per_failure_with_levels_s(levels: Sequence[Level], *, detect_s: float) -> float:
    """Mean seconds that one failure costs when it is recovered from the level that is left.

    Formula:  detect_s + sum over levels of share * (interval_s / 2 + restart_s)
    Assumes:  failures at any moment of an interval alike, one at a time (first order)
    Raises:   ValueError unless the shares add up to 1: every failure is recovered from something
    Counted:  drills.reliability.recoveries.LEVELS
    """
    checks.non_negative(detect_s=detect_s)
    if not math.isclose(sum(level.share for level in levels), 1, abs_tol=1e-9):
        raise ValueError(
            f"the shares {[level.share for level in levels]} must add up to 1: every failure is recovered from one of"
            " the levels"
        )
    return detect_s + sum(level.share * (level.interval_s / 2 + level.restart_s) for level in levels)


def lost_share(levels: Sequence[Level], *, mtbf_s: float, detect_s: float) -> float:
    """The share of wall time that saving, waiting and repeating take, to first order: 1 less the goodput while it is
    small.

    Formula:  sum of stall_s / interval_s  +  lost_per_failure_s / mtbf_s
    Assumes:  all of these much shorter than mtbf_s
    Counted:  simulate.training_loop.failing_run.play
    """
    checks.positive(mtbf_s=mtbf_s)
    return (
        sum(level.stall_s / level.interval_s for level in levels)
        + lost_per_failure_with_levels_s(levels, detect_s=detect_s) / mtbf_s
    )

"""Scaling: what a faster part does for the whole, and what more processors do for a job.

>>> round(amdahl_speedup(accelerated_share=0.8, factor=2), 3), round(amdahl_limit(accelerated_share=0.8), 1)
(1.667, 5.0)

Source: Amdahl, AFIPS Spring Joint Computer Conference, 1967, doi:10.1145/1465482.1465560
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from threeloops import checks


def amdahl_speedup(*, accelerated_share: float, factor: float) -> float:
    """How many times faster the whole becomes when a share of its time runs `factor` times faster.

    Formula:  1 / (1 - accelerated_share + accelerated_share / factor)
    Assumes:  the share is a share of time, measured before; parts run one after another, so that none hides behind
              another
    Source:   Amdahl, 1967, doi:10.1145/1465482.1465560
    Counted:  simulate.inner_loop.ticks.one_after_another

    >>> amdahl_speedup(accelerated_share=0.5, factor=2)
    1.3333333333333333
    """
    checks.fraction(accelerated_share=accelerated_share)
    checks.positive(factor=factor)
    return 1 / (1 - accelerated_share + accelerated_share / factor)


def amdahl_limit(*, accelerated_share: float) -> float:
    """The speed-up when the accelerated share takes no time at all: infinite only if nothing else is left.

    Formula:  1 / (1 - accelerated_share)
    Source:   Amdahl, 1967, doi:10.1145/1465482.1465560
    Counted:  drills.amdahl.processors.LIMIT

    >>> round(amdahl_limit(accelerated_share=0.99))
    100
    """
    checks.fraction(accelerated_share=accelerated_share)
    return math.inf if accelerated_share == 1 else 1 / (1 - accelerated_share)


def parts_speedup(*, shares: Sequence[float], factors: Sequence[float]) -> float:
    """How many times faster the whole becomes when several parts of its time each run faster by a factor of their
    own.

    Formula:  1 / (1 - sum(shares) + sum(share / factor))
    Assumes:  shares of the time before any repair; what they leave of 1 stays as it was; parts run one after another
    Raises:   ValueError if there is not one factor per share, or if the shares add up to more than 1
    Source:   Amdahl, 1967, doi:10.1145/1465482.1465560 (several parts in place of one)
    Counted:  simulate.inner_loop.ticks.one_after_another

    >>> round(parts_speedup(shares=[0.5, 0.25], factors=[2, 4]), 4)
    1.7778
    """
    if len(shares) != len(factors):
        raise ValueError(f"there are {len(shares)} shares and {len(factors)} factors; give one factor per share")
    for share, factor in zip(shares, factors, strict=True):
        checks.fraction(share=share)
        checks.positive(factor=factor)
    if sum(shares) > 1 + 1e-9:
        raise ValueError(f"the shares add up to {sum(shares):g}; parts of one whole add up to 1 at most")
    return 1 / (1 - sum(shares) + sum(share / factor for share, factor in zip(shares, factors, strict=True)))


def changed_calls_s(*, whole_s: float, num_calls: int, before_s: float, after_s: float) -> float:
    """Seconds of the whole when each of its calls of one kind takes another time.

    Formula:  whole_s - num_calls * (before_s - after_s)
    Units:    whole_s as measured, with num_calls calls of before_s each; after_s of 0 takes the calls out
    Assumes:  nothing runs beside the calls, before or after; the rest takes as long as it did
    Raises:   ValueError if the calls together took longer than the whole
    Source:   Amdahl, 1967, doi:10.1145/1465482.1465560 (measured times in place of shares)
    Counted:  simulate.inner_loop.ticks.one_after_another

    >>> round(changed_calls_s(whole_s=0.25, num_calls=36, before_s=0.003, after_s=0.001), 3)
    0.178
    """
    checks.positive(whole_s=whole_s, before_s=before_s)
    checks.count(num_calls=num_calls)
    checks.non_negative(after_s=after_s)
    if num_calls * before_s > whole_s * (1 + 1e-9):
        raise ValueError(
            f"num_calls={num_calls} of before_s={before_s:g} take {num_calls * before_s:g} s, more than"
            f" whole_s={whole_s:g}"
        )
    return whole_s - num_calls * (before_s - after_s)


def needed_share(*, speedup: float, factor: float) -> float:
    """The share of the time that a part must have, if making it `factor` times faster is to make the whole `speedup`
    times faster.

    Formula:  (1 - 1 / speedup) / (1 - 1 / factor), Amdahl's law solved for the share
    Raises:   ValueError unless 1 <= speedup <= factor: a whole gains no more than its part
    Source:   Amdahl, 1967, doi:10.1145/1465482.1465560
    Counted:  drills.amdahl.law.NEEDED_SHARE

    >>> round(needed_share(speedup=1.12, factor=1.2), 2)
    0.64
    """
    checks.number(speedup=speedup, factor=factor)
    if not (1 <= speedup <= factor and factor > 1):
        raise ValueError(
            f"speedup={speedup!r} must lie between 1 and factor={factor!r}, and the factor above 1; a whole gains no"
            " more than its part"
        )
    return (1 - 1 / speedup) / (1 - 1 / factor)


def needed_factor(*, speedup: float, accelerated_share: float) -> float:
    """How many times faster a part must become, if the whole is to become `speedup` times faster.

    Formula:  share / (1 / speedup - (1 - share)), Amdahl's law solved for the factor
    Raises:   ValueError if the speed-up is not below the limit 1 / (1 - share)
    Source:   Amdahl, 1967, doi:10.1145/1465482.1465560
    Counted:  drills.amdahl.law.NEEDED_FACTOR

    >>> round(needed_factor(speedup=2, accelerated_share=0.8), 3)
    2.667
    """
    checks.positive(speedup=speedup)
    limit = amdahl_limit(accelerated_share=accelerated_share)
    if not speedup < limit:
        raise ValueError(
            f"speedup={speedup!r} must be below {limit:.4g}, the limit for accelerated_share={accelerated_share!r}"
        )
    return accelerated_share / (1 / speedup - (1 - accelerated_share))


def serial_share(*, speedup: float, num_processors: int) -> float:
    """The share of one processor's time that could not be shared out, judged from one measured speed-up.

    Formula:  (1 / speedup - 1 / num_processors) / (1 - 1 / num_processors)
    Assumes:  Amdahl's law and nothing else; what communication costs is counted as serial, too
    Raises:   ValueError for fewer than two processors, or for a speed-up that is not between 1 and their number
    Source:   Karp and Flatt, CACM 33(5), 1990, doi:10.1145/78607.78614
    Counted:  simulate.inner_loop.ticks.dealt_out

    >>> round(serial_share(speedup=33.6, num_processors=256), 4)
    0.026
    """
    checks.count(at_least=2, num_processors=num_processors)
    checks.number(speedup=speedup)
    if not 1 <= speedup <= num_processors:
        raise ValueError(f"speedup={speedup!r} must lie between 1 and num_processors={num_processors}")
    return (1 / speedup - 1 / num_processors) / (1 - 1 / num_processors)


def scaled_speedup(*, serial_share: float, num_processors: int) -> float:
    """How many times as long one processor would need for what many did, when the work grows with their number (weak
    scaling).

    Formula:  serial_share + (1 - serial_share) * num_processors
    Assumes:  the share is one of the time on all processors; only the part that is shared out grows
    Source:   Gustafson, CACM 31(5), 1988, doi:10.1145/42411.42415
    Counted:  simulate.inner_loop.ticks.dealt_out

    >>> scaled_speedup(serial_share=0.1, num_processors=64)
    57.7
    """
    checks.fraction(serial_share=serial_share)
    checks.count(num_processors=num_processors)
    return serial_share + (1 - serial_share) * num_processors


def efficiency(*, speedup: float, num_processors: int) -> float:
    """The share of perfect scaling that a job on many processors reaches.

    Formula:  speedup / num_processors
    Counted:  simulate.inner_loop.ticks.dealt_out

    >>> round(efficiency(speedup=33.6, num_processors=256), 3)
    0.131
    """
    checks.positive(speedup=speedup)
    checks.count(num_processors=num_processors)
    return speedup / num_processors


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStep:
    """One step of a job, as seconds by stage: stages of the device run one after another, the loader works beside
    them.
    """

    loader_s: float  # one batch, by all of its workers together
    device_s: Mapping[str, float]  # stage -> seconds

    def __post_init__(self) -> None:
        checks.non_negative(loader_s=self.loader_s)
        if not self.device_s:
            raise ValueError("device_s is empty; a step needs at least one stage on the device")
        for stage, seconds in self.device_s.items():
            checks.non_negative(**{stage: seconds})

    @property
    def busy_s(self) -> float:
        """Seconds that the device works in a step."""
        return sum(self.device_s.values())

    @property
    def total_s(self) -> float:
        """Seconds from step to step, once the pipeline is full.

        Formula:  max(loader, sum of the device's stages)
        Assumes:  the loader prepares the next batch while the device computes, and one waiting batch is enough to
                  smooth it
        """
        return max(self.loader_s, self.busy_s)

    def with_faster(self, stage: str, factor: float) -> "JobStep":
        """The step with one stage, or the "loader", that many times faster.

        >>> before = JobStep(loader_s=0.85, device_s={"forward": 0.2, "backward": 0.4})
        >>> before.with_faster("loader", 2).total_s  # the device now takes longest
        0.6000000000000001
        """
        checks.positive(factor=factor)
        checks.one_of(["loader", *self.device_s], stage=stage)
        if stage == "loader":
            return JobStep(loader_s=self.loader_s / factor, device_s=self.device_s)
        return JobStep(loader_s=self.loader_s, device_s={**self.device_s, stage: self.device_s[stage] / factor})

"""Scaling: what a faster part does for the whole, and what more processors do for a job.

>>> round(amdahl_speedup(accelerated_share=0.8, factor=2), 3), round(amdahl_limit(accelerated_share=0.8), 1)
(1.667, 5.0)

Source: Amdahl, AFIPS Spring Joint Computer Conference, 1967, doi:10.1145/1465482.1465560
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from threeloops import checks


def amdahl_speedup(*, accelerated_share: float, factor: float) -> float:
    """How many times faster the whole becomes when a share of its time runs `factor` times faster.

    Formula:  1 / (1 - accelerated_share + accelerated_share / factor)
    Assumes:  the share is a share of time, measured before; parts run one after another, so that none hides behind another
    Source:   Amdahl, 1967, doi:10.1145/1465482.1465560

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

    >>> round(amdahl_limit(accelerated_share=0.99))
    100
    """
    checks.fraction(accelerated_share=accelerated_share)
    return math.inf if accelerated_share == 1 else 1 / (1 - accelerated_share)


def efficiency(*, speedup: float, num_processors: int) -> float:
    """The share of perfect scaling that a job on many processors reaches.

    Formula:  speedup / num_processors

    >>> round(efficiency(speedup=33.6, num_processors=256), 3)
    0.131
    """
    checks.positive(speedup=speedup)
    checks.count(num_processors=num_processors)
    return speedup / num_processors


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a job, as seconds by stage: stages of the device run one after another, the loader works beside them."""

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
        Assumes:  the loader prepares the next batch while the device computes, and one waiting batch is enough to smooth it
        """
        return max(self.loader_s, self.busy_s)

    def with_faster(self, stage: str, factor: float) -> "Step":
        """The step with one stage, or the "loader", that many times faster.

        >>> before = Step(loader_s=0.85, device_s={"forward": 0.2, "backward": 0.4})
        >>> before.with_faster("loader", 2).total_s  # the device now takes longest
        0.6000000000000001
        """
        checks.positive(factor=factor)
        checks.one_of(["loader", *self.device_s], stage=stage)
        if stage == "loader":
            return Step(loader_s=self.loader_s / factor, device_s=self.device_s)
        return Step(loader_s=self.loader_s, device_s={**self.device_s, stage: self.device_s[stage] / factor})

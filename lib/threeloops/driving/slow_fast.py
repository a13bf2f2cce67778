"""Slow and fast: a planner that thinks long beside one that answers every frame, and how old the long thought is when
it steers.

>>> pair = SlowFast(slow_latency_s=0.45, slow_period_s=0.5, fast_latency_s=0.03, fast_period_s=0.05)
>>> round(pair.oldest_s, 3), round(pair.mean_age_s, 3)
(1.03, 0.755)
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.driving import data_age


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowFast:
    """Two loops. Each takes a picture at the beginning of its period; the fast one uses the newest slow result that
    is there when it begins, and its command holds until its next one.

    Assumes:  constant latencies; periods that do not divide each other, so that the two clocks meet in every way
    Source:   Kopetz, Real-Time Systems, 2nd ed., 2011, chapter 5 (how old an observation is when it is used)
    """

    slow_latency_s: float
    slow_period_s: float
    fast_latency_s: float
    fast_period_s: float

    def __post_init__(self) -> None:
        checks.positive(
            slow_latency_s=self.slow_latency_s,
            slow_period_s=self.slow_period_s,
            fast_latency_s=self.fast_latency_s,
            fast_period_s=self.fast_period_s,
        )

    @property
    def oldest_s(self) -> float:
        """The greatest age of the slow loop's picture behind a command in force.

        Formula:  slow latency + slow period + fast latency + fast period, the chain of two stages of data_age
        """
        slow, fast = (self.slow_period_s, self.slow_latency_s), (self.fast_period_s, self.fast_latency_s)
        return data_age.worst_reaction_s([slow, fast])

    @property
    def mean_age_s(self) -> float:
        """Its age on average over time.

        Formula:  slow latency + slow period / 2 + fast latency + fast period / 2
        """
        return self.slow_latency_s + self.slow_period_s / 2 + self.fast_latency_s + self.fast_period_s / 2

"""Two batches: a batch is cut into halves, and while one half's vectors are on the network the other half computes.

>>> half = LayerTimes(attention_s=3e-4, dispatch_s=1e-4, experts_s=1.5e-4, combine_s=2e-4)
>>> f"{in_turn_s(half) * 1e6:.0f} µs a half in turn; two halves that hide take at least {hidden_s(half) * 1e6:.0f}"
'750 µs a half in turn; two halves that hide take at least 900'

Source: DeepSeek-AI, open-infra-index, day 6, 2025 (two micro-batches); DeepSeek-V3, 2024, arXiv:2412.19437, section
        3.4
"""

from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTimes:
    """Seconds of one layer for one batch, in the order in which they come."""

    attention_s: float
    dispatch_s: float
    experts_s: float
    combine_s: float

    def __post_init__(self) -> None:
        checks.positive(attention_s=self.attention_s, experts_s=self.experts_s)
        checks.non_negative(dispatch_s=self.dispatch_s, combine_s=self.combine_s)

    @property
    def computing_s(self) -> float:
        return self.attention_s + self.experts_s

    @property
    def exchanging_s(self) -> float:
        return self.dispatch_s + self.combine_s


def in_turn_s(times: LayerTimes) -> float:
    """Seconds of a layer when nothing overlaps.

    Formula:  attention + dispatch + experts + combine
    Source:   by definition: each needs what the one before has made
    Counted:  simulate.product_loop.experts.played_batches.play
    """
    return times.computing_s + times.exchanging_s


def hidden_s(half: LayerTimes) -> float:
    """Seconds that a layer takes two halves of a batch at least: a bound, which a schedule may miss.

    Formula:  max(2 * computing, 2 * exchanging, computing + exchanging), each of one half
    Assumes:  GPU and network each do one thing at a time; an exchange takes nothing of the GPU (DeepEP's low-latency
              kernels; its normal ones occupy some SMs)
    Counted:  simulate.product_loop.experts.played_batches.play
    """
    return max(2 * half.computing_s, 2 * half.exchanging_s, in_turn_s(half))

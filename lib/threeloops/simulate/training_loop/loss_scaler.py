"""A loss scaler played step by step: the gradients of every step, a scale that grows and backs off, and steps that
are skipped.

>>> played = play([10.0] * 6, limit=65520.0)
>>> played.skipped, played.scales[-1]
([True, True, True, True, False, False], 4096.0)
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What happened at each step."""

    scales: list[float]  # the scale that the step used
    skipped: list[bool]


def play(
    largest_gradients: Sequence[float],
    *,
    limit: float,
    initial: float = 65536.0,
    growth: float = 2.0,
    backoff: float = 0.5,
    interval: int = 2000,
) -> Played:
    """One entry per step: the largest gradient before scaling. At `limit` and above, a scaled gradient is infinite
    and the step is lost.
    """
    scale, good = initial, 0
    scales, skipped = [], []
    for gradient in largest_gradients:
        scales.append(scale)
        too_large = not gradient * scale < limit  # written so that NaN counts as too large
        skipped.append(too_large)
        good = 0 if too_large else good + 1
        if too_large:
            scale *= backoff
        elif good == interval:
            scale, good = scale * growth, 0
    return Played(scales=scales, skipped=skipped)

"""A history of largest values played step by step: which scale an FP8 cast uses, and whether the tensor it meets
still fits.

>>> played = play([1.0, 1.0, 3.0, 1.0], largest=448.0, history=2)
>>> played.scales, played.saturated
([1.0, 448.0, 448.0, 149.33333333333334], [False, False, True, False])
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What happened at each step."""

    scales: list[float]  # what the tensor was multiplied by
    saturated: list[bool]  # its largest value lay beyond the format's end


def play(sizes: Sequence[float], *, largest: float, history: int, margin: int = 0) -> Played:
    """One entry per step: the largest value of the tensor. The format ends at `largest`; the scale leaves `margin`
    powers of two below it.

    With history 0 the tensor itself is looked at before the cast (current scaling); otherwise the largest of the last
    `history` steps (delayed scaling), and a scale of 1 at the first step, which has no past.
    """
    scales: list[float] = []
    saturated: list[bool] = []
    for step, size in enumerate(sizes):
        seen = [size] if history == 0 else list(sizes[max(0, step - history) : step])
        scale = largest / (max(seen) * 2**margin) if seen else 1.0
        scales.append(scale)
        saturated.append(size * scale > largest * (1 + 1e-12))
    return Played(scales=scales, saturated=saturated)

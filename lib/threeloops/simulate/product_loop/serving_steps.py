"""How long one step of a server takes: any callable of what is in the step, and a ready-made affine one.

>>> step_s = AffineStep(base_s=0.010, per_prefill_token_s=50e-6, per_decode_s=0.2e-3)
>>> round(step_s(StepContents(prefill_tokens=1000, decodes=20, cached_tokens=0)), 6)
0.064
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from threeloops import checks


class StepContents(NamedTuple):
    """What one step computes: prompt tokens, decoding sequences (one token each; in a static batch also the rows that
    only pad), and the tokens whose keys and values its sequences hold in the cache before the step.
    """

    prefill_tokens: int
    decodes: int
    cached_tokens: int


StepModel = Callable[[StepContents], float]


class Step(NamedTuple):
    """One step that was done."""

    begin_s: float
    end_s: float
    contents: StepContents


# Decode steps in a row, in which nobody joins or leaves: how many the server has taken when they are over, how many
# they are, when the first of them ends, how far apart their ends are, when the last ends. There are many.
Stretch = tuple[int, int, float, float, float]


@runtime_checkable
class AddsUp(Protocol):
    """A step model that can add up decode steps in a row, so that a simulator may jump over them."""

    def __call__(self, contents: StepContents) -> float: ...

    def steps_s(self, first_s: float, steps: int, growing: int) -> float:
        """Seconds of so many steps, the first of which takes first_s, while so many caches grow by a token a step."""
        ...

    def steps_in(self, first_s: float, seconds: float, growing: int) -> int:
        """About how many such steps fill the seconds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AffineStep:
    """Seconds = base + so much per prompt token, per decoding sequence and per cached token.

    Because it is affine, many decode steps in a row are a sum that can be written down: each step finds one more token
    in the cache of every sequence.
    """

    base_s: float
    per_prefill_token_s: float = 0.0
    per_decode_s: float = 0.0
    per_cached_token_s: float = 0.0

    def __post_init__(self) -> None:
        checks.non_negative(
            base_s=self.base_s,
            per_prefill_token_s=self.per_prefill_token_s,
            per_decode_s=self.per_decode_s,
            per_cached_token_s=self.per_cached_token_s,
        )

    def __call__(self, contents: StepContents) -> float:
        prefill_tokens, decodes, cached_tokens = contents
        return (
            self.base_s
            + self.per_prefill_token_s * prefill_tokens
            + self.per_decode_s * decodes
            + self.per_cached_token_s * cached_tokens
        )

    def steps_s(self, first_s: float, steps: int, growing: int) -> float:
        """Seconds of several decode steps whose first takes first_s, while so many caches grow by a token a step."""
        return steps * first_s + self.per_cached_token_s * growing * (steps * (steps - 1) // 2)

    def steps_in(self, first_s: float, seconds: float, growing: int) -> int:
        """About how many such steps fill the seconds (to within one: rounding decides the rest)."""
        half = self.per_cached_token_s * growing / 2
        if half == 0:
            return math.ceil(seconds / first_s) if first_s else 1
        linear = first_s - half
        return math.ceil((math.sqrt(linear * linear + 4 * half * seconds) - linear) / (2 * half))

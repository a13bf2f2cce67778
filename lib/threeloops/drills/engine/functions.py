"""Functions that a learner writes: a drill's question for any numbers, judged on five fresh draws, one of them a
limit case.

The function gets the numbers of a draw by name and returns the answer in base SI: bytes, seconds, FLOP. Judging needs
what it returned and nothing else, so that at grading it can run in another process than the one that knows the
answers.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from threeloops import units
from threeloops.drills.engine.drill import Draw, Drill, Slip, seeded
from threeloops.drills.engine.judge import Verdict, close

ORDINARY_DRAWS = 4
TIME_LIMIT_S = 2.0
TOLERANCE = 0.001  # a function computes; it does not estimate
BASE_UNITS = {"B": "bytes", "s": "seconds", "": "a plain number"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionDrill:
    """A drill that asks for a function."""

    drill: Drill
    takes: tuple[str, ...]  # names of the draw's numbers that the function is called with
    limit: Callable[[random.Random], Draw]  # a draw at the edge: one GPU, a context shorter than the window
    limit_case: str  # the same in words, told to whoever fails there alone
    # where the question names one model, a function is tried on others too
    draw: Callable[[random.Random], Draw] | None = None

    @property
    def key(self) -> str:
        return self.drill.key

    @property
    def returns(self) -> str:
        """The unit of what the function returns, in words."""
        return BASE_UNITS.get(self.drill.unit, self.drill.unit)

    def arguments(self, p: Draw) -> dict[str, object]:
        """What the function is called with, by name."""
        return {name: getattr(p, name) for name in self.takes}

    def draws(self, *words: str) -> list[Draw]:
        """Five draws that depend on the words alone; the last is the limit case."""
        draw = self.draw or self.drill.draw
        ordinary = [draw(seeded("function", *words, self.key, str(number))) for number in range(ORDINARY_DRAWS)]
        return [*ordinary, self.limit(seeded("function", *words, self.key, "limit"))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """What one call gave: a number, or the sentence that says why not."""

    value: float = math.nan
    problem: str = ""  # completes "On one draw it ..."
    unwritten: bool = False  # returned nothing: the body is still to be written


def judge_function(asked: FunctionDrill, draws: Sequence[Draw], returned: Sequence[Returned]) -> Verdict:
    """Right on all draws, or the slip that explains every mismatch, or what went wrong first."""
    if all(one.unwritten for one in returned):
        return Verdict(status="unanswered", message="This function returns nothing yet.")
    for one in returned:
        if one.problem or one.unwritten:
            return Verdict(status="failed", message=f"On one draw it {one.problem or 'returned nothing'}.")
    targets = [asked.drill.derive(p).value for p in draws]
    missed = [number for number, target in enumerate(targets) if not close(returned[number].value, target, TOLERANCE)]
    if not missed:
        return Verdict(status="right", message=f"Right on {len(draws)} fresh draws, one of them a limit case.")
    for slip in asked.drill.slips:
        if any(number < ORDINARY_DRAWS for number in missed) and all(
            _slipped(slip, draws[number], returned[number].value) for number in missed
        ):
            return Verdict(status="slip", message=slip.story, slips=(slip.key,))
    if missed == [len(draws) - 1]:
        return Verdict(status="limit", message=f"Right on ordinary draws, wrong in the limit case: {asked.limit_case}.")
    return Verdict(
        status="off",
        message=(
            f"Wrong on {len(missed)} of {len(draws)} draws."
            f" {_pattern([(returned[n].value, targets[n]) for n in missed])}"
        ),
    )


def _slipped(slip: Slip, p: Draw, value: float) -> bool:
    try:
        return close(value, slip.wrong(p), TOLERANCE)
    except ArithmeticError:  # a slip may have no value in a limit case
        return False


def _pattern(pairs: Sequence[tuple[float, float]]) -> str:
    """What the wrong results have in common, too coarse to give the answer away."""
    ratios = [value / target for value, target in pairs if target and value > 0]
    if len(ratios) < len(pairs):
        return "At least one result is zero or negative, or not zero where it should be."
    if max(ratios) <= min(ratios) * (1 + TOLERANCE) and len(ratios) > 1:
        for factor in (units.kB, units.MB, units.GB, units.KiB, units.MiB, units.GiB):
            if close(ratios[0], 1 / factor, TOLERANCE):
                return "Every result is too small by the same prefix: return base units."
        return f"Every result is too {'large' if ratios[0] > 1 else 'small'} by one and the same factor."
    if all(ratio > 1 for ratio in ratios):
        return "Every wrong result is too large, by a factor that changes with the numbers."
    if all(ratio < 1 for ratio in ratios):
        return "Every wrong result is too small, by a factor that changes with the numbers."
    return "Some results are too large and some too small."

"""Functions that a learner writes: a drill's question for any numbers, or a small task, judged on five fresh draws,
one of them a limit case.

The function gets the numbers of a draw by name and returns the answer: in base SI (bytes, seconds, FLOP) for a drill,
a list of numbers and words for a task. Judging needs what it returned and nothing else, so that at grading it can run
in another process than the one that knows the answers.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from threeloops import units
from threeloops.drills.engine.drill import Draw, Drill, Slip, seeded
from threeloops.drills.engine.exactness import Exactness
from threeloops.drills.engine.judge import Verdict, close, miscounted

ORDINARY_DRAWS = 4
TIME_LIMIT_S = 2.0
TOLERANCE = 0.001  # a function computes; it does not estimate
NOTHING = 1e-9  # a sum that should vanish may leave a rounding error
BASE_UNITS = {"B": "bytes", "s": "seconds", "": "a plain number"}
# What a function may return: a number, a word, or a list of such.
Value: TypeAlias = "float | str | tuple[Value, ...]"


class Mistake(Protocol):
    """A slip, of a formula or of code: its key, what it would have returned, and the sentence that points at it."""

    @property
    def key(self) -> str: ...

    @property
    def wrong(self) -> Callable[[Draw], Value]: ...

    @property
    def story(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A function that is asked for, and the draws it is tried on."""

    takes: tuple[str, ...]  # names of the draw's numbers that the function is called with
    limit: Callable[[random.Random], Draw]  # a draw at the edge: one GPU, a context shorter than the window
    limit_case: str  # the same in words, told to whoever fails there alone

    @property
    def key(self) -> str:
        raise NotImplementedError

    @property
    def slips(self) -> Sequence[Mistake]:
        raise NotImplementedError

    @property
    def exactness(self) -> Exactness:
        """How exact a returned number has to be: what is counted to the last one, even where there are thousands."""
        return Exactness(tolerance=TOLERANCE)

    @property
    def given(self) -> str:
        """Source that is run before the learner's file: what that may import."""
        return ""

    @property
    def trial(self) -> str:
        """Source that is run after it: where what is called is not the function itself."""
        return ""

    def ordinary(self, rng: random.Random) -> Draw:
        """A draw that is no limit case."""
        raise NotImplementedError

    def target(self, p: Draw) -> Value:
        """What the function is to return."""
        raise NotImplementedError

    def arguments(self, p: Draw) -> dict[str, object]:
        """What the function is called with, by name."""
        return {name: getattr(p, name) for name in self.takes}

    def draws(self, *words: str) -> list[Draw]:
        """Five draws that depend on the words alone; the last is the limit case."""
        drawn = [self.ordinary(seeded("function", *words, self.key, str(number))) for number in range(ORDINARY_DRAWS)]
        return [*drawn, self.limit(seeded("function", *words, self.key, "limit"))]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionDrill(Asked):
    """A drill that asks for a function."""

    drill: Drill
    # where the question names one model, a function is tried on others too
    draw: Callable[[random.Random], Draw] | None = None

    @property
    def key(self) -> str:
        return self.drill.key

    @property
    def returns(self) -> str:
        """The unit of what the function returns, in words."""
        return BASE_UNITS.get(self.drill.unit, self.drill.unit)

    @property
    def slips(self) -> Sequence[Slip]:
        return self.drill.slips

    @property
    def exactness(self) -> Exactness:
        return Exactness(tolerance=TOLERANCE, whole=self.drill.whole)

    def ordinary(self, rng: random.Random) -> Draw:
        return (self.draw or self.drill.draw)(rng)

    def target(self, p: Draw) -> float:
        return self.drill.derive(p).value


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """What one call gave: a value, or the sentence that says why not."""

    value: Value = math.nan
    problem: str = ""  # completes "On one draw it ..."
    unwritten: bool = False  # returned nothing: the body is still to be written


def judge_function(asked: Asked, draws: Sequence[Draw], returned: Sequence[Returned]) -> Verdict:
    """Right on all draws, or the slip that explains every mismatch, or what went wrong first."""
    if all(one.unwritten for one in returned):
        return Verdict(status="unanswered", message="This function returns nothing yet.")
    targets = [asked.target(p) for p in draws]
    for one, target in zip(returned, targets, strict=False):
        if problem := _problem(one, target):
            return Verdict(status="failed", message=f"On one draw it {problem}.")
    missed = missed_draws(asked, draws, returned)
    if not missed:
        return Verdict(status="right", message=f"Right on {len(draws)} fresh draws, one of them a limit case.")
    for slip in asked.slips:
        if any(number < ORDINARY_DRAWS for number in missed) and all(
            _slipped(slip, draws[number], returned[number].value) for number in missed
        ):
            return Verdict(status="slip", message=slip.story, slips=(slip.key,))
    if missed == [len(draws) - 1]:
        return Verdict(status="limit", message=f"Right on ordinary draws, wrong in the limit case: {asked.limit_case}.")
    pairs = [(returned[number].value, targets[number]) for number in missed]
    if beside := _miscounted(asked, pairs):
        return beside
    pattern = _pattern(pairs)
    return Verdict(status="off", message=f"Wrong on {len(missed)} of {len(draws)} draws. {pattern}")


def missed_draws(asked: Asked, draws: Sequence[Draw], returned: Sequence[Returned]) -> list[int]:
    """Which draws have another value than they should, or none; a draw that was not tried is none of them."""
    return [
        number
        for number, one in enumerate(returned)
        if one.problem or one.unwritten or not _met(asked, one.value, asked.target(draws[number]))
    ]


def _met(asked: Asked, value: Value, target: Value) -> bool:
    if isinstance(value, int | float) and isinstance(target, int | float):
        return asked.exactness.takes(value, target)
    return same(value, target)


def _miscounted(asked: Asked, pairs: Sequence[tuple[Value, Value]]) -> Verdict | None:
    """The one way in which all counts are beside the right ones."""
    numbers = [(a, b) for a, b in pairs if isinstance(a, int | float) and isinstance(b, int | float)]
    found = {miscounted(asked.exactness, value, target) for value, target in numbers}
    return found.pop() if len(found) == 1 and len(numbers) == len(pairs) else None


def same(value: Value, target: Value) -> bool:
    """Whether a returned value is the one that was expected: a number within the tolerance, a list item by item.

    >>> same(1.0004, 1), same((1.0004, "F0"), (1.0, "F0")), same((5001,), (5000,))
    (True, True, False)
    """
    if isinstance(value, tuple) and isinstance(target, tuple):
        return len(value) == len(target) and all(map(_same_item, value, target))
    if isinstance(value, int | float) and isinstance(target, int | float):
        return close(value, target, TOLERANCE)
    return value == target


def _same_item(value: Value, target: Value) -> bool:
    """In a list, a whole number names something (a place, a block) and another one is another; and what should come
    out as zero may leave a rounding error.
    """
    if isinstance(target, int):
        return value == target
    if target == 0 and isinstance(value, float):
        return abs(value) < NOTHING
    return same(value, target)


def _problem(one: Returned, target: Value) -> str:
    """Why a value cannot be compared at all; completes "On one draw it ..."."""
    if one.problem or one.unwritten:
        return one.problem or "returned nothing"
    if isinstance(one.value, tuple) != isinstance(target, tuple) or isinstance(one.value, str) != isinstance(
        target, str
    ):
        return f"returned {_kind(one.value)}, not {_kind(target)}"
    return ""


def _kind(value: Value) -> str:
    return "a list" if isinstance(value, tuple) else "text" if isinstance(value, str) else "a number"


def _slipped(slip: Mistake, p: Draw, value: Value) -> bool:
    try:
        return same(value, slip.wrong(p))
    except (ArithmeticError, ValueError, LookupError):  # a slip may have no value in a limit case
        return False


def _pattern(pairs: Sequence[tuple[Value, Value]]) -> str:
    """What the wrong results have in common, too coarse to give the answer away."""
    numbers = [(value, target) for value, target in pairs if isinstance(value, int | float)]
    if len(numbers) < len(pairs):
        return _lists_pattern(pairs)
    ratios = [value / target for value, target in numbers if isinstance(target, int | float) and target and value > 0]
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


def _lists_pattern(pairs: Sequence[tuple[Value, Value]]) -> str:
    lists = [(value, target) for value, target in pairs if isinstance(value, tuple) and isinstance(target, tuple)]
    if any(len(value) != len(target) for value, target in lists):
        return "At least one list has another length than it should."
    if any(sorted(map(str, value)) == sorted(map(str, target)) for value, target in lists):
        return "At least one list has the right items in another order."
    return "The lists have the right length; some of their items differ."

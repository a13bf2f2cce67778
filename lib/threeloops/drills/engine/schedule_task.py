"""A program to write for the machine of `benches.bundles`, as a function that returns it: checked on numbers that the
function does not see, and judged by its cycles. What runs here is a list of words, never the learner's code.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from threeloops import units
from threeloops.drills.engine.code_task import CodeTask
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import Returned, Value, judge_function
from threeloops.drills.engine.judge import Verdict
from threeloops.simulate.inner_loop.benches.bundles import HazardError, Ran, run

CONSTANTS = ("a", "b", "c")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleTask(CodeTask):
    """One program to write. A draw has `n` vectors, their numbers `x`, and the constants."""

    bound: Callable[[int], int]  # cycles that no program of n vectors beats
    par: float  # times the bound: what a right answer may take

    def verdict(self, draws: Sequence[Draw], returned: Sequence[Returned]) -> Verdict:
        taken = list[tuple[int, int]]()
        for p, one in zip(draws, returned, strict=False):
            if one.problem or one.unwritten or not _is_program(one.value):
                return judge_function(self, draws, self.results(returned))
            try:
                ran = _ran(p, one.value)
            except HazardError as hazard:
                return self._slip(hazard.key, str(hazard))
            if left := [place for place in range(p.n) if place not in ran.y]:
                return self._slip("left-out", f"Of {units.counted(p.n, 'vector')}, {left[0]} is never stored.")
            if _stored(p, ran) != self.count(p):
                if ran.early and self._in_order(p, one.value):
                    return self._slip("too-early", ran.early[0])
                return self._slip("overwritten", _difference(p, ran))
            taken.append((ran.cycles, self.bound(p.n)))
        cycles, bound = max(taken, key=lambda pair: pair[0] / pair[1])
        if cycles > self.par * bound:
            return self._slip(
                "waits", f"It is right and takes {cycles:,} cycles; no program takes fewer than {bound:,}."
            )
        reached = "the bound, reached" if cycles == bound else f"the bound is {bound:,}"
        return Verdict(
            status="right",
            message=f"Right on {len(draws)} fresh draws, one of them a limit case."
            f" At worst {cycles:,} cycles: {reached}.",
        )

    def _in_order(self, p: Draw, program: Value) -> bool:
        """Whether it is right but for the time that results take."""
        try:
            return _stored(p, _ran(p, program, at_once=True)) == self.count(p)
        except HazardError:
            return False

    def results(self, returned: Sequence[Returned]) -> list[Returned]:
        """Programs have no value that is compared; what cannot be one is told."""
        return [
            Returned(problem="returned no program: a list of bundles, each a list of instructions as text")
            if not (one.problem or one.unwritten or _is_program(one.value))
            else one
            for one in returned
        ]

    def _slip(self, key: str, told: str) -> Verdict:
        story = {change.key: change.story for change in self.changes}.get(key, "")
        return Verdict(status="slip", message=f"{story} {told}".strip(), slips=(key,))

    def target(self, p: Draw) -> Value:
        """What the program of the book's own stores."""
        return self._returns(self.solution, p)

    def _returns(self, source: str, p: Draw) -> Value:
        try:
            return _stored(p, _ran(p, self.ran(source, p).value))
        except HazardError as hazard:
            raise ValueError(str(hazard)) from None


def vectors(rng: random.Random, n: int) -> dict[str, object]:
    """Numbers for n vectors and the constants: the same x twice would hide a mix-up."""
    numbers = rng.sample(range(-900, 900), 8 * n)
    a, b, c = rng.sample(range(2, 90), 3)
    return {"n": n, "x": [numbers[8 * place : 8 * place + 8] for place in range(n)], "a": a, "b": b, "c": c}


def _is_program(value: Value) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(bundle, tuple) and all(isinstance(word, str) and word.strip() for word in bundle) for bundle in value
    )


def _difference(p: Draw, ran: Ran) -> str:
    """The first vector that is stored wrongly."""
    place = next(n for n in range(p.n) if ran.y[n] != [p.a * one**2 + p.b * one + p.c for one in p.x[n]])
    return f"Vector {place} of y is another one than it should be."


def _ran(p: Draw, program: Value, *, at_once: bool = False) -> Ran:
    bundles = [[str(word) for word in bundle] for bundle in program]  # type: ignore[union-attr]
    return run(bundles, x=p.x, constants={name: getattr(p, name) for name in CONSTANTS}, at_once=at_once)


def _stored(p: Draw, ran: Ran) -> Value:
    return tuple(number for place in range(p.n) for number in ran.y.get(place, ()))

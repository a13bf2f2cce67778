"""The one change that helps most: a decision whose options are a drill's numbers, changed; and draws in which it is
clear, and every mistake can be told from the answer.
"""

import functools
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from threeloops.drills.engine.answers_in_text import figures
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, Drill
from threeloops.room import examples
from threeloops.room.kinds.bands import BAND
from threeloops.room.kinds.chains.chain import Decision, Step, best
from threeloops.room.letters import Option

APART, SAME = 0.05, 1e-9  # relative: a mistake that comes too near an answer, and one that here is none
AHEAD = 1.1  # the best change gains so many times what the next one gains, so that rounding cannot decide
DRAWS = 100_000  # before a draw that never fits is given up


def value_of(key: str, p: Draw) -> float:
    """A drill's answer to these numbers."""
    return DRILLS[key].derive(p).value


def shown(key: str, p: Draw) -> str:
    """A drill's answer to these numbers, as a person would write it."""
    return DRILLS[key].shown(value_of(key, p))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that could be done, and the drill's numbers after it."""

    key: str
    text: Callable[[Draw], str]
    numbers: Callable[[Draw], Draw]


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """Which of several changes helps most, by a drill's own answer before and after."""

    drill: str
    now: Callable[[Draw], Draw]  # its numbers as things are
    text: Callable[[Draw], str]
    changes: tuple[Change, ...]
    more: bool = False  # whether a larger answer is the better one

    def gains(self, p: Draw) -> dict[str, float]:
        """What each change does for the better."""
        sign, now = 1 if self.more else -1, value_of(self.drill, self.now(p))
        return {change.key: sign * (value_of(self.drill, change.numbers(p)) - now) for change in self.changes}

    def clear(self, p: Draw) -> bool:
        """Whether one change helps, and clearly more than any other."""
        first, second = sorted(self.gains(p).values(), reverse=True)[:2]
        return first > 0 and first > AHEAD * second

    @property
    def decision(self) -> Decision:
        """The choice between them."""
        return Decision(
            drill=self.drill,
            text=self.text,
            options=lambda p: tuple(Option(key=change.key, text=change.text(p)) for change in self.changes),
            right=lambda p: best(self.gains(p)),
            because=self._because,
        )

    def _because(self, p: Draw) -> str:
        now, gains = value_of(self.drill, self.now(p)), self.gains(p)
        after = {change.key: shown(self.drill, change.numbers(p)) for change in self.changes}
        alike = len(set(after.values())) < len(after)  # what rounding makes equal is told by its difference
        told = "\n".join(
            f"  - {change.text(p)} → {after[change.key]}"
            + (f" ({_signed(gains[change.key], self.more, self.drill)})" if alike else "")
            for change in self.changes
        )
        return f"As it is, {DRILLS[self.drill].shown(now)}. With one change:\n{told}"


def _signed(gain: float, more: bool, key: str) -> str:
    if gain == 0:
        return "no change"
    return f"{'+' if (gain > 0) == more else '−'}{DRILLS[key].shown(abs(gain))}"


def told_apart(steps: Sequence[Step], p: Draw) -> bool:
    """Whether no mistake comes near an answer without being it (one GPU of one), and no example is an answer."""
    return all(_told_apart(DRILLS[step.drill], step.numbers(p)) for step in steps)


def _told_apart(drill: Drill, q: Draw) -> bool:
    value = drill.derive(q).value
    if value <= 0 or any(abs(shown - value) <= BAND * value for shown in _example_values(drill.unit)):
        return False
    return not any(SAME < abs(slip.wrong(q) - value) / value <= APART for slip in drill.slips)


def slips_apart(steps: Sequence[Step], p: Draw) -> bool:
    """Whether no two mistakes beyond the band lead to one answer: each is then named alone."""
    for step in steps:
        drill, q = DRILLS[step.drill], step.numbers(p)
        value = drill.derive(q).value
        missed = sorted(wrong for slip in drill.slips if abs((wrong := slip.wrong(q)) - value) > BAND * value)
        if any(larger - smaller <= APART * larger for smaller, larger in itertools.pairwise(missed)):
            return False
    return True


@functools.cache
def _example_values(unit: str) -> tuple[float, ...]:
    """What the examples in questions of this unit would answer, without the reader of units, which takes long to
    load: a question is put before any answer is read.
    """
    return tuple(amount for written in examples.every(unit) for _, amount in figures(written, unit))


def redrawn(draw: Callable[[random.Random], Draw], fits: Callable[[Draw], bool]) -> Callable[[random.Random], Draw]:
    """The draw, repeated until it fits.

    Raises: RuntimeError for a draw that never does
    """

    def until(rng: random.Random) -> Draw:
        for _ in range(DRAWS):
            p = draw(rng)
            if fits(p):
                return p
        raise RuntimeError(f"{draw.__qualname__} never drew numbers that fit")

    return until

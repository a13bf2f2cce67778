"""Follow-ups: a few questions on one thing, each a change to the one before, and at the end a decision.

A chain's steps are drills asked with its numbers in short words; they are kinds of the drills' own ideas, so that
what is missed is repeated like any drill.
"""

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from threeloops.drills.engine.answers_in_text import unheld
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, Drill, seeded
from threeloops.room.kinds.bands import asked_in_bands
from threeloops.room.letters import Column, Option, judged, wanted
from threeloops.room.question import Question, subject_of

PREFIX = "chain:"  # a step's kind is chain:<key>:<number from 1>
DECISION_S = 45.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A drill, the chain's numbers as it knows them, and its words; without words, its own."""

    drill: str
    numbers: Callable[[Draw], Draw]
    text: Callable[[Draw], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What follows from the figures. `right` names one of the options; it is computed."""

    drill: str  # the idea that is missed when this is missed
    text: Callable[[Draw], str]
    options: Callable[[Draw], tuple[Option, ...]]
    right: Callable[[Draw], str]
    because: Callable[[Draw], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A first question, its follow-ups, and what they are good for."""

    key: str
    title: str
    draw: Callable[[random.Random], Draw]
    steps: tuple[Step, ...]
    decision: Decision

    def __len__(self) -> int:
        return len(self.steps) + 1

    @property
    def loop(self) -> str:
        return DRILLS[self.decision.drill].loop

    @property
    def target_s(self) -> float:
        """What a fluent person needs for all of it."""
        return sum(DRILLS[step.drill].target_s for step in self.steps) + DECISION_S

    @property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """(idea, kind) of every step, in order."""
        ideas = (*(step.drill for step in self.steps), self.decision.drill)
        return tuple((idea, f"{PREFIX}{self.key}:{number}") for number, idea in enumerate(ideas, 1))


@functools.lru_cache(maxsize=64)  # the steps of a sitting share them
def numbers(chain: Chain, seed: str) -> Draw:
    """The chain's numbers: the same for all its steps, and no step's answer in its own words."""
    return unheld(seeded("chain", seed, chain.key), chain.draw, lambda p: said_in(chain.steps, p), of=chain.key)


def said_in(steps: Sequence[Step], p: Draw) -> list[tuple[Drill, Draw, str]]:
    """Each step's drill, its numbers, and the words that put it."""
    drills = [(DRILLS[step.drill], step.numbers(p), step.text) for step in steps]
    return [(drill, q, text(p) if text else drill.prompt(q)) for drill, q, text in drills]


def asked(chain: Chain, number: int, seed: str) -> Question:
    """One step of a chain, counted from 1."""
    p, title, kind = numbers(chain, seed), f"{chain.title}, {number} of {len(chain)}", chain.kinds[number - 1][1]
    if number == len(chain):
        return choose(chain.decision, p, seed=seed, kind=kind, title=title)
    return estimate(chain.steps[number - 1], p, seed=seed, kind=kind, title=title)


def estimate(step: Step, p: Draw, *, seed: str, kind: str, title: str) -> Question:
    """A step as a question: judged in bands, its mistakes named as its drill names them."""
    drill, q = DRILLS[step.drill], step.numbers(p)
    return asked_in_bands(
        drill, q, seed=seed, kind=kind, text=step.text(p) if step.text else drill.prompt(q), title=title
    )


def column(decision: Decision, p: Draw, seed: str) -> Column:
    """The options of a decision in the order of this seed."""
    options = decision.options(p)
    return Column(
        name="Choose", options=tuple(seeded("options", seed).sample(options, len(options))), right=decision.right(p)
    )


def choose(decision: Decision, p: Draw, *, seed: str, kind: str, title: str) -> Question:
    """A decision as a question with letters."""
    drill = DRILLS[decision.drill]
    offered = column(decision, p, seed)
    because = decision.because(p)
    return replace(subject_of(drill), title=title, target_s=DECISION_S).as_question(
        kind=kind,
        seed=seed,
        text=f"{decision.text(p)}\n{offered.lines}\n{wanted([offered])}",
        hints=("Everything that decides it stands in the answers before.", because, f"{offered.told}."),
        judge=lambda written: judged(written, [offered]),
        working=f"  {offered.letter}: {offered.told}.\n  {because}",
    )


def best(gains: dict[str, float]) -> str:
    """The option with the largest gain."""
    return max(gains, key=lambda key: gains[key])


def clear(gains: dict[str, float]) -> bool:
    """Whether the best is ahead of the next by a tenth, so that rounding cannot decide."""
    first, second = sorted(gains.values(), reverse=True)[:2]
    return first > 1.1 * second > 0

"""What a drill is: one definition that serves the notebook, the terminal, the timed room, paper and the tests.

A drill holds everything about one idea: how its numbers are drawn, how the question is put, the answer by formula, an
independent count of the same answer, and the wrong formulas that people really use, each with a sentence that points
at the mistake without giving the answer away.
"""

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from threeloops import units
from threeloops.drills.engine.answers import example
from threeloops.drills.engine.exactness import Exactness
from threeloops.drills.engine.phrasing import arithmetic, people

# Different answers: in a class of hundreds, few may draw the number of somebody they know.
FEWEST = 40
APART = 1 / (1 - 0.045)  # the answer and what each slip gives differ by this factor at least

# The numbers of one draw, by name. Drills read them as p.layers, p.kv_heads: the formulas stay readable.
Draw = Any


def drawn(**numbers: object) -> Draw:
    """The numbers of one draw."""
    return SimpleNamespace(**numbers)


def changed(p: Draw, **numbers: object) -> Draw:
    """The same numbers with some of them changed.

    >>> changed(drawn(gpus=8, rate=3), rate=4)
    namespace(gpus=8, rate=4)
    """
    return drawn(**vars(p) | numbers)


@dataclass(frozen=True, slots=True)
class Slip:
    """A named wrong formula, what somebody who made this mistake would have answered; and behind a bar its story.

    >>> slip = Slip("keys-only", lambda p: p.bytes / 2) | "You counted keys alone. What is kept beside them?"
    >>> slip.key, slip.wrong(drawn(bytes=300)), slip.story
    ('keys-only', 150.0, 'You counted keys alone. What is kept beside them?')
    """

    key: str
    wrong: Callable[[Draw], float]
    story: str = ""  # points at the mistake; never contains the answer

    def __or__(self, story: str) -> "Slip":
        return replace(self, story=story)


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """How the answer comes about. `value` is what is graded: there is no second place that computes it."""

    value: float  # base SI
    formula: str  # in words and symbols
    substitution: str  # the same with the numbers put in, every digit of them: plain arithmetic that a test evaluates
    source: str

    @property
    def in_numbers(self) -> str:
        """The substitution as it is shown."""
        return arithmetic(self.substitution)


@dataclass(frozen=True, slots=True)
class Taught:
    """Where the book teaches it."""

    loop: str  # inner, training, product or driving: the chapter
    section: str  # the heading of the chapter's section


@dataclass(frozen=True, slots=True, kw_only=True)
class AsFunction:
    """The idea as a function of its numbers, which is tried on draws and on a limit case: one GPU, a context shorter
    than the window.
    """

    takes: tuple[str, ...]  # names of the numbers that the function is called with
    limit_case: str  # in words, told to whoever fails there alone
    # what it sets; a dict has no hash, and a drill has one
    limit: Mapping[str, object] | Callable[[Draw], Mapping[str, object]] = field(default_factory=dict, hash=False)
    limit_draw: Callable[[random.Random], Draw] | None = None  # where it is drawn anew instead
    # where the question names one model, a function is tried on others too
    draw: Callable[[random.Random], Draw] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """One idea, ready to be asked anywhere."""

    key: str
    taught: Taught
    title: str
    unit: str  # base unit of the answer: a key of answers.EXAMPLES
    target_s: int  # what a fluent person needs, typing included
    draw: Callable[[random.Random], Draw]
    prompt: Callable[[Draw], str]
    derive: Callable[[Draw], Derivation]
    count: Callable[[Draw], float]  # the same answer by brute force
    small: Callable[[random.Random], Draw]  # a draw small enough to count
    slips: tuple[Slip, ...]
    near: tuple[Slip, ...] = ()  # nearer to the answer than draws keep slips apart, and yet outside its tolerance
    whole: str = ""  # of an answer that counts things: the way it is rounded (up, down), or exact where none is
    loose: str = ""  # how such an answer need not be exact: a bound, or of many digits four (exactness.py)
    capacity: bool = False  # shown in GiB (memory) rather than GB (traffic)
    tolerance: float = 0.02
    # The engine draws again where a draw is not wanted, where two results come closer than this factor, or where the
    # question holds its answer (fair_draws.py).
    wanted: Callable[[Draw], bool] = lambda p: True
    apart: float = APART
    fewest: int = FEWEST  # different answers over a thousand draws; an idea that cannot have as many says why
    prerequisites: tuple[str, ...] = ()
    function: AsFunction | None = None  # where a function is asked for, too
    family: str = ""  # the folder that lists it, which the bank knows

    @property
    def loop(self) -> str:
        return self.taught.loop

    @property
    def section(self) -> str:
        return self.taught.section

    @property
    def exactness(self) -> Exactness:
        """What counts as right: the same for whoever judges, prints a key or builds a quiz."""
        return Exactness(tolerance=self.tolerance, whole=self.whole, loose=self.loose)

    def ask(self, p: Draw) -> str:
        """The whole question: the prompt, what unit to answer in, and how exact to be."""
        kind = "a unit" if self.unit else "a whole number" if self.whole else "a plain number"
        like = f"like {self.example(self.prompt(p))}"
        return f"{self.prompt(p)}\nAnswer with {kind}, {like}; {self.exactness.told}."

    def example(self, question: str) -> str:
        """How an answer looks, where the question is put in these words."""
        return example(self.unit, question, whole=bool(self.whole))

    def results(self, p: Draw) -> dict[str, float]:
        """The answer, under an empty name, and what each slip gives."""
        return {"": self.derive(p).value} | {slip.key: slip.wrong(p) for slip in self.slips}

    def working(self, p: Draw) -> str:
        """The derivation with this draw's numbers put in."""
        derivation = self.derive(p)
        return (
            f"  {derivation.formula}\n  = {derivation.in_numbers}\n  = {self.shown(derivation.value)}\n  Source:"
            f" {derivation.source}"
        )

    def shown(self, value: float) -> str:
        """A value of this drill's unit as a person would write it; bytes in both bases."""
        if self.unit == "" and value and not 1e-4 <= abs(value) < 1e15:  # a bare exponent otherwise
            return people(value)
        return units.fmt(value, self.unit, binary=self.capacity)


def seeded(*words: str) -> random.Random:
    """A random generator that depends on the words alone: the same numbers on every machine, today and at grading.

    >>> seeded("course", "ada", "kv-per-token").randrange(1000) == seeded("course", "ada", "kv-per-token").randrange(
    ...     1000
    ... )
    True
    """
    digest = hashlib.sha256("\x1f".join(words).encode()).digest()
    return random.Random(int.from_bytes(digest, "big"))

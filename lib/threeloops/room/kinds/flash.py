"""Flash facts: the numbers to have by heart. Every value comes from the catalogue or from one of the book's formulas
at the moment it is asked.
"""

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from threeloops import units
from threeloops.drills.engine import catalogued
from threeloops.drills.engine.exactness import Exactness
from threeloops.drills.engine.judge import Verdict, close, miscounted, unclear, unit_slip
from threeloops.room import examples
from threeloops.room.idea import Idea, idea_of
from threeloops.room.question import Question, Subject

BAND = 0.05
TOPIC, TITLE, TARGET_S = "numbers", "A number to know", 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A value with everything that is said about it afterwards."""

    value: float
    unit: str
    told: str  # what the source prints, or how it is worked out
    source: str
    whole: bool = False  # whether it counts things
    near: tuple[tuple[str, float, str], ...] = ()  # (slip, value, sentence): numbers that are easily taken for it

    @property
    def exactness(self) -> Exactness:
        """Within 5 %, and what is counted exactly."""
        return Exactness(tolerance=BAND, whole="exact" if self.whole else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flash(Subject):
    """One number to know. `number` and a part's name are looked up or computed when it is asked, so that a
    question about something else reads no catalogue.
    """

    title: str = TITLE
    topic: str = TOPIC
    target_s: float = TARGET_S
    words: str
    number: Callable[[], Number]
    part: str = ""  # catalogue key of the part that it is about; its name then stands before the words
    telling: str = ""  # regular expression for what in that name would be the answer (80GB)

    @property
    def question(self) -> str:
        """The words, with the name of the part as the catalogue gives it, as far as it does not tell."""
        if not self.part:
            return self.words
        name = catalogued.part(self.part).name
        return f"{re.sub(self.telling, '', name) if self.telling else name}: {self.words}"


# --- asking -------------------------------------------------------------------------------------


def flash(asked: Flash, seed: str) -> Question:
    """The number as a question; every seed asks the same."""
    number = asked.number()
    return asked.as_question(
        kind="flash",
        seed=seed,
        text=f"From memory. {asked.question}\n{_wanted(asked, number)}; {number.exactness.told}.",
        hints=_hints(number),
        judge=lambda written: judged(number, written, asked.question),
        working=f"  {shown(number)}: {number.told}\n  Source: {number.source}",
    )


def _wanted(asked: Flash, number: Number) -> str:
    return examples.wanted(number.unit, asked.question, whole=number.whole)


def shown(number: Number) -> str:
    """The value as a person would write it."""
    return units.fmt(number.value, number.unit)


def _hints(number: Number) -> tuple[str, str, str]:
    low, high = (units.fmt(number.value * factor, number.unit) for factor in (0.2, 3.0))
    low_nearer, high_nearer = (units.fmt(number.value * factor, number.unit) for factor in (0.7, 1.6))
    return f"Between {low} and {high}.", f"Between {low_nearer} and {high_nearer}.", f"{shown(number)}."


def judged(number: Number, written: str, question: str = "") -> Verdict:
    """Known, taken for another number, or not known."""
    answer = examples.read(written, number.unit, question=question, whole=number.whole)
    if isinstance(answer, str):
        return Verdict(status="unreadable", message=answer)
    if asked := unclear(answer, number.value, number.exactness):
        return asked
    if number.exactness.takes(answer.value, number.value):
        return Verdict(status="right", message=f"Right: {shown(number)}.")
    for slip, value, sentence in number.near:
        if close(answer.value, value, 0.0 if number.whole else BAND):
            return Verdict(status="slip", message=sentence, slips=(slip,))
    if beside := miscounted(number.exactness, answer.value, number.value):
        return beside
    if named := unit_slip(answer, number.value, like=number.unit, tolerance=BAND / 2, question=question):
        return named
    way = "large" if answer.value > number.value else "small"
    return Verdict(status="off", message=f"Not right: too {way}.")


def together(flashes: Sequence[Flash]) -> tuple[Idea, ...]:
    """As ideas of the room."""
    return tuple(idea_of(asked, {"flash": functools.partial(flash, asked)}) for asked in flashes)

"""Spot the error: a worked answer with one slip in it, everything after it honestly computed from the wrong line.
Which line is it?
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from threeloops.drills.engine.drill import Draw, seeded
from threeloops.drills.engine.judge import Verdict
from threeloops.room.idea import Idea, idea_of
from threeloops.room.question import Question, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a worked answer. Both functions see the draw and, by name, what the lines above came to; `text`
    sees this line's value too.
    """

    name: str
    value: Callable[[Draw], float]
    text: Callable[[Draw], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Misstep:
    """What a wrong text has instead of one line."""

    key: str
    line: str
    value: Callable[[Draw], float]
    text: Callable[[Draw], str]
    story: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked(Subject):
    """A question, its answer line by line, and the ways in which one line goes wrong."""

    draw: Callable[[random.Random], Draw]
    prompt: Callable[[Draw], str]
    lines: tuple[Line, ...]
    missteps: tuple[Misstep, ...]
    answer: Callable[[Draw], float]  # what the last line must come to, by the library's formula
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A worked answer as it is read."""

    lines: tuple[str, ...]
    values: tuple[float, ...]


def written_out(worked: Worked, p: Draw, misstep: Misstep | None) -> Written:
    """The answer line by line, with one misstep or with none."""
    known = SimpleNamespace(**vars(p))
    lines, values = [], []
    for line in worked.lines:
        step = misstep if misstep and misstep.line == line.name else line
        setattr(known, line.name, step.value(known))
        lines.append(step.text(known))
        values.append(float(getattr(known, line.name)))
    return Written(lines=tuple(lines), values=tuple(values))


def drawn_case(worked: Worked, seed: str) -> tuple[Draw, Misstep]:
    """The numbers of a question and what is wrong in it."""
    rng = seeded("spot", seed, worked.key)
    return worked.draw(rng), rng.choice(worked.missteps)


def place(worked: Worked, misstep: Misstep) -> int:
    """Which line, counted from 1."""
    return [line.name for line in worked.lines].index(misstep.line) + 1


def spot(worked: Worked, seed: str) -> Question:
    """The question with its numbered lines."""
    p, misstep = drawn_case(worked, seed)
    number, count = place(worked, misstep), len(worked.lines)
    right = written_out(worked, p, None)
    text = (
        f"{worked.prompt(p)}\nA colleague works it out:\n{_numbered(written_out(worked, p, misstep).lines)}\n"
        "One line is wrong; those after it go on from what it says. Which one?\nAnswer with its number."
    )
    return worked.as_question(
        kind="spot",
        seed=seed,
        text=text,
        hints=_hints(number, count, right, misstep),
        judge=lambda written: judged(written, number, count, misstep),
        working=f"  Line {number}. {misstep.story}\n{_numbered(right.lines)}\n  Source: {worked.source}",
    )


def _numbered(lines: Sequence[str]) -> str:
    return "\n".join(f"  {number}. {line}" for number, line in enumerate(lines, 1))


def _hints(number: int, count: int, right: Written, misstep: Misstep) -> tuple[str, str, str]:
    """Half of the lines, then where the answer should have ended, then the mistake itself."""
    half = f"from 1 to {count // 2}" if number <= count // 2 else f"from {count // 2 + 1} to {count}"
    return f"It is one of the lines {half}.", f"The last line should read: {right.lines[-1]}", misstep.story


def judged(written: str, number: int, count: int, misstep: Misstep) -> Verdict:
    """Whether the line was found."""
    match = re.fullmatch(r"\s*(?:line\s*)?(\d)\s*\.?\s*", written, re.IGNORECASE)
    if not match or not 1 <= int(match[1]) <= count:
        return Verdict(status="unreadable", message=f"{written!r} is not the number of a line, 1 to {count}.")
    named = int(match[1])
    if named == number:
        return Verdict(status="right", message=f"Right. {misstep.story}")
    if named > number:
        return Verdict(
            status="slip",
            message=f"Line {named} follows from what stands above it, as it should. Go further up.",
            slips=(f"missed:{misstep.key}",),
        )
    return Verdict(status="slip", message=f"Line {named} is as it should be.", slips=(f"missed:{misstep.key}",))


def idea(worked: Worked) -> Idea:
    """The worked answer as something to be asked."""
    return idea_of(worked, {"spot": lambda seed: spot(worked, seed)})

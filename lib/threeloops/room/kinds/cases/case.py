"""An open case, as an interviewer holds one: a sentence, what is to be asked before any number, estimates, a design,
a choice between changes, and what comes next.

Each stage is a question of its own, with the same numbers. Estimates and the choice are judged as in a chain. What is
said is judged by the reader: the points of a good answer appear after it, and are marked honestly, by letters.
"""

import functools
import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from threeloops.drills.engine.answers_in_text import unheld
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, seeded
from threeloops.drills.engine.judge import Verdict
from threeloops.room.idea import Idea, idea_of
from threeloops.room.kinds.chains.chain import Step, choose, estimate, said_in
from threeloops.room.kinds.chains.change import Best, redrawn, told_apart
from threeloops.room.letters import LETTERS
from threeloops.room.question import Question, Subject

TOPIC = "open_cases"
PREFIX = "case:"  # a stage's kind is case:<key>:<number from 1>
DESIGN_S, TRADE_OFF_S = 150.0, 60.0  # to say a design and mark it; to read some changes and weigh them
ENOUGH = 2 / 3  # of the points said: a talk that counts as right
HOW = (
    "Answer aloud, or write notes; then press Enter, and the points of a good answer appear, for you to mark which you"
    " said."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Something to be said: what a good answer holds, a point a line, and one that holds it all."""

    name: str
    text: Callable[[Draw], str]
    points: tuple[str, ...]
    model: Callable[[Draw], str]
    target_s: float


def requirements(said: Callable[[Draw], str], *asked: tuple[str, Callable[[Draw], str]], target_s: float = 75) -> Talk:
    """What the interviewer says first, and what is to be asked back, with the answer to each question."""
    return Talk(
        name="requirements",
        text=lambda p: f"The interviewer: “{said(p)}”\nBefore any number: what do you ask, and why does it matter?",
        points=tuple(question for question, _ in asked),
        model=lambda p: "\n".join(
            ["The interviewer's answers:", *(f"- {question} → {told(p)}" for question, told in asked)]
        ),
        target_s=target_s,
    )


def design(text: Callable[[Draw], str], points: tuple[str, ...], model: Callable[[Draw], str]) -> Talk:
    """The design itself; its model answer has the figures of these numbers."""
    return Talk(
        name="design", text=text, points=points, model=lambda p: f"A model answer: {model(p)}", target_s=DESIGN_S
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A conversation from the first sentence to the last follow-up."""

    key: str
    title: str
    loop: str
    section: str
    draw: Callable[[random.Random], Draw]
    requirements: Talk
    estimates: tuple[Step, ...]
    design: Talk
    trade_off: Best
    price: tuple[str, ...]  # what each change costs: no figure judges it
    follow_ups: tuple[Step, ...]

    def __len__(self) -> int:
        return len(self.stages)

    @property
    def stages(self) -> tuple[tuple[str, Talk | Step | Best], ...]:
        """What is asked, in order, with the name of its stage."""
        return (
            ("requirements", self.requirements),
            *(("estimate", step) for step in self.estimates),
            ("design", self.design),
            ("trade-off", self.trade_off),
            *(("follow-up", step) for step in self.follow_ups),
        )

    @property
    def steps(self) -> tuple[Step, ...]:
        """All that is estimated."""
        return self.estimates + self.follow_ups

    @property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """(idea, kind) of every stage, in order: what is missed in an estimate is its drill's."""
        ideas = [self.key if isinstance(stage, Talk) else stage.drill for _, stage in self.stages]
        return tuple((idea, f"{PREFIX}{self.key}:{number}") for number, idea in enumerate(ideas, 1))

    @property
    def target_s(self) -> float:
        """What a fluent person needs for all of it."""
        talks = self.requirements.target_s + self.design.target_s
        return talks + sum(DRILLS[step.drill].target_s for step in self.steps) + TRADE_OFF_S


@functools.lru_cache(maxsize=64)  # the stages of a sitting share their numbers
def brief(case: Case, seed: str) -> Draw:
    """The case's numbers: the same for all its stages; the mistakes can be told apart, and one change is the best."""
    draw = redrawn(case.draw, lambda p: told_apart(case.steps, p) and case.trade_off.clear(p))
    return unheld(seeded("case", seed, case.key), draw, lambda p: said_in(case.steps, p), of=case.key)


def put(case: Case, number: int, seed: str) -> Question:
    """One stage of a case, counted from 1."""
    p, (name, stage), kind = brief(case, seed), case.stages[number - 1], case.kinds[number - 1][1]
    title = f"{case.title}: {name}, {number} of {len(case)}"
    if isinstance(stage, Talk):
        return _talked(case, stage, p, seed=seed, kind=kind, title=title)
    if isinstance(stage, Step):
        return estimate(stage, p, seed=seed, kind=kind, title=title)
    chosen = choose(stage.decision, p, seed=seed, kind=kind, title=title)
    said = "\n".join(f"- {line}" for line in case.price)
    return replace(chosen, target_s=TRADE_OFF_S, working=f"{chosen.working}\nA good answer also says:\n{said}")


def _talked(case: Case, talk: Talk, p: Draw, *, seed: str, kind: str, title: str) -> Question:
    points = talk.points
    return replace(_subject(case), title=title, target_s=talk.target_s, prerequisites=()).as_question(
        kind=kind,
        seed=seed,
        text=f"{talk.text(p)}\n{HOW}",
        hints=(
            f"A good answer has {len(points)} points. One of them: {points[0]}.",
            "; ".join(points[: len(points) // 2]) + ".",
            "; ".join(points) + ".",
        ),
        judge=lambda written: marked(written, points),
        working=talk.model(p),
        unmarked="\n".join(("A good answer says:", *(f"- {point}" for point in points))),
    )


def marked(written: str, points: tuple[str, ...]) -> Verdict:
    """Which points were said, by the letters of the one who said them; anything else shows the points.

    >>> marked("all", ("the load", "the promise")).message
    'All 2 points said.'
    """
    letters = LETTERS[: len(points)]
    said = _letters(written, letters)
    if said is None:
        rows = "\n".join(f"{letter}. {point}" for letter, point in zip(letters, points, strict=True))
        return Verdict(
            status="unreadable",
            message=f"A good answer says:\n{rows}\nMark what you said: letters like A C or ac, or all, or none.",
        )
    if len(said) == len(points):
        return Verdict(status="right", message=f"All {len(points)} points said.")
    enough = math.ceil(ENOUGH * len(points))
    right = len(said) >= enough
    missed = [letter for letter in letters if letter not in said]
    lines = [f"{letter}. {points[letters.index(letter)]}" for letter in missed]
    counted = f"{len(said)} of {len(points)} points said" + ("" if right else f"; {enough} would do")
    return Verdict(
        status="right" if right else "slip",
        message="\n".join((f"{counted}. Not said:", *lines)) if said else f"{counted}.",  # all of them stand above
        slips=() if right else tuple(f"unsaid:{letter}" for letter in missed),
        share=len(said) / len(points),
    )


def _letters(written: str, letters: str) -> set[str] | None:
    """The points that were marked ("a, b and c", "ABC", "a c", "all", "all but B", "none"); None for anything that
    marks none.
    """
    word = written.strip().upper().rstrip(".")
    if word in ("ALL", "NONE"):
        return set(letters if word == "ALL" else "")
    if not_said := re.fullmatch(r"ALL (?:BUT|EXCEPT)(?: FOR)? (.+)", word):
        missed = _letters(not_said[1], letters)
        return set(letters) - missed if missed else None
    parts = re.findall(r"[A-Z]+", re.sub(r"\bAND\b", " ", word))
    in_order = len(parts) == 1 and list(parts[0]) == sorted(set(parts[0]))  # "ABC" is a list, "BAD" a word
    alone = bool(parts) and all(len(part) == 1 for part in parts)
    if re.search(r"[^A-Z\s,;.:/&+()-]", word) or not (in_order or alone):
        return None
    said = set("".join(parts))
    return said if said <= set(letters) else None


def idea(case: Case) -> Idea:
    """What is said in the case, as something to be asked; its estimates are their drills' ideas."""
    own = [(number, kind) for number, (key, kind) in enumerate(case.kinds, 1) if key == case.key]
    return idea_of(_subject(case), {kind: functools.partial(put, case, number) for number, kind in own})


def _subject(case: Case) -> Subject:
    return Subject(
        key=case.key,
        title=case.title,
        topic=TOPIC,
        loop=case.loop,
        section=case.section,
        target_s=case.target_s,
        prerequisites=tuple(dict.fromkeys(step.drill for step in case.estimates)),
    )

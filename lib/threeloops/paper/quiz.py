"""Versions of a quiz: every version has the same ideas, with numbers and an order of its own.

>>> quiz = Quiz(title="Caches", topics=("kv_cache",), questions=3, versions=2, seed="spring")
>>> first, second = versions(quiz)
>>> {asked.idea for asked in first.questions} == {asked.idea for asked in second.questions}
True

What a question is made from is its idea and its seed, printed below it: `threeloops drill IDEA --seed SEED` asks it
again.
"""

import itertools
import re
from dataclasses import dataclass

from threeloops import checks
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Drill, seeded
from threeloops.paper import bare_numbers
from threeloops.room import plan, question
from threeloops.room.idea import Idea
from threeloops.room.ideas import chosen, pose
from threeloops.room.kinds import choices
from threeloops.room.letters import LETTERS
from threeloops.room.question import Question

KINDS = ("number", "choice", "diagnosis")
MOST_VERSIONS = 200
TRIES = 20  # draws per version wanted, before two versions may share one


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiz:
    """What was ordered."""

    title: str
    topics: tuple[str, ...]  # none: everything
    questions: int
    versions: int
    seed: str
    kind: str = "number"
    bare: bool = False  # answered by bare numbers: only ideas whose answers need no exponent

    def __post_init__(self) -> None:
        checks.count(questions=self.questions, versions=self.versions)
        checks.one_of(KINDS, kind=self.kind)
        if self.versions > MOST_VERSIONS:
            raise ValueError(f"versions={self.versions} is more than the {MOST_VERSIONS} that a quiz can have")
        if not re.fullmatch(r"[\w-]{1,40}", self.seed):
            raise ValueError(
                f"seed={self.seed!r} must be one word of letters, digits and -, because it is printed below every"
                " question"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question of one version."""

    question: Question
    drill: Drill
    seed: str  # as `threeloops drill --seed` takes it

    @property
    def idea(self) -> str:
        return self.drill.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One student's sheet."""

    number: int
    questions: tuple[Asked, ...]


def picked(quiz: Quiz) -> list[Idea]:
    """The ideas of a quiz: one topic after the other in turn, so that no topic fills it.

    Raises:   ValueError if the topics have fewer ideas than questions were asked for
    """
    topics = [
        [idea for idea in chosen(topic) if idea.key in DRILLS and (not quiz.bare or _typable(variants(quiz, idea.key)))]
        for topic in quiz.topics or (None,)
    ]
    found = {idea.key for ideas in topics for idea in ideas}
    if len(found) < quiz.questions:
        raise ValueError(
            f"questions={quiz.questions} is more than the {len(found)} that {', '.join(quiz.topics) or 'the book'} can"
            " ask this way"
        )
    rng = seeded("quiz", quiz.seed)
    rows = [plan.spread(ideas, rng, len(ideas)) for ideas in topics]
    in_turn = {idea.key: idea for row in itertools.zip_longest(*rows) for idea in row if idea}
    return list(in_turn.values())[: quiz.questions]


def variants(quiz: Quiz, idea: str) -> list[Asked]:
    """The idea once per version, with different numbers as long as its draw has any."""
    fresh: dict[str, Asked] = {}
    for number in range(1, quiz.versions * TRIES + 1):
        one = _asked(quiz, idea, number)
        fresh.setdefault(one.drill.prompt(question.draw_of(one.drill, one.question.seed)), one)
        if len(fresh) == quiz.versions:
            break
    return list(itertools.islice(itertools.cycle(fresh.values()), quiz.versions))


def _asked(quiz: Quiz, idea: str, number: int) -> Asked:
    seed = f"{quiz.seed}.{number}"
    return Asked(question=pose(idea, quiz.kind, f"{seed}-0"), drill=DRILLS[idea], seed=seed)


def versions(quiz: Quiz) -> list[Version]:
    """All versions, each in an order of its own."""
    columns = [variants(quiz, idea.key) for idea in picked(quiz)]
    rows = zip(*columns, strict=True)
    return [
        Version(number=number, questions=tuple(seeded("order", quiz.seed, str(number)).sample(row, len(row))))
        for number, row in enumerate((list(row) for row in rows), start=1)
    ]


def _typable(asked: list[Asked]) -> bool:
    drill = asked[0].drill
    return bare_numbers.typable(drill.unit, [value(one) for one in asked], capacity=drill.capacity)


def unit_of(asked: list[Asked]) -> str:
    """The one unit in which all variants of an idea can be answered."""
    drill = asked[0].drill
    return bare_numbers.unit_for(drill.unit, [value(one) for one in asked], capacity=drill.capacity)


def value(asked: Asked) -> float:
    """The answer, in the drill's base unit."""
    return asked.drill.derive(question.draw_of(asked.drill, asked.question.seed)).value


def answer(asked: Asked) -> str:
    """The answer as the key shows it: the number with its unit, or the letters."""
    if asked.question.kind == "number":
        return asked.drill.shown(value(asked))
    places = 2 if asked.question.kind == "choice" else 1
    options = LETTERS[: min(choices.MOST_SLIPS, len(asked.drill.slips)) + places - 1]
    return next(
        " ".join(letters)
        for letters in itertools.permutations(options, places)
        if asked.question.judge(" ".join(letters)).right
    )


def accepted(asked: Asked) -> str:
    """What counts as right, for whoever marks by hand; empty where it is letters."""
    if asked.question.kind != "number" or not value(asked):
        return ""
    unit = unit_of([asked])
    scale = bare_numbers.factor(unit, like=asked.drill.unit)
    low, high = (edge / scale for edge in asked.drill.exactness.span(value(asked)))
    name = "" if unit == "times" else unit
    if low == high:
        return "exactly"
    digits = ",.0f" if asked.drill.whole else ",.4g"
    return f"from {low:{digits}} to {high:{digits}} {name}".strip() + " counts"


def slips(asked: Asked) -> list[tuple[str, str]]:
    """What each usual mistake would have written, and what to tell whoever wrote it."""
    if asked.question.kind != "number":
        return []
    p = question.draw_of(asked.drill, asked.question.seed)
    return [(asked.drill.shown(slip.wrong(p)), slip.story) for slip in asked.drill.slips]

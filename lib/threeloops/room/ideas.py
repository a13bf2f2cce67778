"""Everything that the room can ask, by key: the drills, and what is not a drill but can be asked like one.

An idea is what is counted, scheduled and got wrong. The kinds are its presentations: the same idea as a number, as a
choice, as an error to spot.
"""

import functools
from collections import defaultdict
from collections.abc import Callable

from threeloops import checks
from threeloops.contents import STARTER
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Drill
from threeloops.room import question
from threeloops.room.attempts import Ask
from threeloops.room.idea import Idea as Idea  # for everybody who asks here what an idea is
from threeloops.room.idea import idea_of
from threeloops.room.kinds import bands, cases, choices, code, flash_numbers, scenarios, spots, tables, traces
from threeloops.room.kinds.band_draws import INTERVIEW
from threeloops.room.kinds.cases import case
from threeloops.room.kinds.chains import CHAINS, chain
from threeloops.room.question import Question


def _follow_ups() -> dict[str, dict[str, Callable[[str], Question]]]:
    """Idea -> the places in chains and cases where it is asked for; they come in their order or not at all."""
    found: defaultdict[str, dict[str, Callable[[str], Question]]] = defaultdict(dict)
    for follows in CHAINS.values():
        for number, (idea, kind) in enumerate(follows.kinds, 1):
            found[idea][kind] = functools.partial(chain.asked, follows, number)
    for opened in cases.CASES.values():
        for number, (idea, kind) in enumerate(opened.kinds, 1):
            found[idea][kind] = functools.partial(case.put, opened, number)
    return dict(found)


FOLLOW_UPS = _follow_ups()


def _of_drill(drill: Drill) -> Idea:
    interview = {"band": lambda seed: bands.band(drill, seed)} if drill.key in INTERVIEW else {}
    ask = {
        "number": lambda seed: question.number(drill, seed),
        "choice": lambda seed: choices.choice(drill, seed),
        "diagnosis": lambda seed: choices.diagnosis(drill, seed),
    }
    return idea_of(question.subject_of(drill), ask | interview | FOLLOW_UPS.get(drill.key, {}))


IDEAS: dict[str, Idea] = {
    idea.key: idea
    for idea in (
        *map(_of_drill, DRILLS.values()),
        *spots.IDEAS,
        *traces.IDEAS,
        *scenarios.IDEAS,
        *flash_numbers.IDEAS,
        *tables.IDEAS,
        *cases.IDEAS,
        *code.IDEAS,
    )
}
TOPICS = sorted({idea.topic for idea in IDEAS.values()})
LOOPS = ("inner", "training", "product", "driving")
FIRST = (  # what the graded set STARTER asks, in its order: the one set whose ideas are of several topics
    "roofline-ridge-point",
    "memory-model-states",
    "ring-bytes-per-rank",
    "kv-bytes-per-token",
    "latency-metres-saved",
)


def known(ask: Ask) -> bool:
    """Whether this edition has that question: an older sitting may hold one that has gone."""
    return ask.idea in IDEAS and ask.kind in IDEAS[ask.idea].ask


def pose(key: str, kind: str, seed: str) -> Question:
    """The question of that idea, kind and seed: always the same one."""
    checks.one_of(IDEAS, idea=key)
    checks.one_of(IDEAS[key].ask, kind=kind)
    return IDEAS[key].ask[kind](seed)


def chosen(topic: str | None, *, difficulty: int | None = None) -> list[Idea]:
    """The ideas of a topic, of a loop ("inner"), of the set to begin with, a single one by key, or all of them; of one
    difficulty where it is given.

    >>> [idea.topic for idea in chosen("kv-bytes-per-token")], len(chosen(None)) == len(IDEAS)
    (['kv_cache'], True)
    """
    if topic is not None:
        checks.one_of(
            [STARTER, *TOPICS, *LOOPS, *IDEAS],
            see=f"To begin with: {STARTER}; topics: {', '.join(TOPICS)}; loops: {', '.join(LOOPS)}",
            topic=topic,
        )
    if difficulty is not None and difficulty not in (1, 2, 3):
        raise ValueError(f"difficulty={difficulty!r} is not offered; choose 1, 2 or 3")
    ideas = [
        idea
        for idea in IDEAS.values()
        if (topic in (None, idea.topic, idea.loop, idea.key) or (topic == STARTER and idea.key in FIRST))
        and difficulty in (None, idea.difficulty)
    ]
    if not ideas:
        raise ValueError(f"no question on {topic or 'any topic'} has difficulty {difficulty}; leave the difficulty out")
    return ideas

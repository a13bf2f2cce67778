"""An exam on paper: `threeloops quiz` in a few versions, kept with the term, and a list of who gets which version and
how many minutes.
"""

import json
import math
import re
import secrets
from pathlib import Path

from threeloops import checks
from threeloops.classroom.term import lists, people, settings
from threeloops.classroom.term.settings import Term
from threeloops.drills.engine.drill import seeded
from threeloops.paper import delivery
from threeloops.paper.quiz import Quiz


def write(term: Term, name: str, quiz: Quiz, *, minutes: int, form: str, space: str | None = None) -> list[Path]:
    """Write the versions, the key and the list of seats into exams/NAME, and what made them into the term's file.

    Raises:   ValueError for a name that is there already
    """
    checks.count(minutes=minutes)
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,39}", name):
        raise ValueError(f"name={name!r} must be one short word of lower-case letters, digits, - and _")
    if name in term.exams:
        raise ValueError(f"the term has an exam {name} already; another needs another --name, so that no key is lost")
    roster = people.kept(term.roster)
    folder = term.folder / "exams" / name
    written = delivery.deliver(quiz, form, folder, space=space)
    dealt = seeded("seats", quiz.seed).sample(range(len(roster)), len(roster))
    version = {student: turn % quiz.versions + 1 for turn, student in enumerate(dealt)}
    seats = lists.write(
        folder / "seats.csv",
        ("student", "name", "version", "minutes"),
        [
            (one.student, one.name, version[number], math.ceil(minutes * one.extra_time))
            for number, one in enumerate(roster)
        ],
    )
    settings.record(
        term,
        f"exams.{name}",
        {
            "topics": json.dumps(list(quiz.topics)),
            "questions": str(quiz.questions),
            "versions": str(quiz.versions),
            "kind": json.dumps(quiz.kind),
            "seed": json.dumps(quiz.seed) + "  # with the rest it makes the same exam and key again",
            "minutes": str(minutes),
        },
    )
    return [*written, seats]


def new_seed() -> str:
    """A seed that cannot be guessed: with it and this book a reader has the key."""
    return secrets.token_hex(8)

"""What a teacher decides about one student's set, against or beside what the grader found: excused from it, other
points, for the set or for one question of it, points for an explanation, or words on the page that goes back. Each
with its reason, in decisions.csv of the term's folder.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from threeloops import checks, contents
from threeloops.classroom.questions import questions
from threeloops.classroom.term import lists, people
from threeloops.classroom.term.settings import Term
from threeloops.drills.engine.student_draws import plain_id

WHAT = ("excused", "points", "comment", "explanation")
WITH_POINTS = ("points", "explanation")
LONGEST = 5_000  # characters of a reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One line of decisions.csv."""

    set: str
    student: str  # a plain id
    what: str
    points: str = ""  # of `points` and `explanation`: a number
    reason: str = ""  # of a comment the comment itself, of an explanation the words that go back with its points
    question: str = ""  # of points: the one question that they are of; empty for the whole set
    version: str = ""  # of an explanation: which text the points are for


HEADINGS = tuple(field.name for field in fields(Decision))


def _path(term: Term) -> Path:
    return term.folder / "decisions.csv"


def kept(term: Term) -> list[Decision]:
    """Every decision of a term.

    Raises:   ValueError when a teacher has written into the file what cannot be read
    """
    path = _path(term)
    if not path.exists():
        return []
    _, numbered = lists.rows(path)
    found = []
    for line, row in numbered:
        one = Decision(**{name: row.get(lists.heading(name), "") for name in HEADINGS})
        try:
            checks.one_of(WHAT, what=one.what)
            _points(one.points) if one.what in WITH_POINTS else None
        except ValueError as error:
            raise ValueError(f"{path}, line {line}: {error}") from None
        found.append(one)
    return found


def _points(written: str) -> float:
    """
    >>> _points("9.5"), _points("9,5")
    (9.5, 9.5)
    """
    try:
        value = float(written.replace(",", "."))
    except ValueError:
        raise ValueError(f"points={written!r} must be a number of points, like 9.5") from None
    checks.non_negative(points=value)
    return value


def of(term: Term, name: str, what: str) -> dict[str, Decision]:
    """The decisions of one kind on a whole set, by student."""
    return {one.student: one for one in kept(term) if (one.set, one.what, one.question) == (name, what, "")}


def of_questions(term: Term, name: str) -> dict[str, dict[str, Decision]]:
    """Points that were decided for single questions: by student, then by question."""
    found: dict[str, dict[str, Decision]] = {}
    for one in kept(term):
        if (one.set, one.what) == (name, "points") and one.question:
            found.setdefault(one.student, {})[one.question] = one
    return found


def of_explanations(term: Term, name: str) -> dict[str, dict[str, Decision]]:
    """Points that were given for explanations: by student, then by explanation."""
    found: dict[str, dict[str, Decision]] = {}
    for one in kept(term):
        if (one.set, one.what) == (name, "explanation"):
            found.setdefault(one.student, {})[one.question] = one
    return found


def keep_explanations(term: Term, name: str, decided: Sequence[Decision]) -> None:
    """Keep the points of all explanations of a set, in place of those that were kept."""
    others = [one for one in kept(term) if (one.set, one.what) != (name, "explanation")]
    lists.write(_path(term), HEADINGS, [asdict(one) for one in (*others, *decided)])


def maxima(name: str) -> dict[str, float]:
    """What each question of a set is worth, by its grade id."""
    return {one.grade_id: one.points for one in questions(released(name))}


def released(name: str) -> dict[str, Any]:
    """The notebook of a set as students get it."""
    path = contents.book_root() / "drills" / name / f"{name}.ipynb"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def in_words(name: str, question: str, written: str) -> str:
    """Points as they are told, and of a whole set that they are more than its questions are worth: that is allowed.

    >>> in_words("kv_cache", "one-token", "1"), in_words("kv_cache", "", "15")
    ('1 point', '15 points (the questions of kv_cache are worth 14)')
    """
    most = sum(maxima(name).values())
    more = f" (the questions of {name} are worth {most:g})" if not question and _points(written) > most else ""
    return f"{written} point{'' if _points(written) == 1 else 's'}{more}"


def points(one: Decision) -> float:
    """What a student gets instead of what was graded."""
    return _points(one.points)


def decide(term: Term, one: Decision) -> Decision | None:
    """Keep a decision, in place of an earlier one of the same kind; that is returned.

    Raises:   ValueError when nobody on the roster has that id, the set was not released or has no such question, or
              there is no reason
    """
    term.handed_out(one.set)
    if one.student not in {plain_id(listed.student) for listed in people.kept(term.roster)}:
        raise ValueError(f"nobody on the roster has the id {one.student!r}")
    if not one.reason.strip() or len(one.reason) > LONGEST:
        raise ValueError(f"--reason must say why, in at most {LONGEST:,} characters: it is kept with the decision")
    if one.what == "points":
        _points(one.points)
    if one.question:
        most = maxima(one.set)
        checks.one_of(sorted(most), question=one.question)
        if points(one) > most[one.question]:
            raise ValueError(f"points={one.points} is more than {one.question} is worth, {most[one.question]:g}")
    return _replaced(term, one, [one])


def undo(term: Term, name: str, student: str, what: str, question: str = "") -> Decision:
    """Take a decision back; it is returned.

    Raises:   ValueError when there is none
    """
    before = _replaced(term, Decision(set=name, student=student, what=what, question=question), [])
    if before is None:
        raise ValueError(f"nothing of that kind was decided for {student!r} and {name}")
    return before


def _replaced(term: Term, like: Decision, by: Sequence[Decision]) -> Decision | None:
    def same(one: Decision) -> bool:
        return (one.set, one.student, one.what, one.question) == (like.set, like.student, like.what, like.question)

    before = kept(term)
    lists.write(_path(term), HEADINGS, [asdict(one) for one in (*(one for one in before if not same(one)), *by)])
    return next((one for one in before if same(one)), None)

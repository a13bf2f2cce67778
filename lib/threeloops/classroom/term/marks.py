"""Points before and after the late policy, for every student on the roster."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from threeloops.classroom import work_folder
from threeloops.classroom.one_submission import NO_NOTEBOOK
from threeloops.classroom.questions import mark
from threeloops.classroom.report import Result
from threeloops.classroom.term import decisions, explanations, people
from threeloops.classroom.term.collecting import LATE, graded_as, received
from threeloops.classroom.term.decisions import Decision
from threeloops.classroom.term.people import Person
from threeloops.classroom.term.settings import LatePolicy, Term
from threeloops.drills.engine.student_draws import plain_id

FAULT = "not graded"  # the grader's own: it costs the student nothing, so there is no mark yet
MISSING = "missing"
EXCUSED = "excused"
MOST_NAMED = 20
# By status: what a blank means, for whoever reads what was exported.
NO_POINTS = {
    FAULT: "No mark yet, because of a fault of the grader; grade again",
    MISSING: "Left blank, for nothing was handed in (--missing zero writes 0)",
    NO_NOTEBOOK: "Left blank, for what was handed in is no notebook of the set (--missing zero writes 0)",
    "unparsable": "Left blank, for the notebook cannot be read (--missing zero writes 0)",
    EXCUSED: "Excused, with the reason in decisions.csv",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One student's set."""

    status: str
    raw: float | None  # with what a teacher gave by hand; None: nothing was graded
    maximum: float
    days_late: str  # a number, `late` where nobody knows by how much, or nothing where nobody knows or it is missing
    points: float | None  # after the late policy, or what a teacher has decided; None: no mark
    waiting: int = 0  # answers that wait for a person
    reason: str = ""  # of what a teacher has decided


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One student with the marks of all sets asked for."""

    person: Person
    marks: dict[str, Mark]


def marks(term: Term, names: Sequence[str], *, root: Path, missing_zero: bool = False) -> list[Line]:
    """All students' marks. A student with nothing graded has none, or 0 where that is asked for.

    Raises:   ValueError when a set is not graded, when somebody who is on the roster now was not there when it was, or
              when the late policy needs to know what nobody has said
    """
    roster = people.kept(term.roster)
    by_set = {name: _of_set(term, name, roster, root=root, missing_zero=missing_zero) for name in names}
    return [
        Line(person=one, marks={name: found[plain_id(one.student)] for name, found in by_set.items()}) for one in roster
    ]


def _of_set(term: Term, name: str, roster: Sequence[Person], *, root: Path, missing_zero: bool) -> dict[str, Mark]:
    with term.grades(name).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    status = {row["student"]: row["status"] for row in rows}
    answered = {row["student"] for row in rows if row["question"]}
    absent = [one.student for one in roster if plain_id(one.student) not in status]
    if absent:
        raise ValueError(
            f"{len(absent)} of the roster are not in the grades of {name}, {absent[0]} among them; `threeloops"
            f" classroom grade {name}` looks at everybody again, and grades only what is new"
        )
    came, maximum = received(term, name), _maximum(term, name, root=root)
    course, found, unknown = term.grading(root), {}, list[str]()
    decided = decisions.of(term, name, "points") | decisions.of(term, name, EXCUSED)
    counts_as = graded_as(term, name)
    of_questions: dict[str, dict[str, Decision]] = {}  # of a group, whichever member it was decided for
    for student, single in decisions.of_questions(term, name).items():
        of_questions.setdefault(counts_as.get(student, student), {}).update(single)
    explained = explanations.marked(term, name, root=root)
    for one in roster:
        student = plain_id(one.student)
        judged = counts_as.get(student, student)
        now = work_folder.earlier(course, name, judged) if judged in answered else None
        if judged in answered and now is None:
            raise ValueError(
                f"the gradebook has lost what {one.student} earned with {name}; `threeloops classroom grade {name}"
                " --again` grades everybody anew"
            )
        blank = None if status.get(judged) == FAULT or not missing_zero else 0.0
        single, own = of_questions.get(judged, {}), explained.get(judged)
        raw = _with_single(now, single) if now or single else blank
        if raw is not None and own:
            raw += own.points
        known = came[student].days_late if student in came and status.get(judged) != MISSING else ""
        days = _days(one, known, term.late) if raw else 0
        unknown += [one.student] * (days is None and student not in decided)
        graded = Mark(
            status=status.get(judged, MISSING),
            raw=raw,
            maximum=maximum,
            days_late=known,
            points=None if raw is None else term.late.points(raw, maximum=maximum, days_late=days or 0),
            waiting=(now.waiting if now else 0) + (own.waiting if own else 0),
            reason="; ".join(f"{question}: {one.reason}" for question, one in single.items()),
        )
        found[student] = _as_decided(graded, decided.get(student))
    if unknown:
        raise ValueError(
            f"nobody knows whether, or by how many days, {len(unknown)} of the hand-ins of {name} came late, and"
            f" {term.late.in_words}: collect again with --worksheet or --on-time, or write days_late, extra days taken"
            f" off, into received/{name}.csv for {', '.join(unknown[:MOST_NAMED])}{' …' * (len(unknown) > MOST_NAMED)}"
        )
    return found


def _with_single(now: Result | None, single: Mapping[str, Decision]) -> float:
    """Points of a set, those of single questions as they were decided."""
    graded = {answer.grade_id: answer.points for answer in now.answers} if now else {}
    decided = {question: decisions.points(one) for question, one in single.items()}
    return sum((graded | decided).values()) + (now.by_hand if now else 0.0)


def _as_decided(graded: Mark, decided: Decision | None) -> Mark:
    """A mark after what a teacher has decided."""
    if decided is None:
        return graded
    if decided.what == EXCUSED:
        return replace(graded, status=EXCUSED, points=None, reason=decided.reason)
    return replace(graded, points=decisions.points(decided), reason=decided.reason)


def _days(one: Person, known: str, policy: LatePolicy) -> int | None:
    """Days late, as far as the policy has to know; None where it has to and nobody knows. Whom the platform calls late
    may have extra days that it does not know of.
    """
    if known.isdecimal():
        return int(known)
    if policy.policy == "none":
        return 0
    return 1 if known == LATE and policy.policy == "zero" and not one.extra_days else None


def _maximum(term: Term, name: str, *, root: Path) -> float:
    """Points of a whole set, those that are given by hand included."""
    notebook = json.loads(term.grading(root).release(name).read_text(encoding="utf-8"))
    graded = float(sum(mark(cell, "points") or 0 for cell in notebook["cells"] if mark(cell, "grade")))
    return graded + explanations.maximum(term, name)


def without_points(lines: Sequence[Line]) -> list[str]:
    """Who has no points, a sentence for each reason."""
    who: dict[str, set[str]] = {}
    for line in lines:
        for mark_of_set in line.marks.values():
            if mark_of_set.points is None:
                who.setdefault(mark_of_set.status, set()).add(line.person.student)
    return [f"{NO_POINTS.get(status, status)}: {', '.join(sorted(names))}." for status, names in sorted(who.items())]

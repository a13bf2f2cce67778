"""Marks into Canvas's gradebook by its API, with a token from the environment: first what would change, then, when that
is asked for, the change, and a look at what Canvas has made of it.

The assignment and what is in it now are read (GET …/assignments/:id and …/submissions, page after page by the header
Link), marks go in bulk (POST …/submissions/update_grades, grade_data[USER][posted_grade] and [excuse]), and the job
that Canvas makes of them is asked after until it ends (GET /progress/:id: queued, running, completed, failed). "Canvas
LMS REST API Documentation", Instructure, https://canvas.instructure.com/doc/api/all_resources.html, and its page on
progress, https://developerdocs.instructure.com/services/canvas/file.all_resources/progress.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import units, wall_clock
from threeloops.classroom.term.canvas_api import Canvas
from threeloops.classroom.term.marks import EXCUSED, Line
from threeloops.classroom.term.settings import Term

AT_ONCE = 100  # marks of one request
JOB_S, ASK_AGAIN_S = 600.0, 1.0
LATE_POLICY = "its own late policy takes the rest; switch that policy off there"
NO_NUMBER = ("pass_fail", "not_graded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One mark that Canvas does not have yet."""

    student: str
    user: str  # Canvas's number of the student
    before: str  # as a person reads it: points, `excused`, `blank`
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Has:
    """What Canvas has of a student, as a person reads it."""

    shown: str
    entered: str  # before its own late policy took points off


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What there is to send, and what is not sent."""

    title: str  # of the assignment
    changes: tuple[Change, ...]
    same: int  # marks that Canvas has already
    not_sent: tuple[str, ...]  # a sentence each
    together: bool  # Canvas gives a group's members one mark


def assignment_of(term: Term, name: str, given: str | None) -> str:
    """The number of an assignment: the one that is given, or the one in its title, as Canvas's gradebook has it.

    Raises:   ValueError when neither says
    """
    title = term.handed_out(name).title
    named = re.search(r"\((\d+)\)\s*$", title)
    found = given or (named[1] if named else "")
    if not found.isdecimal():
        raise ValueError(
            f"assignment={given!r} must be a whole number, as in the address of the assignment's page; or give the set"
            f' its title with the number in it: `threeloops classroom release {name} --title "KV cache (4711)" …`'
        )
    return found


def _path(course: str, assignment: str) -> str:
    return f"courses/{course}/assignments/{assignment}"


def plan(canvas: Canvas, course: str, assignment: str, name: str, lines: Sequence[Line]) -> Plan:
    """What Canvas has, beside what the term has.

    Raises:   ValueError when Canvas does not answer, or the assignment has other points than the set
    """
    if not course.isdecimal():
        raise ValueError(f"course={course!r} must be a whole number, as in the address of the course's page")
    about = canvas.get(_path(course, assignment))
    title, possible = str(about.get("name", assignment)), about.get("points_possible")
    maximum = lines[0].marks[name].maximum if lines else possible
    if about.get("grading_type") in NO_NUMBER:
        raise ValueError(f"the assignment {title!r} is not graded by points in Canvas, but as {about['grading_type']}")
    if possible != maximum:
        raise ValueError(
            f"the assignment {title!r} has {possible or 0:g} points in Canvas, and {name} has {maximum:g}; set it to"
            f" {maximum:g} there, so that a mark means the same"
        )
    there = _there(canvas, course, assignment)
    changes, not_sent, same = list[Change](), list[str](), 0
    for line in lines:
        student, user, mark = line.person.student, line.person.canvas_id, line.marks[name]
        after = EXCUSED if mark.status == EXCUSED else "blank" if mark.points is None else f"{mark.points:.10g}"
        has = there[user].shown if user in there else "blank"
        if after == "blank":
            stays = "" if has == "blank" else f"; Canvas has {has}, which stays"
            not_sent.append(f"{student}: no mark ({mark.status}){stays}")
        elif not user:
            not_sent.append(
                f"{student}: {after}, but the roster has no Canvas ID; make it from Canvas's gradebook export"
            )
        elif user not in there:
            not_sent.append(f"{student}: {after}, but Canvas has nobody with the ID {user} in this assignment")
        elif has == after:
            same += 1
        elif there[user].entered == after:
            not_sent.append(f"{student}: Canvas has {has} of the {after} that it was given ({LATE_POLICY})")
        else:
            changes.append(Change(student=student, user=user, before=has, after=after))
    together = bool(about.get("group_category_id")) and not about.get("grade_group_students_individually")
    return Plan(title=title, changes=tuple(changes), same=same, not_sent=tuple(not_sent), together=together)


def _there(canvas: Canvas, course: str, assignment: str) -> dict[str, _Has]:
    """What Canvas has, by the number of the student."""
    found = {}
    for one in canvas.pages(f"{_path(course, assignment)}/submissions"):
        score, off = one.get("score"), one.get("points_deducted") or 0
        has = EXCUSED if one.get("excused") else "blank" if score is None else f"{score:.10g}"
        entered = f"{score + off:.10g}" if off and score is not None else has
        found[str(one.get("user_id"))] = _Has(shown=has, entered=entered)
    return found


def send(canvas: Canvas, course: str, assignment: str, changes: Sequence[Change]) -> list[str]:
    """Send marks, wait until Canvas has dealt with them, and look: a sentence for each that it has not taken.

    Raises:   ValueError when Canvas does not answer; what was sent before stays sent, and is the same the next time
    """
    fate = list[str]()
    for start in range(0, len(changes), AT_ONCE):
        try:
            job = canvas.post(
                f"{_path(course, assignment)}/submissions/update_grades", _form(changes[start:][:AT_ONCE])
            )
            fate.append(_ended(canvas, job))
        except ValueError as error:
            left = [one.student for one in changes[start:]]
            raise ValueError(
                f"{error}; not known to have arrived are the marks of {len(left)}, {', '.join(left)}; give the same"
                " command again, which sends what Canvas does not have"
            ) from None
    now = _there(canvas, course, assignment)
    told = sorted({*filter(None, fate)})
    differ = []
    for one in changes:
        has = now.get(one.user, _Has(shown="nobody of that ID", entered=""))
        if has.shown != one.after:
            why = [*told, *[LATE_POLICY] * (has.entered == one.after)]
            said = f" ({'; '.join(why)})" if why else ""
            differ.append(f"{one.student}: Canvas has {has.shown}, and {one.after} was sent{said}")
    return differ


def _form(changes: Sequence[Change]) -> dict[str, str]:
    """
    >>> _form([Change(student="ada", user="7", before="blank", after="12.5")])
    {'grade_data[7][posted_grade]': '12.5'}
    >>> _form([Change(student="ada", user="7", before="3", after="excused")])
    {'grade_data[7][excuse]': 'true'}
    """
    return dict(_fields(changes))


def _fields(changes: Sequence[Change]) -> Iterator[tuple[str, str]]:
    for one in changes:
        if one.after == EXCUSED:
            yield f"grade_data[{one.user}][excuse]", "true"
            continue
        if one.before == EXCUSED:
            yield f"grade_data[{one.user}][excuse]", "false"
        yield f"grade_data[{one.user}][posted_grade]", one.after


def _ended(canvas: Canvas, job: Mapping[str, Any]) -> str:
    """Wait for a job; nothing when it is completed, otherwise what became of it."""
    ends = time.monotonic() + JOB_S
    while job.get("workflow_state") in ("queued", "running"):
        if time.monotonic() > ends:
            minutes = units.counted(round(JOB_S / units.minute), "minute")
            return f"its job was still {job['workflow_state']} after {minutes}"
        wall_clock.pause(ASK_AGAIN_S)
        number = str(job.get("id"))
        if not number.isdecimal():
            return "its job has no number to ask after"
        job = canvas.get(f"progress/{number}")
    if job.get("workflow_state") == "completed":
        return ""
    return " ".join(f"its job {job.get('workflow_state', 'has no state')} {job.get('message') or ''}".split())

"""Submissions graded on other machines. A hand-in's bytes travel there, what came of them travels back, and goes into
the gradebook and the work folder here: no disk and no database is shared.
"""

import functools
import gc
import hashlib
import os
import shutil
import socket
import stat
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from threeloops import contents
from threeloops.classroom import gradebook, one_submission, work_folder
from threeloops.classroom.course import Course, grading_key, write_whole
from threeloops.classroom.intake import Submission
from threeloops.classroom.machines.cluster import Cluster
from threeloops.classroom.machines.fitness import Order, UnfitError, fitness, identity, unfit
from threeloops.classroom.report import Result, result
from threeloops.sandbox import walls

STAGES = ("submitted", "autograded", "feedback", "logs")  # where grading leaves something of one student


@dataclass(frozen=True, kw_only=True)
class Returned:
    """What came of one submission."""

    result: Result
    files: dict[str, tuple[int, bytes]]  # mode and content, by path in a work folder
    grades: dict[str, float | None]  # automatic points by grade_id; None waits for a person
    comments: dict[str, str | None]
    place: str  # the work folder there, as notes name it


def each(
    course: Course, name: str, submissions: list[Submission], address: str, *, again: bool, trusting: bool
) -> Iterator[tuple[Submission, Result | None]]:
    """Every submission with its result, as they come: first those that need no grading.

    Raises:   ValueError when a worker is unfit, or no worker is there to grade
    """
    ahead = []
    for submission in submissions:
        before, _ = one_submission.settled(course, name, submission, again=again)
        if before:
            yield submission, before
        else:
            ahead.append(submission)
    if not ahead:
        return
    same = tuple(identity(name).items())
    order = Order(
        name=name,
        code=course.code,
        key=grading_key(course.work),
        same=same,
        trusting=trusting,
        functions=str(course.judge.get("functions", "all")),
    )
    sent: dict[str, bytes] = {}  # the mark is of what was sent, whatever lies there by then

    def words(submission: Submission) -> tuple[Any, ...]:
        sent[submission.student] = content = submission.content or b""
        return order, submission.student, submission.problem, content

    with Cluster(address) as cluster:
        answers = cluster.asked(functools.partial(fitness, name))
        problems = [told for who, fit in sorted(answers.items()) if (told := unfit(who, fit, order))]
        if problems:
            raise UnfitError("; ".join(problems))
        for submission, returned in cluster.each(ahead, graded, words):
            content = sent.pop(submission.student)
            yield submission, returned and taken_in(course, name, content, returned)


def taken_in(course: Course, name: str, content: bytes, returned: Returned) -> Result:
    """Write what came back: scores, notebooks, page, and the mark of it last."""
    student = returned.result.student
    notes = tuple(note.replace(returned.place, str(course.work)) for note in returned.result.notes)
    done = replace(returned.result, notes=notes)
    work_folder.forget(course, name, student)
    if done.answers:
        for stage in STAGES:
            shutil.rmtree(course.folder(stage, student, name), ignore_errors=True)
    for place, (mode, text) in returned.files.items():
        path = course.work / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # nbgrader's may be read-only
        path.write_bytes(text)
        path.chmod(mode)
    if done.answers and _entered(course, name, student, returned):
        fresh = result(course, name, student)
        done = one_submission.with_feedback(course, name, replace(fresh, status=done.status, notes=done.notes))
    return one_submission.finished(course, name, content, done)


def _entered(course: Course, name: str, student: str, returned: Returned) -> bool:
    """Put scores and comments into the gradebook as nbgrader's SaveAutoGrades does, all or none. Does it hold something
    by a person's hand too, which the page from there cannot show?
    """
    try:
        with warnings.catch_warnings(), course.gradebook as book:
            warnings.simplefilter("ignore")
            book.update_or_create_student(student)
            book.update_or_create_submission(name, student)
            notebook = book.find_submission_notebook(name, name, student)
            by_hand = bool(notebook.late_submission_penalty)
            for grade in notebook.grades:
                grade.auto_score = returned.grades[grade.name]
                grade.needs_manual_grade = grade.manual_score is not None or grade.auto_score is None
                by_hand |= grade.manual_score is not None or bool(grade.extra_credit)
            for comment in notebook.comments:
                comment.auto_comment = returned.comments[comment.name]
                by_hand |= comment.manual_comment is not None
            return by_hand
    except Exception:
        gradebook.needs_answer(course.database)
        raise


# From here on, what runs on a worker.


def graded(order: Order, student: str, problem: str, content: bytes) -> Returned:
    """One submission, with everything that it leaves.

    Raises:   UnfitError when this worker must not grade, or has no room
    """
    from distributed import get_worker

    worker = get_worker()
    told = unfit(worker.address, fitness(order.name, worker), order)  # it may have come when others were at work
    if told:
        raise UnfitError(told)
    submission = Submission(student=student, folder=student, read=lambda: content, problem=problem)
    try:
        course = _course(order, worker.local_directory)
        done = one_submission.with_feedback(course, order.name, one_submission.one(course, order.name, submission))
        return _returned(course, order.name, done)
    except OSError as error:
        raise UnfitError(f"{worker.address} cannot grade ({error}); what is graded is kept") from None


@functools.cache
def _course(order: Order, place: str) -> Course:
    """A course of this worker's own, in the folder that Dask clears after it."""
    _take_place()
    work = Path(place) / f"three-loops-{hashlib.sha256(repr(order).encode()).hexdigest()[:12]}"
    work.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(work / "grading.key", order.key.hex() + "\n")
    judge: dict[str, Any] = {"functions": order.functions} if order.functions != "all" else {}
    course = Course(root=contents.book_root(), work=work, code=order.code, judge=judge)
    course.prepare(order.name)
    course.make_ready()
    gc.freeze()  # as in workers.py: what is loaded stays
    return course


def _take_place() -> None:
    """Have this worker's students be another nobody than those of the other workers on this machine; the name is
    free again when this process ends.
    """
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return
    for place in range(walls.PLACES):
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0three-loops-{place}")
        except OSError:
            name.close()
            continue
        _names.append(name)
        walls.take_place(place)
        return


_names: list[socket.socket] = []


def _returned(course: Course, name: str, done: Result) -> Returned:
    """What the work folder holds of a student now, and no longer after that."""
    student, files = done.student, dict[str, tuple[int, bytes]]()
    for stage in STAGES:
        folder = course.folder(stage, student, name)
        for path in [folder.with_suffix(".txt"), *folder.rglob("*")]:
            if path.is_file():
                mode = stat.S_IMODE(path.stat().st_mode)
                files[path.relative_to(course.work).as_posix()] = mode, path.read_bytes()
        shutil.rmtree(course.work / stage / student, ignore_errors=True)
    grades: dict[str, float | None] = {}
    comments: dict[str, str | None] = {}
    if done.answers:
        with course.gradebook as book:
            notebook = book.find_submission_notebook(name, name, student)
            grades = {grade.name: grade.auto_score for grade in notebook.grades}
            comments = {comment.name: comment.auto_comment for comment in notebook.comments}
    return Returned(result=done, files=files, grades=grades, comments=comments, place=str(course.work))

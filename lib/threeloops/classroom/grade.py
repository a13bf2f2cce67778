"""The command `threeloops grade`: from what was handed in to a table, feedback pages and, for a class, two CSV
files.
"""

import csv
import importlib.util
import re
import sys
import webbrowser
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from threeloops import checks
from threeloops.classroom import kept, sandbox
from threeloops.classroom.course import Course
from threeloops.classroom.intake import HandedIn, Submission, handed_in, lone_notebook
from threeloops.classroom.questions import source
from threeloops.classroom.report import (
    Bar,
    Result,
    keep_mark,
    lines,
    result,
    slip_counts,
    table,
    write_grades,
    write_slips,
)
from threeloops.classroom.transplant import UnparsableError, parsed, transplanted
from threeloops.classroom.workers import Crew, usual
from threeloops.drills.engine.posed import HOME_COURSE, HOME_STUDENT, plain_id

MOST_TRIES = 2
NO_PAGE = "no feedback page"
WRITTEN_MAXIMUM = 3  # points of the rubric of a written explanation


def grade(
    path: Path,
    *,
    root: Path,
    code: str | None,
    roster: Path | None,
    work: Path | None,
    browser: bool,
    trust_students: bool,
    drill_set: str | None = None,
    again: bool = False,
    workers: int | None = None,
) -> int:
    """Grade what is at the path; 0 when everything there could be looked at. Of a class, what was graded before and
    has not changed is graded again only when that is asked for.
    """
    if importlib.util.find_spec("nbgrader") is None:
        raise ValueError("nbgrader is not installed here; `python3 book.py setup` installs it")
    if workers is not None:
        checks.count(workers=workers)
    lone = None if roster else lone_notebook(path, Course(root=root, work=root).sets())
    if lone:  # without a class list, one notebook is its reader's own
        name, notebook = lone
        work = work or root / "my" / "graded"
        with kept.alone_in(work):
            return _grade_reader(name, notebook, root=root, work=work, code=code, browser=browser)
    course = Course(root=root, work=work or root / "build", code=plain_id(code) or HOME_COURSE)
    handed = handed_in(path, course.sets(), _listed(roster), drill_set=drill_set)
    with kept.alone_in(course.work):
        return _grade_class(handed, course, trust_students=trust_students, again=again, workers=workers)


def _listed(roster: Path | None) -> list[str]:
    """The first column of a class list, with or without a heading."""
    if roster is None:
        return []
    with roster.open(newline="", encoding="utf-8-sig") as file:
        names = [row[0] for row in csv.reader(file) if row]
    return names[1:] if names and plain_id(names[0]) in ("student", "students", "name", "id") else names


def one(course: Course, name: str, submission: Submission) -> Result:
    """Grade one submission; whatever it is, this ends in a status. A fault of the grader is tried a second time.

    Raises:   OSError when the disk is full
    """
    notes = (submission.problem,) if submission.problem else ()
    if submission.read is None:
        return Result(student=submission.student, status="missing", notes=(*notes, "no notebook was handed in"))
    faults: list[Exception] = []
    while len(faults) < MOST_TRIES:
        try:
            notebook = transplanted(parsed(course.release(name).read_bytes()), parsed(submission.read()))
            course.autograde(name, submission.student, notebook)
            return result(course, name, submission.student, notes)
        except UnparsableError as refusal:
            return Result(student=submission.student, status="unparsable", notes=(*notes, str(refusal)))
        except Exception as error:  # one submission never stops the others
            kept.needs_room(error, course.work)
            faults.append(error)
    told = _logged(course, name, submission.student, faults[-1])
    return Result(student=submission.student, status="not graded", notes=(*notes, f"a fault of the grader; {told}"))


def _one_of_class(course: Course, name: str, submission: Submission, *, again: bool) -> Result:
    """The same, unless just this was graded before; and with a word where an earlier hand-in has left its mark."""
    student = submission.student
    if submission.read is None:
        before = kept.earlier(course, name, student)
        return _with_note(before, "nothing new was handed in") if before else one(course, name, submission)
    content = submission.read()
    seen = kept.fingerprint(course, name, content)
    if not again and kept.is_graded(course, name, student, seen):
        before = kept.earlier(course, name, student)
        if before:
            return _with_note(before, submission.problem)
    kept.forget(course, name, student)
    graded = _with_feedback(course, name, one(course, name, replace(submission, read=lambda: content)))
    if graded.status == "graded" and not any(note.startswith(NO_PAGE) for note in graded.notes):
        kept.remember(course, name, student, seen)
    before = None if graded.answers else kept.earlier(course, name, student)
    if before:
        told = f"an earlier hand-in earned {before.points:g} of {before.maximum:g}; a later one was {graded.status}"
        kept.mark_page(course, name, student, told)
        graded = _with_note(graded, told + ", and the gradebook and the feedback page are of the earlier")
    return graded


def _with_note(graded: Result, note: str) -> Result:
    return replace(graded, notes=(note, *graded.notes)) if note else graded


def _logged(course: Course, name: str, student: str, error: Exception) -> str:
    """Keep what went wrong, in a folder per student as nbgrader's are: an id may be as long as a file's name may be.
    Where it cannot be kept it is told.
    """
    log = course.folder("logs", student, name).with_suffix(".txt")
    told = repr(error)
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(told, encoding="utf-8", errors="replace")
    except OSError:
        return " ".join(told.split())[-200:]
    return f"see {log}"


def _with_feedback(course: Course, name: str, graded: Result) -> Result:
    """Write the feedback page; without it the grade still stands."""
    if graded.answers:
        try:
            course.feedback(name, graded.student)
        except Exception as error:
            return replace(graded, notes=(*graded.notes, f"{NO_PAGE} ({type(error).__name__})"))
    return graded


def _says(content: bytes, name: str) -> str:
    """What a lone reader's notebook says about its student or course: read from its text, nothing is run. Empty if it
    says nothing.
    """
    try:
        cells = parsed(content)["cells"]
    except UnparsableError:
        return ""
    texts = [source(cell) for cell in cells if isinstance(cell, dict) and isinstance(cell.get("source"), str | list)]
    match = re.search(rf"""^{name}\s*=\s*["']([^"'\n]*)["']""", "\n".join(texts), re.MULTILINE)
    return plain_id(match[1]) if match else ""


def _grade_reader(name: str, path: Path, *, root: Path, work: Path, code: str | None, browser: bool) -> int:
    """A lone reader is who their notebook says, in the course it says."""
    content = path.read_bytes()
    student = _says(content, "student") or HOME_STUDENT
    course = Course(
        root=root,
        work=work,
        code=plain_id(code) or _says(content, "course") or HOME_COURSE,
        judge={"show_working": True},
    )
    course.claim("reader")
    course.prepare(name)
    if sandbox.problem():
        print(
            f"Without a sandbox: {sandbox.problem()}. Your code runs as your own program, as it does in the notebook."
        )
    graded = _with_feedback(
        course, name, one(course, name, Submission(student=student, folder=path.parent.name, read=lambda: content))
    )
    print(table([graded], written_maximum=WRITTEN_MAXIMUM))
    if graded.answers:
        keep_mark(name, graded, work)
        print(lines(graded))
        page = course.folder("feedback", graded.student, name) / f"{name}.html"
        print(f"Feedback, with the working of what you answered: {page}")
        if browser and sys.stdout.isatty():
            webbrowser.open(page.resolve().as_uri())
    return 0 if graded.answers else 1


def _graded(course: Course, handed: HandedIn, *, again: bool, workers: int | None) -> Iterator[Result]:
    """Everybody's result, as they come, under one bar; in a log, a line for each."""
    do = partial(_one_of_class, course, handed.name, again=again)
    number = usual(len(handed.submissions), workers)
    with Bar(len(handed.submissions)) as bar, Crew(do, number=number, ready=course.make_ready) as crew:
        for submission, done in crew.each(handed.submissions):
            graded = done or Result(
                student=submission.student,
                status="not graded",
                notes=("the process that graded it was ended from outside, and so was another",),
            )
            bar.tell(graded.student, graded.status)
            yield graded


def _grade_class(
    handed: HandedIn, course: Course, *, trust_students: bool, again: bool = False, workers: int | None = None
) -> int:
    name, submissions = handed.name, handed.submissions
    if sandbox.problem():
        if sys.platform == "linux" and not trust_students:
            raise ValueError(
                f"students' code should not run without a sandbox, and {sandbox.problem()}; --no-sandbox grades all the"
                " same"
            )
        print(f"Without a sandbox: {sandbox.problem()}. Students' code runs with your rights; the judge is the same.")
    course.claim("class")
    course.prepare(name)
    grades, slips = course.work / f"grades-{name}.csv", course.work / f"slips-{name}.csv"
    so_far = course.work / f"so-far-{name}.csv"
    so_far.unlink(missing_ok=True)
    results: list[Result] = []
    for graded in _graded(course, handed, again=again, workers=workers):
        write_grades(so_far, [graded], more=bool(results))
        results.append(graded)
    for student in kept.others(course, name, {submission.student for submission in submissions}):
        before = kept.earlier(course, name, student)
        results += [_with_note(before, "graded earlier, and not among what was handed in now")] if before else []
    results.sort(key=lambda graded: graded.student)
    write_grades(so_far, results)
    so_far.replace(grades)
    write_slips(slips, results)
    print(table(results, written_maximum=WRITTEN_MAXIMUM))
    for sentence in handed.left_out:
        print(f"Left out: {sentence}")
    for (question, slip), students in slip_counts(results).most_common(5):
        print(f"{students} x {question}: {slip}")
    print(
        f"Grades per question: {grades}\nSlips per question:  {slips}\nFeedback pages:      {course.work / 'feedback'}"
    )
    return 0

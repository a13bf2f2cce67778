"""The command `threeloops grade`: from what was handed in to a table, feedback pages and, for a class, two CSV
files.
"""

import csv
import importlib.util
import sys
import webbrowser
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from threeloops import checks
from threeloops.classroom import gradebook, one_submission, work_folder
from threeloops.classroom.course import Course
from threeloops.classroom.intake import HandedIn, Submission, handed_in, lone_notebook
from threeloops.classroom.machines import remote_grading
from threeloops.classroom.machines.cluster import is_address
from threeloops.classroom.questions import HOW_FUNCTIONS
from threeloops.classroom.report import (
    Bar,
    Result,
    keep_mark,
    lines,
    slip_counts,
    table,
    write_grades,
    write_slips,
)
from threeloops.classroom.term import lists, people
from threeloops.classroom.transplant import says
from threeloops.classroom.workers import Crew, usual
from threeloops.drills.engine.student_draws import HOME_COURSE, HOME_STUDENT, plain_id
from threeloops.sandbox import walls

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
    workers: int | str | None = None,
    server: str | None = None,
    others: Mapping[str, str] | None = None,
    functions: str = "all",
    graded_as: Mapping[str, str] | None = None,
) -> int:
    """Grade what is at the path; 0 when everything there could be looked at. Of a class, what was graded before and
    has not changed is graded again only when that is asked for. Workers are a number of processes here, or the address
    of a scheduler of Dask's; the server is the URL of a gradebook on one. What came from whoever has no hand-in here,
    by id, stands in their note. Functions earn their points for `all` draws, or the `share` of them that is right.
    Whoever has handed in with others is graded as the one that stands beside the id.
    """
    if importlib.util.find_spec("nbgrader") is None:
        raise ValueError("nbgrader is not installed here; `python3 book.py setup` installs it")
    if isinstance(workers, str) and not is_address(workers):
        raise ValueError(f"workers={workers!r} must be a whole number, or a scheduler's address as tcp://HOST:8786")
    if isinstance(workers, int):
        checks.count(workers=workers)
    checks.one_of(HOW_FUNCTIONS, functions=functions)
    judge: dict[str, object] = {"functions": functions} if functions != "all" else {}
    if server:
        gradebook.checked(server)
    lone = None if roster else lone_notebook(path, Course(root=root, work=root).sets())
    if lone:  # without a class list, one notebook is its reader's own
        if server or isinstance(workers, str):
            raise ValueError("other machines and a gradebook on a server are for a class: give the --roster too")
        name, notebook = lone
        work = work or root / "my" / "graded"
        with work_folder.alone_in(work):
            return _grade_reader(name, notebook, root=root, work=work, code=code, browser=browser, judge=judge)
    work = work or root / "build"
    course = Course(root=root, work=work, code=plain_id(code) or HOME_COURSE, server=server or "", judge=judge)
    handed = handed_in(path, course.sets(), listed(roster), drill_set=drill_set)
    known = [_with_others(one, others or {}, graded_as or {}) for one in handed.submissions]
    handed = replace(handed, submissions=known)
    with work_folder.alone_in(course.work):
        return _grade_class(handed, course, trust_students=trust_students, again=again, workers=workers)


def _with_others(one: Submission, others: Mapping[str, str], graded_as: Mapping[str, str]) -> Submission:
    if one.student in graded_as:
        return replace(one, read=None, with_others=graded_as[one.student])
    return replace(one, others=(others[one.student],)) if one.read is None and one.student in others else one


def listed(roster: Path | None) -> list[str]:
    """The first column of a class list, with or without a heading.

    Raises:   ValueError, in one sentence, for a platform's list, whose first column holds no ids
    """
    if roster is None:
        return []
    try:
        rows = [row for row in csv.reader(lists.text(roster).splitlines(), delimiter=lists.delimiter(roster)) if row]
    except csv.Error as error:
        raise ValueError(f"{roster} is no CSV file: {error}") from None
    names = [row[0] for row in rows]
    headings = [lists.heading(cell) for cell in rows[0]] if rows else []
    if people.is_platforms(headings):
        raise ValueError(
            f"{roster} is a platform's list, whose ids are not in the first column: `threeloops classroom roster"
            " CLASS.csv` reads it, in a term that `threeloops classroom new` begins; or give a file with the ids alone"
        )
    if headings and headings[0] in ("student", "students", "name", "id"):
        names = names[1:]
    for name in names:
        if how := lists.spoiled(name.strip()):
            raise ValueError(f"{roster}: the id {name!r} was {how}; take the list from the platform again")
    return names


def _grade_reader(
    name: str, path: Path, *, root: Path, work: Path, code: str | None, browser: bool, judge: Mapping[str, object]
) -> int:
    """A lone reader is who their notebook says, in the course it says."""
    chosen = "" if path.name == f"{name}.ipynb" else ", of the notebooks here the one that was worked in"
    print(f"Grading {path.name}{chosen} …", flush=True)  # the next line takes some seconds
    content = path.read_bytes()
    student = says(content, "student") or HOME_STUDENT
    course = Course(
        root=root,
        work=work,
        code=plain_id(code) or says(content, "course") or HOME_COURSE,
        judge={"show_working": True, **judge},
    )
    course.claim("reader")
    course.prepare(name)
    if walls.problem():
        print(f"Without a sandbox: {walls.problem()}. Your code runs as your own program, as it does in the notebook.")
    submission = Submission(student=student, folder=path.parent.name, read=lambda: content)
    graded = one_submission.with_feedback(course, name, one_submission.one(course, name, submission))
    print(table([graded], written_maximum=WRITTEN_MAXIMUM))
    if graded.answers:
        keep_mark(name, graded, work)
        print(lines(graded))
        page = course.folder("feedback", graded.student, name) / f"{name}.html"
        print(f"Feedback, with the working of what you answered: {page}")
        if browser and sys.stdout.isatty():
            webbrowser.open(page.resolve().as_uri())
    return 0 if graded.answers else 1


def _each(
    course: Course, handed: HandedIn, *, again: bool, workers: int | str | None, trusting: bool
) -> Iterator[tuple[Submission, Result | None]]:
    """Every submission with its result, as they come, from processes here or from other machines."""
    name, submissions = handed.name, handed.submissions
    if isinstance(workers, str):
        yield from remote_grading.each(course, name, submissions, workers, again=again, trusting=trusting)
        return
    do = partial(one_submission.of_class, course, name, again=again)
    with Crew(do, number=usual(len(submissions), workers), ready=course.make_ready) as crew:
        yield from crew.each(submissions)


def _told(each: Iterator[tuple[Submission, Result | None]], total: int) -> Iterator[Result]:
    """The results under one bar; in a log, a line for each."""
    with Bar(total) as bar:
        for submission, done in each:
            graded = done or Result(
                student=submission.student,
                status="not graded",
                notes=("the process that graded it was ended from outside, and so was another",),
            )
            bar.tell(graded.student, graded.status)
            yield graded


def _grade_class(
    handed: HandedIn, course: Course, *, trust_students: bool, again: bool = False, workers: int | str | None = None
) -> int:
    name, submissions = handed.name, handed.submissions
    if walls.problem() and not isinstance(workers, str):
        if sys.platform == "linux" and not trust_students:
            raise ValueError(
                f"students' code should not run without a sandbox, and {walls.problem()}; --no-sandbox grades all the"
                " same"
            )
        print(f"Without a sandbox: {walls.problem()}. Students' code runs with your rights; the judge is the same.")
    course.claim("class")
    course.prepare(name)
    grades, slips = course.work / f"grades-{name}.csv", course.work / f"slips-{name}.csv"
    so_far = course.work / f"so-far-{name}.csv"
    so_far.unlink(missing_ok=True)
    results: list[Result] = []
    each = _each(course, handed, again=again, workers=workers, trusting=trust_students)
    for graded in _told(each, len(submissions)):
        write_grades(so_far, [graded], more=bool(results))
        results.append(graded)
    for student in work_folder.others(course, name, {submission.student for submission in submissions}):
        before = work_folder.earlier(course, name, student)
        if before:
            results.append(one_submission.with_note(before, "graded earlier, and not among what was handed in now"))
    results.sort(key=lambda graded: graded.student)
    write_grades(so_far, results)
    so_far.replace(grades)
    write_slips(slips, results)
    print(table(results, written_maximum=WRITTEN_MAXIMUM))
    for sentence in handed.left_out:
        print(f"Left out: {sentence}")
    for one in submissions:
        if one.read and one.others:
            print(f"Left out: {one.student}: {'; '.join(one.others)}")
    for (question, slip), students in slip_counts(results).most_common(5):
        print(f"{students} x {question}: {slip}")
    print(
        f"Grades per question: {grades}\nSlips per question:  {slips}\nFeedback pages:      {course.work / 'feedback'}"
    )
    return 0

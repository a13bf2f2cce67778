"""One submission graded, from its bytes to what stays of it; whatever it is, this ends in a status."""

from dataclasses import replace

from threeloops.classroom import gradebook, work_folder
from threeloops.classroom.course import Course
from threeloops.classroom.intake import Submission
from threeloops.classroom.report import Result, result
from threeloops.classroom.transplant import UnparsableError, parsed, told

MOST_TRIES = 2
NO_PAGE = "no feedback page"
IN_A_GROUP = "in a group"  # status of whoever has handed in with others, whose line has the points
NO_NOTEBOOK = "no notebook"  # status of whoever handed in something else


def one(course: Course, name: str, submission: Submission) -> Result:
    """Grade one submission. A fault of the grader is tried a second time.

    Raises:   OSError when the disk is full, ValueError when the gradebook's server is gone
    """
    notes = (submission.problem,) if submission.problem else ()
    if submission.read is None:
        return _nothing(name, submission, notes)
    faults: list[Exception] = []
    while len(faults) < MOST_TRIES:
        try:
            notebook, more = told(parsed(course.release(name).read_bytes()), parsed(submission.read()))
            course.autograde(name, submission.student, notebook, notes=more)
            return result(course, name, submission.student, notes)
        except UnparsableError as refusal:
            return Result(student=submission.student, status="unparsable", notes=(*notes, str(refusal)))
        except Exception as error:  # one submission never stops the others
            work_folder.needs_room(error, course.work)
            gradebook.needs_answer(course.database)
            faults.append(error)
    kept = _logged(course, name, submission.student, faults[-1])
    return Result(student=submission.student, status="not graded", notes=(*notes, f"a fault of the grader; {kept}"))


def _nothing(name: str, submission: Submission, notes: tuple[str, ...]) -> Result:
    """No student who handed in files is missing: they are named, for a person to look at."""
    if submission.with_others:
        notes = (*notes, f"has the points of {submission.with_others}")
        return Result(student=submission.student, status=IN_A_GROUP, notes=notes)
    if submission.others:
        files = "; ".join(submission.others)
        notes = (*notes, f"files were handed in, no notebook of {name} among them: {files}")
        return Result(student=submission.student, status=NO_NOTEBOOK, notes=notes)
    return Result(student=submission.student, status="missing", notes=(*notes, "no notebook was handed in"))


def with_feedback(course: Course, name: str, graded: Result) -> Result:
    """Write the feedback page; without it the grade still stands."""
    if graded.answers:
        try:
            course.feedback(name, graded.student)
        except Exception as error:
            return replace(graded, notes=(*graded.notes, f"{NO_PAGE} ({type(error).__name__})"))
    return graded


def of_class(course: Course, name: str, submission: Submission, *, again: bool) -> Result:
    """The same with its page, unless just this was graded before; and with a word where an earlier hand-in has left
    its mark.
    """
    before, content = settled(course, name, submission, again=again)
    if before:
        return before
    work_folder.forget(course, name, submission.student)
    graded = one(course, name, replace(submission, read=lambda: content))
    return finished(course, name, content, with_feedback(course, name, graded))


def settled(course: Course, name: str, submission: Submission, *, again: bool) -> tuple[Result | None, bytes]:
    """What a submission came to that need not be graded now, and its bytes; None for one that must be."""
    student = submission.student
    if submission.with_others:
        return _nothing(name, submission, ()), b""
    if submission.read is None:
        before = work_folder.earlier(course, name, student)
        return with_note(before, "nothing new was handed in") if before else one(course, name, submission), b""
    content = submission.read()
    if again or not work_folder.is_graded(course, name, student, work_folder.fingerprint(course, name, content)):
        return None, content
    before = work_folder.earlier(course, name, student)
    return (with_note(before, submission.problem) if before else None), content


def finished(course: Course, name: str, content: bytes, graded: Result) -> Result:
    """Mark what is graded to its end; and say so where an earlier hand-in's page and scores are still the ones to be
    seen.
    """
    student = graded.student
    if graded.status == "graded" and not any(note.startswith(NO_PAGE) for note in graded.notes):
        work_folder.remember(course, name, student, work_folder.fingerprint(course, name, content))
    before = None if graded.answers else work_folder.earlier(course, name, student)
    if before:
        told = f"an earlier hand-in earned {before.points:g} of {before.maximum:g}; a later one was {graded.status}"
        work_folder.mark_page(course, name, student, told)
        graded = with_note(graded, told + ", and the gradebook and the feedback page are of the earlier")
    return graded


def with_note(graded: Result, note: str) -> Result:
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

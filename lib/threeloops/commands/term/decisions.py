"""What a teacher decides about one student's set: `classroom excuse`, `override` and `comment`."""

import argparse
from pathlib import Path
from typing import Any


def add_decisions(verbs: Any) -> None:
    """Add the verbs to the group of a term's."""
    excuse = _verb(verbs, "excuse", "excused", "excuse a student from a set: no points, and no 0")
    excuse.add_argument("--reason", default="", metavar="WORDS", help="why; it is kept, and exported as csv")
    override = _verb(verbs, "override", "points", "give a student other points for a set than the grader did")
    override.add_argument("--points", default="", metavar="P", help="what the student gets, after any late policy")
    override.add_argument(
        "--question", default="", metavar="ID", help="points of this question alone, before any late policy"
    )
    override.add_argument("--reason", default="", metavar="WORDS", help="why; it is kept, and exported as csv")
    comment = _verb(verbs, "comment", "comment", "words to one student, on top of the page that goes back")
    comment.add_argument("reason", nargs="?", default="", metavar="WORDS", help="what the page says")


def _verb(verbs: Any, name: str, what: str, told: str) -> Any:
    verb = verbs.add_parser(name, help=told)
    verb.add_argument("--term", default=".", metavar="FOLDER", help="where term.toml lies (default: this folder)")
    verb.add_argument("set", metavar="SET", help="a drill set, like kv_cache")
    verb.add_argument("student", metavar="STUDENT", help="the id on the roster")
    verb.add_argument("--undo", action="store_true", help="take it back")
    verb.set_defaults(run=_decide, what=what)
    return verb


def _decide(given: argparse.Namespace) -> None:
    from threeloops.classroom.term import decisions, settings
    from threeloops.drills.engine.student_draws import plain_id

    term, student = settings.read(Path(given.term)), plain_id(given.student)
    if given.undo:
        undone = decisions.undo(term, given.set, student, given.what, getattr(given, "question", ""))
        print(f"{given.set}, {student}: no longer {_told(undone)}.")
        return
    one = decisions.Decision(
        set=given.set,
        student=student,
        what=given.what,
        points=getattr(given, "points", ""),
        reason=given.reason,
        question=getattr(given, "question", ""),
    )
    before = decisions.decide(term, one)
    instead = f" (in place of {_told(before)})" if before else ""
    print(f"{given.set}, {student}: {_told(one)}{instead}. Kept in {term.folder / 'decisions.csv'}.")


def _told(one: Any) -> str:
    from threeloops.classroom.term import decisions

    if one.what == "points":
        of = f" for {one.question}" if one.question else ""
        return f"{decisions.in_words(one.set, one.question, one.points)}{of}, {one.reason!r}"
    return f"the comment {one.reason!r}" if one.what == "comment" else f"{one.what}, {one.reason!r}"

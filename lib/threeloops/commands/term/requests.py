"""What students ask to have looked at again: `classroom requests`, `accept` and `decline`. What they do stands in
`threeloops.classroom.term.requests`.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threeloops.classroom.term.requests import Request
    from threeloops.classroom.term.settings import Term


def add_requests(verbs: Any) -> None:
    """Add the verbs to the group of a term's."""
    requests = verbs.add_parser("requests", help="what students ask to have looked at again, with their reasons")
    _of_a_set(requests)
    requests.add_argument("--add", metavar="CSV", help="a list with the columns student, question, reason")
    requests.add_argument("--all", action="store_true", help="also what is answered")
    requests.set_defaults(run=_requests)
    accept = verbs.add_parser("accept", help="accept a request: other points, with a reason that goes back")
    _of_one(accept)
    accept.add_argument("--points", default="", metavar="P", help="of the question, or of the set if that was asked")
    accept.set_defaults(run=_answer, accepts=True)
    decline = verbs.add_parser("decline", help="decline a request, with a reason that goes back")
    _of_one(decline)
    decline.set_defaults(run=_answer, accepts=False)


def _of_a_set(verb: Any) -> None:
    verb.add_argument("--term", default=".", metavar="FOLDER", help="where term.toml lies (default: this folder)")
    verb.add_argument("set", metavar="SET", help="a drill set, like kv_cache")


def _of_one(verb: Any) -> None:
    _of_a_set(verb)
    verb.add_argument("student", metavar="STUDENT", help="the id on the roster")
    verb.add_argument("--question", metavar="ID", help="which, where several are open; '' for the whole set")
    verb.add_argument("--reason", default="", metavar="WORDS", help="why; it stands on the student's page")
    verb.add_argument("--undo", action="store_true", help="take the answer back: the request is open again")


def _requests(given: argparse.Namespace) -> None:
    from threeloops import units
    from threeloops.classroom.term import requests, settings

    term = settings.read(Path(given.term))
    taken = requests.take(term, given.set, Path(given.add) if given.add else None)
    for sentence in taken.left_out:
        print(f"Left out: {sentence}")
    every = [one for one in requests.kept(term) if one.set == given.set]
    still = [one for one in every if one.state == "open"]
    told = (
        f"{units.counted(len(still), 'request')} open, {len(every) - len(still)} answered, {len(taken.new)} of them new"
    )
    print(f"{given.set}: {told}.")
    for one in every if given.all else still:
        print(f"\n{_told(term, one)}")


def _told(term: "Term", one: "Request") -> str:
    """A request with what the grader said, and the command that accepts it."""
    from threeloops import contents
    from threeloops.classroom import work_folder
    from threeloops.classroom.term import decisions

    graded = work_folder.earlier(term.grading(contents.book_root()), one.set, one.student)
    found = [answer for answer in graded.answers if answer.grade_id == one.question] if graded else []
    lines = [f"{one.student}, {one.of_what} ({one.came_in}): {one.reason}"]
    lines += [f"  the grader: {answer.points:g} of {answer.maximum:g}; {answer.message}" for answer in found]
    if graded and not one.question:
        lines.append(f"  the grader: {graded.points:g} of {graded.maximum:g}")
    if one.state == "open":
        which = f" --question {one.question}" if one.question else ""
        lines.append(f"  classroom accept {one.set} {one.student}{which} --points P --reason WORDS, or decline")
    else:
        given = f" with {decisions.in_words(one.set, one.question, one.points)}" if one.points else ""
        lines.append(f"  {one.state}{given}: {one.answer}")
    return "\n".join(lines)


def _answer(given: argparse.Namespace) -> None:
    from threeloops.classroom.term import decisions, requests, settings
    from threeloops.drills.engine.student_draws import plain_id

    term, student = settings.read(Path(given.term)), plain_id(given.student)
    if given.undo:
        again = requests.reopen(term, given.set, student, given.question)
        print(f"{given.set}, {student}: the request about {again.of_what} is open again.")
        return
    asked = requests.the_open(term, given.set, student, given.question)
    if given.accepts:
        done = requests.accept(term, asked, points=given.points, reason=given.reason)
    else:
        done = requests.decline(term, asked, reason=given.reason)
    points = f" with {decisions.in_words(done.set, done.question, done.points)}" if done.points else ""
    print(
        f"{given.set}, {student}: the request about {done.of_what} is {done.state}{points}. `classroom return` says so."
    )

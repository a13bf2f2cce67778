"""What students ask to have looked at again: in the notebook that they hand in, or in a list. The teacher accepts with
other points, which are a decision like any other, or declines with a reason; both go back on the student's page.

In a notebook a request is a cell of the student's own, of any kind, with a line that begins with the word `Regrade`, a
question and a colon; without a question it is of the whole set. A question is called by its id, its heading or the name
of its answer, in any spelling. In a list a request is a row with the student, the question and the reason, as a form
writes it. Nothing of a request is run, and no text cell changes what a function is tried on.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from threeloops import checks
from threeloops.classroom.questions import question, source
from threeloops.classroom.term import decisions, explanations, lists, people
from threeloops.classroom.term.decisions import Decision
from threeloops.classroom.term.settings import Term
from threeloops.classroom.transplant import UnparsableError, parsed
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.student_draws import plain_id

STATES = ("open", "accepted", "declined")
LONGEST, MOST = 2_000, 20  # characters of a reason; requests of one notebook
ASKS = re.compile(
    r"^\W{0,9}regrade(?:[ \t]{1,9}request)?(?:[ \t]{1,9}(?:of|for|about))?"
    r"(?:[ \t]{1,9}(?P<question>[^\n:]{1,80}))?:",
    re.IGNORECASE | re.MULTILINE,
)
MAYBE = re.compile(rb"regrade", re.IGNORECASE)
# Of a list: the headings that mean a column.
STUDENT, QUESTION = ("student", "id"), ("question", "questions", "grade id")
REASON = ("reason", "request", "regrade request", "comment", "why")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One line of requests.csv."""

    set: str
    student: str  # a plain id
    question: str = ""  # its grade id; empty for the whole set
    reason: str = ""  # the student's
    came_in: str = ""  # `notebook`, or what the list was called
    state: str = "open"
    points: str = ""  # of an accepted one: what the teacher gave
    answer: str = ""  # the teacher's reason

    @property
    def asked(self) -> tuple[str, str, str, str]:
        """What makes two requests the same."""
        return self.set, self.student, self.question, self.reason

    @property
    def of_what(self) -> str:
        """As a sentence says it."""
        return self.question or "the whole set"


HEADINGS = tuple(field.name for field in fields(Request))


def _path(term: Term) -> Path:
    return term.folder / "requests.csv"


def kept(term: Term) -> list[Request]:
    """Every request of a term, in the order in which they came.

    Raises:   ValueError when somebody has written into the file what cannot be read
    """
    path = _path(term)
    if not path.exists():
        return []
    found = []
    for line, row in lists.rows(path)[1]:
        one = Request(**{name: row.get(lists.heading(name), "") for name in HEADINGS})
        try:
            checks.one_of(STATES, state=one.state)
        except ValueError as error:
            raise ValueError(f"{path}, line {line}: {error}") from None
        found.append(one)
    return found


def _keep(term: Term, requests: Sequence[Request]) -> None:
    lists.write(_path(term), HEADINGS, [asdict(one) for one in requests])


def plain_reason(text: str) -> str:
    """A student's words without what a terminal would obey, and no longer than a page.

    >>> plain_reason(" ** I read\\n\\n'batch'\\x1b[2J as 8.  ")
    "I read 'batch' [2J as 8."
    """
    words = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(words.split()).strip("*_ ")[:LONGEST]


def written_in(text: str) -> Iterator[tuple[str, str]]:
    """(question, reason) of each request in a cell.

    >>> list(written_in("## Regrade a-batch: I used GiB.\\nRegrade: all of it"))
    [('a-batch', 'I used GiB.'), ('', 'all of it')]
    """
    found = list(ASKS.finditer(text))
    for one, after in zip(found, [*found[1:], None], strict=False):
        reason = plain_reason(text[one.end() : after.start() if after else None])
        if reason:
            yield plain_id(one["question"] or ""), reason


def in_notebook(content: bytes) -> list[tuple[str, str]]:
    """Every request of a notebook; none in what is no notebook."""
    if not MAYBE.search(content):
        return []
    try:
        cells = parsed(content)["cells"]
    except UnparsableError:
        return []
    texts = [source(cell) for cell in cells if isinstance(cell, dict) and isinstance(cell.get("source"), str | list)]
    return [one for text in texts for one in written_in(text)][:MOST]


def called(name: str) -> dict[str, str]:
    """Every way to call a question of a set, as plain ids, and the grade id that is meant.

    >>> names = called("kv_cache")
    >>> names["a-batch"], names["a-batch-at-the-end-of-its-answers"], names["batch-cache"]
    ('a-batch', 'a-batch', 'a-batch')
    """
    heading, found, ids = "", dict[str, str](), dict[str, str]()
    for cell in decisions.released(name)["cells"]:
        title = re.search(r"^#+ +(.+?)\s*$", source(cell), re.MULTILINE) if cell["cell_type"] == "markdown" else None
        heading = title[1] if title else heading
        if asked := question(cell):
            found |= {plain_id(way): asked.grade_id for way in (heading, DRILLS[asked.drill].title, asked.name)}
            ids[plain_id(asked.grade_id)] = asked.grade_id
    return {plain_id(one): one for one in explanations.asked(name)} | found | ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What has come since the last time."""

    new: tuple[Request, ...]
    left_out: tuple[str, ...]  # a sentence each


def take(term: Term, name: str, listed: Path | None = None) -> Taken:
    """Take in the requests of what is collected of a set, and those of a list.

    Raises:   ValueError when the set was not released, or the list has no column for the student or the reason
    """
    term.handed_out(name)
    before, known, left_out = kept(term), called(name), list[str]()
    found: list[Request] = []
    for path in sorted(term.collected(name).glob(f"*/{name}.ipynb")):
        for of_what, reason in in_notebook(path.read_bytes()):
            found.append(
                Request(set=name, student=path.parent.name, question=of_what, reason=reason, came_in="notebook")
            )
    if listed is not None:
        found += _of_list(term, name, listed, left_out)
    new: list[Request] = []
    for one in found:
        if one.question and one.question not in known:
            left_out.append(f"{one.student}: no question of {name} is called {one.question!r} ({one.reason})")
            continue
        one = replace(one, question=known.get(one.question, ""))
        if one.asked not in {other.asked for other in (*before, *new)}:
            new.append(one)
    if new:
        _keep(term, [*before, *new])
    return Taken(new=tuple(new), left_out=tuple(left_out))


def _of_list(term: Term, name: str, path: Path, left_out: list[str]) -> Iterator[Request]:
    headings, numbered = lists.rows(path)
    compared = [lists.heading(one) for one in headings]
    student, reason = (next((one for one in names if one in compared), "") for names in (STUDENT, REASON))
    of = next((one for one in QUESTION if one in compared), "")
    if not student or not reason:
        raise ValueError(
            f"{path} has no column {'student' if not student else 'reason'}; it has {', '.join(headings)}; a list of"
            " requests has student, question and reason"
        )
    ids = {plain_id(one.student) for one in people.kept(term.roster)}
    for line, row in numbered:
        whose, why = plain_id(row.get(student, "")), plain_reason(row.get(reason, ""))
        if whose not in ids:
            left_out.append(f"{path.name}, line {line}: nobody on the roster has the id {row.get(student, '')!r}")
        elif not why:
            left_out.append(f"{path.name}, line {line}: {whose} gives no reason")
        else:
            yield Request(set=name, student=whose, question=plain_id(row.get(of, "")), reason=why, came_in=path.name)


def the_open(term: Term, name: str, student: str, question: str | None) -> Request:
    """The one open request that is meant.

    Raises:   ValueError when there is none, or more than one
    """
    every = [one for one in kept(term) if (one.set, one.student, one.state) == (name, student, "open")]
    fits = [one for one in every if question is None or one.question == question]
    if len({one.question for one in fits}) == 1:
        return fits[0]
    if fits:
        asked = " or ".join(f"--question {one.question}" if one.question else "--question ''" for one in fits)
        raise ValueError(f"{student} has {len(fits)} open requests; say which: {asked}")
    there = f"; open are {', '.join(one.of_what for one in every)}" if every else ""
    raise ValueError(f"{student} has no such open request of {name}{there}; `threeloops classroom requests {name}`")


def accept(term: Term, asked: Request, *, points: str, reason: str) -> Request:
    """Give other points for what was asked about; the request is closed with the reason.

    Raises:   ValueError for points that the question cannot have, or without a reason
    """
    if asked.question in explanations.asked(asked.set):
        explanations.give(term, asked.set, asked.student, asked.question, points=points, words=reason)
    else:
        what = Decision(
            set=asked.set, student=asked.student, what="points", points=points, reason=reason, question=asked.question
        )
        decisions.decide(term, what)
    return _closed(term, asked, state="accepted", points=points, answer=reason)


def decline(term: Term, asked: Request, *, reason: str) -> Request:
    """Leave the points as they are; the request is closed with the reason.

    Raises:   ValueError without a reason
    """
    if not reason.strip() or len(reason) > decisions.LONGEST:
        raise ValueError("--reason must say why: it goes back to the student")
    return _closed(term, asked, state="declined", answer=reason)


def _closed(term: Term, asked: Request, **how: str) -> Request:
    """All that ask the same thing are answered together."""
    same = (asked.set, asked.student, asked.question, asked.state)
    closed = [
        replace(one, **how) if (one.set, one.student, one.question, one.state) == same else one for one in kept(term)
    ]
    _keep(term, closed)
    return replace(asked, **how)


def reopen(term: Term, name: str, student: str, question: str | None) -> Request:
    """Take the last answer back; points that were given with it go, too, but for an explanation's, which stand in its
    list.

    Raises:   ValueError when nothing of that student's was answered
    """
    every = kept(term)
    fits = [
        one
        for one in every
        if (one.set, one.student) == (name, student) and one.state != "open" and question in (None, one.question)
    ]
    if not fits:
        raise ValueError(f"no request of {student} for {name} was answered, so there is nothing to take back")
    last = fits[-1]
    if last.state == "accepted" and last.question not in explanations.asked(name):
        with contextlib.suppress(ValueError):  # it may have been taken back already
            decisions.undo(term, name, student, "points", last.question)
    again = replace(last, state="open", points="", answer="")
    _keep(term, [again if one is last else one for one in every])
    return again


def of_student(term: Term, name: str, student: str) -> list[Request]:
    """What one student has asked of a set."""
    return [one for one in kept(term) if (one.set, one.student) == (name, student)]


def answered(one: Request, most: float) -> str:
    """What became of a request, in a sentence for the student.

    >>> answered(Request(set="kv_cache", student="a", question="scales", state="declined", answer="GB, not GiB."), 1)
    'Your request about scales: declined. GB, not GiB.'
    """
    if one.state == "open":
        return f"Your request about {one.of_what}: received, not yet answered."
    given = f", {float(one.points.replace(',', '.')):g} of {most:g} points" if one.state == "accepted" else ""
    return f"Your request about {one.of_what}: {one.state}{given}. {one.answer}"

"""What a platform's zip holds of one set, into a folder for each student, under the ids of the roster. Nothing is
overwritten: another file of somebody who has handed in already is listed, or, when it is said to be newer, the older
one is kept beside it.
"""

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from threeloops.classroom.course import Course
from threeloops.classroom.intake import Submission, handed_in
from threeloops.classroom.term import groups, lists, matching, people
from threeloops.classroom.term.groups import Shared
from threeloops.classroom.term.matching import Directory
from threeloops.classroom.term.people import Person
from threeloops.classroom.term.settings import Term, days_late
from threeloops.drills.engine.student_draws import plain_id

COLUMNS = ("student", "handed_in_as", "came", "days_late", "not_taken", "graded_as")
LATE = "late"  # in days_late: by an unknown number of days


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One line of received/SET.csv."""

    student: str  # as the grader knows them
    handed_in_as: str  # what the platform called the file; nothing where none of the files is a hand-in
    came: str  # a time with its offset, where one is known
    days_late: str  # a number, extra days taken off already, or `late`, or nothing where nobody knows
    not_taken: str = ""  # files that are no hand-in, and what they are, of whoever has none
    graded_as: str = ""  # of a group: the member whose id stands in its notebook; empty for that one


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """What one run of `collect` has done."""

    taken: tuple[str, ...]
    replaced: tuple[str, ...]
    same: tuple[str, ...]
    left_out: tuple[str, ...]  # a sentence each
    said: tuple[str, ...]  # of whom several notebooks came: which one was taken, and why
    undated: int  # of all that is collected: nobody knows whether it came in time
    late: int


def received(term: Term, name: str) -> dict[str, Received]:
    """What is collected of a set, by student.

    Raises:   ValueError when a teacher has written into the file what cannot be read
    """
    path = term.received(name)
    if not path.exists():
        return {}
    _, numbered = lists.rows(path)
    found = {}
    for line, row in numbered:
        one = Received(**{column: row.get(lists.heading(column), "") for column in COLUMNS})
        if not (one.days_late in ("", LATE) or one.days_late.isdecimal()):
            raise ValueError(
                f"{path}, line {line}: days_late {one.days_late!r} must be a whole number, 0 for on time, or empty"
            )
        found[one.student] = one
    return found


def collect(
    term: Term,
    name: str,
    path: Path,
    *,
    root: Path,
    worksheet: Path | None = None,
    newer: bool = False,
    on_time: bool = False,
) -> Collection:
    """Take in what lies at the path.

    Raises:   ValueError when the set was not released, there is no roster, or nothing to collect
    """
    due = term.handed_out(name).due
    roster = people.kept(term.roster)
    sheet = matching.worksheet(worksheet, term.zone) if worksheet else None
    handed = handed_in(path, Course(root=root, work=term.graded).sets(), drill_set=name)
    files = [one for one in handed.submissions if one.read is not None]
    if not any(one.label for one in handed.submissions):
        raise ValueError(f"{path} holds nothing that anybody has handed in, so no notebook of {name}")
    directory = Directory(roster, sheet)
    teams, files, beside, names_nobody = groups.shared(term, name, files, directory, roster)
    fitting, left_out = _matched(files, directory)
    left_out += beside
    left_out += [sentence.partition("; --set")[0] for sentence in handed.left_out]
    before = received(term, name)
    for one in handed.submissions:
        if one.others:
            left_out.append(_passed_over(one, directory, name, before))
    done: dict[str, list[str]] = {"taken": [], "replaced": [], "same": []}
    for one, whose in fitting:
        how = _put(term.collected(name) / plain_id(whose.student) / f"{name}.ipynb", one, newer=newer)
        if how == "kept":
            left_out.append(
                f"{one.label!r}: {whose.student} has handed in another file before, which stays; --newer takes this one"
            )
            continue
        done[how].append(whose.student)
        noted = _noted(one, whose, directory, due, on_time=on_time)
        old = before.get(noted.student)
        before[noted.student] = (
            replace(noted, days_late=old.days_late, came=old.came)
            if old and how == "same" and (not noted.days_late or noted.days_late == LATE)
            else noted
        )
    for team in teams:
        _put_of_group(term, name, team, directory, due, before, done, left_out, newer=newer, on_time=on_time)
    left_out += _out_of_groups(term, name, before)
    if before:
        term.collected(name).mkdir(parents=True, exist_ok=True)
    lists.write(
        term.received(name),
        COLUMNS,
        [[getattr(before[student], column) for column in COLUMNS] for student in sorted(before)],
    )
    return Collection(
        **{how: tuple(students) for how, students in done.items()},
        left_out=tuple(left_out),
        said=(*(f"{whose.student}: {one.chosen}" for one, whose in fitting if one.chosen), *names_nobody),
        undated=sum(not one.days_late and bool(one.handed_in_as) for one in before.values()),
        late=sum(one.days_late not in ("", "0") for one in before.values()),
    )


def _matched(files: Sequence[Submission], directory: Directory) -> tuple[list[tuple[Submission, Person]], list[str]]:
    """Every hand-in with its student; what fits nobody, or somebody who has another, in a sentence."""
    found, left_out = [], []
    for one in files:
        try:
            found.append((one, directory.find(one)))
        except ValueError as error:
            left_out.append(f"{one.label!r}: {error}")
    times = Counter(whose.student for _, whose in found)
    left_out += [
        f"{one.label!r}: {times[whose.student]} hand-ins fit {whose.student}, so none is taken"
        for one, whose in found
        if times[whose.student] > 1
    ]
    return [(one, whose) for one, whose in found if times[whose.student] == 1], left_out


def _passed_over(one: Submission, directory: Directory, name: str, before: dict[str, Received]) -> str:
    """A sentence on the files of a person that are no hand-in; and a line of what was received for whoever has
    none.
    """
    files = "; ".join(one.others)
    try:
        whose = directory.find(one)
    except ValueError as error:
        return f"{one.folder}: {files}" if one.read else f"{one.folder}: {files}; and {error}"
    if one.read:
        return f"{whose.student}: {files}"
    student = plain_id(whose.student)
    if student not in before or not before[student].handed_in_as:
        before[student] = Received(student=student, handed_in_as="", came="", days_late="", not_taken=files)
    return f"{whose.student} has no notebook of {name}: {files}"


def _put_of_group(
    term: Term,
    name: str,
    team: Shared,
    directory: Directory,
    due: dt.datetime,
    before: dict[str, Received],
    done: dict[str, list[str]],
    left_out: list[str],
    *,
    newer: bool,
    on_time: bool,
) -> None:
    """Write a group's hand-in where the one whose numbers are in it belongs, and a line for each member."""
    ids = [plain_id(one.student) for one in team.members]
    now = plain_id(team.graded_as.student)
    path = term.collected(name) / now / f"{name}.ipynb"
    others = [term.collected(name) / one / path.name for one in ids if one != now]
    there = [one for one in (path, *others) if one.exists()]
    other = [one for one in there if one.read_bytes() != (team.handed.content or b"")]
    if other and not newer:
        left_out.append(
            f"{team.handed.label!r}: {team.group} has handed in another file before, which stays; --newer takes this"
        )
        return
    for one in there:
        if one in other or one != path:
            lists.aside(one)
    how = _put(path, team.handed, newer=newer)
    done["replaced" if other else how].append(team.group)
    for member, student in zip(team.members, ids, strict=True):
        noted = _noted(team.handed, member, directory, due, on_time=on_time, row=directory.row_of(member))
        old = before.get(student)
        if old and how == "same" and noted.days_late in ("", LATE):
            noted = replace(noted, days_late=old.days_late, came=old.came)
        before[student] = replace(
            noted,
            handed_in_as=groups.label(team, member, directory, name),
            graded_as="" if student == now else now,
        )


def _out_of_groups(term: Term, name: str, before: dict[str, Received]) -> list[str]:
    """Take back the lines of those who have left the group whose notebook counted for them; a sentence each."""
    of, said = groups.kept(term, name), []
    for student, one in list(before.items()):
        if one.graded_as and (student not in of or of[student] != of.get(one.graded_as)):
            del before[student]
            said.append(f"{student} had the hand-in of {one.graded_as}, is no longer in that group, and has no other")
    return said


def graded_as(term: Term, name: str) -> dict[str, str]:
    """Whose hand-in counts for a student who has handed in with others."""
    return {one.student: one.graded_as for one in received(term, name).values() if one.graded_as}


def not_taken(term: Term, name: str) -> dict[str, str]:
    """What came from students who have no hand-in."""
    return {one.student: one.not_taken for one in received(term, name).values() if one.not_taken}


def _put(path: Path, one: Submission, *, newer: bool) -> str:
    """Write a hand-in where it belongs: taken, replaced, same, or kept where another one stays."""
    content = one.content or b""
    how = "taken"
    if path.exists():
        if path.read_bytes() == content:
            return "same"
        if not newer:
            return "kept"
        lists.aside(path)
        how = "replaced"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return how


def _noted(
    one: Submission,
    whose: Person,
    directory: Directory,
    due: dt.datetime,
    *,
    on_time: bool,
    row: matching.Row | None = None,
) -> Received:
    """When a hand-in came, as far as anybody knows."""
    row = row or directory.row(one)
    came = row.came if row else None
    if came:
        late = str(days_late(came, due, extra_days=whose.extra_days))
    elif matching.marked_late(one.label):
        late = LATE
    else:
        late = "0" if on_time or matching.platform(one.label) == "canvas" else ""
    return Received(
        student=plain_id(whose.student),
        handed_in_as=one.label,
        came=came.isoformat() if came else "",
        days_late=late,
    )

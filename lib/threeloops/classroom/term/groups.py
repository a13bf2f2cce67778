"""Sets that are handed in by groups: one notebook counts for all members, and is graded with the numbers of the one
whose id stands in it.

Who is in which group is kept per set, in groups/SET.csv of the term's folder, from a list with the columns group and
student, or from the roster's sections. A hand-in is a group's when a member has handed it in, or when the platform
calls it by the group: Moodle names the folder GROUP_NUMBER_assignsubmission_file, with the number of the group, which
may well be the number of some participant, too ("Moodle source, mod/assign/classes/downloader.php",
https://github.com/moodle/moodle/blob/main/mod/assign/classes/downloader.php); Canvas names the file of a
representative ("Canvas LMS source, lib/content_zipper.rb",
https://github.com/instructure/canvas-lms/blob/master/lib/content_zipper.rb).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from threeloops.classroom.intake import Submission
from threeloops.classroom.term import decisions, lists, people
from threeloops.classroom.term.matching import Directory, platform, spellings, squeezed
from threeloops.classroom.term.people import Person
from threeloops.classroom.term.settings import Term
from threeloops.classroom.transplant import UnparsableError, parsed, says, worked_in
from threeloops.drills.engine.student_draws import plain_id

COLUMNS = ("group", "student")
# Of a list: the headings that mean a column.
GROUP, STUDENT = ("group", "groups", "team", "group name"), ("student", "id", "student id", "username")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """A hand-in of a group."""

    group: str
    handed: Submission
    graded_as: Person  # the member with whose numbers it is graded
    members: tuple[Person, ...]


def _path(term: Term, name: str) -> Path:
    return term.folder / "groups" / f"{name}.csv"


def kept(term: Term, name: str) -> dict[str, str]:
    """The group of each student who has one, by plain id; nobody's where a set is handed in by each alone."""
    path = _path(term, name)
    return {row["student"]: row["group"] for _, row in lists.rows(path)[1]} if path.exists() else {}


def drop(term: Term, name: str) -> None:
    """From now on everybody hands a set in alone.

    Raises:   ValueError when that is so already
    """
    if not _path(term, name).exists():
        raise ValueError(f"{name} has no groups, so there are none to take back")
    lists.aside(_path(term, name))


def keep(term: Term, name: str, listed: Path | None) -> dict[str, list[str]]:
    """Keep who is in which group, of a list or of the roster's sections; the members of each group.

    Raises:   ValueError when the set was not released, nobody is in a group, or the list names somebody who is not on
              the roster, or in two groups, or a group's name could be another's, or a student's who is not in it
    """
    term.handed_out(name)
    roster = people.kept(term.roster)
    found = _listed(listed, roster) if listed else {plain_id(one.student): one.section for one in roster if one.section}
    if not found:
        raise ValueError(
            "the roster has no sections, so it names no groups; give a list with the columns group and student, or make"
            " the roster from a list with a column group"
        )
    _told_apart(found, roster)
    lists.write(_path(term, name), COLUMNS, [(group, student) for student, group in sorted(found.items())])
    groups: dict[str, list[str]] = {}
    for student, group in sorted(found.items()):
        groups.setdefault(group, []).append(student)
    return groups


def _told_apart(found: Mapping[str, str], roster: Sequence[Person]) -> None:
    """Refuse names by which a hand-in's folder could be two groups', or one student's who is in another or in none."""
    called: dict[str, str] = {}
    for group in found.values():
        other = called.setdefault(squeezed(group), group)
        if other != group:
            raise ValueError(
                f"{group!r} and {other!r} are one name to a platform; write one of them for all its members, or give"
                " two groups two names"
            )
    for one in roster:
        for spelling in spellings(one) & called.keys():
            if found.get(plain_id(one.student)) != called[spelling]:
                raise ValueError(
                    f"a folder called {called[spelling]!r} may be that group's, or the one of {one.student}, who is not"
                    f" in it; give the group another name, like 'Group {called[spelling]}'"
                )


def _listed(path: Path, roster: Sequence[Person]) -> dict[str, str]:
    headings, numbered = lists.rows(path)
    names = [lists.heading(one) for one in headings]
    group, student = (next((one for one in meant if one in names), "") for meant in (GROUP, STUDENT))
    if not group or not student:
        raise ValueError(
            f"{path} has no column {'group' if not group else 'student'}; it has {', '.join(headings)}; a list of"
            " groups has a row for each member, with group and student"
        )
    ids, found = {plain_id(one.student) for one in roster}, dict[str, str]()
    for line, row in numbered:
        whose, of = plain_id(row.get(student, "")), row.get(group, "")
        if whose not in ids:
            raise ValueError(f"{path}, line {line}: nobody on the roster has the id {row.get(student, '')!r}")
        if not of:
            raise ValueError(f"{path}, line {line}: {whose} has no group; leave out who hands in alone")
        if found.get(whose, of) != of:
            raise ValueError(
                f"{path}, line {line}: {whose} is in {found[whose]!r} already, and nobody is in two groups"
            )
        found[whose] = of
    return found


def shared(
    term: Term, name: str, files: Sequence[Submission], directory: Directory, roster: Sequence[Person]
) -> tuple[list[Shared], list[Submission], list[str], list[str]]:
    """(hand-ins of groups, those that are nobody's group's, a sentence for each that does not count beside another of
    its group, a sentence where a notebook names nobody of its group).
    """
    of = kept(term, name)
    members: dict[str, list[Person]] = {}
    for one in roster:
        if plain_id(one.student) in of:
            members.setdefault(of[plain_id(one.student)], []).append(one)
    called = {squeezed(group): group for group in members}
    by_group: dict[str, list[Submission]] = {}
    alone: list[Submission] = []
    for handed in files:
        group = called.get(squeezed(handed.folder)) or _of_member(handed, directory, of)
        by_group.setdefault(group, []).append(handed) if group else alone.append(handed)
    found, left_out, said = [], list[str](), list[str]()
    for group, own in sorted(by_group.items()):
        best = max(own, key=lambda one: (answers(one, name), one.label))
        for other in own:
            if other is not best and other.content != best.content:
                more = answers(best, name) > answers(other, name)
                why = "which holds more answers" if more else "which holds as many answers and is the last by its name"
                left_out.append(f"{other.label!r}: of {group}, {best.label!r} counts, {why}")
        says_so = plain_id(says(best.content or b"", "student"))
        whose = next((one for one in members[group] if plain_id(one.student) == says_so), None)
        if whose is None:
            whose = _who_handed_in(best, directory, members[group])
            said.append(
                f"{group}: the notebook names none of its members, so it is graded with the numbers of {whose.student}"
            )
        found.append(Shared(group=group, handed=best, graded_as=whose, members=tuple(members[group])))
    return found, alone, left_out, said


def _of_member(handed: Submission, directory: Directory, of: dict[str, str]) -> str:
    try:
        return of.get(plain_id(directory.find(handed).student), "")
    except ValueError:
        return ""


def _who_handed_in(handed: Submission, directory: Directory, members: Sequence[Person]) -> Person:
    try:
        whose = directory.find(handed)
    except ValueError:
        return members[0]
    return whose if whose in members else members[0]


def answers(handed: Submission, name: str) -> int:
    """How many answers a hand-in holds; less than none where it cannot be read."""
    try:
        return worked_in(decisions.released(name), parsed(handed.content or b""))
    except UnparsableError:
        return -1


def label(one: Shared, member: Person, directory: Directory, name: str) -> str:
    """What a member's own hand-in would be called: by it the page goes back. A group's number is no participant's, so
    Moodle's comes from the worksheet, and where there is none the page goes into a folder.
    """
    where = platform(one.handed.label)
    row = directory.participant(member)
    if where == "moodle" and row:
        return f"{member.name or member.student}_{row}_assignsubmission_file/{name}.ipynb"
    if where == "canvas" and one.handed.own == member.canvas_id:
        return one.handed.label
    return f"{member.student}/{name}.ipynb"

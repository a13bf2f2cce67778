"""A class list, as Canvas, Moodle or a spreadsheet exports it, read, checked, and kept as the roster that the grader
takes.

Canvas:   the gradebook export (Grades › Export), whose columns are Student, ID, SIS User ID, SIS Login ID, Section;
          "Import CSV File to Carmen Grades", The Ohio State University,
          https://teaching.resources.osu.edu/toolsets/carmencanvas/guides/calculating-final-grades/import-csv-file-carmen-grades
Moodle:   the participants' table or the grade export, with First name, Last name, ID number, Email address;
          "Grade import", MoodleDocs, https://docs.moodle.org/405/en/Grade_import
plain:    a column called id or student, and what else there is of name, email, extra_days, extra_time, github
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from threeloops.classroom.term import lists
from threeloops.classroom.term.languages import MAIL_HEADINGS, in_english
from threeloops.drills.engine.student_draws import plain_id

MOST_EXTRA_TIME = 4.0
# Columns that may hold the ids, per kind of list: the first one in which everybody has one of their own.
IDS = {
    "Canvas": ("sis login id", "sis user id", "id"),
    "Moodle": ("username", "id number", "email address"),
    "plain": ("student", "id"),
}
COLUMNS = {
    "email": MAIL_HEADINGS,
    "id_number": ("id number",),
    "sis_user_id": ("sis user id",),
    "sis_login_id": ("sis login id",),
    "section": ("section", "group", "groups"),
    "extra_days": ("extra days",),
    "extra_time": ("extra time",),
    "github": ("github", "github username"),
}


OTHER_IDS = ("id number", "sis user id", "sis login id", "username")


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """One student of the roster."""

    student: str  # the id: what they write into their notebooks, and what their numbers are drawn from
    name: str = ""
    email: str = ""
    id_number: str = ""
    canvas_id: str = ""
    sis_user_id: str = ""
    sis_login_id: str = ""
    section: str = ""
    extra_days: int = 0  # added to every due date
    extra_time: float = 1.0  # factor on the minutes of an exam
    github: str = ""  # what they are called there: a repository of theirs ends in it


HEADINGS = tuple(field.name for field in fields(Person))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassList:
    """What a class list says."""

    people: tuple[Person, ...]
    kind: str  # Canvas, Moodle or plain
    id_column: str


def class_list(path: Path, *, id_column: str | None = None) -> ClassList:
    """Read a class list and check it.

    Raises:   ValueError, in one sentence, for whatever would end in a wrong roster
    """
    headings, numbered = lists.rows(path)
    names, numbered = _translated(headings, numbered)
    kind = _kind(names)
    if kind == "Canvas":
        numbered = [row for row in numbered if _is_person(row[1], names[: names.index("id")])]
    if not numbered:
        raise ValueError(f"{path} lists nobody; expected a row for each student below the headings")
    column = _id_column(path, headings, names, numbered, kind, id_column)
    _check_cells(path, headings, names, numbered, column)
    people = [_person(path, line, row, kind=kind, column=column) for line, row in numbered]
    same = [student for student, times in Counter(plain_id(one.student) for one in people).items() if times > 1]
    if same:
        raise ValueError(
            f"{path}: two people have the id {same[0]!r} in column {column!r}; case and punctuation do not tell ids"
            " apart, so choose another column with --id"
        )
    for what, own in (("Canvas ID", "canvas_id"), ("e-mail address", "email")):
        numbers = Counter(getattr(one, own).casefold() for one in people if getattr(one, own))
        same = [number for number, times in numbers.items() if times > 1]
        if same:
            raise ValueError(
                f"{path}: two people have the {what} {same[0]!r}, so one would get the other's mark; take the list from"
                " the platform again"
            )
    return ClassList(people=tuple(people), kind=kind, id_column=headings[names.index(column)])


def _translated(
    headings: Sequence[str], numbered: Sequence[tuple[int, dict[str, str]]]
) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The headings as they are compared, in English where they are Moodle's in another language and nothing else has
    the name, and the rows with them.
    """
    compared = [lists.heading(one) for one in headings]
    english: dict[str, str] = {}
    for name in compared:
        meant = in_english(name)
        english[name] = name if meant in compared or meant in english.values() else meant
    rows = [(line, {english.get(name, name): cell for name, cell in row.items()}) for line, row in numbered]
    return [english[name] for name in compared], rows


def _check_cells(
    path: Path,
    headings: Sequence[str],
    names: Sequence[str],
    numbered: Sequence[tuple[int, dict[str, str]]],
    column: str,
) -> None:
    """Refuse ids that a spreadsheet has spoiled, and cells that have slipped under another heading."""
    ids = [name for name in (column, "id", *(name for name in names if name in OTHER_IDS)) if name in names]
    for line, row in numbered:
        for name in ids:
            how = lists.spoiled(row.get(name, ""))
            if how:
                raise ValueError(
                    f"{path}, line {line}: {row[name]!r} in column {headings[names.index(name)]!r} was {how}, and two"
                    " people may have the same; take the list from the platform again, and do not save it from a"
                    " spreadsheet, or format the column as text first"
                )
        for name in names:
            if name in COLUMNS["email"] and row.get(name) and "@" not in row[name]:
                raise ValueError(
                    f"{path}, line {line}: {row[name]!r} under {headings[names.index(name)]!r} is no e-mail address; a"
                    ' name with a comma must stand in quotes ("Lovelace, Ada")'
                )


def _kind(names: Sequence[str]) -> str:
    """Canvas calls its first column as its user's language does, or has two where names are split."""
    if {"student", "id", "section"} <= set(names) or {"id", "sis login id"} <= set(names[1:]):
        return "Canvas"
    moodle = {"first name", "full name", "firstname", "username"} & set(names) and "email address" in names
    return "Moodle" if moodle and not {"id", "student"} & set(names) else "plain"


def is_platforms(names: Sequence[str]) -> bool:
    """Are these the headings of a platform's list, in which the first column is a person's name?

    >>> is_platforms(["student", "id", "sis user id", "sis login id", "section"]), is_platforms(["student", "name"])
    (True, False)
    """
    english = [in_english(name) for name in names]
    known = {"id", "student", "username", "id number", "sis login id", "email address"} & set(english[1:])
    return bool(known) and (_kind(english) == "Canvas" or english[0] in ("first name", "last name", "full name"))


def _is_person(row: Mapping[str, str], columns: Sequence[str]) -> bool:
    """Not Canvas's rows of points and of how they are posted, nor its test student, whose login is a hash."""
    named = ", ".join(row[column] for column in columns if row.get(column))
    is_test = named in ("Student, Test", "Test Student") or re.fullmatch(r"[0-9a-f]{40}", row.get("sis login id", ""))
    return bool(named) and "Points Possible" not in named and not is_test


def _id_column(
    path: Path,
    headings: Sequence[str],
    names: Sequence[str],
    numbered: Sequence[tuple[int, dict[str, str]]],
    kind: str,
    asked: str | None,
) -> str:
    if asked is not None:
        compared = [lists.heading(one) for one in headings]
        if lists.heading(asked) not in compared:
            raise ValueError(f"{path} has no column {asked!r}; it has {', '.join(headings)}")
        column = names[compared.index(lists.heading(asked))]
        empty = [line for line, row in numbered if not plain_id(row.get(column, ""))]
        if empty:
            raise ValueError(f"{path}, line {empty[0]}: nobody can be told by an empty {asked!r}; choose another --id")
        return column
    for column in IDS[kind]:
        if column in names and all(plain_id(row.get(column, "")) for _, row in numbered):
            return column
    tried = {column: headings[names.index(column)] for column in IDS[kind] if column in names}
    for line, row in numbered:
        if blank := [row.get(column) or "none" for column in tried if not plain_id(row.get(column, ""))]:
            told = f"{' or '.join(tried.values())}, line {line} has {blank[0]}"
            raise ValueError(f"{path}: not everybody has an entry in {told}; --id COLUMN names another")
    has = f"has no column called id or student; its first line, the headings, has {', '.join(headings)}"
    raise ValueError(f"{path} {has}; --id COLUMN says which one holds the ids")


def _person(path: Path, line: int, row: Mapping[str, str], *, kind: str, column: str) -> Person:
    def cell(*names: str) -> str:
        return next((row[name] for name in names if row.get(name)), "")

    first = f"{cell('first name', 'firstname')} {cell('last name', 'lastname', 'surname')}".strip()
    given = {field: cell(*names) for field, names in COLUMNS.items()}
    try:
        days, time = _extra_days(given.pop("extra_days")), _extra_time(given.pop("extra_time"))
    except ValueError as error:
        raise ValueError(f"{path}, line {line}: {error}") from None
    return Person(
        student=row[column],
        name=cell("student") or first or cell(next(iter(row)))
        if kind == "Canvas"
        else cell("name", "full name") or first,
        canvas_id=cell("id") if kind == "Canvas" else cell("canvas id"),
        extra_days=days,
        extra_time=time,
        **given,
    )


def _extra_days(written: str) -> int:
    """
    >>> _extra_days(""), _extra_days("2")
    (0, 2)
    """
    if not re.fullmatch(r"\d{0,3}", written):
        raise ValueError(f"extra_days {written!r} must be a whole number of days, like 2, or empty")
    return int(written or 0)


def _extra_time(written: str) -> float:
    """
    >>> _extra_time(""), _extra_time("1,25")
    (1.0, 1.25)
    """
    try:
        factor = float(written.replace(",", ".") or 1)
    except ValueError:
        factor = 0.0
    if not 1 <= factor <= MOST_EXTRA_TIME:
        raise ValueError(f"extra_time {written!r} must be a factor from 1 to {MOST_EXTRA_TIME:g}, like 1.25, or empty")
    return factor


def kept(path: Path) -> list[Person]:
    """The roster of a term.

    Raises:   ValueError when there is none, or somebody has written into it what cannot be read
    """
    if not path.exists():
        raise ValueError(f"{path} is missing; `threeloops classroom roster CLASS.csv` makes it from a class list")
    _, numbered = lists.rows(path)
    found = []
    for line, row in numbered:
        own = {name: row.get(lists.heading(name), "") for name in HEADINGS}
        if not plain_id(own["student"]):
            raise ValueError(f"{path}, line {line}: nobody can be told by an empty id")
        try:
            days, time = _extra_days(own.pop("extra_days")), _extra_time(own.pop("extra_time"))
        except ValueError as error:
            raise ValueError(f"{path}, line {line}: {error}") from None
        found.append(Person(extra_days=days, extra_time=time, **own))
    return found


def _with_what_was_known(one: Person, old: Person) -> Person:
    """What a new list says nothing about stays as it was: names, the platform's numbers, what was granted."""
    days, time = one.extra_days or old.extra_days, one.extra_time if one.extra_time > 1 else old.extra_time
    told = {name: getattr(one, name) or getattr(old, name) for name in HEADINGS[1:]}
    return replace(one, **told | {"extra_days": days, "extra_time": time})


def keep(path: Path, listed: ClassList) -> list[str]:
    """Write the roster; what was known of somebody before stays where the new list says nothing about it. What there
    is to say: who came, who went, where the old roster is.
    """
    before = {plain_id(one.student): one for one in kept(path)} if path.exists() else {}
    now = []
    for one in listed.people:
        old = before.get(plain_id(one.student))
        now.append(_with_what_was_known(one, old) if old else one)
    said = []
    ids = {plain_id(one.student) for one in now}
    if before:
        came, went = sorted(ids - {*before}), sorted({*before} - ids)
        said += [f"New: {', '.join(came)}."] if came else []
        said += [f"No longer listed: {', '.join(went)}; what they handed in stays."] if went else []
        said.append(f"The old roster is kept as {lists.aside(path)}.")
    nameless = [one.student for one in now if not one.name]
    if nameless:
        said.append(
            f"No name is known of {len(nameless)}, {nameless[0]} among them: platforms call files by names, so theirs"
            " are found by the id alone. A column called name, or first name and last name, would tell them."
        )
    said += lists.shorter([one.student for one in now])
    lists.write(path, HEADINGS, [asdict(one) for one in now])
    return said

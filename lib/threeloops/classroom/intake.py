"""What was handed in: one reader's notebook, a folder of submissions, or a zip of uploads. Nothing is unpacked:
notebooks are read, one by one, and each is of the set whose questions stand in it, whatever it is called.
"""

import functools
import hashlib
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from threeloops import checks, contents, units
from threeloops.classroom import recognising, uploads
from threeloops.classroom.recognising import MOST_LOOKED_AT, Looked, looked_into, looked_through
from threeloops.classroom.transplant import UnparsableError, parsed, worked_in
from threeloops.classroom.uploads import Upload
from threeloops.drills.engine.student_draws import plain_id

# How learning platforms name uploads: Moodle's folders, Canvas's files. A name may hold anything, so the last number
# that fits is the platform's.
MOODLE = re.compile(r"^(?P<name>.+)_(?P<number>\d+)_assignsubmission_\w+$")
MOODLE_NO_GROUP = re.compile(r"^(?P<name>.+)_assignsubmission_\w+$")  # of whoever is in none, where groups hand in
CANVAS = re.compile(r"^(?P<name>.+?)_(?P<late>LATE_)?(?P<number>\d+)_\d+_.+$")
MARK = 12  # characters of a hash: nobody makes a name that has another's
APART = "~"  # between a name and what tells its bearers apart; no plain id holds one
MOST_NAMED = 5


Reader = Callable[[], bytes]  # of one file's bytes, one more than allowed at most


class Person(NamedTuple):
    """Who handed something in: never one person with anybody else, whatever they are called."""

    name: str
    own: str  # the platform's number, or the folder's name to the letter


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One student's file, or the lack of one."""

    student: str  # as graded: a plain id, with `~` and a number or a mark where others have the same
    folder: str  # as handed in
    read: Reader | None  # None: no notebook of the set was handed in
    problem: str = ""
    own: str = ""  # the platform's number of the person, or the folder's name to the letter
    label: str = ""  # what the file that counts is called there, or the first one where none does
    chosen: str = ""  # why this file counts, where another one was handed in, too
    with_others: str = ""  # of a group: whose hand-in counts for this one, too
    others: tuple[str, ...] = ()  # a phrase for each file that is no hand-in of this set: its name and what it is

    @property
    def content(self) -> bytes | None:
        """The file's bytes, read now and kept nowhere: a class does not fit into memory."""
        return self.read() if self.read else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedIn:
    """A class's folder or zip, as it is graded."""

    name: str  # of the drill set
    submissions: list[Submission]  # one per student
    left_out: tuple[str, ...] = ()  # a sentence each


def whose_numbers(student: str) -> str:
    """The id that a student's numbers are drawn from: that of the name, which is all that the student's own copy
    knows.

    >>> whose_numbers("john-smith~101"), whose_numbers("Ada.Lovelace")
    ('john-smith', 'ada-lovelace')
    """
    return plain_id(student.partition(APART)[0])


def person(label: str) -> Person:
    """The student in what a folder or an uploaded file is called.

    >>> person("Ada Lovelace_123456_assignsubmission_file_/kv_cache.ipynb")
    Person(name='Ada Lovelace', own='123456')
    >>> person("lovelaceada_LATE_77_88_kv_cache.ipynb"), person("ada/kv_cache.ipynb")
    (Person(name='lovelaceada', own='77'), Person(name='ada', own='ada'))
    """
    top, _, rest = label.partition("/")
    match = MOODLE.match(top) or (None if rest else CANVAS.match(top))
    if match:
        return Person(match["name"], match["number"])
    of_no_group = MOODLE_NO_GROUP.match(top)
    return Person(of_no_group["name"] if of_no_group else top.removesuffix(".ipynb"), top)


def lone_notebook(path: Path, sets: Sequence[str]) -> tuple[str, Path] | None:
    """(drill set, notebook) when the path is one reader's notebook or the folder with it; None when it is a
    class's. Of several in a folder the one that was worked in; those that the book puts beside it, NAME.….ipynb, wait
    to be named themselves.
    """
    if path.is_file() and path.suffix.casefold() == ".ipynb":
        name = path.name.split(".")[0]  # kv_cache.edition-….ipynb is a new edition beside the reader's own copy
        name = name if name in sets else recognising.set_within(_of_file(path).read(), sets) or ""
        return (name, path) if name else None
    if not path.is_dir() or any(_of_a_student(entry) for entry in path.iterdir()):
        return None
    found: dict[str, list[Looked]] = {}
    for file in sorted(path.glob("*.ipynb")):
        looked = looked_into(_of_file(file), sets)
        if looked.of and not re.match(rf"{re.escape(looked.of)}\.(?!ipynb$)", file.name):
            found.setdefault(looked.of, []).append(looked)
    if len(found) != 1:
        return None
    ((name, files),) = found.items()
    best, _ = _best(sorted(files, key=lambda one: one.upload.label == f"{path.name}/{name}.ipynb"), name)
    return name, path / Path(best.upload.label).name


def _of_file(file: Path) -> Upload:
    return uploads.of_file(file, f"{file.resolve().parent.name}/{file.name}")


def _of_a_student(entry: Path) -> bool:
    """Does this lie there as a class's hand-ins do: a folder with a notebook, or a file that a platform has named?"""
    if entry.name.startswith(".") or entry.is_symlink():
        return False
    return any(entry.rglob("*.ipynb")) if entry.is_dir() else bool(CANVAS.match(entry.name))


def handed_in(path: Path, sets: Sequence[str], roster: Sequence[str] = (), *, drill_set: str | None = None) -> HandedIn:
    """What a class's folder or zip holds of one set, with the students of the class list who handed in nothing. Which
    set: the one asked for, otherwise the one that most have handed in.

    Raises:   ValueError when there is nothing to grade, or as much of one set as of another
    """
    if drill_set is not None:
        checks.one_of(sets, drill_set=drill_set)
    one_student = path.suffix == ".ipynb" or lone_notebook(path, sets) is not None
    if path.is_file() and not one_student and not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is neither a notebook, a folder nor a zip of notebooks")
    if not path.exists():
        raise ValueError(f"{path} does not exist; give a notebook, a folder of submissions or a zip of uploads")
    left_out: list[str] = []
    people: dict[Person, list[Looked]] = {}
    for whose, files in _by_person(path, left_out, one_student=one_student).items():
        people[whose] = looked_through(files, sets, drill_set)
    of_sets = {name: sum(any(one.of == name for one in files) for files in people.values()) for name in sets}
    name = drill_set or _usual({one: times for one, times in of_sets.items() if times}, path, sets)
    for other, times in of_sets.items():
        if times and other != name:
            left_out.append(f"{other}, handed in by {times}; --set {other} grades that")
    present = {plain_id(one.name) for one in people}
    for listed in roster:
        if plain_id(listed) not in present:
            people.setdefault(Person(listed, listed), [])
    return HandedIn(name=name, submissions=_submissions(people, name), left_out=tuple(left_out))


def of_one(folder: Path, student: str, sets: Sequence[str], name: str) -> Submission:
    """What one student has handed in of a set, where a folder holds that student's files alone and another program has
    said whose it is.
    """
    files = [one for one in uploads.of_person(folder, []) if not one.label.endswith("/")]
    (found,) = _submissions({Person(student, student): looked_through(files, sets, name)}, name)
    return found


def _usual(holders: dict[str, int], path: Path, sets: Sequence[str]) -> str:
    """The set that most people have handed in."""
    if not holders:
        raise ValueError(f"{path} holds no notebook of a drill set; one run grades one of: {', '.join(sets)}")
    most = [name for name, people in holders.items() if people == max(holders.values())]
    if len(most) > 1:
        raise ValueError(
            f"{path} holds as many notebooks of {' as of '.join(sorted(most))}; --set {most[0]} says which to grade"
        )
    return most[0]


def _by_person(path: Path, left_out: list[str], *, one_student: bool) -> dict[Person, list[Upload]]:
    """All students' files, in the order of their names."""
    if one_student:
        files = [path] if path.is_file() else sorted(path.glob("*.ipynb"))
        found: Iterator[Upload] = map(_of_file, files)
    else:
        found = uploads.in_zip(path, left_out) if path.is_file() else uploads.in_folder(path, left_out)
    people: dict[Person, list[Upload]] = {}
    for upload in sorted(found, key=lambda one: one.label):
        loose = "/" not in upload.label and not CANVAS.match(upload.label)
        if loose and (path.is_dir() or not upload.label.endswith(".ipynb")):
            left_out.append(f"{upload.label!r}, which lies in no student's folder")
            continue
        files_of = people.setdefault(person(upload.label), [])
        if not upload.label.endswith("/"):
            files_of.append(upload)
    return people


def _submissions(people: dict[Person, list[Looked]], name: str) -> list[Submission]:
    """One submission per person, each under an id of its own."""
    bearers = Counter(plain_id(one.name) for one in people)
    submissions = []
    for one, files in people.items():
        student, problems = plain_id(one.name), []
        if not student:
            problems.append(f"{one.name!r} holds no letter and no digit to tell whose it is")
        elif bearers[student] > 1:
            problems.append(f"{bearers[student]} people are called {student}; this one is {one.name!r}, {one.own}")
        if problems:
            student += APART + _apart(one.own)
        own = [file for file in files if file.of == name]
        best, chosen = _best(own, name) if own else (None, "")
        submissions.append(
            Submission(
                student=student,
                folder=one.name,
                read=best.upload.read if best else None,
                problem="; ".join([*problems, *filter(None, [chosen])]),
                own=one.own,
                label=(best or files[0]).upload.label if files else "",
                chosen=chosen,
                others=_named([file for file in files if file.of != name], handed_in=bool(best)),
            )
        )
    return sorted(submissions, key=lambda one: one.student)


def _best(files: Sequence[Looked], name: str) -> tuple[Looked, str]:
    """Of several notebooks the one with most answers, of as many the last; and a sentence that says so."""
    if len(files) == 1:
        return files[0], ""
    answers = [_answers(one, name) for one in files[-MOST_LOOKED_AT:]]
    most = max(range(len(answers)), key=lambda number: (answers[number], number))
    best = files[-MOST_LOOKED_AT:][most]
    told = [
        f"{one.upload.shown!r} {_in_words(n)}"
        for one, n in zip(files[-MOST_LOOKED_AT:], answers, strict=True)
        if one is not best
    ]
    more = [f"and {len(told) - MOST_NAMED} more"] * (len(told) > MOST_NAMED)
    return best, (
        f"two notebooks or more under this name; {best.upload.shown!r} counts, which {_in_words(answers[most])};"
        f" {', '.join([*told[:MOST_NAMED], *more])}"
    )


def _in_words(answers: int) -> str:
    return "cannot be read" if answers < 0 else f"holds {units.counted(answers, 'answer')}"


def _answers(one: Looked, name: str) -> int:
    """How many answers were written in a notebook; less than none where it cannot be read."""
    try:
        return worked_in(_release(contents.book_root(), name), parsed(one.upload.read()))
    except UnparsableError:
        return -1


@functools.cache
def _release(root: Path, name: str) -> dict[str, object]:
    path = root / "drills" / name / f"{name}.ipynb"
    found: dict[str, object] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"cells": []}
    return found


def _named(files: Sequence[Looked], *, handed_in: bool) -> tuple[str, ...]:
    """A phrase for each of the first files, and how many more there are. Copies that a program keeps are of interest
    only where there is nothing else.
    """
    files = [one for one in files if not (handed_in and uploads.CHECKPOINTS in one.upload.shown)]
    told = [f"{one.upload.shown!r} is {one.told or f'a notebook of {one.of}'}" for one in files[:MOST_NAMED]]
    return (*told, *[f"and {len(files) - MOST_NAMED:,} more files"] * (len(files) > MOST_NAMED))


def _apart(own: str) -> str:
    """What tells a person from others of the same name, as part of an id."""
    return own if own.isdecimal() and own.isascii() else hashlib.sha256(own.encode(errors="replace")).hexdigest()[:MARK]

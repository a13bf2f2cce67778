"""What was handed in: one reader's notebook, a folder of submissions, or a zip of uploads. Nothing is unpacked:
notebooks are read, one by one.
"""

import hashlib
import itertools
import re
import stat
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from threeloops import checks
from threeloops.classroom.transplant import LARGEST_FILE_BYTES
from threeloops.drills.engine.student_draws import plain_id

# How learning platforms name uploads: Moodle's folders, Canvas's files. A name may hold anything, so the last number
# that fits is the platform's.
MOODLE = re.compile(r"^(?P<name>.+)_(?P<number>\d+)_assignsubmission_\w+$")
CANVAS = re.compile(r"^(?P<name>.+?)_(?P<late>LATE_)?(?P<number>\d+)_\d+_.+$")
MOST_FILES = 10_000
# As platforms pack. What is packed otherwise is unpacked without a limit: a few kilobytes fill the memory.
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
MARK = 12  # characters of a hash: nobody makes a name that has another's
APART = "~"  # between a name and what tells its bearers apart; no plain id holds one


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
    read: Reader | None  # None: nothing was handed in
    problem: str = ""
    own: str = ""  # the platform's number of the person, or the folder's name to the letter
    label: str = ""  # what the file that counts is called there

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
    return Person(match["name"], match["number"]) if match else Person(top.removesuffix(".ipynb"), top)


def lone_notebook(path: Path, sets: Sequence[str]) -> tuple[str, Path] | None:
    """(drill set, notebook) when the path is one reader's notebook or the folder with it; None when it is a
    class's.
    """
    if path.is_file() and path.suffix == ".ipynb":
        name = path.name.split(".")[0]  # kv_cache.edition-….ipynb is a new edition beside the reader's own copy
        return (name, path) if name in sets else None
    if not path.is_dir() or any(_of_a_student(entry) for entry in path.iterdir()):
        return None
    named = [(name, path / f"{name}.ipynb") for name in sets if (path / f"{name}.ipynb").is_file()]
    return named[0] if len(named) == 1 else None


def _of_a_student(entry: Path) -> bool:
    """Does this lie there as a class's hand-ins do: a folder with a notebook, or a file that a platform has named?"""
    if entry.name.startswith(".") or entry.is_symlink():
        return False
    return any(entry.rglob("*.ipynb")) if entry.is_dir() else bool(CANVAS.match(entry.name))


def handed_in(path: Path, sets: Sequence[str], roster: Sequence[str] = (), *, drill_set: str | None = None) -> HandedIn:
    """What a class's folder or zip holds of one set, with whoever on the class list handed in nothing. Which set:
    the one asked for, otherwise the one that most have handed in.

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
    labels = sorted(_labelled(path, left_out, one_student=one_student), key=itemgetter(0))
    of_sets = {name: {person(label) for label, _ in labels if _is_of(label, name)} for name in sets}
    name = drill_set or _usual({one: len(people) for one, people in of_sets.items() if people}, path, sets)
    for other, people_of_it in of_sets.items():
        if people_of_it and other != name:
            left_out.append(f"{other}, handed in by {len(people_of_it)}; --set {other} grades that")
    people: dict[Person, list[tuple[str, Reader]]] = {}
    for label, read in labels:
        files = people.setdefault(person(label), [])
        if read and _is_of(label, name):
            files.append((label, read))
    present = {plain_id(one.name) for one in people}
    for listed in roster:
        if plain_id(listed) not in present:
            people.setdefault(Person(listed, listed), [])
    return HandedIn(name=name, submissions=_submissions(people), left_out=tuple(left_out))


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


def _submissions(people: dict[Person, list[tuple[str, Reader]]]) -> list[Submission]:
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
        if len(files) > 1:
            problems.append(f"two notebooks or more under this name; {files[-1][0]!r} counts")
        submissions.append(
            Submission(
                student=student,
                folder=one.name,
                read=files[-1][1] if files else None,
                problem="; ".join(problems),
                own=one.own,
                label=files[-1][0] if files else "",
            )
        )
    return sorted(submissions, key=lambda one: one.student)


def _apart(own: str) -> str:
    """What tells a person from others of the same name, as part of an id."""
    return own if own.isdecimal() and own.isascii() else hashlib.sha256(own.encode(errors="replace")).hexdigest()[:MARK]


def _is_of(label: str, name: str) -> bool:
    """Is this file a notebook of that set, however a platform has renamed it?"""
    return (
        bool(re.search(rf"(^|[/_]){re.escape(name)}([ _-]?\(?\d+\)?)?\.ipynb$", label))
        and ".ipynb_checkpoints" not in label
    )


def _labelled(path: Path, left_out: list[str], *, one_student: bool) -> Iterator[tuple[str, Reader | None]]:
    """(label, reader) of everything there; one student's folder, or the notebook in it, is labelled as in a class's."""
    if one_student:
        folder = path.resolve().parent if path.is_file() else path.resolve()
        for file in [path] if path.is_file() else sorted(path.glob("*.ipynb")):
            yield f"{folder.name}/{file.name}", partial(_from_file, file)
    else:
        yield from _in_zip(path, left_out) if path.is_file() else _in_folder(path, left_out)


def _in_folder(path: Path, left_out: list[str]) -> Iterator[tuple[str, Reader | None]]:
    """(path below the folder, its reader) of every notebook; a student's folder without one has no reader. Links are
    not followed.
    """
    for entry in sorted(path.iterdir()):
        if entry.is_symlink() or entry.name.startswith("."):
            continue
        found = [entry] if entry.is_file() else list(itertools.islice(entry.rglob("*.ipynb"), MOST_FILES))
        if len(found) == MOST_FILES:
            left_out.append(f"what {entry.name!r} holds beyond {MOST_FILES:,} notebooks")
        files = [file for file in sorted(found) if file.is_file() and not file.is_symlink()]
        if entry.is_dir() and not files:
            yield f"{entry.name}/", None
        for file in files:
            if file.parent == path and not CANVAS.match(file.name):
                left_out.append(f"{file.name!r}, which lies in no student's folder")
                continue
            if file.suffix == ".ipynb" and not any(
                parent.is_symlink() for parent in file.parents if parent.is_relative_to(path) and parent != path
            ):
                yield file.relative_to(path).as_posix(), partial(_from_file, file)


def _from_file(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(LARGEST_FILE_BYTES + 1)
    except OSError:
        return b""


def _in_zip(path: Path, left_out: list[str]) -> Iterator[tuple[str, Reader | None]]:
    """The same for a zip. A member's path is a label here and is never written to; one that leads out of the zip is
    left out, because it would pass for somebody else's.
    """
    with zipfile.ZipFile(path) as archive:
        for number, member in enumerate(archive.infolist()):
            parts = PurePosixPath(member.filename.replace("\\", "/")).parts
            if {"/", "//", ".."} & set(parts):
                left_out.append(f"{member.filename!r} leads out of the zip")
                continue
            if not parts or parts[0].startswith((".", "__MACOSX")) or stat.S_ISLNK(member.external_attr >> 16):
                continue
            if member.is_dir():
                yield parts[0] + "/", None
            elif parts[-1].endswith(".ipynb"):
                if member.compress_type not in PACKED:
                    left_out.append(f"what {member.filename!r} holds: packed otherwise than by deflate, it is not read")
                yield "/".join(parts), partial(_from_zip, path, number)


def _from_zip(path: Path, number: int) -> bytes:
    """One member, by its number: two may have the same name."""
    try:
        with zipfile.ZipFile(path) as archive:
            member = archive.infolist()[number]
            if member.compress_type not in PACKED:
                return b""
            with archive.open(member) as stream:
                return stream.read(LARGEST_FILE_BYTES + 1)
    except Exception:  # damaged or encrypted, each way with an error of its own: judged as an empty file
        return b""

"""What was handed in: one reader's notebook, a folder of submissions, or a zip of uploads. Nothing is unpacked:
notebooks are read, one by one.
"""

import re
import stat
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from threeloops.classroom.transplant import LARGEST_FILE_BYTES
from threeloops.drills.engine.posed import plain_id

# How learning platforms name uploads: Moodle's folders, Canvas's files.
MOODLE = re.compile(r"^(?P<student>.+?)_\d+_assignsubmission_\w+$")
CANVAS = re.compile(r"^(?P<student>[^_]+)_(?:LATE_)?\d+_\d+_.+$")
MOST_FILES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One student's file, or the lack of one."""

    student: str  # as graded: a plain id
    folder: str  # as handed in
    content: bytes | None  # None: nothing was handed in
    problem: str = ""


def student_of(label: str) -> str:
    """The student's name in what a folder or an uploaded file is called.

    >>> (
    ...     student_of("Ada Lovelace_123456_assignsubmission_file"),
    ...     student_of("lovelaceada_LATE_77_88_kv_cache.ipynb"),
    ...     student_of("ada/kv_cache.ipynb"),
    ... )
    ('Ada Lovelace', 'lovelaceada', 'ada')
    """
    top, _, rest = label.partition("/")
    match = MOODLE.match(top) or (None if rest else CANVAS.match(top))
    return match["student"] if match else top.removesuffix(".ipynb")


def lone_notebook(path: Path, sets: Sequence[str]) -> tuple[str, Path] | None:
    """(drill set, notebook) when the path is one reader's notebook or the folder with it; None when it is a
    class's.
    """
    if path.is_file() and path.suffix == ".ipynb":
        name = path.name.split(".")[0]  # kv_cache.edition-….ipynb is a new edition beside the reader's own copy
        return (name, path) if name in sets else None
    named = (
        [(name, path / f"{name}.ipynb") for name in sets if (path / f"{name}.ipynb").is_file()] if path.is_dir() else []
    )
    return named[0] if len(named) == 1 else None


def handed_in(path: Path, sets: Sequence[str], roster: Sequence[str] = ()) -> tuple[str, list[Submission]]:
    """(drill set, one submission per student) of a class's folder or zip.

    Raises:   ValueError when there is nothing to grade, or notebooks of several sets
    """
    if path.is_file() and not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is neither a notebook, a folder nor a zip of notebooks")
    if not path.exists():
        raise ValueError(f"{path} does not exist; give a notebook, a folder of submissions or a zip of uploads")
    labels = dict(_in_zip(path) if path.is_file() else _in_folder(path))
    found = {name for label in labels for name in sets if _is_of(label, name)}
    if len(found) != 1:
        there = f"notebooks of several sets ({', '.join(sorted(found))})" if found else "no notebook of a drill set"
        raise ValueError(f"{path} holds {there}; one run grades one of: {', '.join(sets)}")
    (name,) = found
    students: dict[str, Submission] = {}
    for label, content in sorted(labels.items()):
        folder = student_of(label)
        student = plain_id(folder)
        if student and _is_of(label, name):
            students[student] = _merged(
                students.get(student), Submission(student=student, folder=folder, content=content or b"")
            )
        elif student and student not in students:
            students[student] = Submission(student=student, folder=folder, content=None)
    for listed in roster:
        if plain_id(listed):
            students.setdefault(plain_id(listed), Submission(student=plain_id(listed), folder=listed, content=None))
    return name, [students[student] for student in sorted(students)]


def _merged(before: Submission | None, new: Submission) -> Submission:
    """Two notebooks under one name: say so, and take the last by name."""
    if before is None or before.content is None:
        return new
    return Submission(
        student=new.student,
        folder=new.folder,
        content=new.content,
        problem="two notebooks under this name; the last one counts",
    )


def _is_of(label: str, name: str) -> bool:
    """Is this file a notebook of that set, however a platform has renamed it?"""
    return (
        bool(re.search(rf"(^|[/_]){re.escape(name)}([ _-]?\(?\d+\)?)?\.ipynb$", label))
        and ".ipynb_checkpoints" not in label
    )


def _in_folder(path: Path) -> Iterator[tuple[str, bytes | None]]:
    """(path below the folder, content) of every notebook; a student's folder without one has content None. Links are
    not followed.
    """
    for entry in sorted(path.iterdir()):
        if entry.is_symlink() or entry.name.startswith("."):
            continue
        files = (
            [entry]
            if entry.is_file()
            else [file for file in sorted(entry.rglob("*.ipynb")) if file.is_file() and not file.is_symlink()]
        )
        if entry.is_dir() and not files:
            yield f"{entry.name}/", None
        for file in files[:MOST_FILES]:
            if file.suffix == ".ipynb" and not any(
                parent.is_symlink() for parent in file.parents if parent.is_relative_to(path) and parent != path
            ):
                yield file.relative_to(path).as_posix(), _limited(file)


def _limited(file: Path) -> bytes:
    """A file's bytes, one more than allowed at most."""
    try:
        with file.open("rb") as stream:
            return stream.read(LARGEST_FILE_BYTES + 1)
    except OSError:
        return b""


def _in_zip(path: Path) -> Iterator[tuple[str, bytes | None]]:
    """The same for a zip. A member's path is a label here and is never written to, so that ../ leads nowhere."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist()[:MOST_FILES]:
            parts = [
                part for part in PurePosixPath(member.filename.replace("\\", "/")).parts if part not in ("/", "..", ".")
            ]
            if not parts or parts[0].startswith((".", "__MACOSX")) or stat.S_ISLNK(member.external_attr >> 16):
                continue
            if member.is_dir():
                yield parts[0] + "/", None
            elif parts[-1].endswith(".ipynb"):
                try:
                    with archive.open(member) as stream:
                        yield "/".join(parts), stream.read(LARGEST_FILE_BYTES + 1)
                except Exception:  # damaged or encrypted, each way with an error of its own: judged as an empty file
                    yield "/".join(parts), b""

"""The files of a class as they lie in a folder, in a platform's zip, or in a zip that a student handed in. Nothing is
unpacked and no link is followed: each file is opened when it is read, and up to a limit.
"""

import contextlib
import io
import itertools
import re
import stat
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from threeloops.classroom.sources_only import PIECE_BYTES, shortened
from threeloops.classroom.transplant import LARGEST_FILE_BYTES

MOST_FILES = 10_000
START_BYTES = 4_096
MOST_WITHIN = 2_000  # files of a zip that a student handed in
# As platforms pack. What is packed otherwise is unpacked without a limit: a few kilobytes fill the memory.
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What systems, nbgrader and this grader put beside a hand-in.
SYSTEMS = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini", ".git", ".github", ".gitignore"}
NOBODYS = SYSTEMS | {"timestamp.txt", "submission_secret.txt"}
ASIDE = re.compile(r"^\._|\.earlier-\d+$")
CHECKPOINTS = ".ipynb_checkpoints"
LINK = "a link, which is not followed"

Reader = Callable[[], bytes]  # of one file's bytes, one more than allowed at most
Opener = Callable[[], contextlib.AbstractContextManager[IO[bytes]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """One file, or a person's folder without any."""

    label: str  # its path as the platform or the folder has it; of a folder without files, with a / behind
    inside: str = ""  # its path within a zip that was handed in
    size: int = 0  # bytes, as far as the folder or the zip says
    opened: Opener | None = None  # None: a folder without files, or not to be opened, and `why` says why
    why: str = ""

    @property
    def shown(self) -> str:
        """As a sentence names it."""
        return f"{self.label}/{self.inside}" if self.inside else self.label

    def read(self) -> bytes:
        """Its bytes; of a large notebook without its outputs. A file that cannot be read is an empty one."""
        return self._with(lambda stream: shortened(_pieces(stream), LARGEST_FILE_BYTES)[: LARGEST_FILE_BYTES + 1])

    def read_start(self) -> bytes:
        """Its first bytes."""
        return self._with(lambda stream: stream.read(START_BYTES))

    def read_packed(self) -> bytes:
        """Its bytes as they are, one more than allowed at most."""
        return self._with(lambda stream: stream.read(LARGEST_FILE_BYTES + 1))

    def _with(self, take: Callable[[IO[bytes]], bytes]) -> bytes:
        if self.opened is None:
            return b""
        try:
            with self.opened() as stream:
                return take(stream)
        except Exception:  # damaged, encrypted or gone, each with an error of its own
            return b""


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(PIECE_BYTES):
        yield piece


def is_nobodys(path: str) -> bool:
    """Does a system or a program put such a file there, whatever a student hands in?

    >>> is_nobodys("__MACOSX/ada/._kv_cache.ipynb"), is_nobodys("ada/kv_cache.ipynb")
    (True, False)
    """
    parts = PurePosixPath(path).parts
    return bool(NOBODYS & set(parts)) or any(ASIDE.search(part) for part in parts)


def _open_file(path: Path) -> IO[bytes]:
    return path.open("rb")


def of_file(file: Path, label: str) -> Upload:
    """One file of a folder, as it is called in a class's."""
    try:
        size = file.stat().st_size
    except OSError:
        size = 0
    return Upload(label=label, size=size, opened=partial(_open_file, file), why=_kept_by(label))


def _kept_by(label: str) -> str:
    return "a checkpoint that Jupyter keeps, not the notebook itself" if CHECKPOINTS in label.split("/") else ""


def in_folder(path: Path, left_out: list[str]) -> Iterator[Upload]:
    """Everything that lies in a class's folder; a sentence for what is nobody's."""
    for entry in sorted(path.iterdir()):
        if is_nobodys(entry.name) or entry.name == CHECKPOINTS:
            continue
        if entry.name.startswith("."):
            left_out.append(f"{entry.name!r}, whose name begins with a dot")
        elif entry.is_symlink():
            yield Upload(label=entry.name, why=LINK)
        elif entry.is_dir():
            yield from of_person(entry, left_out)
        else:
            yield _as_it_is(entry, entry.name)


def of_person(folder: Path, left_out: list[str]) -> Iterator[Upload]:
    """What lies in one person's folder, notebooks first where there is too much of it."""
    path = folder.parent
    found = list(itertools.islice(folder.rglob("*"), MOST_FILES))
    if len(found) == MOST_FILES:
        left_out.append(f"what {folder.name!r} holds beyond {MOST_FILES:,} files and as many notebooks")
        found = sorted({*found, *itertools.islice(folder.rglob("*.ipynb"), MOST_FILES)})
    yield Upload(label=f"{folder.name}/")
    for file in sorted(found):
        label = file.relative_to(path).as_posix()
        behind_a_link = any(
            parent.is_symlink() for parent in file.parents if parent.is_relative_to(path) and parent != path
        )
        if behind_a_link or is_nobodys(label) or (file.is_dir() and not file.is_symlink()):
            continue
        yield _as_it_is(file, label)


def _as_it_is(file: Path, label: str) -> Upload:
    if file.is_symlink():
        return Upload(label=label, why=LINK)
    return of_file(file, label) if file.is_file() else Upload(label=label, why="no file, but a device or a pipe")


def in_zip(path: Path, left_out: list[str]) -> Iterator[Upload]:
    """The same for a platform's zip. A member's path is a label here and is never written to; one that leads out of
    the zip is left out, because it would pass for somebody else's.
    """
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            parts = PurePosixPath(member.filename.replace("\\", "/")).parts
            if {"/", "//", ".."} & set(parts):
                left_out.append(f"{member.filename!r} leads out of the zip")
                continue
            if not parts or is_nobodys(member.filename):
                continue
            if parts[0].startswith("."):
                left_out.append(f"{member.filename!r}, whose name begins with a dot")
            elif member.is_dir():
                yield Upload(label=parts[0] + "/")
            else:
                if member.compress_type not in PACKED:
                    left_out.append(f"what {member.filename!r} holds: packed otherwise than by deflate, it is not read")
                yield _member(member, "/".join(parts), partial(_open_member, partial(_open_file, path), member))


def _member(member: zipfile.ZipInfo, label: str, opened: Opener, inside: str = "") -> Upload:
    if stat.S_ISLNK(member.external_attr >> 16):
        return Upload(label=label, inside=inside, why=LINK)
    return Upload(label=label, inside=inside, size=member.file_size, opened=opened, why=_kept_by(inside or label))


class _KnownZip(zipfile.ZipFile):
    """A zip that is opened for a member of which all is known: its list is not read again for each of them."""

    def _RealGetContents(self) -> None:  # zipfile's own; a Python that calls it otherwise reads the list
        pass


@contextlib.contextmanager
def _open_member(opened: Opener, member: zipfile.ZipInfo) -> Iterator[IO[bytes]]:
    """One member of a zip, by its entry in the list: two may have the same name."""
    with opened() as stream, _KnownZip(stream) as archive:
        if member.compress_type not in PACKED:
            raise ValueError("packed otherwise than by deflate")
        with archive.open(member) as content:
            yield content


def within(upload: Upload) -> list[Upload]:
    """The files of a zip that a student handed in, each under that zip's label; one file that says why where it cannot
    be looked into.
    """
    packed = upload.read_packed()
    if len(packed) > LARGEST_FILE_BYTES:
        return [_unopened(upload, f"a zip of more than {LARGEST_FILE_BYTES:,} bytes")]
    if packed.count(b"PK\x01\x02") > MOST_WITHIN:
        return [_unopened(upload, f"a zip of more than {MOST_WITHIN:,} files")]
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            members = archive.infolist()
    except Exception:  # each way to be damaged has an error of its own
        return [_unopened(upload, "a zip that is damaged")]
    del packed
    found = []
    for member in members:
        path = PurePosixPath(member.filename.replace("\\", "/")).as_posix()
        if not member.is_dir() and path != "." and not is_nobodys(path):
            opened = partial(_open_member, partial(_unpacked, upload), member)
            found.append(_member(member, upload.label, opened, path))
    return found or [_unopened(upload, "a zip without files")]


def _unopened(upload: Upload, why: str) -> Upload:
    return Upload(label=upload.label, why=why)


def _unpacked(upload: Upload) -> IO[bytes]:
    return io.BytesIO(upload.read_packed())

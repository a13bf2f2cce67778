"""What somebody hands in instead of a file: each case between two honest students, who are read as if it were not
there.
"""

import os
import socket
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from submissions import SETS

from threeloops.classroom.intake import HandedIn, handed_in
from threeloops.classroom.report import Result, write_grades

SET = "kv_cache"
FILE = f"{SET}.ipynb"
HONEST = {"ada": b"1", "zoe": b"2"}
MOST_BYTES = 70_000_000  # a few times the largest file that is read


def device(folder: Path) -> None:
    try:
        os.mknod(folder / FILE, 0o20666, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("only root makes device files")


def bound(folder: Path) -> None:
    """A socket; its address may not be long."""
    with socket.socket(socket.AF_UNIX) as line:
        before = Path.cwd()
        os.chdir(folder)
        try:
            line.bind(FILE)
        finally:
            os.chdir(before)


def deep(folder: Path) -> None:
    """Folders below folders, as deep as a path may be written."""
    place = folder
    while len(str(place)) < 3_500:
        place = place / ("x" * 200)
    place.mkdir(parents=True)
    (place / FILE).write_bytes(b"deep")


def looped(folder: Path) -> None:
    (folder / "again").symlink_to(folder)
    (folder / "up").symlink_to(folder.parent)
    (folder / FILE).symlink_to(folder / FILE)


def many(folder: Path) -> None:
    for number in range(1_000):
        (folder / f"{number}.ipynb").touch()


def hole(folder: Path) -> None:
    with (folder / FILE).open("wb") as file:
        file.truncate(10**12)


FOLDERS: dict[str, Callable[[Path], object]] = {
    "fifo": lambda folder: os.mkfifo(folder / FILE),
    "device": device,
    "socket": bound,
    "folder-for-a-file": lambda folder: (folder / FILE).mkdir(),
    "link-to-a-secret": lambda folder: (folder / FILE).symlink_to("/etc/shadow"),
    "link-to-nothing": lambda folder: (folder / FILE).symlink_to("/nowhere"),
    "link-to-a-neighbour": lambda folder: (folder / FILE).symlink_to(folder.parent / "ada" / FILE),
    "hard-link": lambda folder: os.link(folder.parent / "ada" / FILE, folder / FILE),
    "loop": looped,
    "deep": deep,
    "many": many,
    "hole": hole,
}
NAMES = {
    "control": b"\x1b[31m\x07\r\nred",
    "no-unicode": b"\xff\xfe",
    "formula": b"=cmd|' x'!A0",
    "right-to-left": "\u202egnp.exe".encode(),
    "dashes": b"--into",
    "quote": b'"; rm -rf x; "',
    "neighbours": b" ADA ",
    "long": b"x" * 255,
}


def everybody(found: HandedIn, others: int) -> None:
    """The honest are read, and whoever else there is has an id that can be written."""
    content = {one.student: one.read() for one in found.submissions if one.read and one.folder in HONEST}
    assert sorted(content.values()) == sorted(HONEST.values())
    assert len(found.submissions) == len(HONEST) + others
    assert len({one.student for one in found.submissions}) == len(found.submissions)
    for one in found.submissions:
        f"{one.student} {one.problem}".encode()
        assert one.student.isprintable()
        assert not one.student.startswith(("=", "-", "+", "@"))


@pytest.fixture
def little_memory() -> Iterator[None]:
    tracemalloc.start()
    yield
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < MOST_BYTES


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for student, content in HONEST.items():
        (tmp_path / student).mkdir()
        (tmp_path / student / FILE).write_bytes(content)
    return tmp_path


@pytest.mark.skipif(os.name != "posix", reason="such files are Unix's")
@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.usefixtures("little_memory")
def test_what_is_no_file_is_nobodys_trouble(name: str, place: Path) -> None:
    (place / "mallory").mkdir()
    FOLDERS[name](place / "mallory")
    found = handed_in(place, SETS)
    everybody(found, others=1)
    (one,) = [one for one in found.submissions if one.student == "mallory"]
    content = one.read() if one.read else None
    assert content in (None, b"", b"1", b"deep") or len(content) <= 20_000_001
    assert name == "hard-link" or content != b"1", "a neighbour's file is reached by no link that can be handed in"


@pytest.mark.skipif(os.name != "posix", reason="other systems forbid such names")
@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_no_command(name: str, place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = os.fsencode(place) + b"/" + NAMES[name]
    os.mkdir(folder)
    with open(folder + b"/" + FILE.encode(), "wb") as file:
        file.write(b"3")
    found = handed_in(place, SETS)
    if name == "neighbours":
        assert sorted(one.read() for one in found.submissions if one.read) == [b"1", b"2", b"3"]
        assert {one.student.partition("~")[0] for one in found.submissions} == {"ada", "zoe"}
    else:
        everybody(found, others=1)
    table = tmp_path_factory.mktemp("table") / "grades.csv"
    write_grades(
        table, [Result(student=one.student, status="missing", notes=(one.problem,)) for one in found.submissions]
    )
    assert all(line[0].isalnum() or line[0] == "~" for line in table.read_text().splitlines()), table.read_text()


def swollen(archive: zipfile.ZipFile) -> None:
    for number in range(3):
        archive.writestr(f"bomb{number}/{FILE}", b"0" * 25_000_000)


def said_twice(archive: zipfile.ZipFile) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for content in (b"3", b"4"):
            archive.writestr(f"mallory/{FILE}", content)


def climbing(archive: zipfile.ZipFile) -> None:
    for member in ("../ada/", "/ada/", "a/../ada/", "..\\ada\\", "C:\\ada\\", "//ada/", "./../zoe/"):
        archive.writestr(f"{member}{FILE}", b"stolen")


def special(archive: zipfile.ZipFile) -> None:
    for number, mode in enumerate((0o120777, 0o010666, 0o020666, 0o060666, 0o140666)):
        member = zipfile.ZipInfo(f"odd{number}/{FILE}")
        member.external_attr = mode << 16
        archive.writestr(member, "/etc/shadow")


def packed_otherwise(archive: zipfile.ZipFile) -> None:
    for number, kind in enumerate((zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)):
        archive.writestr(f"odd{number}/{FILE}", bytes(30_000_000), compress_type=kind)


ZIPS: dict[str, Callable[[zipfile.ZipFile], object]] = {
    "swollen": swollen,
    "said-twice": said_twice,
    "climbing": climbing,
    "special": special,
    "packed-otherwise": packed_otherwise,
    "nested": lambda archive: archive.writestr("mallory/inner.zip", b"PK\x05\x06" + b"\0" * 18),
    "many": lambda archive: [archive.writestr(f"m/{n}/x.ipynb", b"") for n in range(2_000)],
    "control": lambda archive: archive.writestr(f"\x1b[2Jred\n\r/{FILE}", b"3"),
    "no-name": lambda archive: [archive.writestr(name, b"3") for name in ("/", ".", "..", " /", f"/{FILE}")],
}


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("name", ZIPS)
def test_a_zip_is_read_member_by_member(name: str, tmp_path: Path) -> None:
    path = tmp_path / "uploads.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"ada/{FILE}", HONEST["ada"])
        ZIPS[name](archive)
        archive.writestr(f"zoe/{FILE}", HONEST["zoe"])
    before = set(tmp_path.rglob("*"))
    tracemalloc.reset_peak()
    found = handed_in(path, SETS)
    for one in found.submissions:
        content = one.read() if one.read else b""
        assert len(content) <= 20_000_001
        assert content != b"stolen" or one.folder not in HONEST
    content = {one.folder: one.read() for one in found.submissions if one.read and one.folder in HONEST}
    assert content == HONEST
    assert set(tmp_path.rglob("*")) == before


def test_flags_that_lie_are_a_damaged_file(tmp_path: Path) -> None:
    """A member that says it is encrypted, or has a checksum of something else."""
    path = tmp_path / "uploads.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for student in ("ada", "mallory", "zoe"):
            archive.writestr(f"{student}/{FILE}", HONEST.get(student, b"3"))
    whole = bytearray(path.read_bytes())
    at = whole.index(b"PK\x01\x02", whole.index(b"PK\x01\x02") + 1)  # the second entry of the list
    whole[at + 8] |= 1
    path.write_bytes(whole)
    assert {one.student: one.content for one in handed_in(path, SETS).submissions} == HONEST | {"mallory": b""}


def test_the_list_of_a_zip_is_not_read_again_for_each_member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class's zip has thousands of members, and a teacher waits."""
    path = tmp_path / "uploads.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(20):
            archive.writestr(f"s{number}/{FILE}", f"{number}")
    lists: list[zipfile.ZipFile] = []
    real = zipfile.ZipFile._RealGetContents  # type: ignore[attr-defined]
    monkeypatch.setattr(zipfile.ZipFile, "_RealGetContents", lambda archive: lists.append(archive) or real(archive))
    found = handed_in(path, SETS)
    assert {one.student: one.read() for one in found.submissions if one.read} == {
        f"s{number}": f"{number}".encode() for number in range(20)
    }
    assert 1 <= len(lists) <= 2

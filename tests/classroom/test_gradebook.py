"""The gradebook on a PostgreSQL server: a real one, from the distribution's package, started by an ordinary user on a
socket of its own.
"""

import getpass
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from submissions import ROOT, filled, write
from test_grading_durable import FULL, SET, table
from test_workers import class_of, marks

from threeloops import cli
from threeloops.classroom import gradebook
from threeloops.classroom.course import Course
from threeloops.sandbox import walls

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: int(place.parent.name))
needs_server = pytest.mark.skipif(not PROGRAMS, reason="no PostgreSQL server here (apt install postgresql)")
needs_walls = pytest.mark.skipif(bool(walls.problem()), reason=f"a class needs the sandbox: {walls.problem()}")


class Server:
    """A server in a folder, with one user and a database for whoever asks."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        # initdb refuses root
        self.user = pwd.getpwnam("nobody").pw_name if os.geteuid() == 0 else getpass.getuser()
        if os.geteuid() == 0:
            shutil.chown(folder, self.user)
        words = ("--auth=trust", "--username=teacher", "--encoding=UTF8", "--no-sync", "--no-locale")
        self._run("initdb", *words, "-D", str(folder / "data"))
        self.start()

    def _run(self, program: str, *words: str) -> None:
        ordinary = {"user": self.user} if os.geteuid() == 0 else {}
        command = [str(PROGRAMS[-1] / program), *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **ordinary)  # type: ignore[call-overload]

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-o", options, "-l", log, "-w", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")

    def database(self) -> str:
        """A new one's URL."""
        self.number += 1
        self._run("createdb", "-h", str(self.folder), "-U", "teacher", f"class{self.number}")
        return f"postgresql://teacher@/class{self.number}?host={self.folder}"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="three-loops-"))  # a socket's path is short
    started = Server(folder)
    try:
        yield started
    finally:
        started.stop()
        shutil.rmtree(folder)


def run(folder: Path, *words: object) -> int:
    return cli.main(["grade", str(folder / "class"), "--into", str(folder / "work"), *map(str, words)])


def is_whole(folder: Path, url: str, deserved: dict[str, float]) -> bool:
    """Table, pages and the database say what was deserved, once, and no file keeps scores."""
    course = Course(root=ROOT, work=folder / "work", server=url)
    scores = {student: sum(score.points for score in course.scores(SET, student)) for student in deserved}
    with course.gradebook as book:
        handed = sorted(one.student_id for one in book.assignment_submissions(SET))
    pages = all((course.folder("feedback", student, SET) / f"{SET}.html").exists() for student in deserved)
    shown = {student: row[1] for student, row in table(folder).items()}
    alone = not (folder / "work" / gradebook.FILE).exists()
    return pages and alone and handed == sorted(deserved) and scores == deserved == shown


@needs_walls
@needs_server
def test_a_class_in_a_database_on_a_server(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two workers write at once; the next run knows what is graded; a second folder is kept out; the first stays with
    its gradebook.
    """
    url, deserved = server.database(), class_of(5, tmp_path)
    assert run(tmp_path, "--gradebook", url, "--workers", 2) == 0
    assert is_whole(tmp_path, url, deserved)
    before = marks(tmp_path)
    write(filled(SET, student="late"), tmp_path / "class", "late", SET)
    assert run(tmp_path, "--gradebook", url) == 0
    assert is_whole(tmp_path, url, deserved | {"late": FULL})
    assert before.items() <= marks(tmp_path).items()
    capsys.readouterr()
    assert run(tmp_path) == 2
    assert "keeps its scores in postgresql://teacher@/class" in capsys.readouterr().err
    again = ["grade", str(tmp_path / "class"), "--into", str(tmp_path / "other")]
    assert cli.main([*again, "--gradebook", url]) == 2
    assert "already holds scores that were not graded into" in capsys.readouterr().err


@needs_walls
@needs_server
def test_a_server_that_stops_is_one_sentence(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the middle of a class: no student pays for it, and the same command goes on."""
    url, deserved = server.database(), class_of(3, tmp_path)
    real, seen = Course.autograde, []

    def stopping(course: Course, name: str, student: str, notebook: dict[str, object], **words: Any) -> None:
        seen.append(student)
        if len(seen) == 2:
            server.stop()
        real(course, name, student, notebook, **words)

    with monkeypatch.context() as patch:
        patch.setattr(Course, "autograde", stopping)
        assert run(tmp_path, "--gradebook", url, "--workers", 1) == 2
    err = capsys.readouterr().err
    assert "does not answer" in err.splitlines()[-1]
    assert sum(line.startswith("threeloops:") for line in err.splitlines()) == 1
    assert len(marks(tmp_path)) == 1
    assert run(tmp_path, "--gradebook", url, "--workers", 1) == 2, "nor does it begin without one"
    server.start()
    assert run(tmp_path, "--gradebook", url, "--workers", 1) == 0
    assert is_whole(tmp_path, url, deserved)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("db.example", "what was given is no gradebook: give postgresql://USER@HOST/DATABASE"),
        ("mysql://ada:secret@db/class", "mysql://ada:***@db/class is no gradebook"),
        ("postgresql://ada@db", "postgresql://ada@db is no gradebook"),
    ],
)
def test_what_is_no_gradebook_is_one_sentence(
    url: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(filled(SET, student="ada"), tmp_path / "class", "ada", SET)
    assert run(tmp_path, "--gradebook", url) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1
    assert "secret" not in err


def test_without_psycopg_a_sentence_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = gradebook.importlib.util.find_spec
    monkeypatch.setattr(gradebook.importlib.util, "find_spec", lambda name: None if name == "psycopg" else real(name))
    write(filled(SET, student="ada"), tmp_path / "class", "ada", SET)
    assert run(tmp_path, "--gradebook", "postgresql://ada@db/class") == 2
    assert 'pip install -c requirements.lock -e ".[machines]"' in capsys.readouterr().err

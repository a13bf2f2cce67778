"""Grading that is stopped, repeated, disturbed: what is graded stays graded, and what is stale says so."""

import csv
import errno
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from submissions import ROOT, filled, maximum, released, write
from tests.sandbox.sides import side

from threeloops import cli
from threeloops.classroom import grade as command
from threeloops.classroom import work_folder
from threeloops.classroom.course import Course
from threeloops.sandbox import walls, warm_process
from threeloops.sandbox.walls import Limits

SET = "kv_cache"
FULL = maximum(SET)
pytestmark = pytest.mark.skipif(bool(walls.problem()), reason=f"a class needs the sandbox: {walls.problem()}")


def run(folder: Path, *words: object) -> int:
    """Grade folder/class into folder/work."""
    return cli.main(["grade", str(folder / "class"), "--into", str(folder / "work"), *map(str, words)])


def table(folder: Path, name: str = f"grades-{SET}.csv") -> dict[str, tuple[str, float, str]]:
    """Status, points and notes by student."""
    found: dict[str, tuple[str, float, str]] = {}
    with (folder / "work" / name).open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            _, points, _ = found.get(row["student"], ("", 0.0, ""))
            found[row["student"]] = (row["status"], points + float(row["points"]), row["notes"])
    return found


@pytest.fixture(scope="module")
def empty_gradebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder in which nobody is graded yet: most of a small class's time goes into making it."""
    work = tmp_path_factory.mktemp("prepared")
    Course(root=ROOT, work=work).prepare(SET)
    return work


@pytest.fixture
def folder(tmp_path: Path, empty_gradebook: Path) -> Path:
    """Where a class and its work folder lie."""
    shutil.copytree(empty_gradebook, tmp_path / "work")
    return tmp_path


@pytest.fixture
def graded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who is really graded, in order."""
    students: list[str] = []
    real, killed = Course.autograde, []

    def counted(course: Course, name: str, student: str, notebook: dict[str, Any], **words: Any) -> None:
        students.append(student)
        if student == "killer" and not killed:
            killed.append(student)
            raise KeyboardInterrupt
        real(course, name, student, notebook, **words)

    monkeypatch.setattr(Course, "autograde", counted)
    return students


def test_a_run_goes_on_where_it_stopped_and_grades_what_has_changed(folder: Path, graded: list[str]) -> None:
    for student in ("ada", "killer"):
        write(filled(SET, student=student), folder / "class", student, SET)
    with pytest.raises(KeyboardInterrupt):
        command.grade(
            folder / "class",
            root=ROOT,
            code=None,
            roster=None,
            work=folder / "work",
            browser=False,
            trust_students=False,
        )
    assert table(folder, f"so-far-{SET}.csv")["ada"] == ("graded", FULL, ""), "written as it comes"
    assert run(folder) == 0
    assert graded == ["ada", "killer", "killer"]
    assert {student: row[:2] for student, row in table(folder).items()} == dict.fromkeys(
        ("ada", "killer"), ("graded", FULL)
    )
    assert not (folder / "work" / f"so-far-{SET}.csv").exists()
    graded.clear()

    wrong = filled(SET, student="killer", wrong={"a-batch": "batch_cache = '1 GB'"})
    write(wrong, folder / "class", "killer", SET)
    assert run(folder) == 0
    assert (graded, table(folder)["killer"][:2]) == (["killer"], ("graded", FULL - 1))
    assert run(folder, "--again") == 0
    assert graded == ["killer", "ada", "killer"]


def test_a_broken_or_missing_second_hand_in_does_not_pass_for_the_first(
    folder: Path, graded: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for student in ("ada", "grace"):
        write(filled(SET, student=student), folder / "class", student, SET)
    assert run(folder) == 0
    (folder / "class" / "ada" / f"{SET}.ipynb").write_text("{")
    (folder / "class" / "grace" / f"{SET}.ipynb").unlink()
    for _ in range(2):
        assert run(folder) == 0
    assert graded == ["ada", "grace"]
    status, points, notes = table(folder)["ada"]
    assert (status, points) == ("unparsable", 0)
    assert f"an earlier hand-in earned {FULL:g} of {FULL:g}" in notes
    page = (folder / "work" / "feedback" / "ada" / SET / f"{SET}.html").read_text()
    assert page.count(f"an earlier hand-in earned {FULL:g} of {FULL:g}; a later one was unparsable") == 1
    status, points, notes = table(folder)["grace"]
    assert (status, points, notes) == ("graded", FULL, "nothing new was handed in")
    write(released(SET), folder / "late", "zoe", SET)
    (folder / "roster.csv").write_text("ada\ngrace\nzoe\n")
    late = ["grade", str(folder / "late" / "zoe"), "--into", str(folder / "work")]
    assert cli.main([*late, "--roster", str(folder / "roster.csv")]) == 0
    assert {student: row[1] for student, row in table(folder).items()} == {"ada": FULL, "grace": FULL, "zoe": 0}
    capsys.readouterr()


def test_a_fault_is_tried_a_second_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = walls.command, []

    def once_broken(**words: bool) -> list[str]:
        calls.append(words)
        return [sys.executable, "-c", "pass"] if len(calls) == 1 else real(**words)

    warm_process.drop()
    monkeypatch.setattr(walls, "command", once_broken)
    write(filled(SET, student="ada"), folder / "class", "ada", SET)
    assert run(folder) == 0
    assert (table(folder)["ada"], len(calls)) == (("graded", FULL, ""), 2)


def test_one_run_at_a_time_grades_into_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write({}, folder / "class", "ada", SET)
    with FileLock(folder / "work" / "grading.lock"):
        assert run(folder) == 2
    assert "another run is grading into" in capsys.readouterr().err
    assert run(folder) == 0


@pytest.mark.parametrize(
    ("error", "code"),
    [(OSError(errno.ENOSPC, "full"), 2), (RuntimeError("[Errno 28] No space left on device"), 0)],
    ids=["full", "a student's words"],
)
def test_a_full_disk_is_one_sentence(
    error: Exception, code: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The disk decides, not what somebody has written: words in a notebook must not stop a class."""

    def failing(*_: object, **words: object) -> None:
        raise error

    monkeypatch.setattr(Course, "autograde", failing)
    write(released(SET), folder / "class", "ada", SET)
    assert run(folder) == code
    err = capsys.readouterr().err
    assert ("no room is left in" in err) == bool(code)
    assert err.count("\n") == 1


def test_a_request_to_end_closes_what_is_open(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)

    def told_to_end() -> None:
        with work_folder.alone_in(tmp_path):
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()

    with pytest.raises(SystemExit):
        told_to_end()
    assert signal.getsignal(signal.SIGTERM) == before
    with work_folder.alone_in(tmp_path):
        """The lock is free again."""


def test_the_sandbox_leaves_nothing_behind_however_the_grader_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with side(Limits()) as kernel:
        assert not kernel.run("open('/tmp/mine', 'w').write('x')")["failed"]
        assert not list(tmp_path.iterdir())

"""`threeloops grade` as a reader and a teacher run it, and nbgrader's own command beside it."""

import csv
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from submissions import ROOT, asked, filled, maximum, released, right_number, set_source, signed, write

from threeloops import cli
from threeloops.classroom import grade as command
from threeloops.classroom.course import Course, grading_key
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.judge import judge
from threeloops.drills.engine.student_draws import posed
from threeloops.sandbox import walls, warm_process

SET = "kv_cache"
COURSE = "autumn"


def grade(*words: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = cli.main(["grade", *map(str, words), "--no-browser"])
    out, err = capsys.readouterr()
    return code, out, err


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_reader_grades_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notebook = filled(SET, student="ada", course=COURSE)
    set_source(notebook, "a-batch-answer", "batch_cache = '1 GB'")
    set_source(notebook, "doubling-gpus-mark", "self_marked = 2")
    (tmp_path / SET).mkdir()
    (tmp_path / SET / f"{SET}.ipynb").write_text(json.dumps(notebook))
    code, out, _ = grade(tmp_path / SET, "--into", tmp_path / "graded", capsys=capsys)
    assert code == 0
    assert f"ada      graded  {maximum(SET) - 1:g} / {maximum(SET):g}    2 / 3" in out, (
        "who they are is what the notebook says; self-marked points stand apart"
    )
    assert "a-batch          0 / 1  Not right" in out
    page = (tmp_path / "graded" / "feedback" / "ada" / SET / f"{SET}.html").read_text()
    assert "Right." in page
    assert page.count("Worked:") == 7
    card, _, folded = page.partition('<details class="whole">')
    first, *others = re.findall(r"<li.*?</li>", card.partition("<ol>")[2], re.DOTALL)
    assert all(words in first for words in ("A batch at the end", "0 / 1", "1 GB", "Not right", "python3 book.py 3.3"))
    assert len(others) == 9
    assert all('class="full"' in other and "Right" in other for other in others)
    assert "Grade cell" in folded, "nbgrader's own page, with its comments, is still there"
    marks = json.loads((tmp_path / "graded" / "marks.json").read_text())
    assert marks == {SET: {"points": maximum(SET) - 1, "maximum": maximum(SET)}}
    assert oct((tmp_path / "graded" / "gradebook.db").stat().st_mode)[-3:] == "600"
    assert oct((tmp_path / "graded" / "grading.key").stat().st_mode)[-3:] == "600"


def test_a_readers_broken_notebook_is_said_to_be_broken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / SET).mkdir()
    (tmp_path / SET / f"{SET}.ipynb").write_text("{")
    code, out, _ = grade(tmp_path / SET, "--into", tmp_path / "graded", capsys=capsys)
    assert (code, "unparsable" in out) == (1, True)


@pytest.fixture(scope="module")
def uploads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A zip as a learning platform makes it: right, slipped, mistyped id, a classmate's copy, unparsable, and one who
    never answered.
    """
    folder = tmp_path_factory.mktemp("uploads")
    slipped = filled(SET, student="grace", course=COURSE)
    set_source(
        slipped,
        "paged-answer",
        "def reserved_bytes(*, block, tokens, per_token, requests):\n    return requests * tokens * per_token",
    )
    notebooks = {
        "Ada_1_assignsubmission_file_": filled(SET, student="ada", course=COURSE),
        "Grace_2_assignsubmission_file_": slipped,
        "Emmy_3_assignsubmission_file_": filled(SET, student="emy", course=COURSE),
        "Mallory_4_assignsubmission_file_": filled(SET, student="ada", course=COURSE),
        "Empty_5_assignsubmission_file_": signed(released(SET), student="empty", course=COURSE),
    }
    with zipfile.ZipFile(folder / "uploads.zip", "w") as archive:
        for name, notebook in notebooks.items():
            archive.writestr(f"{name}/{SET}.ipynb", json.dumps(notebook))
        archive.writestr(f"Broken_6_assignsubmission_file_/{SET}.ipynb", "{")
    (folder / "roster.csv").write_text("student,mail\nAda,a@x\nLate Comer,l@x\n")
    return folder


def alike(one: str, other: str) -> float:
    """Points of the numbers that happen to be the same for two students: few drills draw from more than a dozen
    answers.
    """
    numbers = [asked_one for asked_one in asked(SET).values() if asked_one.kind == "number"]
    shared = [
        asked_one
        for asked_one in numbers
        if judge(
            DRILLS[asked_one.drill],
            posed(DRILLS[asked_one.drill], course=COURSE, student=other),
            right_number(asked_one, student=one, course=COURSE),
        ).right
    ]
    return sum(asked_one.points for asked_one in shared)


def test_a_class_is_graded_from_a_zip(uploads: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--course", "Autumn", "--roster", uploads / "roster.csv", "--into", tmp_path / "class")
    code, out, err = grade(uploads / "uploads.zip", *words, capsys=capsys)
    assert code == 0
    graded = rows(tmp_path / "class" / f"grades-{SET}.csv")
    points = {
        student: sum(float(row["points"]) for row in graded if row["student"] == student)
        for student in {row["student"] for row in graded}
    }
    status = {row["student"]: row["status"] for row in graded}
    functions = sum(one.points for one in asked(SET).values() if one.kind == "function")
    assert points["ada"] == maximum(SET)
    assert points["grace"] == maximum(SET) - asked(SET)["paged"].points
    assert points["emmy"] == functions + alike("emy", "emmy")
    assert points["mallory"] == functions + alike("ada", "mallory"), (
        "a classmate's notebook brings its answers, but not its numbers"
    )
    assert alike("ada", "mallory") < 4
    assert (points["empty"], points["broken"], points["late-comer"]) == (0, 0, 0)
    assert status == {
        "ada": "graded",
        "grace": "graded",
        "emmy": "graded",
        "mallory": "graded",
        "empty": "graded",
        "broken": "unparsable",
        "late-comer": "missing",
    }
    assert "the notebook says student 'emy'" in out
    (slip,) = rows(tmp_path / "class" / f"slips-{SET}.csv")
    assert (slip["question"], slip["slip"], slip["students"]) == ("paged", "no-blocks", "1")
    assert (tmp_path / "class" / "feedback" / "grace" / SET / f"{SET}.html").exists()
    assert "Worked:" not in (tmp_path / "class" / "feedback" / "grace" / SET / f"{SET}.html").read_text(), (
        "a class may hand in again"
    )
    assert "[7/7]" in err
    _held_answers_wait_for_the_teacher(Course(root=ROOT, work=tmp_path / "class"))


def _held_answers_wait_for_the_teacher(course: Course) -> None:
    waiting = {score.grade_id for score in course.scores(SET, "emmy") if score.by_hand}
    recorded = json.loads((course.folder("autograded", "emmy", SET) / f"{SET}.ipynb").read_text())
    held = {
        cell["metadata"]["nbgrader"]["grade_id"]
        for cell in recorded["cells"]
        if cell["metadata"].get("threeloops", {}).get("status") == "held"
    }
    assert held == waiting
    assert sum(asked(SET)[grade_id].points for grade_id in held) + alike("emy", "emmy") == 8


def test_two_people_of_one_name_have_a_grade_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both are asked with the numbers of the name, which is what their own copies drew from."""
    full = filled(SET, student="John Smith", course=COURSE)
    half = filled(SET, student="John Smith", course=COURSE, wrong={"a-batch": "batch_cache = '1 GB'"})
    for notebook, number in ((full, 101), (half, 202)):
        write(notebook, tmp_path / "class", f"John Smith_{number}_assignsubmission_file_", SET)
    code, out, _ = grade(tmp_path / "class", "--course", COURSE, "--into", tmp_path / "work", capsys=capsys)
    assert code == 0
    points: dict[str, float] = {}
    for row in rows(tmp_path / "work" / f"grades-{SET}.csv"):
        points[row["student"]] = points.get(row["student"], 0) + float(row["points"])
    assert points == {"john-smith~101": maximum(SET), "john-smith~202": maximum(SET) - 1}
    assert "2 people are called john-smith" in out


def test_what_cannot_be_graded_ends_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = grade(tmp_path / "nowhere", capsys=capsys)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "does not exist" in err


def test_without_a_sandbox_a_class_needs_a_word(
    uploads: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        walls, "problem", lambda: "bubblewrap is not installed (on Debian and Ubuntu: apt install bubblewrap)"
    )
    code, _, err = grade(uploads / "uploads.zip", "--into", tmp_path / "class", capsys=capsys)
    assert code == (2 if sys.platform == "linux" else 0)
    assert "--no-sandbox" in err
    write(filled(SET, student="ada", course=COURSE), tmp_path / "one", "ada", SET)
    code, out, _ = grade(
        tmp_path / "one", "--course", COURSE, "--no-sandbox", "--into", tmp_path / "class", capsys=capsys
    )
    assert code == 0
    assert out.startswith("Without a sandbox: bubblewrap is not installed")
    assert f"{maximum(SET):g} / {maximum(SET):g}" in out


def test_nbgraders_own_command_gives_the_same_grade(tmp_path: Path) -> None:
    """A teacher who collects by the exchange and runs `nbgrader autograde`, or presses its button, gets this
    judge.
    """
    folder = tmp_path / "book"
    folder.mkdir()
    for name in ("solutions", "drills", "nbgrader_config.py"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "nbgrader_config.py").unlink()
    (folder / "nbgrader_config.py").write_text(
        (ROOT / "nbgrader_config.py").read_text() + f"\nc.Judge.course = {COURSE!r}\n"
    )
    course = Course(root=folder, work=folder / "build", code=COURSE)
    course.prepare(SET)
    untransplanted = filled(SET, student="ada", course=COURSE)
    set_source(untransplanted, "one-token-answer", "one_token = '1 B'")
    for cell in untransplanted["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade"):
            cell["source"] = "print('Right.')"
    submitted = course.folder("submitted", "Ada", SET)
    submitted.mkdir(parents=True)
    (submitted / f"{SET}.ipynb").write_text(json.dumps(untransplanted))
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "autograde", SET],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert sum(score.points for score in course.scores(SET, "Ada")) == maximum(SET) - 1


def test_a_teacher_may_switch_the_written_explanation_on(tmp_path: Path) -> None:
    folder = tmp_path / "book"
    folder.mkdir()
    for name in ("solutions", "drills"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "nbgrader_config.py").write_text(
        (ROOT / "nbgrader_config.py").read_text() + "\nc.WrittenAnswers.points = 3\n"
    )
    notebook = filled(SET, student="ada")
    set_source(notebook, "doubling-gpus-answer", "Because heads are copied.")
    write(notebook, tmp_path / "class", "ada", SET)
    write(filled(SET, student="silent"), tmp_path / "class", "silent", SET)
    done = run_grade(tmp_path / "class", root=folder)
    assert done == 0
    course = Course(root=folder, work=folder / "build")
    for student, waits in (("ada", True), ("silent", False)):
        (score,) = [score for score in course.scores(SET, student) if score.maximum == 3]
        assert (score.grade_id, score.points, score.by_hand) == ("doubling-gpus", 0, waits)


def run_grade(path: Path, *, root: Path) -> int:
    return command.grade(path, root=root, code=None, roster=None, work=None, browser=False, trust_students=False)


def test_a_fault_of_the_grader_is_not_put_on_the_student(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    warm_process.problem()  # asked before it breaks
    monkeypatch.setattr(walls, "command", lambda **_: [sys.executable, "-c", "pass"])
    warm_process.drop()
    write(filled(SET, student="ada"), tmp_path / "class", "ada", SET)
    long = "\N{DESERET SMALL LETTER LONG I}" * 60  # 240 bytes: a file's name ends at 255
    for folder in (long, f"{long}."):
        write(released(SET), tmp_path / "class", folder, SET)
    code, out, _ = grade(tmp_path / "class", "--into", tmp_path / "work", capsys=capsys)
    assert code == 0
    assert [row["status"] for row in rows(tmp_path / "work" / f"grades-{SET}.csv")] == ["not graded"] * 3
    assert out.count("a fault of the grader; see ") == 3
    assert "did not start" in (tmp_path / "work" / "logs" / "ada" / f"{SET}.txt").read_text()


def test_a_readers_run_never_writes_into_a_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One late student by folder: with the class list it is the class's, without one it is refused."""
    write({}, tmp_path / "class", "ada", SET)
    write(filled(SET, student="ada", course=COURSE), tmp_path / "late", "mallory", SET)
    (tmp_path / "roster.csv").write_text("ada\nmallory\n")
    words = ("--course", COURSE, "--into", tmp_path / "work")
    assert grade(tmp_path / "class", *words, capsys=capsys)[0] == 0
    code, _, err = grade(tmp_path / "late" / "mallory", *words, capsys=capsys)
    assert (code, err.count("\n")) == (2, 1)
    assert "holds the grades of a class" in err
    assert not (tmp_path / "work" / "autograded" / "ada").exists()
    code, out, _ = grade(tmp_path / "late" / "mallory", "--roster", tmp_path / "roster.csv", *words, capsys=capsys)
    assert code == 0
    assert "the notebook says student 'ada'" in out
    assert (tmp_path / "work" / "autograded" / "mallory").exists()


def test_the_key_is_made_once(tmp_path: Path) -> None:
    assert grading_key(tmp_path) == grading_key(tmp_path)
    assert len(grading_key(tmp_path)) == 32
    assert grading_key(tmp_path) != grading_key(tmp_path / "other")


@pytest.mark.parametrize("kept", ["", "\n", "ab12\n", "z" * 64, "0" * 63])
def test_half_a_key_is_refused_before_anybody_is_graded(
    kept: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(released(SET), tmp_path / "class", "ada", SET)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "grading.key").write_text(kept)
    code, _, err = grade(tmp_path / "class", "--into", tmp_path / "work", capsys=capsys)
    assert (code, err.count("\n")) == (2, 1)
    assert "is no grading key" in err
    assert not (tmp_path / "work" / "gradebook.db").exists()

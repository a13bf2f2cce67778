"""A function's share of points for the draws that it is right on: from its code, run and judged, to nbgrader's own
scores, the table and the page.
"""

import csv
import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from submissions import asked, filled, maximum, write

from threeloops import cli
from threeloops.classroom.course import Course
from threeloops.classroom.elsewhere import alone, packing
from threeloops.classroom.intake import Submission
from threeloops.classroom.judging import Examiner, judged
from threeloops.classroom.machines import remote_grading
from threeloops.classroom.term import settings
from threeloops.classroom.term.settings import LatePolicy
from threeloops.contents import book_root
from threeloops.sandbox.walls import Limits

SET, COURSE, STUDENT = "kv_cache", "spring-27", "ada01"
FULL = maximum(SET)
WORTH = asked(SET)["paged"].points
HEAD = "def reserved_bytes(*, block, tokens, per_token, requests):\n"
RIGHT = "    return requests * -(-tokens // block) * block * per_token"
COUNTS = "calls = 0\n" + HEAD + "    global calls\n    calls += 1\n"
# How a function goes wrong, and on how many of five draws it is right all the same.
WAYS = {
    "right": (HEAD + RIGHT, 5),
    "wrong in two": (COUNTS + f"    if calls > 3:\n        return 1.5\n{RIGHT}", 3),
    "raises in the first": (COUNTS + f"    if calls == 1:\n        raise KeyError\n{RIGHT}", 4),
    "a list in the third": (COUNTS + f"    if calls == 3:\n        return [1]\n{RIGHT}", 4),
    "nothing in the last": (COUNTS + f"    if calls < 5:\n    {RIGHT}", 4),
    "never right": (HEAD + "    return 1.5", 0),
    "not written": (HEAD + "    return None", 0),
    "does not come back from the third": (COUNTS + f"    while calls == 3:\n        pass\n{RIGHT}", 2),
}


def verdict(code: str, functions: str) -> tuple[str, float, str]:
    examiner = Examiner(
        student=STUDENT,
        course=COURSE,
        key=b"k" * 32,
        limits=Limits(call_s=0.5),
        sandboxed=False,
        functions=functions,
    )
    found = judged(filled(SET, student=STUDENT, course=COURSE, wrong={"paged": code}), examiner).verdicts["paged"]
    return found.status, found.share, found.message


@pytest.mark.parametrize("how", WAYS)
def test_the_share_is_that_of_the_draws_that_are_right(how: str) -> None:
    code, right = WAYS[how]
    status, share, message = verdict(code, "share")
    assert (status == "right") == (right == 5)
    told = f"Right on {right} of 5 draws, which earns {20 * right} % of the points."
    assert share == pytest.approx(right / 5 if right < 5 else 0)
    assert (told in message) == (0 < right < 5)
    plain, none, words = verdict(code, "all")
    assert (plain, none) == (status, 0.0), "off, what is not right on all draws earns nothing"
    assert message.startswith(words)


def points(path: Path) -> dict[str, tuple[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return {
            row["student"]: (row["points"], row["notes"]) for row in csv.DictReader(file) if row["question"] == "paged"
        }


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder in which nobody is graded yet."""
    work = tmp_path_factory.mktemp("prepared")
    Course(root=book_root(), work=work, code=COURSE).prepare(SET)
    return work


def test_nbgrader_keeps_the_share_and_the_page_shows_it(
    prepared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work, class_ = tmp_path / "work", tmp_path / "class"
    shutil.copytree(prepared, work)
    for student, how in (("ada01", "wrong in two"), ("grace02", "right"), ("emmy04", "never right")):
        write(filled(SET, student=student, course=COURSE, wrong={"paged": WAYS[how][0]}), class_, student, SET)
    words = ["grade", str(class_), "--course", COURSE, "--into", str(work), "--set", SET, "--no-sandbox"]
    assert cli.main([*words, "--functions", "share"]) == 0
    assert {one: got for one, (got, _) in points(work / f"grades-{SET}.csv").items()} == {
        "ada01": f"{0.6 * WORTH:g}",
        "grace02": f"{WORTH:g}",
        "emmy04": "0",
    }
    course = Course(root=book_root(), work=work, code=COURSE)
    (score,) = [one for one in course.scores(SET, "ada01") if one.grade_id == "paged"]
    assert (score.points, score.by_hand) == (pytest.approx(0.6 * WORTH), False), "as nbgrader's own gradebook has it"
    page = (work / "feedback" / "ada01" / SET / f"{SET}.html").read_text()
    assert "Right on 3 of 5 draws, which earns 60 % of the points." in page
    assert f"{0.6 * WORTH:g}/{WORTH:g}" in "".join(page.split())
    assert cli.main(words) == 0
    assert points(work / f"grades-{SET}.csv")["ada01"][0] == "0", "another rule, so everybody is graded anew"
    capsys.readouterr()
    assert cli.main([*words, "--functions", "half"]) == 2
    assert "functions='half' is not known; did you mean 'all'? Known: all, share" in capsys.readouterr().err


def test_a_term_keeps_what_was_chosen_for_a_set(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / COURSE
    settings.new(folder, course=COURSE, zone="UTC", late=LatePolicy(policy="none"))
    (tmp_path / "class.csv").write_text("id,name\nada01,Ada Lovelace\n", encoding="utf-8")
    shutil.copytree(prepared, folder / "graded")
    write(
        filled(SET, student="ada01", course=COURSE, wrong={"paged": WAYS["wrong in two"][0]}),
        tmp_path / "in",
        "ada01",
        SET,
    )
    for words in (
        ("roster", str(tmp_path / "class.csv")),
        ("release", SET, "--due", "2027-04-12"),
        ("collect", SET, str(tmp_path / "in")),
        ("grade", SET, "--no-sandbox", "--functions", "share"),
        ("grade", SET, "--no-sandbox"),
        ("export", "--format", "csv"),
    ):
        assert cli.main(["classroom", *words, "--term", str(folder)]) == 0, words
    assert (
        capsys.readouterr().out.count("A function earns the share of its points that its right draws are of all.") == 2
    )
    assert points(folder / "graded" / f"grades-{SET}.csv")["ada01"][0] == f"{0.6 * WORTH:g}"
    with (folder / "exported" / f"{SET}.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row[f"{SET} points"] == f"{FULL - 0.4 * WORTH:g}"
    assert settings.read(folder).sets[SET].functions == "share"
    assert cli.main(["classroom", "grade", SET, "--no-sandbox", "--functions", "all", "--term", str(folder)]) == 0
    assert points(folder / "graded" / f"grades-{SET}.csv")["ada01"][0] == "0"
    assert cli.main(["classroom", "grade", SET, "--no-sandbox", "--functions", "share", "--term", str(folder)]) == 0
    packed = folder / "elsewhere" / f"{SET}.zip"
    assert cli.main(["classroom", "gradescope", SET, "--into", str(packed), "--term", str(folder)]) == 0
    with zipfile.ZipFile(packed) as archive:
        told = json.loads(archive.read(packing.SETTINGS))
    monkeypatch.setattr(Course, "prepare", lambda *_: None)
    judge = alone.Package(folder=tmp_path, work=tmp_path / "work", settings=told).course(show_working=True).judge
    assert judge == {"functions": "share", "show_working": True}, "an autograder elsewhere goes by it, too"
    path = folder / settings.FILE
    path.write_text(path.read_text().replace('functions = "share"', 'functions = "some"'))
    assert cli.main(["classroom", "grade", SET, "--term", str(folder)]) == 2
    assert "functions='some'" in capsys.readouterr().err


def test_other_machines_give_the_same_share(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A scheduler's worker in this process: what it is told of the course is all that it knows."""

    class Here:
        def __init__(self, address: str) -> None:
            self.address = address

        def __enter__(self) -> "Here":
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def asked(self, _: object) -> dict[str, object]:
            return {}

        def each(self, ahead: list[Submission], graded: Any, words: Any) -> Iterator[tuple[Submission, Any]]:
            for one in ahead:
                yield one, graded(*words(one))

    worker = SimpleNamespace(address="tcp://here:1", local_directory=str(tmp_path / "worker"))
    monkeypatch.setattr("distributed.get_worker", lambda: worker)
    monkeypatch.setattr(remote_grading, "Cluster", Here)
    monkeypatch.setattr(remote_grading, "fitness", lambda *_: {})
    monkeypatch.setattr(remote_grading, "unfit", lambda *_: "")
    monkeypatch.setattr(remote_grading, "_take_place", lambda: None)
    work = tmp_path / "work"
    shutil.copytree(prepared, work)
    write(
        filled(SET, student="ada01", course=COURSE, wrong={"paged": WAYS["wrong in two"][0]}),
        tmp_path / "in",
        "ada01",
        SET,
    )
    words = ["grade", str(tmp_path / "in"), "--course", COURSE, "--into", str(work), "--workers", "tcp://here:1"]
    (tmp_path / "list.csv").write_text("id\nada01\n", encoding="utf-8")
    words += ["--set", SET, "--roster", str(tmp_path / "list.csv"), "--functions", "share"]
    assert cli.main(words) == 0, capsys.readouterr()
    assert points(work / f"grades-{SET}.csv")["ada01"][0] == f"{0.6 * WORTH:g}"

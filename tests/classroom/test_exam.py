"""An exam: the quiz that `threeloops quiz` makes, kept with the term, and a seat for everybody."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from threeloops import cli
from threeloops.classroom.term import settings

WORDS = ("kv_cache", "all_reduce", "--questions", "4", "--versions", "3", "--minutes", "40")


def run(*words: object) -> int:
    return cli.main(["classroom", *map(str, words)])


@pytest.fixture
def term(tmp_path: Path) -> Path:
    folder = tmp_path / "spring-27"
    students = "".join(f"s{number},{'1.25' if number == 1 else ''}\n" for number in range(7))
    (tmp_path / "class.csv").write_text("id,extra time\n" + students)
    assert run("new", folder, "--timezone", "UTC", "--late", "none") == 0
    assert run("roster", tmp_path / "class.csv", "--term", folder) == 0
    return folder


def test_an_exam_is_a_quiz_with_seats(term: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("exam", *WORDS, "--name", "midterm", "--term", term) == 0
    folder = term / "exams" / "midterm"
    assert {path.name for path in folder.iterdir()} == {"questions.html", "key.html", "seats.csv"}
    with (folder / "seats.csv").open(newline="") as file:
        seats = list(csv.DictReader(file))
    assert sorted(Counter(seat["version"] for seat in seats).values()) == [2, 2, 3], "as many of each as can be"
    assert {seat["student"]: seat["minutes"] for seat in seats if seat["minutes"] != "40"} == {"s1": "50"}
    kept = settings.read(term).exams["midterm"]
    again = ("quiz", *kept["topics"], "--questions", kept["questions"], "--versions", kept["versions"])
    words = (
        *again,
        "--seed",
        kept["seed"],
        "--kind",
        kept["kind"],
        "--format",
        "html",
        "--title",
        "spring-27: midterm",
    )
    assert cli.main([*map(str, words), "--title", "spring-27: midterm", "--into", str(term / "again")]) == 0
    for name in ("questions.html", "key.html"):
        assert (term / "again" / name).read_bytes() == (folder / name).read_bytes(), "what is kept makes it again"


def test_an_exam_is_never_written_over(term: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("exam", *WORDS, "--name", "midterm", "--term", term) == 0
    before = (term / "exams" / "midterm" / "key.html").read_bytes()
    capsys.readouterr()
    for name, told in (("midterm", "the term has an exam midterm already"), ("../x", "must be one short word")):
        assert run("exam", *WORDS, "--name", name, "--term", term) == 2
        assert told in capsys.readouterr().err
    assert run("exam", "kv", *WORDS[2:], "--name", "final", "--term", term) == 2
    assert "did you mean 'kv_cache'" in capsys.readouterr().err
    assert (term / "exams" / "midterm" / "key.html").read_bytes() == before
    assert list(settings.read(term).exams) == ["midterm"]


def test_an_exam_may_be_edited_before_it_is_printed(term: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("exam", *WORDS, "--name", "word", "--format", "docx", "--space", "5 cm", "--term", term) == 0
    assert {path.name for path in (term / "exams" / "word").iterdir()} == {"questions.docx", "key.docx", "seats.csv"}
    capsys.readouterr()
    assert run("exam", *WORDS, "--name", "text", "--format", "text", "--space", "5 cm", "--term", term) == 2
    assert "the format text leaves no space" in capsys.readouterr().err
    assert "text" not in settings.read(term).exams

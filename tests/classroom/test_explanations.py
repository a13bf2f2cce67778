"""Points for what students wrote in words, given in a list of the term's: through the real grader to the marks and the
page that goes back.
"""

import csv
import json
import shutil
import zipfile
from pathlib import Path

import pytest
from submissions import SETS, canvas_zip, filled, maximum, set_source

from threeloops import cli
from threeloops.classroom.course import Course
from threeloops.classroom.term import decisions, explanations, settings
from threeloops.contents import book_root

SET, WRITTEN, COURSE = "kv_cache", "doubling-gpus", "spring-27"
FULL = maximum(SET)
TEXT = "=SUM of it: each GPU holds <b>one</b> head; on 16 two hold copies."
LIST = """Student,ID,SIS User ID,SIS Login ID,Section
"Lovelace, Ada",77,s77,ada01,A
"Hopper, Grace",78,s78,grace02,A
"Noether, Emmy",80,s80,emmy04,B
"""


def run(*words: object) -> int:
    return cli.main(["classroom", *map(str, words)])


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def fill_in(path: Path, **points: str) -> None:
    """What a teacher types: student -> points, or points and words behind a |."""
    found = rows(path)
    for row in found:
        if row["student"] in points:
            row["points"], _, row["words"] = points[row["student"]].partition("|")
    with path.open("w", newline="", encoding="utf-8") as file:
        written = csv.DictWriter(file, list(found[0]))
        written.writeheader()
        written.writerows(found)


def notebook(student: str, text: str = "") -> str:
    made = filled(SET, student=student, course=COURSE)
    if text:
        set_source(made, f"{WRITTEN}-answer", text)
    return json.dumps(made)


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A term in which two of three have handed in, one of them with an explanation, and one who was late."""
    folder = tmp_path_factory.mktemp("explained")
    term = folder / COURSE
    (folder / "class.csv").write_text(LIST, encoding="utf-8")
    late = ("--late", "per-day", "--off-per-day", "0.1", "--last-day", "5")
    assert run("new", term, "--timezone", "UTC", *late) == 0
    assert run("roster", folder / "class.csv", "--term", term) == 0
    assert run("release", SET, "--due", "2027-04-12", "--term", term) == 0
    work = folder / "prepared"
    Course(root=book_root(), work=work, code=COURSE).prepare(SET)
    shutil.copytree(work, term / "graded")
    files = {
        f"lovelaceada_77_880_{SET}.ipynb": notebook("ada01", TEXT),
        f"hoppergrace_LATE_78_881_{SET}.ipynb": notebook("grace02"),
    }
    canvas_zip(folder / "submissions.zip", files)
    assert run("collect", SET, folder / "submissions.zip", "--term", term) == 0
    assert run("grade", SET, "--no-sandbox", "--term", term) == 0
    received = term / "received" / f"{SET}.csv"
    received.write_text(received.read_text().replace(",,late", ",,1"))
    return term


def test_points_for_an_explanation_count_and_go_back(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    term = tmp_path / COURSE
    shutil.copytree(graded, term)
    capsys.readouterr()
    assert run("explanations", SET, "--term", term) == 2
    assert "--points 3 gives its rubric three points" in capsys.readouterr().err
    assert run("explanations", SET, "--points", "3", "--term", term) == 0
    assert "kv_cache: 1 explanation, 0 with points, 1 without; 0 of them new in the list." in capsys.readouterr().out
    assert settings.read(term).sets[SET].explanation == 3.0
    page = (term / "explanations" / f"{SET}.html").read_text()
    assert "A team serves a model with 8 KV heads" in page
    assert "8 GPUs hold one head each" in page, "the rubric"
    assert "each GPU holds &lt;b&gt;one&lt;/b&gt; head" in page
    path = term / "explanations" / f"{SET}.csv"
    (row,) = rows(path)
    assert (row["student"], row["explanation"], row["points"]) == ("ada01", WRITTEN, "")
    assert row["text"] == f"'{TEXT}", "a spreadsheet does not calculate it"
    assert run("export", "--format", "csv", "--term", term) == 0
    assert "1 answers are graded by hand or wait for it" in capsys.readouterr().out
    fill_in(path, ada01="2,5|Point 3 <i>is</i> missing.")
    assert run("explanations", SET, "--term", term) == 0
    assert "1 explanation, 1 with points, 0 without; 1 of them new in the list." in capsys.readouterr().out
    assert run("export", "--format", "csv", "--term", term) == 0
    assert "wait for it" not in capsys.readouterr().out
    found = {one["student"]: one for one in rows(term / "exported" / f"{SET}.csv")}
    assert (found["ada01"][f"{SET} raw"], found["ada01"][f"{SET} of"]) == (f"{FULL + 2.5:g}", f"{FULL + 3:g}")
    assert found["grace02"][f"{SET} raw"] == f"{FULL:g}", "who wrote nothing has no points for it"
    assert found["grace02"][f"{SET} points"] == f"{FULL - 0.1 * (FULL + 3):g}", "late is a share of the new maximum"
    assert found["emmy04"][f"{SET} points"] == "", "blanks stay blanks"
    assert run("return", SET, "--term", term) == 0
    with zipfile.ZipFile(term / "returned" / f"{SET}-canvas.zip") as archive:
        pages = [archive.read(name).decode() for name in archive.namelist()]
    said = "<strong>Your explanation (doubling-gpus):</strong> 2.5 of 3 points. Point 3 &lt;i&gt;is&lt;/i&gt; missing."
    assert [said in page for page in pages] == [True, False]
    again = canvas_zip(tmp_path / "again.zip", {f"lovelaceada_77_990_{SET}.ipynb": notebook("ada01", "Another one.")})
    assert run("collect", SET, again, "--newer", "--term", term) == 0
    assert run("grade", SET, "--no-sandbox", "--term", term) == 0
    capsys.readouterr()
    for _ in range(2):
        assert run("explanations", SET, "--term", term) == 0
        assert (
            "Another text than the one that has points: ada01; take away the question mark" in capsys.readouterr().out
        )
        assert (rows(path)[0]["points"], rows(path)[0]["text"]) == ("2.5?", "Another one.")
    fill_in(path, ada01="2.5?|Point 3 is there now.")
    assert run("explanations", SET, "--term", term) == 2, "what was typed beside a question mark is not lost"
    assert "line 2: ada01 has other points or words; take the question mark away" in capsys.readouterr().err
    assert rows(path)[0]["words"] == "Point 3 is there now."
    fill_in(path, ada01="2.5|Point 3 is missing.")
    assert run("explanations", SET, "--term", term) == 0
    assert "Another text" not in capsys.readouterr().out
    fill_in(path, ada01="")
    assert run("explanations", SET, "--term", term) == 0
    assert decisions.of_explanations(settings.read(term), SET) == {}, "points that are taken out of the list are gone"


def test_an_explanation_is_looked_at_again_like_a_question(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    term = tmp_path / COURSE
    shutil.copytree(graded, term)
    rows_of = f"id;question;reason\nada01;{WRITTEN};point 3 is there\ngrace02;{WRITTEN};mine, too\n"
    (tmp_path / "form.csv").write_text(rows_of, encoding="utf-8")
    assert run("requests", SET, "--add", tmp_path / "form.csv", "--term", term) == 0
    answer = ("--points", "3", "--reason", "It is.", "--term", term)
    capsys.readouterr()
    assert run("accept", SET, "ada01", *answer) == 2
    assert "nothing says what an explanation of kv_cache is worth" in capsys.readouterr().err
    assert run("explanations", SET, "--points", "3", "--term", term) == 0
    path = term / "explanations" / f"{SET}.csv"
    fill_in(path, ada01="2|Two of three.")
    capsys.readouterr()
    assert run("accept", SET, "ada01", "--points", "4", "--reason", "x", "--term", term) == 2
    assert "--points 4 of ada01 is more than an explanation is worth, 3" in capsys.readouterr().err
    assert run("accept", SET, "grace02", *answer) == 2
    assert "grace02 has written no doubling-gpus" in capsys.readouterr().err
    assert run("accept", SET, "ada01", *answer) == 0
    assert (rows(path)[0]["points"], rows(path)[0]["words"]) == ("3", "It is.")
    assert run("export", "--format", "csv", "--term", term) == 0
    assert rows(term / "exported" / f"{SET}.csv")[0][f"{SET} raw"] == f"{FULL + 3:g}"
    assert run("return", SET, "--term", term) == 0
    with zipfile.ZipFile(term / "returned" / f"{SET}-canvas.zip") as archive:
        page = archive.read(f"lovelaceada_77_880_{SET}.html").decode()
    assert "<strong>Your explanation (doubling-gpus):</strong> 3 of 3 points. It is." in page
    assert "<strong>Your request about doubling-gpus:</strong> accepted, 3 of 3 points. It is." in page
    assert run("accept", SET, "ada01", "--undo", "--term", term) == 0
    assert rows(path)[0]["points"] == "3", "its points stand in the list"


def test_a_member_who_asks_gets_the_points_of_the_groups_notebook(graded: Path, tmp_path: Path) -> None:
    term = tmp_path / COURSE
    shutil.copytree(graded, term)
    path = term / "received" / f"{SET}.csv"
    found = rows(path)
    for row in found:
        row["graded_as"] = "ada01" if row["student"] == "grace02" else ""
    with path.open("w", newline="", encoding="utf-8") as file:
        written = csv.DictWriter(file, list(found[0]))
        written.writeheader()
        written.writerows(found)
    (tmp_path / "form.csv").write_text(f"id;question;reason\ngrace02;{WRITTEN};point 3 is there\n", encoding="utf-8")
    assert run("requests", SET, "--add", tmp_path / "form.csv", "--term", term) == 0
    assert run("explanations", SET, "--points", "3", "--term", term) == 0
    assert run("accept", SET, "grace02", "--points", "3", "--reason", "It is.", "--term", term) == 0
    assert [(row["student"], row["points"]) for row in rows(term / "explanations" / f"{SET}.csv")] == [("ada01", "3")]
    assert run("export", "--format", "csv", "--term", term) == 0
    marks = {row["student"]: row[f"{SET} raw"] for row in rows(term / "exported" / f"{SET}.csv")}
    assert marks["ada01"] == marks["grace02"] == f"{FULL + 3:g}"


REFUSED = {
    "more than it is worth": ("3.5", "line 2: points=3.5 of ada01 is more than an explanation is worth, 3"),
    "no number": ("good", "line 2: points='good' must be a number of points"),
    "words alone": ("|Good.", "line 2: words for ada01, and no points; 0 is written as 0"),
}


@pytest.mark.parametrize("how", REFUSED)
def test_a_list_that_cannot_be_meant_is_refused(
    how: str, graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    term = tmp_path / COURSE
    shutil.copytree(graded, term)
    assert run("explanations", SET, "--points", "3", "--term", term) == 0
    path = term / "explanations" / f"{SET}.csv"
    typed, sentence = REFUSED[how]
    fill_in(path, ada01=typed)
    before = path.read_bytes()
    capsys.readouterr()
    assert run("explanations", SET, "--term", term) == 2
    assert sentence in capsys.readouterr().err
    assert path.read_bytes() == before, "what a teacher has typed stays to be mended"


def test_points_that_are_kept_fit_what_an_explanation_is_worth(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    term = tmp_path / COURSE
    shutil.copytree(graded, term)
    assert run("explanations", SET, "--points", "3", "--term", term) == 0
    fill_in(term / "explanations" / f"{SET}.csv", ada01="3")
    assert run("explanations", SET, "--term", term) == 0
    capsys.readouterr()
    assert run("explanations", SET, "--points", "2", "--term", term) == 2
    assert "points=3 of ada01 is more than an explanation is worth, 2" in capsys.readouterr().err
    assert settings.read(term).sets[SET].explanation == 3.0
    (term / "explanations" / f"{SET}.csv").write_text("student,explanation,points,words,version\nzoe,x,1,,\n")
    assert run("explanations", SET, "--term", term) == 2
    assert "line 2: 'zoe' has written no 'x'" in capsys.readouterr().err


def test_texts_that_a_spreadsheet_or_a_file_cannot_hold(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    term = tmp_path / COURSE
    shutil.copytree(graded, term)
    long = "x" * 50_000 + "end"
    files = {
        f"lovelaceada_77_990_{SET}.ipynb": notebook("ada01", "Half a sign: \ud800"),
        f"hoppergrace_78_991_{SET}.ipynb": notebook("grace02", long),
    }
    again = canvas_zip(tmp_path / "again.zip", files)
    assert run("collect", SET, again, "--newer", "--term", term) == 0
    assert run("grade", SET, "--no-sandbox", "--term", term) == 0
    assert run("explanations", SET, "--points", "3", "--term", term) == 0
    path = term / "explanations" / f"{SET}.csv"
    ada, grace = rows(path)
    assert ada["text"].startswith("Half a sign: ")
    assert len(grace["text"]) < 32_767, "a cell of Excel's"
    assert long in path.with_suffix(".html").read_text(), "the page has it whole"
    assert path.read_bytes().startswith(b"\xef\xbb\xbf"), "or a spreadsheet takes accents for other letters"
    fill_in(path, ada01="1|Schön.", grace02="2")
    for _ in range(2):
        assert run("explanations", SET, "--term", term) == 0
    assert "2 with points" in capsys.readouterr().out
    given = decisions.of_explanations(settings.read(term), SET)
    assert {who: one[WRITTEN].reason for who, one in given.items()} == {"ada01": "Schön.", "grace02": ""}
    assert all(one["version"].startswith("v") for one in rows(path)), "no text looks like the number 12345e6789"


def test_what_nbgrader_marks_is_left_to_it(graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    term = tmp_path / COURSE
    shutil.copytree(graded, term)
    course = settings.read(term).grading(book_root())
    shutil.rmtree(term / "graded" / "autograded")
    (term / "graded" / "gradebook.db").unlink()
    course.config.WrittenAnswers.points = 3
    course.prepare(SET)
    assert run("explanations", SET, "--points", "3", "--term", term) == 2
    assert "explanations of kv_cache have points in nbgrader already" in capsys.readouterr().err


def test_every_set_has_its_question_and_rubric() -> None:
    without = []
    for name in SETS:
        found = explanations.asked(name)
        without += [name] * (not found)
        for question, rubric in found.values():
            assert len(question) > 100, name
            assert len(rubric) == 3, name
    assert without == ["first_steps"]

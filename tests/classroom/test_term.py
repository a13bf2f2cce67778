"""A term as a teacher runs it: the platform's class list and zip in, marks and pages out, by the real grader."""

import csv
import json
import re
import shlex
import shutil
import zipfile
from pathlib import Path

import pytest
from submissions import asked, canvas_zip, filled, maximum, moodle_zip, set_source

from threeloops import cli
from threeloops.classroom.course import Course
from threeloops.classroom.term import settings
from threeloops.contents import book_root
from threeloops.sandbox import walls

SET = "kv_cache"
FULL = maximum(SET)
COURSE = "spring-27"
pytestmark = pytest.mark.skipif(bool(walls.problem()), reason=f"a class needs the sandbox: {walls.problem()}")

CANVAS_LIST = """Student,ID,SIS User ID,SIS Login ID,Section,KV cache (4711),Final Score,Extra days,Extra time
    Points Possible,,,,,14.00,(read only),,
"Lovelace, Ada",77,s77,ada01,A,,,,
"Hopper, Grace",78,s78,grace02,A,,,1,1.5
"Johnson, Katherine",79,s79,kj03,B,,,,
"Noether, Emmy",80,s80,emmy04,B,,,,
"Student, Test",99,,,A,,,,
"""
MOODLE_LIST = """First name;Last name;ID number;Email address;Groups
Ada;Lovelace;1001;ada@x.edu;A
Grace;Hopper;1002;grace@x.edu;A
"""
WORKSHEET = """Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,Last modified (submission),Last modified (grade),Feedback comments
Participant 501,Ada Lovelace,ada@x.edu,Submitted for grading,,14.00,Yes,"Monday, 12 April 2027, 9:15 PM",-,
Participant 502,Grace Hopper,grace@x.edu,Submitted for grading - 1 day 2 hours late,,14.00,Yes,"Wednesday, 14 April 2027, 2:05 AM",-,
Participant 503,Alan Turing,alan@x.edu,No submission,,14.00,Yes,-,-,
"""  # noqa: E501


def run(*words: object) -> int:
    return cli.main(["classroom", *map(str, words)])


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def begun(folder: Path, class_list: str, *late: str) -> Path:
    """A term with a roster, and the set released."""
    term = folder / COURSE
    assert run("new", term, "--timezone", "UTC", *late) == 0
    (folder / "class.csv").write_text(class_list, encoding="utf-8")
    assert run("roster", folder / "class.csv", "--term", term) == 0
    assert run("release", SET, "--due", "2027-04-12", "--title", "KV cache (4711)", "--term", term) == 0
    return term


def notebook(student: str, **wrong: str) -> str:
    made = filled(SET, student=student, course=COURSE)
    for cell, source in wrong.items():
        set_source(made, f"{cell.replace('_', '-')}-answer", source)
    return json.dumps(made)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder in which nobody is graded yet: most of a small class's time goes into making it."""
    work = tmp_path_factory.mktemp("prepared")
    Course(root=book_root(), work=work, code=COURSE).prepare(SET)
    return work


@pytest.fixture(scope="module")
def canvas(tmp_path_factory: pytest.TempPathFactory, prepared: Path) -> Path:
    """A term on Canvas, graded: right, late with a slip, no notebook at all, and one who handed in nothing."""
    folder = tmp_path_factory.mktemp("canvas")
    term = begun(folder, CANVAS_LIST, "--late", "per-day", "--off-per-day", "0.1", "--last-day", "5")
    shutil.copytree(prepared, term / "graded")
    slipped = notebook(
        "grace02",
        paged="def reserved_bytes(*, block, tokens, per_token, requests):\n    return requests * tokens * per_token",
        a_batch="batch_cache = '1 GB'",
    )
    files = {
        f"lovelaceada_77_880_{SET}.ipynb": notebook("ada01"),
        f"hoppergrace_LATE_78_881_{SET}-1.ipynb": slipped,
        f"johnsonkatherine_79_882_{SET}.ipynb": "{",
        f"turingalan_55_883_{SET}.ipynb": notebook("alan"),
        f"noetheremmy_81_885_{SET}.ipynb": notebook("emmy04"),  # another Emmy, whose number is not the roster's
        "lovelaceada_77_884_notes.txt": "see my notebook",
    }
    canvas_zip(folder / "submissions.zip", files)
    assert run("collect", SET, folder / "submissions.zip", "--term", term) == 0
    assert run("grade", SET, "--term", term) == 0
    return term


def test_a_term_from_the_platforms_list_to_its_gradebook(canvas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graded = {row["student"]: row["status"] for row in rows(canvas / "graded" / f"grades-{SET}.csv")}
    assert graded == {"ada01": "graded", "grace02": "graded", "kj03": "unparsable", "emmy04": "missing"}, (
        "under the ids of the roster, which the students' numbers are drawn from"
    )
    assert run("export", "--format", "csv", "--term", canvas) == 2
    told = capsys.readouterr().err
    assert "by how many days, 1 of the hand-ins of kv_cache came late" in told, "Canvas's file names say no more"
    assert told.endswith("into received/kv_cache.csv for grace02\n")
    received = canvas / "received" / f"{SET}.csv"
    received.write_text(received.read_text().replace(",,late", ",,2"))
    assert run("export", "--format", "csv", "--term", canvas) == 0
    lost = asked(SET)["paged"].points + asked(SET)["a-batch"].points
    by_student = {row["student"]: row for row in rows(canvas / "exported" / f"{SET}.csv")}
    assert [(row[f"{SET} raw"], row[f"{SET} points"]) for row in by_student.values()] == [
        (f"{FULL:g}", f"{FULL:g}"),
        (f"{FULL - lost:g}", f"{FULL - lost - 2 * 0.1 * FULL:g}"),
        ("", ""),
        ("", ""),
    ], "a raw mark, and beside it what two days took away; a blank for whoever has nothing that was graded"
    grace = by_student["grace02"]
    assert (grace[f"{SET} days late"], grace["extra_days"], grace["extra_time"]) == ("2", "1", "1.5")
    assert by_student["emmy04"][f"{SET} days late"] == ""
    assert grace["late policy"] == "per day begun 10 % of the maximum off; nothing after 5 days"
    assert run("export", SET, "--format", "canvas", "--term", canvas) == 0
    with (canvas / "exported" / f"{SET}-canvas.csv").open(newline="") as file:
        heads, possible, first, *_ = csv.reader(file)
    assert heads == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "KV cache (4711)"]
    assert possible == ["    Points Possible", "", "", "", "", f"{FULL:g}"]
    assert first == ["Lovelace, Ada", "77", "s77", "ada01", "A", f"{FULL:g}"]


def test_pages_go_back_under_the_names_that_canvas_gave(canvas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("return", SET, "--term", canvas) == 0
    assert "No page: kj03" in capsys.readouterr().out
    with zipfile.ZipFile(canvas / "returned" / f"{SET}-canvas.zip") as archive:
        assert archive.namelist() == [f"lovelaceada_77_880_{SET}.html", f"hoppergrace_LATE_78_881_{SET}-1.html"]
        assert b"Not right" in archive.read(f"hoppergrace_LATE_78_881_{SET}-1.html")


def test_the_class_page_says_what_to_teach_again_and_names_nobody(
    canvas: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("class", SET, "--term", canvas) == 0
    out = capsys.readouterr().out
    assert "2 of 4 students handed in a notebook that was graded" in out
    assert "paged  Paying for whole blocks: 1 right of 2" in out
    assert "Right by everybody: What one token leaves behind;" in out
    assert "chapter 3, part 4, Paging; `python3 book.py 3.4` opens it" in out, "whole blocks are taught there"
    page = (canvas / "class" / f"{SET}.html").read_text()
    for student in ("ada01", "grace02", "Lovelace", "Hopper"):
        assert student not in out + page


def came_late(term: Path, days: int) -> None:
    """What Canvas does not say of the one that is late."""
    path = term / "received" / f"{SET}.csv"
    path.write_text(re.sub(r",,(?:late|[1-9])(?=,|$)", f",,{days}", path.read_text(), flags=re.MULTILINE))


REQUESTS = """id;question;reason
ada01;a-batch;=1+1 is what I wrote
zoe;a-batch;me too
ada01;nothing;that one
ada01;;\x1b[2Jall <b>of</b> it
"""


def test_a_request_comes_in_and_goes_back_on_the_page(
    canvas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    term = tmp_path / COURSE
    shutil.copytree(canvas, term)
    came_late(term, 0)
    handed = term / "collected" / SET / "grace02" / f"{SET}.ipynb"
    again = json.loads(handed.read_text())
    asks = "**Regrade a-batch:** 1 GB is\nwhat the <i>table</i> says.\n\n### Regrade Paying for whole blocks: why?"
    again["cells"].insert(0, {"cell_type": "markdown", "id": "ask", "metadata": {}, "source": asks})
    handed.write_text(json.dumps(again))
    (tmp_path / "form.csv").write_text(REQUESTS, encoding="utf-8")
    assert run("requests", SET, "--add", tmp_path / "form.csv", "--term", term) == 0
    out = capsys.readouterr().out
    assert "Left out: form.csv, line 3: nobody on the roster has the id 'zoe'" in out
    assert "Left out: ada01: no question of kv_cache is called 'nothing' (that one)" in out
    assert "kv_cache: 4 requests open, 0 answered, 4 of them new." in out
    assert "grace02, a-batch (notebook): 1 GB is what the <i>table</i> says.\n  the grader: 0 of 1; Not right" in out
    assert "ada01, the whole set (form.csv): [2Jall <b>of</b> it" in out, "nothing that a terminal obeys"
    assert run("requests", SET, "--add", tmp_path / "form.csv", "--term", term) == 0
    assert "4 requests open, 0 answered, 0 of them new" in capsys.readouterr().out
    assert run("accept", SET, "grace02", "--points", "1", "--reason", "x", "--term", term) == 2
    assert "2 open requests; say which: --question a-batch or --question paged" in capsys.readouterr().err
    answer = ("--question", "a-batch", "--points", "1", "--reason", "The table is ours: right.", "--term", term)
    assert run("accept", SET, "grace02", *answer) == 0
    assert run("decline", SET, "grace02", "--reason", "Whole blocks are reserved.", "--term", term) == 0
    assert run("export", "--format", "csv", "--term", term) == 0
    lost = asked(SET)["paged"].points
    (grace,) = [row for row in rows(term / "exported" / f"{SET}.csv") if row["student"] == "grace02"]
    assert (grace[f"{SET} raw"], grace[f"{SET} points"]) == (f"{FULL - lost:g}", f"{FULL - lost:g}")
    assert grace[f"{SET} reason"] == "a-batch: The table is ours: right."
    assert run("return", SET, "--term", term) == 0
    with zipfile.ZipFile(term / "returned" / f"{SET}-canvas.zip") as archive:
        page = archive.read(f"hoppergrace_LATE_78_881_{SET}-1.html").decode()
        others = archive.read(f"lovelaceada_77_880_{SET}.html").decode()
    assert "<strong>Your request about a-batch:</strong> accepted, 1 of 1 points. The table is ours: right.</p>" in page
    assert "<strong>Your request about paged:</strong> declined. Whole blocks are reserved.</p>" in page
    assert "<strong>Your request about the whole set:</strong> received, not yet answered.</p>" in others
    assert "Whole blocks are reserved" not in others
    capsys.readouterr()
    assert run("requests", SET, "--all", "--term", term) == 0
    out = capsys.readouterr().out
    assert "2 requests open, 2 answered, 0 of them new" in out
    assert "  accepted with 1 point: The table is ours: right." in out
    assert run("accept", SET, "grace02", "--question", "a-batch", "--undo", "--term", term) == 0
    assert run("export", "--format", "csv", "--term", term) == 0
    (grace,) = [row for row in rows(term / "exported" / f"{SET}.csv") if row["student"] == "grace02"]
    assert (grace[f"{SET} raw"], grace[f"{SET} reason"]) == (f"{FULL - lost - 1:g}", "")
    assert run("accept", SET, "ada01", "--question", "", "--points", "3", "--reason", "all of it", "--term", term) == 0
    assert run("export", "--format", "csv", "--term", term) == 0
    assert rows(term / "exported" / f"{SET}.csv")[0][f"{SET} points"] == "3", "a whole set's are after the late policy"


def test_points_of_one_question_come_before_the_late_policy(canvas: Path, tmp_path: Path) -> None:
    term = tmp_path / COURSE
    shutil.copytree(canvas, term)
    came_late(term, 2)
    points = ("--question", "paged", "--points", "1.5", "--reason", "half of it", "--term", term)
    assert run("override", SET, "grace02", *points) == 0
    assert (
        run("override", SET, "kj03", "--question", "scales", "--points", "1", "--reason", "on paper", "--term", term)
        == 0
    )
    assert run("export", "--format", "csv", "--term", term) == 0
    found = {row["student"]: row for row in rows(term / "exported" / f"{SET}.csv")}
    raw = FULL - asked(SET)["paged"].points - asked(SET)["a-batch"].points + 1.5
    assert found["grace02"][f"{SET} raw"] == f"{raw:g}"
    assert found["grace02"][f"{SET} points"] == f"{raw - 2 * 0.1 * FULL:g}"
    assert found["kj03"][f"{SET} raw"] == "1", "of a notebook that cannot be read, what was seen elsewhere"


def test_collecting_again_overwrites_nothing(canvas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    term = tmp_path / COURSE
    shutil.copytree(canvas, term, ignore=shutil.ignore_patterns("graded"))
    before = (term / "collected" / SET / "ada01" / f"{SET}.ipynb").read_bytes()
    again = canvas_zip(tmp_path / "again.zip", {f"lovelaceada_77_990_{SET}.ipynb": notebook("ada01", a_batch="1")})
    assert run("collect", SET, again, "--term", term) == 0
    out = capsys.readouterr().out
    assert "ada01 has handed in another file before, which stays; --newer takes this one" in out
    assert (term / "collected" / SET / "ada01" / f"{SET}.ipynb").read_bytes() == before
    assert run("collect", SET, again, "--newer", "--term", term) == 0
    assert "0 hand-ins new, 1 newer than before" in capsys.readouterr().out
    assert (term / "collected" / SET / "ada01" / f"{SET}.ipynb.earlier-1").read_bytes() == before
    assert run("collect", SET, again, "--term", term) == 0
    assert "1 unchanged" in capsys.readouterr().out
    received = {row["student"]: row for row in rows(term / "received" / f"{SET}.csv")}
    assert received["ada01"]["handed_in_as"] == f"lovelaceada_77_990_{SET}.ipynb", "feedback goes to the newer file"
    assert received["grace02"]["days_late"] == "2", "what a teacher has written stays"


def test_the_same_term_on_moodle(tmp_path: Path, prepared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    term = begun(tmp_path, MOODLE_LIST, "--late", "zero")
    assert "from a Moodle list" in capsys.readouterr().out
    shutil.copytree(prepared, term / "graded")
    (tmp_path / "worksheet.csv").write_text("\ufeff" + WORKSHEET, encoding="utf-8")
    files = {("Ada Lovelace", 501): notebook("1001"), ("Grace_B Hopper", 502): notebook("1002")}
    moodle_zip(tmp_path / "uploads.zip", files, SET)
    words = ("collect", SET, tmp_path / "uploads.zip", "--term", term)
    assert run(*words) == 0
    out = capsys.readouterr().out
    assert "nobody on the roster is called 'Grace_B Hopper'" in out
    assert "0 late, 1 without a time" in out
    assert run(*words, "--worksheet", tmp_path / "worksheet.csv") == 0
    assert "1 late, 0 without a time" in capsys.readouterr().out, "the worksheet knows both, and when they came"
    assert run("grade", SET, "--term", term) == 0
    assert run("export", SET, "--format", "moodle", "--term", term) == 0
    exported = rows(term / "exported" / f"{SET}-moodle.csv")
    assert exported == [
        {"ID number": "1001", "Email address": "ada@x.edu", "KV cache (4711)": f"{FULL:g}"},
        {"ID number": "1002", "Email address": "grace@x.edu", "KV cache (4711)": "0"},
    ]
    worksheet = ("--worksheet", tmp_path / "worksheet.csv")
    assert run("export", SET, "--format", "moodle", *worksheet, "--term", term) == 0
    filled_in = rows(term / "exported" / f"{SET}-worksheet.csv")
    assert [row["Grade"] for row in filled_in] == [f"{FULL:g}", "0", ""]
    assert list(filled_in[0]) == WORKSHEET.splitlines()[0].split(","), "Moodle takes its own columns back"
    assert {row["Last modified (grade)"] for row in filled_in} == {"-"}, "to the letter"
    assert run("return", SET, "--term", term) == 0
    with zipfile.ZipFile(term / "returned" / f"{SET}-moodle.zip") as archive:
        names = archive.namelist()
    assert names == [
        f"Ada Lovelace_501_assignsubmission_file_{SET}.html",
        f"Grace B Hopper_502_assignsubmission_file_{SET}.html",
    ]
    for name in names:
        assert name.split("_", 4)[1].isdecimal(), "Moodle looks for the number in the second of five parts"
    assert run("export", SET, "--format", "canvas", "--term", term) == 2
    assert "the roster holds no Canvas ID of 2, 1001 among them" in capsys.readouterr().err


def test_what_students_get_draws_their_numbers(canvas: Path) -> None:
    handed = json.loads((canvas / "released" / SET / f"{SET}.ipynb").read_text())
    (who,) = [cell for cell in handed["cells"] if cell["id"] == "who"]
    assert f'course = "{COURSE}"' in "".join(who["source"])
    assert 'student = "reader"' in "".join(who["source"])
    note = (canvas / "released" / SET / f"{SET}.txt").read_text()
    assert "due Monday, 12 April 2027, 23:59 (UTC)" in note
    assert settings.read(canvas).sets[SET].title == "KV cache (4711)"


def test_the_commands_of_the_teachers_page_in_their_order(
    tmp_path: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As TEACHING.md has them, from nothing to two files to upload."""
    page = (book_root() / "TEACHING.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\n(threeloops classroom .*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "class.csv").write_text(CANVAS_LIST, encoding="utf-8")
    for line in "".join(blocks).splitlines():
        if line.startswith("cd "):
            monkeypatch.chdir(line.removeprefix("cd "))
            shutil.copytree(prepared, "graded")
            canvas_zip(Path("submissions.zip"), {f"lovelaceada_77_880_{SET}.ipynb": notebook("ada01")})
        else:
            words = shlex.split(line.replace("~/class.csv", str(tmp_path / "class.csv")))
            assert cli.main(words[1:]) == 0, line
    term = tmp_path / COURSE
    assert {path.name for path in (*term.glob("returned/*"), *term.glob("exported/*"))} == {
        f"{SET}-canvas.zip",
        f"{SET}-canvas.csv",
    }

"""Hand-ins of groups: from Moodle's and Canvas's zips, through the real grader, to marks and pages of every member."""

import csv
import json
import shutil
import zipfile
from pathlib import Path

import pytest
from submissions import asked, canvas_zip, filled, maximum, moodle_zip, released, signed

from threeloops import cli
from threeloops.classroom.course import Course
from threeloops.classroom.term import collecting, settings
from threeloops.contents import book_root

SET, COURSE = "kv_cache", "spring-27"
FULL = maximum(SET)
ROSTER = """First name;Last name;ID number;Email address;Extra days
Ada;Lovelace;1001;ada@x.edu;
Grace;Hopper;1002;grace@x.edu;2
Emmy;Noether;1003;emmy@x.edu;
Alan;Turing;1004;alan@x.edu;
"""
GROUPS = "Team;Student ID\nTeam A;1002\nTeam A;1003\n"
WHEN = "Monday, 12 April 2027, 9:15 PM"
LATE = "Wednesday, 14 April 2027, 2:05 AM"
WORKSHEET = f"""Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,Last modified (submission),Last modified (grade),Feedback comments
Participant 501,Ada Lovelace,ada@x.edu,Submitted for grading,,14.00,Yes,"{WHEN}",-,
Participant 502,Grace Hopper,grace@x.edu,Submitted for grading,,14.00,Yes,"{LATE}",-,
Participant 503,Emmy Noether,emmy@x.edu,Submitted for grading,,14.00,Yes,"{LATE}",-,
Participant 504,Alan Turing,alan@x.edu,No submission,,14.00,Yes,-,-,
"""  # noqa: E501
TEAM_NUMBER = 501  # Moodle counts groups and participants apart: this is Ada's number, too


def run(*words: object) -> int:
    return cli.main(["classroom", *map(str, words)])


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def notebook(student: str, wrong: bool = False) -> str:
    return json.dumps(
        filled(SET, student=student, course=COURSE, wrong={"a-batch": "batch_cache = 1"} if wrong else {})
    )


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("prepared")
    Course(root=book_root(), work=work, code=COURSE).prepare(SET)
    return work


@pytest.fixture
def term(tmp_path: Path, prepared: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    folder = tmp_path / COURSE
    (tmp_path / "class.csv").write_text(ROSTER, encoding="utf-8")
    (tmp_path / "groups.csv").write_text(GROUPS, encoding="utf-8")
    (tmp_path / "worksheet.csv").write_text(WORKSHEET, encoding="utf-8")
    assert run("new", folder, "--timezone", "UTC", "--late", "zero") == 0
    assert run("roster", tmp_path / "class.csv", "--term", folder) == 0
    assert run("release", SET, "--due", "2027-04-12", "--term", folder) == 0
    shutil.copytree(prepared, folder / "graded")
    capsys.readouterr()
    return folder


def test_a_groups_folder_is_not_the_participants_with_its_number(
    term: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zipped = moodle_zip(tmp_path / "in.zip", {("Team A", TEAM_NUMBER): notebook("1003")}, SET)
    assert run("collect", SET, zipped, "--worksheet", tmp_path / "worksheet.csv", "--term", term) == 0
    out = capsys.readouterr().out
    assert "nobody on the roster is called 'Team A' (participant 501 is 'Ada Lovelace': is this a group's?" in out
    assert "0 hand-ins new" in out
    assert collecting.received(settings.read(term), SET) == {}, "Ada's number, and not Ada's hand-in"


def test_a_groups_hand_in_counts_for_all_on_moodle(
    term: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("groups", SET, tmp_path / "groups.csv", "--term", term) == 0
    out = capsys.readouterr().out
    assert "Team A: 1002, 1003\n" in out
    assert "kv_cache: 1 group of 2 students; alone: 1001, 1004." in out
    files = {("Team A", TEAM_NUMBER): notebook("1003", wrong=True), ("Ada Lovelace", 501): notebook("1001")}
    zipped = moodle_zip(tmp_path / "in.zip", files, SET)
    with zipfile.ZipFile(zipped, "a") as archive:
        archive.writestr(f"Default group_assignsubmission_file/{SET}.ipynb", notebook("1004"))
    worksheet = ("--worksheet", tmp_path / "worksheet.csv")
    assert run("collect", SET, zipped, *worksheet, "--term", term) == 0
    out = capsys.readouterr().out
    assert "nobody on the roster is called 'Default group'" in out
    assert "2 hand-ins new, 0 newer than before, 0 unchanged, 1 left out; 1 late, 0 without a time." in out
    assert run("grade", SET, "--no-sandbox", "--term", term) == 0
    assert "has the points of 1003" in capsys.readouterr().out
    grades = rows(term / "graded" / f"grades-{SET}.csv")
    assert {row["student"]: row["status"] for row in grades} == {
        "1001": "graded",
        "1002": "in a group",
        "1003": "graded",
        "1004": "missing",
    }
    assert run("export", "--format", "csv", "--term", term) == 0
    lost = asked(SET)["a-batch"].points
    found = {row["student"]: row for row in rows(term / "exported" / f"{SET}.csv")}
    assert [found[one][f"{SET} raw"] for one in ("1001", "1002", "1003", "1004")] == [
        f"{FULL:g}",
        f"{FULL - lost:g}",
        f"{FULL - lost:g}",
        "",
    ]
    assert [found[one][f"{SET} points"] for one in ("1002", "1003")] == [f"{FULL - lost:g}", "0"], (
        "days late are each member's own, extra days taken off"
    )
    assert run("export", SET, "--format", "moodle", *worksheet, "--term", term) == 0
    assert [row["Grade"] for row in rows(term / "exported" / f"{SET}-worksheet.csv")] == [
        f"{FULL:g}",
        f"{FULL - lost:g}",
        "0",
        "",
    ], "nobody has the group's marks by its number"
    assert run("accept", SET, "1003", "--points", "1", "--reason", "x", "--term", term) == 2, "nothing was asked"
    points = ("--question", "a-batch", "--points", "1", "--reason", "right after all", "--term", term)
    assert run("override", SET, "1002", *points) == 0
    assert run("excuse", SET, "1003", "--reason", "ill", "--term", term) == 0
    assert run("export", "--format", "csv", "--term", term) == 0
    found = {row["student"]: row for row in rows(term / "exported" / f"{SET}.csv")}
    assert found["1002"][f"{SET} points"] == f"{FULL - lost + 1:g}", "what is decided of the notebook is everybody's"
    assert (found["1003"][f"{SET} status"], found["1002"][f"{SET} status"]) == ("excused", "graded"), "the rest is not"
    assert run("return", SET, "--term", term) == 0
    with zipfile.ZipFile(term / "returned" / f"{SET}-moodle.zip") as archive:
        pages = {name: archive.read(name) for name in archive.namelist()}
    assert [name.split("_")[:2] for name in pages] == [
        ["Ada Lovelace", "501"],
        ["Grace Hopper", "502"],
        ["Emmy Noether", "503"],
    ]
    own, grace, emmy = pages.values()
    assert grace == emmy != own
    capsys.readouterr()
    assert run("class", SET, "--term", term) == 0
    assert "2 of 3 students" in capsys.readouterr().out, "a notebook is counted once"


def test_copies_and_other_notebooks_of_a_group(term: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("groups", SET, tmp_path / "groups.csv", "--term", term) == 0
    empty = json.dumps(signed(released(SET), student="1002", course=COURSE))
    folder = tmp_path / "in"
    for student, content in (("1002", empty), ("1003", notebook("1002"))):
        (folder / student).mkdir(parents=True)
        (folder / student / f"{SET}.ipynb").write_text(content)
    assert run("collect", SET, folder, "--on-time", "--term", term) == 0
    out = capsys.readouterr().out
    assert "'1002/kv_cache.ipynb': of Team A, '1003/kv_cache.ipynb' counts, which holds more answers" in out
    received = collecting.received(settings.read(term), SET)
    assert {one.student: one.graded_as for one in received.values()} == {"1002": "", "1003": "1002"}
    assert run("collect", SET, folder, "--term", term) == 0
    assert "1 unchanged" in capsys.readouterr().out
    (folder / "1003" / f"{SET}.ipynb").write_text(notebook("1003"))
    assert run("collect", SET, folder, "--term", term) == 0
    assert "Team A has handed in another file before, which stays; --newer takes this" in capsys.readouterr().out
    (folder / "1002" / f"{SET}.ipynb").write_text(notebook("1002", wrong=True))
    assert run("collect", SET, folder, "--newer", "--on-time", "--term", term) == 0
    out = capsys.readouterr().out
    assert "0 hand-ins new, 1 newer than before" in out
    assert "'1003/kv_cache.ipynb' counts, which holds as many answers and is the last by its name" in out
    assert (term / "collected" / SET / "1002" / f"{SET}.ipynb.earlier-1").read_text() == notebook("1002")
    assert {one.student: one.graded_as for one in collecting.received(settings.read(term), SET).values()} == {
        "1002": "1003",
        "1003": "",
    }
    nameless = notebook("reader")
    for student in ("1002", "1003"):
        (folder / student / f"{SET}.ipynb").write_text(nameless)
    assert run("collect", SET, folder, "--newer", "--term", term) == 0
    out = capsys.readouterr().out
    assert "the notebook names none of its members, so it is graded with the numbers of 1003" in out
    assert run("groups", SET, "--none", "--term", term) == 0
    assert run("collect", SET, folder, "--newer", "--on-time", "--term", term) == 0
    assert collecting.graded_as(settings.read(term), SET) == {}


def test_who_joins_late_and_who_leaves(term: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worksheet = ("--worksheet", tmp_path / "worksheet.csv")
    zipped = moodle_zip(tmp_path / "in.zip", {("Team A", TEAM_NUMBER): notebook("1003")}, SET)

    def whose(members: str) -> dict[str, str]:
        rows_of = "".join(f"Team A;{one}\n" for one in members.split())
        (tmp_path / "groups.csv").write_text(f"group;student\n{rows_of}", encoding="utf-8")
        assert run("groups", SET, tmp_path / "groups.csv", "--term", term) == 0
        assert run("collect", SET, zipped, *worksheet, "--on-time", "--term", term) == 0
        return {one.student: one.graded_as for one in collecting.received(settings.read(term), SET).values()}

    assert whose("1002 1003") == {"1002": "1003", "1003": ""}
    assert whose("1002 1003 1004") == {"1002": "1003", "1003": "", "1004": "1003"}
    capsys.readouterr()
    assert whose("1003 1004") == {"1003": "", "1004": "1003"}, "no marks of a group that one has left"
    assert "1002 had the hand-in of 1003, is no longer in that group, and has no other" in capsys.readouterr().out
    assert run("grade", SET, "--no-sandbox", "--term", term) == 0
    assert run("export", "--format", "csv", "--term", term) == 0
    found = {row["student"]: row[f"{SET} raw"] for row in rows(term / "exported" / f"{SET}.csv")}
    assert found == {"1001": "", "1002": "", "1003": f"{FULL:g}", "1004": f"{FULL:g}"}
    assert run("groups", SET, "--none", "--term", term) == 0
    assert run("collect", SET, zipped, *worksheet, "--term", term) == 0
    assert collecting.graded_as(settings.read(term), SET) == {}


def test_canvas_names_the_file_of_one_member(tmp_path: Path, prepared: Path) -> None:
    folder = tmp_path / COURSE
    (tmp_path / "class.csv").write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section\n"
        '"Lovelace, Ada",77,,ada01,Team A\n"Hopper, Grace",78,,grace02,Team A\n',
        encoding="utf-8",
    )
    assert run("new", folder, "--timezone", "UTC", "--late", "none") == 0
    assert run("roster", tmp_path / "class.csv", "--term", folder) == 0
    assert run("release", SET, "--due", "2027-04-12", "--term", folder) == 0
    assert run("groups", SET, "--term", folder) == 0, "from the roster's sections"
    shutil.copytree(prepared, folder / "graded")
    zipped = canvas_zip(tmp_path / "in.zip", {f"teama_77_880_{SET}.ipynb": notebook("grace02")})
    assert run("collect", SET, zipped, "--term", folder) == 0
    assert run("grade", SET, "--no-sandbox", "--term", folder) == 0
    assert run("export", SET, "--format", "canvas", "--term", folder) == 0
    _, ada, grace = rows(folder / "exported" / f"{SET}-canvas.csv")
    assert ada[SET] == grace[SET] == f"{FULL:g}"
    assert run("return", SET, "--term", folder) == 0
    with zipfile.ZipFile(folder / "returned" / f"{SET}-canvas.zip") as archive:
        assert archive.namelist() == [f"teama_77_880_{SET}.html"]
    with zipfile.ZipFile(folder / "returned" / f"{SET}-folder.zip") as archive:
        assert archive.namelist() == [f"grace02/{SET}.html"], "whom Canvas's zip does not name"


REFUSED = {
    "Team A;1009": "line 2: nobody on the roster has the id '1009'",
    ";1002": "line 2: 1002 has no group; leave out who hands in alone",
    "Team A;1002\nteam-a;1003": "'team-a' and 'Team A' are one name to a platform",
    "1004;1002\n1004;1003": "a folder called '1004' may be that group's, or the one of 1004, who is not in it",
    "Alan Turing;1002": "called 'Alan Turing' may be that group's, or the one of 1004",
    "Team A;1002\nTeam B;1002": "line 3: 1002 is in 'Team A' already, and nobody is in two groups",
}


@pytest.mark.parametrize("lines", REFUSED)
def test_a_list_that_cannot_be_meant_is_refused(
    lines: str, term: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "groups.csv").write_text(f"group;student\n{lines}\n", encoding="utf-8")
    assert run("groups", SET, tmp_path / "groups.csv", "--term", term) == 2
    assert REFUSED[lines] in capsys.readouterr().err
    (tmp_path / "groups.csv").write_text("name;student\nTeam A;1002\n", encoding="utf-8")
    assert run("groups", SET, tmp_path / "groups.csv", "--term", term) == 2
    assert "has no column group; it has name, student" in capsys.readouterr().err
    assert run("groups", SET, "--term", term) == 2
    assert "the roster has no sections, so it names no groups" in capsys.readouterr().err
    assert run("groups", SET, "--none", "--term", term) == 2
    assert "has no groups, so there are none to take back" in capsys.readouterr().err

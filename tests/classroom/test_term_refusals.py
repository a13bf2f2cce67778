"""What a teacher can get wrong in a term: each ends in one sentence that says what came and what would work."""

import json
import re
import zipfile
from pathlib import Path

import pytest
from submissions import canvas_zip, released

from threeloops import cli
from threeloops.classroom.grade import listed
from threeloops.classroom.term import people, settings
from threeloops.classroom.term.collecting import received
from threeloops.drills.engine.student_draws import plain_id

PLAIN = "id,name,email,extra_days,extra_time\nada,Ada Lovelace,ada@x,,\ngrace,Grace Hopper,grace@x,2,1.25\n"
TERM = ("--timezone", "UTC", "--late", "none")
SET = "kv_cache"


@pytest.fixture
def term(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A term with two students, and a set released."""
    folder = tmp_path / "spring-27"
    (tmp_path / "class.csv").write_text(PLAIN)
    assert run("new", folder, *TERM) == 0
    assert run("roster", tmp_path / "class.csv", "--term", folder) == 0
    assert run("release", SET, "--due", "2027-04-12T18:00", "--term", folder) == 0
    capsys.readouterr()
    return folder


def run(*words: object) -> int:
    return cli.main(["classroom", *map(str, words)])


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The one sentence of a refusal."""
    assert run(*words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1), err
    return err


LISTS = {
    "": "is empty",
    "name,email\nAda,a@x\n": "has no column called id or student; its first line, the headings, has name, email",
    "id,name\n": "lists nobody",
    "id,name\nada,Ada\nADA.,Ada\n": "two people have the id 'ada'",
    "id,name\nada,Ada\n,Grace\n": "not everybody has an entry in id, line 3 has none",
    "id,name\nada,Ada\n####,Grace\n": "not everybody has an entry in id, line 3 has ####",
    "<!DOCTYPE html>\n<p>Log in": "is a web page, not a CSV file",
    "id,canvas id\nada,77\ngrace,77\n": "two people have the Canvas ID '77'",
    "id,id\nada,x\n": "two columns called 'id'",
    "id,extra_days\nada,two\n": "line 2: extra_days 'two' must be a whole number of days",
    "id,name\n1.23457E+11,Ada\n1002,Grace\n": "line 2: '1.23457E+11' in column 'id' was rounded by a spreadsheet",
    "id;name\n1,23457E+11;Ada\n": "was rounded by a spreadsheet",
    "student,id number\nada,#####\n": "'#####' in column 'id number' was replaced by a spreadsheet's error",
    "id\n1001.0\n1002.0\n": "was turned into a fraction by a program",
    "id\n2-Mar\n3-Apr\n": "'2-Mar' in column 'id' was taken for a date by a spreadsheet",
    "id\nDec-07\n": "was taken for a date by a spreadsheet",
    "id\n03.04.2027\n": "was taken for a date by a spreadsheet",
    'id\n"1,001"\n"1,002"\n': "was grouped by thousands by a spreadsheet",
    "id\n1234567890123450000\n": "was rounded by a spreadsheet, which keeps 15 digits",
    "id,name,email\nada,Lovelace, Ada,ada@x\n": "line 2 has 4 cells under 3 headings",
    "id,name,email\nada,Lovelace, Ada,\ngrace,Grace,g@x\n": "line 2 has 4 cells under 3 headings",
    "id,name,email\nada,Lovelace, Ada\n": "'Ada' under 'email' is no e-mail address",
    "id,extra_time\nada,50 %\n": "line 2: extra_time '50 %' must be a factor from 1 to 4",
    "First name,Email address\nAda,\nGrace,g@x\n": "not everybody has an entry in Email address",
}


@pytest.mark.parametrize("text", LISTS)
def test_a_wrong_class_list_changes_nothing(text: str, term: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (term / "roster.csv").read_bytes()
    (term / "new.csv").write_text(text)
    assert LISTS[text] in refused(capsys, "roster", term / "new.csv", "--term", term)
    assert (term / "roster.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("content", "told"),
    [("id,name\nzoë,Zoë\n".encode("latin-1"), "not written in UTF-8"), (b'id\n"ada\n', "is no CSV file")],
)
def test_a_list_in_another_form_is_refused(
    content: bytes, told: str, term: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (term / "new.csv").write_bytes(content)
    assert told in refused(capsys, "roster", term / "new.csv", "--term", term)
    with zipfile.ZipFile(term / "class.xlsx", "w") as workbook:
        workbook.writestr("xl/workbook.xml", "<x/>")
    assert "save it as “CSV UTF-8”" in refused(capsys, "roster", term / "class.xlsx", "--term", term)
    assert "does not exist" in refused(capsys, "roster", term / "nowhere.csv", "--term", term)
    (term / "new.csv").write_text("id,nick\nada,countess\n")
    assert "has no column 'login'" in refused(capsys, "roster", term / "new.csv", "--id", "login", "--term", term)
    assert run("roster", term / "new.csv", "--id", "nick", "--term", term) == 0


def test_a_new_list_keeps_what_was_granted(term: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (term / "new.csv").write_text("id;name\ngrace;Grace Hopper\nemmy;Emmy Noether\n")
    assert run("roster", term / "new.csv", "--term", term) == 0
    out = capsys.readouterr().out
    assert "New: emmy." in out
    assert "No longer listed: ada; what they handed in stays." in out
    assert "1 with extra days, 1 with extra time" in out
    assert "grace,Grace Hopper,grace@x,,,,,,2,1.25" in (term / "roster.csv").read_text()
    assert "ada" in (term / "roster.csv.earlier-1").read_text()


def test_what_every_row_has_too_much_of_is_a_programs_habit(term: Path) -> None:
    (term / "new.csv").write_text("id,name\nada,Ada Lovelace,\ngrace,Grace Hopper,\n")
    assert run("roster", term / "new.csv", "--term", term) == 0


def test_the_commands_own_advice_loses_no_names(term: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ids and days alone, as TEACHING.md grants more days: what the old list knew stays."""
    (term / "new.csv").write_text("id,extra_days\nada,3\ngrace,\n")
    assert run("roster", term / "new.csv", "--term", term) == 0
    assert "ada,Ada Lovelace,ada@x,,,,,,3,1" in (term / "roster.csv").read_text()
    assert "No name is known" not in capsys.readouterr().out
    (term / "new.csv").write_text("Matrikel;Vorname;Nachname;E-Mail-Adresse\nm1;Emmy;Noether;e@x\nm2;Zoë;Ost;z@x\n")
    capsys.readouterr()
    assert run("roster", term / "new.csv", "--id", "Matrikel", "--term", term) == 0
    assert "m1,Emmy Noether,e@x" in (term / "roster.csv").read_text()
    (term / "new.csv").write_text("Kürzel,Rufname\nm3,Emmy\n")
    assert run("roster", term / "new.csv", "--id", "Kürzel", "--term", term) == 0
    assert "No name is known of 1, m3 among them" in capsys.readouterr().out


PLATFORMS = (
    'Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\n"Lovelace, Ada",77,,ada,A\n',
    "First name,Last name,ID number,Email address\nAda,Lovelace,1001,ada@x\n",
    "Nachname;Vorname;ID-Nummer;E-Mail-Adresse\nLovelace;Ada;1001;ada@x\n",
)


@pytest.mark.parametrize("text", PLATFORMS)
def test_a_platforms_list_is_no_roster_of_grade(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "class" / "ada").mkdir(parents=True)
    (tmp_path / "class" / "ada" / f"{SET}.ipynb").write_text("{")
    (tmp_path / "list.csv").write_text(text)
    assert cli.main(["grade", str(tmp_path / "class"), "--roster", str(tmp_path / "list.csv")]) == 2
    assert "`threeloops classroom roster CLASS.csv` reads it" in capsys.readouterr().err


def test_ids_of_a_plain_list_are_taken_whatever_separates_them(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("id;name\n1001;Ada\n1002;Grace\n")
    assert listed(tmp_path / "list.csv") == ["1001", "1002"]
    (tmp_path / "list.csv").write_text("student\n1.2E+11\n")
    with pytest.raises(ValueError, match="was rounded by a spreadsheet"):
        listed(tmp_path / "list.csv")


NEW = {
    ("--timezone", "Berlin", "--late", "none"): "--timezone 'Berlin' is not known; it is written like 'Europe/Berlin'",
    ("--timezone", "UTC", "--late", "strict"): "--late 'strict' is not known",
    ("--timezone", "UTC", "--late", "per-day"): "--late 'per-day' needs both off_per_day",
    (*TERM, "--off-per-day", "0.1"): "takes neither off_per_day nor last_day",
    ("--timezone", "UTC", "--late", "per-day", "--off-per-day", "10", "--last-day", "3"): "a share, not a percentage",
    (*TERM, "--gradebook", "mysql://x/y"): "mysql://x/y is no gradebook: give postgresql://USER@HOST/DATABASE",
    (*TERM, "--course", "…"): "must hold a letter or a digit",
}


@pytest.mark.parametrize("words", NEW)
def test_a_term_is_begun_with_its_policy_said(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert NEW[words] in refused(capsys, "new", tmp_path / "t", *words)
    assert not (tmp_path / "t").exists()
    with pytest.raises(SystemExit):
        run("new", tmp_path / "t", "--timezone", "UTC")


def test_nothing_runs_without_a_term(tmp_path: Path, term: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "`threeloops classroom new TERM` begins one" in refused(capsys, "return", SET, "--term", tmp_path)
    assert "is already there" in refused(capsys, "new", term, *TERM)
    begun = 'course = "a"\ntimezone = "UTC"\n[late]\n'
    for text, told in (
        ("course = ", "is no TOML file"),
        ('course = "a"\n', "'timezone' is missing"),
        ('course = "a"\ncolour = "red"\n', "'colour' is not known"),
        (begun + 'policy = "none"\n[sets.kv_cache]\ndue = 2027-01-01\n', "with its offset"),
        (begun + 'policy = "none"\nfee = 3\n', "fee='fee' is not known"),
        (begun + "off_per_day = 0.1\n", "late='not said' is not known. Known: none, zero, per-day"),
        ("", "'course' is missing"),
    ):
        (term / "term.toml").write_text(text)
        assert told in refused(capsys, "return", SET, "--term", term)


def test_releasing_again_moves_the_date_and_keeps_the_teachers_lines(
    term: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = term / "term.toml"
    file.write_text(file.read_text() + "# mine\n")
    assert run("release", SET, "--due", "2027-04-19", "--title", "Cachés 😀", "--term", term) == 0
    assert "due 2027-04-19 23:59 UTC (it was 2027-04-12 18:00)" in capsys.readouterr().out
    assert run("release", "amdahl", "--due", "2027-05-01T12:00+02:00", "--term", term) == 0
    assert file.read_text().count("[sets.kv_cache]") == 1
    assert 'title = "Cachés 😀"' in file.read_text()
    assert "# mine\n" in file.read_text()
    assert {name: str(one.due) for name, one in settings.read(term).sets.items()} == {
        SET: "2027-04-19 23:59:00+00:00",
        "amdahl": "2027-05-01 12:00:00+02:00",
    }
    capsys.readouterr()
    assert "--due 'soon' is no date" in refused(capsys, "release", SET, "--due", "soon", "--term", term)
    assert "did you mean 'kv_cache'" in refused(capsys, "release", "kv", "--due", "2027-05-01", "--term", term)


def test_each_command_says_which_one_comes_before_it(term: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--term", term)
    hand_in = canvas_zip(term / "in.zip", {f"lovelaceada_7_8_{SET}.ipynb": "{"})
    assert "classroom release amdahl --due DATE" in refused(capsys, "collect", "amdahl", hand_in, *words)
    assert "classroom collect kv_cache ZIP" in refused(capsys, "grade", SET, *words)
    assert "classroom collect" in refused(capsys, "return", SET, *words)
    assert "classroom grade kv_cache" in refused(capsys, "class", SET, *words)
    assert "classroom grade kv_cache" in refused(capsys, "export", SET, "--format", "csv", *words)
    assert "fewer than two hand-ins" in refused(capsys, "similar", SET, *words)
    (term / "roster.csv").unlink()
    assert "classroom roster CLASS.csv" in refused(capsys, "collect", SET, hand_in, *words)


def test_what_does_not_fit_is_listed_and_not_taken(term: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (term / "roster.csv").open("a") as file:
        file.write("ada2,Ada Lovelace,ada2@x,,,,,,,\n")
    answers = json.dumps(released(SET))
    files = {
        f"lovelaceada_7_8_{SET}.ipynb": answers,
        f"gracehopper_9_10_{SET}.ipynb": answers,
        f"grace_11_12_{SET}.ipynb": answers,
        f"../../outside/{SET}.ipynb": answers,
        "gracehopper_9_13_amdahl.ipynb": json.dumps(released("amdahl")),
    }
    assert run("collect", SET, canvas_zip(term / "in.zip", files), "--term", term) == 0
    out = capsys.readouterr().out
    assert "'lovelaceada' may be ada or ada2" in out
    assert out.count("2 hand-ins fit grace, so none is taken") == 2
    assert "leads out of the zip" in out
    assert "amdahl, handed in by 1" in out
    assert not (term / "collected").exists()
    moodle = {"+Grace Hopper_9_assignsubmission_file/kv_cache.ipynb": answers}
    assert run("collect", SET, canvas_zip(term / "in.zip", moodle), "--term", term) == 0
    assert "grace,'+Grace Hopper_9" in (term / "received" / f"{SET}.csv").read_text(), "no spreadsheet calculates it"
    assert received(settings.read(term), SET)["grace"].handed_in_as == next(iter(moodle)), "and it is read as it was"
    (term / "received" / f"{SET}.csv").unlink()
    (term / "collected" / SET / "grace" / f"{SET}.ipynb").unlink()
    capsys.readouterr()
    plain = term / "by hand" / "grace"
    plain.mkdir(parents=True)
    (plain / f"{SET}.ipynb").write_text(answers)
    assert run("collect", SET, plain.parent, "--on-time", "--term", term) == 0
    assert "1 hand-in new" in capsys.readouterr().out
    kept = (term / "received" / f"{SET}.csv").read_text()
    assert kept.splitlines()[1:] == [f"grace,grace/{SET}.ipynb,,0,,"]
    (term / "received" / f"{SET}.csv").write_text(kept.replace(",0,", ",soon,"))
    assert "days_late 'soon' must be a whole number" in refused(capsys, "collect", SET, plain.parent, "--term", term)
    (term / "received" / f"{SET}.csv").write_text(kept)
    assert "neither a notebook, a folder nor a zip" in refused(
        capsys, "collect", SET, term / "roster.csv", "--term", term
    )


def test_a_worksheet_that_is_none_is_refused(term: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hand_in = canvas_zip(term / "in.zip", {f"Ada_5_assignsubmission_file_/{SET}.ipynb": "{"})
    sheet = term / "sheet.csv"
    words = ("collect", SET, hand_in, "--worksheet", sheet, "--term", term)
    sheet.write_text("Name,Grade\nAda,1\n")
    assert "is no grading worksheet of Moodle's" in refused(capsys, *words)
    sheet.write_text('Identifier,Last modified (submission)\nParticipant 5,"lunedì, 12 aprile 2027, 21:15"\n')
    assert "set Moodle to English before you download" in refused(capsys, *words)
    sheet.write_text("Identifier,Last modified (submission)\nsomebody,-\n")
    assert "'somebody' is no identifier like Participant 123" in refused(capsys, *words)
    sheet.write_text("Identifier,Last modified (submission)\nParticipant 5,-\n")
    assert "give --format moodle and one set" in _needs_moodle(capsys, term, sheet)


def _needs_moodle(capsys: pytest.CaptureFixture[str], term: Path, sheet: Path) -> str:
    (term / "graded").mkdir(exist_ok=True)
    head = "student,status,question,drill,outcome,slips,points,maximum,notes\n"
    (term / "graded" / f"grades-{SET}.csv").write_text(head + "ada,missing,,,,,0,,\ngrace,missing,,,,,0,,\n")
    release = term / "graded" / "release" / SET
    release.mkdir(parents=True)
    (release / f"{SET}.ipynb").write_text('{"cells": []}')
    return refused(capsys, "export", SET, "--format", "csv", "--worksheet", sheet, "--term", term)


def test_what_a_teacher_decides_is_kept_with_its_reason(term: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = term / "sheet.csv"
    sheet.write_text("Identifier,Last modified (submission)\nParticipant 5,-\n")
    _needs_moodle(capsys, term, sheet)
    words, path = ("--term", term), term / "exported" / f"{SET}.csv"
    assert "--reason must say why" in refused(capsys, "excuse", SET, "ada", *words)
    assert "nobody on the roster has the id 'eve'" in refused(capsys, "excuse", SET, "eve", "--reason", "ill", *words)
    assert "must be a number of points" in refused(capsys, "override", SET, "ada", "--reason", "x", *words)
    assert run("excuse", SET, "ada", "--reason", "ill", *words) == 0
    assert run("override", SET, "grace", "--points", "9.5", "--reason", "my error", *words) == 0
    capsys.readouterr()
    assert run("export", "--format", "csv", *words) == 0
    assert "Excused, with the reason in decisions.csv: ada." in capsys.readouterr().out
    text = path.read_text()
    assert ",excused,,0,,,0,ill," in text
    assert ",missing,,0,,9.5,0,my error," in text
    assert run("excuse", SET, "ada", "--undo", *words) == 0
    assert run("export", "--format", "csv", "--missing", "zero", *words) == 0
    assert ",missing,0,0,,0,0,," in path.read_text()
    capsys.readouterr()
    assert "nothing of that kind was decided" in refused(capsys, "excuse", SET, "ada", "--undo", *words)
    assert "--missing 'none' is not known" in refused(capsys, "export", "--format", "csv", "--missing", "none", *words)


def test_a_request_that_nobody_can_answer(term: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--term", term)
    assert "queues was not released" in refused(capsys, "requests", "queues", *words)
    (term / "form.csv").write_text("who,what\nada,scales\n")
    assert "has no column student; it has who, what" in refused(
        capsys, "requests", SET, "--add", term / "form.csv", *words
    )
    assert "ada has no such open request of kv_cache" in refused(capsys, "decline", SET, "ada", *words)
    assert "nothing to take back" in refused(capsys, "decline", SET, "ada", "--undo", *words)
    (term / "form.csv").write_text("student,question,reason\nAda,scales,GiB\nada,scales,GiB again\nada,,\n")
    assert run("requests", SET, "--add", term / "form.csv", *words) == 0
    out = capsys.readouterr().out
    assert "Left out: form.csv, line 4: ada gives no reason" in out
    assert "2 requests open" in out
    assert "--reason must say why" in refused(capsys, "decline", SET, "ada", *words)
    for points, told in (("2", "--points 2 is more than scales is worth, 1"), ("one", "must be a number of points")):
        assert told in refused(capsys, "accept", SET, "ada", "--points", points, "--reason", "x", *words)
    of = ("--points", "1", "--reason", "x", "--question")
    assert "--question 'nothing' is not known" in refused(capsys, "override", SET, "ada", *of, "nothing", *words)
    assert run("decline", SET, "ada", "--reason", "GB was asked", *words) == 0
    capsys.readouterr()
    (term / "requests.csv").write_text((term / "requests.csv").read_text().replace("declined", "perhaps"))
    assert "line 2: state='perhaps'" in refused(capsys, "requests", SET, *words)


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        ('sep=;\r\nid;name\r\n="0123";"Lovelace, Ada"\r\n"=""0456""";Bob\r\n', ["0123", "0456"]),
        ("sep=,\nid,name\n07,Ada\n", ["07"]),
        ('id\tname\n="08"\tAda\n', ["08"]),
    ],
)
def test_what_a_spreadsheet_writes_around_an_id_is_no_part_of_it(tmp_path: Path, written: str, ids: list[str]) -> None:
    (tmp_path / "class.csv").write_bytes(written.encode())
    assert [one.student for one in people.class_list(tmp_path / "class.csv").people] == ids


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("id;name\n=A2;Ada\n", "'=A2' in column 'id' was left by a spreadsheet as a formula"),
        ('id,name\n="0,5",Ada\n', "line 2 has 3 cells under 2 headings"),
        ("sep=;\n", "is empty; expected a row of headings"),
    ],
)
def test_a_formula_and_a_comma_too_many_are_told(tmp_path: Path, written: str, told: str) -> None:
    (tmp_path / "class.csv").write_text(written)
    with pytest.raises(ValueError, match=re.escape(told)):
        people.class_list(tmp_path / "class.csv")


def test_a_canvas_export_in_any_language_and_with_split_names(tmp_path: Path) -> None:
    people_of = {
        "Étudiant": '"Lovelace, Ada",1,u1,ada01,A,\n"Étudiant, Test",9,,0123456789abcdef0123456789abcdef01234567,A,',
        "LastName,FirstName": "Lovelace,Ada,1,u1,ada01,A,\nTest,Student,9,,0123456789abcdef0123456789abcdef01234567,A,",
    }
    for named, written in people_of.items():
        blank = "," * named.count(",")
        path = tmp_path / "canvas.csv"
        path.write_text(
            f"{named},ID,SIS User ID,SIS Login ID,Section,A (1)\n    Points Possible{blank},,,,,14\n{written}\n"
        )
        (one,) = people.class_list(path).people
        assert (one.student, one.canvas_id) == ("ada01", "1")
        assert sorted(plain_id(one.name).split("-")) == ["ada", "lovelace"]


def test_who_has_one_name_only_stays_on_a_list_with_split_names(tmp_path: Path) -> None:
    path = tmp_path / "canvas.csv"
    path.write_text(
        "LastName,FirstName,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,,\n,Suharto,2,u2,su02,A\n"
    )
    assert [(one.student, one.name) for one in people.class_list(path).people] == [("su02", "Suharto")]


def test_two_with_one_address_and_zeros_that_are_gone_are_told(
    term: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "class.csv"
    path.write_text("id,name,email\n1001,Ada,a@x.edu\n1002,Grace,A@x.edu\n")
    assert run("roster", path, "--term", term) == 2
    assert "two people have the e-mail address 'a@x.edu'" in capsys.readouterr().err
    path.write_text("id,name\n100234,Ada\n100235,Grace\n4567,Emmy\n")
    assert run("roster", path, "--term", term) == 0
    assert "4567 is shorter than the other ids, which have 6 digits" in capsys.readouterr().out

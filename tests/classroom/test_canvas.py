"""Marks through Canvas's API, to a Canvas made from its documentation: nothing before it is asked for, only what has
changed, and a word on whatever is not sent or not taken.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fake_canvas import ASSIGNMENT, COURSE, PATH, TOKEN, School, open_school

from threeloops import cli
from threeloops.classroom.term import canvas, canvas_api, settings
from threeloops.classroom.term.marks import Line, Mark
from threeloops.classroom.term.people import Person

SET = "kv_cache"


def has(points: float | None, status: str = "graded") -> Mark:
    return Mark(status=status, raw=points, maximum=14.0, days_late="0", points=points)


# id -> Canvas's number, what the term has, what Canvas has.
CLASS: dict[str, tuple[str, Mark, dict[str, object] | None]] = {
    "ada": ("77", has(12.5), {"score": None}),
    "grace": ("78", has(14.0), {"score": 14.0}),
    "emmy": ("79", has(9.0), {"score": 7.0}),
    "alan": ("80", has(None, "missing"), {"score": 3.0}),
    "kurt": ("81", has(None, "excused"), {"score": 5.0}),
    "mary": ("82", has(6.0), {"score": None, "excused": True}),
    "rosa": ("83", has(None, "unparsable"), {"score": None}),
    "edsger": ("", has(8.0), None),
    "barbara": ("99", has(8.0), None),
}
LINES = [
    Line(person=Person(student=student, canvas_id=number), marks={SET: mark})
    for student, (number, mark, _) in CLASS.items()
]
SENT = ["ada: blank → 12.5", "emmy: 7 → 9", "kurt: 5 → excused", "mary: excused → 6"]
NOT_SENT = [
    "Not sent: alan: no mark (missing); Canvas has 3, which stays",
    "Not sent: rosa: no mark (unparsable)",
    "Not sent: edsger: 8, but the roster has no Canvas ID; make it from Canvas's gradebook export",
    "Not sent: barbara: 8, but Canvas has nobody with the ID 99 in this assignment",
]


@pytest.fixture
def school(monkeypatch: pytest.MonkeyPatch) -> Iterator[School]:
    monkeypatch.setattr("threeloops.classroom.term.marks.marks", lambda *_, **__: LINES)
    monkeypatch.setattr(canvas, "ASK_AGAIN_S", 0.01)
    monkeypatch.setattr(canvas_api, "WAITS_S", (0.01, 0.02))
    monkeypatch.setenv(canvas_api.TOKEN, TOKEN)
    there = {
        number: {"user_id": int(number), "excused": False} | held
        for number, _, held in CLASS.values()
        if held is not None
    }
    about = {"id": int(ASSIGNMENT), "name": "KV cache", "points_possible": 14.0, "grading_type": "points"}
    with open_school(School(submissions=there, about=about)) as found:
        yield found


@pytest.fixture
def term(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    folder = tmp_path / "spring-27"
    assert cli.main(["classroom", "new", str(folder), "--timezone", "UTC", "--late", "none"]) == 0
    (tmp_path / "class.csv").write_text("id,name\nada,Ada\n", encoding="utf-8")
    assert cli.main(["classroom", "roster", str(tmp_path / "class.csv"), "--term", str(folder)]) == 0
    title = f"KV cache ({ASSIGNMENT})"
    assert cli.main(["classroom", "release", SET, "--due", "2027-04-12", "--title", title, "--term", str(folder)]) == 0
    capsys.readouterr()
    return folder


def run(term: Path, *words: str) -> int:
    return cli.main(["classroom", "canvas", SET, "--term", str(term), *words])


def where(school: School) -> tuple[str, ...]:
    return ("--url", school.url, "--course-id", COURSE)


def test_nothing_is_sent_before_it_is_asked_for(school: School, term: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {user: dict(one) for user, one in school.submissions.items()}
    assert run(term, *where(school)) == 0
    out = capsys.readouterr().out.splitlines()
    assert out == [
        "'KV cache' in Canvas: 4 marks to send, 1 there already.",
        *SENT,
        *NOT_SENT,
        "Nothing was sent; --send sends it.",
    ]
    assert school.submissions == before
    assert {how for how, _ in school.asked} == {"GET"}
    assert school.asked.count(("GET", f"{PATH}/submissions")) == 4, "all pages of seven, two on each"
    assert TOKEN not in (term / settings.FILE).read_text(), "a token is kept nowhere"


def test_what_is_sent_is_seen_in_canvas_and_not_sent_twice(
    school: School, term: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(term, *where(school), "--send") == 0
    assert capsys.readouterr().out.endswith("4 marks sent, and seen in Canvas.\n")
    now = {user: (one["score"], one["excused"]) for user, one in school.submissions.items()}
    assert now == {
        "77": (12.5, False),
        "78": (14.0, False),
        "79": (9.0, False),
        "80": (3.0, False),
        "81": (None, True),
        "82": (6.0, False),
        "83": (None, False),
    }, "blanks stay blanks, whatever was there stays where there is no mark, and who is excused is"
    assert run(term, "--send") == 0, "the term knows which Canvas and which course"
    out = capsys.readouterr().out
    assert "0 marks to send, 5 there already" in out
    assert out.endswith("Nothing was sent: there is nothing to send.\n")
    assert sum(how == "POST" for how, _ in school.asked) == 1


def test_what_canvas_does_not_take_is_named(school: School, term: Path, capsys: pytest.CaptureFixture[str]) -> None:
    school.deaf_to = {"79"}
    assert run(term, *where(school), "--send") == 1
    out = capsys.readouterr().out
    assert "Not taken: emmy: Canvas has 7, and 9 was sent\n" in out
    assert out.endswith("3 marks sent, and seen in Canvas.\n")
    school.nameless = True
    assert run(term, "--send") == 1
    assert "emmy: Canvas has 7, and 9 was sent (its job has no number to ask after)" in capsys.readouterr().out
    school.nameless, school.fate = False, "failed"
    assert run(term, "--send") == 1
    assert "emmy: Canvas has 7, and 9 was sent (its job failed it is Saturday)" in capsys.readouterr().out


def test_a_large_class_goes_in_parts_and_what_breaks_off_is_said(
    school: School, monkeypatch: pytest.MonkeyPatch, term: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(canvas, "AT_ONCE", 3)
    school.broken["/api/v1/progress/2"] = (429, "")
    assert run(term, *where(school), "--send") == 2
    told = capsys.readouterr().err
    assert "answers 429: it was asked too often for a while; give the same command again" in told
    assert "not known to have arrived are the marks of 1, mary; give the same command again" in told
    school.broken.clear()
    assert run(term, "--send") == 0
    assert "0 marks to send" in capsys.readouterr().out, "it had arrived after all"


def test_what_canvas_has_no_time_for_is_asked_again_and_then_told(
    school: School, term: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    school.throttled = 2
    assert run(term, *where(school), "--send") == 0
    assert "4 marks sent" in capsys.readouterr().out
    school.throttled = 3
    assert run(term) == 2
    assert "answers 403: it was asked too often for a while" in capsys.readouterr().err
    assert len([one for one, _ in school.asked if one == "POST"]) == 1


def test_points_that_canvas_itself_takes_off_are_said(
    school: School, term: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    school.off = 2.5
    assert run(term, *where(school), "--send") == 1
    policy = "its own late policy takes the rest; switch that policy off there"
    assert f"emmy: Canvas has 6.5, and 9 was sent ({policy})" in capsys.readouterr().out
    assert run(term, "--send") == 0
    told = capsys.readouterr().out
    assert "0 marks to send" in told
    assert f"emmy: Canvas has 6.5 of the 9 that it was given ({policy})" in told


def test_a_group_that_canvas_marks_together_is_said(
    school: School, term: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    school.about |= {"group_category_id": 3, "grade_group_students_individually": False}
    assert run(term, *where(school)) == 0
    assert "Canvas gives the members of a group one mark here" in capsys.readouterr().out


def test_marks_that_wait_for_a_person_are_said(
    school: School, term: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [replace(one, marks={SET: replace(one.marks[SET], waiting=1)}) for one in LINES[:2]]
    monkeypatch.setattr("threeloops.classroom.term.marks.marks", lambda *_, **__: lines)
    assert run(term, *where(school)) == 0
    assert "2 answers still without points from a person: these marks are without them, too" in capsys.readouterr().out


REFUSED: dict[str, tuple[dict[str, object], dict[str, tuple[int, str]], str]] = {
    "other points": ({"points_possible": 10.0}, {}, "has 10 points in Canvas, and kv_cache has 14; set it to 14 there"),
    "no points": ({"points_possible": None}, {}, "has 0 points in Canvas"),
    "pass or fail": ({"grading_type": "pass_fail"}, {}, "is not graded by points in Canvas, but as pass_fail"),
    "no right": ({}, {PATH: (403, "")}, "answers 403: the token's owner may not do that"),
    "not there": ({}, {PATH: (404, "")}, "answers 404: there is no such course or assignment"),
    "a fault": ({}, {f"{PATH}/submissions": (500, "")}, "answers 500: it has a fault of its own"),
    "no JSON": ({}, {PATH: (200, "")}, "answers with something else than JSON; is it a Canvas?"),
    "elsewhere": ({}, {PATH: (302, "http://127.0.0.1:9/steal")}, "answers 302: it points to another address"),
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_cannot_be_meant_is_refused_in_a_sentence(
    how: str, school: School, term: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    about, broken, sentence = REFUSED[how]
    school.about |= about
    school.broken |= broken
    assert run(term, *where(school), "--send") == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert TOKEN not in told
    assert {one for one, _ in school.asked} == {"GET"}


def test_a_token_is_wanted_from_the_environment_and_goes_nowhere_else(
    school: School, term: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(term) == 2
    assert "--url and --course-id say which Canvas and which course, once" in capsys.readouterr().err
    for url, sentence in (
        ("http://school.instructure.com", "must begin with https://: a token is not sent in the open"),
        ("https://school.instructure.com/courses/12", "must be the address of a Canvas alone"),
    ):
        assert run(term, "--url", url, "--course-id", COURSE) == 2
        assert sentence in capsys.readouterr().err
    assert run(term, *where(school)[:2], "--course-id", "twelve") == 2
    assert "course='twelve' must be a whole number" in capsys.readouterr().err
    assert run(term, *where(school), "--assignment", "KV") == 2
    assert "assignment='KV' must be a whole number" in capsys.readouterr().err
    monkeypatch.setenv(canvas_api.TOKEN, "7~other")
    assert run(term, *where(school)) == 2
    assert "answers 401: the token in CANVAS_TOKEN is not known there" in capsys.readouterr().err
    monkeypatch.setenv(canvas_api.TOKEN, "two words")
    assert run(term, *where(school)) == 2
    assert "CANVAS_TOKEN must hold an access token, one word" in capsys.readouterr().err
    monkeypatch.delenv(canvas_api.TOKEN)
    assert run(term, *where(school)) == 2
    assert "CANVAS_TOKEN is not set; make an access token in Canvas" in capsys.readouterr().err
    monkeypatch.setenv(canvas_api.TOKEN, TOKEN)
    assert run(term, "--url", "http://127.0.0.1:9", "--course-id", COURSE) == 2
    assert "127.0.0.1:9 does not answer" in capsys.readouterr().err


def test_the_next_page_is_not_fetched_from_another_host(school: School) -> None:
    reached = canvas_api.Canvas(school.url, TOKEN)
    there, school.url = school.url, "http://127.0.0.1:9"
    with pytest.raises(ValueError, match="names a next page on another host, 127.0.0.1:9; nothing was sent"):
        canvas.plan(reached, COURSE, ASSIGNMENT, SET, LINES)
    assert there != school.url

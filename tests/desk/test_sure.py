"""How sure an answer on a card is: what the server keeps of it, and what the progress page makes of that."""

import json
from pathlib import Path

import pytest

from threeloops import wall_clock
from threeloops.desk import server
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.student_draws import COURSE_VARIABLE, STUDENT_VARIABLE, posed
from threeloops.room import moving
from threeloops.room.history import History
from threeloops.room.progress import in_words, progress

KEYS = [key for key in DRILLS if key.startswith("kv-")][:6]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THREELOOPS_HISTORY", str(tmp_path / "history.sqlite3"))
    return tmp_path / "history.sqlite3"


def answer(key: str, *, student: str = "ada", course: str = "t1", wrong: bool = False) -> str:
    drill = DRILLS[key]
    value = drill.derive(posed(drill, student=student, course=course)).value
    return f"{value * (3 if wrong else 1)!r} {drill.unit}".strip()


def told(key: str, sure: str, *, wrong: bool = False, **more: str) -> dict[str, str]:
    whose = {"student": "ada", "course": "t1"}
    heard = server.heard(json.dumps({"key": key, "written": answer(key, wrong=wrong), "sure": sure} | whose | more))
    found: dict[str, str] = json.loads(heard)
    return found


def test_what_cards_say_draws_the_curve_and_nothing_else(file: Path) -> None:
    for place, key in enumerate(KEYS):
        assert told(key, "90", wrong=place > 1)["said"].startswith("Noted" if place < 2 else "You were 90 % sure")
    history = History(file)
    assert history.attempts() == [] == list(history.cards())
    assert [(one.status, one.sure) for one in history.attempts(desk=True)] == [("right", 90)] * 2 + [("wrong", 90)] * 4
    report = progress(history, now=wall_clock.now())
    (row,) = report.calibration.rows
    assert (row.answers, row.said) == (6, 90)
    assert row.share == pytest.approx(100 / 3)
    assert [one.topic for one in report.calibration.surer] == ["kv_cache"]
    assert report.topics == ()  # a card has no clock: it makes nobody ready for an interview
    assert "6 answers with a stated confidence" in in_words(report)
    assert history.unfinished() is None


def test_the_first_answer_counts_and_each_readers_numbers_are_another_question(file: Path) -> None:
    assert told(KEYS[0], "70", wrong=True)["said"] == "Noted: 70 % sure. `progress` compares."
    assert "first answer" in told(KEYS[0], "100")["said"]
    assert told(KEYS[0], "60", student="bob", written=answer(KEYS[0], student="bob"))["said"].startswith("Noted")
    assert [one.status for one in History(file).attempts(desk=True)] == ["wrong", "right"]


@pytest.mark.parametrize("sure", ["120", "very", "1", "-5"])
def test_what_is_no_confidence_is_said_before_the_verdict(file: Path, sure: str) -> None:
    found = told(KEYS[0], sure)
    assert found["said"] == ""
    assert found["refused"].endswith(".")
    assert not file.exists() or History(file).attempts(desk=True) == []


def test_nothing_said_and_what_cannot_be_read_are_not_kept(file: Path) -> None:
    assert told(KEYS[0], " ") == told(KEYS[0], "80", written="about right") == {"said": "", "refused": ""}
    assert History(file).attempts(desk=True) == []


def test_on_a_hub_the_account_says_whose_numbers_these_are(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STUDENT_VARIABLE, "bob")
    monkeypatch.setenv(COURSE_VARIABLE, "t2")
    told(KEYS[0], "80", written=answer(KEYS[0], student="bob", course="t2"))
    assert [one.status for one in History(file).attempts(desk=True)] == ["right"]


def test_it_moves_house_with_the_rest(file: Path, tmp_path: Path) -> None:
    told(KEYS[0], "80")
    assert moving.export(History(file), tmp_path / "all.json") == 1
    other = History(tmp_path / "other.sqlite3")
    assert other.add(moving.read(tmp_path / "all.json")) == 1
    assert other.cards() == {}
    assert progress(other, now=wall_clock.now()).calibration.answers == 1

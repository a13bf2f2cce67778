"""Cards out of the house: a table of ideas, and an Anki deck that Anki's own format says is one; and the trend."""

import csv
import datetime as dt
import json
import sqlite3
import sys
import zipfile
from pathlib import Path

import pytest

from threeloops import cli
from threeloops.drills.engine.bank import DRILLS
from threeloops.room import cards, progress
from threeloops.room.attempts import Attempt
from threeloops.room.history import History
from threeloops.room.ideas import IDEAS
from threeloops.room.kinds import code
from threeloops.room.kinds.cases import CASES
from threeloops.room.notebook import progress_page
from threeloops.room.trend import Trend, trend

NOW = dt.datetime(2026, 3, 10, 12, tzinfo=dt.UTC)
KEY = next(iter(DRILLS))
SLIP = DRILLS[KEY].slips[0]
OTHERS = ("code-ring-step", "scenario-slow-loader", "fact-h100-sxm5-memory-bytes")


def attempted(
    idea: str, place: int, *, right: bool = True, slips: str = "", day: float = 0, took: float = 50
) -> Attempt:
    return Attempt(
        session="s",
        position=place,
        idea=idea,
        topic=IDEAS[idea].topic,
        kind="number",
        seed="a",
        written="",
        status="right" if right else "wrong",
        slips=slips,
        seconds=took,
        target_s=100.0,
        extra=1.0,
        hints=0,
        at_s=(NOW + dt.timedelta(days=day)).timestamp(),
    )


@pytest.fixture
def history(tmp_path: Path) -> History:
    kept = History(tmp_path / "history.sqlite3")
    kept.add([attempted(KEY, 0, right=False, slips=SLIP.key), *(attempted(key, n) for n, key in enumerate(OTHERS, 1))])
    return kept


def notes(path: Path) -> dict[str, list[str]]:
    """Idea -> the fields of its note, as Anki would find them."""
    with zipfile.ZipFile(path) as packed:
        packed.extract("collection.anki2", path.parent)
    with sqlite3.connect(path.parent / "collection.anki2") as collection:
        rows = [row[0].split("\x1f") for row in collection.execute("select flds from notes")]
        assert collection.execute("select count(*) from cards").fetchone() == (len(rows),)
        decks, models = collection.execute("select decks, models from col").fetchone()
        assert str(cards.DECK) in json.loads(decks)
        assert [field["name"] for field in json.loads(models)[str(cards.MODEL)]["flds"]] == list(cards.FIELDS)
    return {fields[-1]: fields for fields in rows}


def test_a_deck_has_a_note_for_every_idea_that_was_met(history: History, tmp_path: Path) -> None:
    assert cards.deck(history, tmp_path / "met.apkg", everything=False) == 1 + len(OTHERS)
    found = notes(tmp_path / "met.apkg")
    assert set(found) == {KEY, *OTHERS}
    question, answer, working, slips, taught, _ = found[KEY]
    assert "Answer with" in question
    assert answer.removeprefix("<pre>").removesuffix("</pre>") in working
    assert f"{cards.escape(SLIP.story)} (Yours, 1 time.)" in slips
    assert slips.count("<li>") == len(DRILLS[KEY].slips)
    assert taught.startswith("Taught in chapter ")
    assert cards.escape(code.TASKS[OTHERS[0]].body.splitlines()[-1]) in found[OTHERS[0]][1]


def test_the_same_question_has_the_same_note_in_the_next_deck(history: History, tmp_path: Path) -> None:
    """Anki then renews what it has and asks nothing twice."""

    def marks(name: str) -> list[tuple[str, str]]:
        cards.deck(history, tmp_path / name, everything=False)
        with zipfile.ZipFile(tmp_path / name) as packed:
            packed.extract("collection.anki2", tmp_path)
        with sqlite3.connect(tmp_path / "collection.anki2") as collection:
            return sorted(collection.execute("select guid, flds from notes"))

    assert marks("one.apkg") == marks("two.apkg")


def test_every_question_can_be_a_card(history: History, tmp_path: Path) -> None:
    alone = set(IDEAS) - set(CASES)
    assert cards.deck(history, tmp_path / "all.apkg", everything=True) == len(alone)
    found = notes(tmp_path / "all.apkg")
    assert set(found) == alone
    assert all(fields[0] and fields[1] != "<pre></pre>" for fields in found.values())


def test_a_table_says_what_is_known_and_when_it_is_due(history: History, tmp_path: Path) -> None:
    assert cards.table(history, tmp_path / "cards.csv", now=NOW) == 1 + len(OTHERS)
    with (tmp_path / "cards.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["idea"]: row for row in csv.DictReader(file)}
    assert (rows[KEY]["answered"], rows[KEY]["right"], rows[KEY]["slips"]) == ("1", "0", SLIP.key)
    assert rows[KEY]["due"] < rows[OTHERS[1]]["due"], "what was wrong comes back sooner"
    assert 0 < float(rows[KEY]["remembered"]) <= 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["cards.json", "--cards"], "should end in .csv"),
        (["x.json", "--all"], "belongs to a deck"),
        (["x.apkg", "--history", "none"], "nothing was answered yet"),
        (["nowhere/x.apkg", "--all"], "nowhere"),
    ],
)
def test_what_cannot_be_exported_is_said_in_a_sentence(
    words: list[str], told: str, history: History, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(history.path.parent)
    kept = [] if "--history" in words else ["--history", str(history.path)]
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(cli.main(["history", "export", *words, *kept]))
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_without_genanki_a_deck_says_what_it_needs(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "genanki", None)
    with pytest.raises(ValueError, match="genanki, which comes with the book"):
        cards.deck(history, tmp_path / "x.apkg", everything=True)


# --- the trend -----------------------------------------------------------------------------------


def trended(*right: bool, took: float = 50) -> Trend:
    return trend([attempted(KEY, place, right=one, day=place // 10, took=took) for place, one in enumerate(right)])


def test_the_trend_compares_the_latest_answers_with_those_before() -> None:
    up = trended(*[False] * 20, *[True] * 20)
    assert up.sentences == ("Of the last 20 answers 20 were right, of the 20 before 0: better.",)
    assert trended(*[True] * 20, *[False] * 20).verdict == "worse"
    assert trended(*[True, False] * 20).verdict == "about as before"
    assert trended(*[True] * 10, *[False] * 10, *[True] * 16, *[False] * 4).verdict.startswith("better, though chance")
    assert trended(*[True] * 40).sentences[1] == "Right ones took 0.50 of the time allowed, before 0.50."
    assert trended(*[True] * 7).sentences == ("Too few answers for a trend: 7 of 10.",)
    assert trended().sentences == ()


def test_the_chart_has_a_line_for_each_day_with_answers() -> None:
    lines = trended(*[False] * 10, *[True] * 5, *[False] * 5, *[True] * 10).chart
    assert [line.split("  ", 1)[1].replace(" ", "") for line in lines] == [
        f"{'.' * 20}0%0of10",
        f"{'#' * 10}{'.' * 10}50.0%5of10",
        f"{'#' * 20}100%10of10",
    ]


def test_progress_shows_trend_and_mistakes_in_sentences_in_both_doors(history: History) -> None:
    more = [attempted(KEY, 10 + place, right=place > 9, day=1 + place // 10) for place in range(20)]
    history.add(more)
    report = progress.progress(history, now=NOW)
    page = progress_page.Page(report=report)
    for line in (*report.trend.sentences, f"1 time, {DRILLS[KEY].title}: {SLIP.story}"):
        assert line in page.text
        assert cards.escape(line) in page.html
    assert page.html.count("<div aria-hidden") == len(report.trend.days) == 3

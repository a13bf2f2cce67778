"""The room in the notebook, from what the reader does to what is shown: no browser needed.
tests/chapters/test_browser_interview.py does it by keyboard.
"""

import itertools
from pathlib import Path
from typing import Any

import pytest

from threeloops import contents
from threeloops.drills.engine.bank import DRILLS
from threeloops.room import ideas, progress
from threeloops.room.attempts import Ask, Attempt
from threeloops.room.clock import QuestionClock
from threeloops.room.history import History
from threeloops.room.notebook import interview, progress_page, view
from threeloops.room.plan import MODES
from threeloops.room.question import Question, draw_of
from threeloops.room.session import Session
from threeloops.room.terminal import CHECKLIST

KEYS = list(DRILLS)[:4]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite3"


def held(file: Path, mode: str = "sprint", *, keys: list[str] | None = None, kind: str = "number") -> interview.Room:
    """A room in which a sitting of known questions is held."""
    room = interview.room(file)
    room.history.begin(mode, {"extra": 1.0}, [Ask(idea=key, kind=kind, seed="w") for key in keys or KEYS])
    room.act({"do": "continue"})
    return room


def do(room: interview.Room, name: str, **more: object) -> None:
    room.act({"do": name, "turn": room.panel.screen["turn"], **more})


def standing(room: interview.Room) -> Question:
    assert room.session is not None
    assert room.session.question is not None
    return room.session.question


def typed(question: Question, slip: int | None = None) -> str:
    """The right answer, or that of a slip."""
    drill, p = DRILLS[question.idea], draw_of(DRILLS[question.idea], question.seed)
    value = drill.derive(p).value if slip is None else drill.slips[slip].wrong(p)
    return f"{value!r} {drill.unit}".strip()


def synced(room: interview.Room) -> str:
    """Everything of the room that the browser is sent."""
    return "\n".join(
        strings({name: value for name, value in room.panel.get_state().items() if not name.startswith("_")})
    )


def strings(value: object) -> list[str]:
    """Every text in it, however deep."""
    if isinstance(value, dict):
        return [text for inner in value.values() for text in strings(inner)]
    if isinstance(value, list | tuple):
        return [text for inner in value for text in strings(inner)]
    return [value] if isinstance(value, str) else []


def shown_working(room: interview.Room) -> str:
    return "\n".join(str(block["text"]) for block in room.screen.working)


# --- choosing -----------------------------------------------------------------------------------


def test_the_form_offers_every_mode_topic_and_extra_time() -> None:
    form: dict[str, Any] = view.form()
    assert [mode for mode, _ in form["modes"]] == list(MODES) == list(form["notes"])
    assert {topic for topic, _ in form["topics"]} >= {"", *ideas.TOPICS}
    assert [times for times, _ in form["extras"]] == ["1", "1.25", "1.5", "2"]
    assert all(ideas.chosen(topic) for topic, _ in form["topics"] if topic)


def test_what_was_chosen_is_what_is_asked(file: Path) -> None:
    room = interview.room(file)
    room.act({"do": "begin", "mode": "sprint", "topic": "kv_cache", "difficulty": "2", "length": " 3 ", "extra": "1.5"})
    record = room.history.session(str(room.history.unfinished()))
    assert (record.mode, record.options) == (
        "sprint",
        {"extra": 1.5, "topic": "kv_cache", "track": "everything"},
    )
    assert len(record.plan) == 3
    assert {(ideas.IDEAS[ask.idea].topic, ideas.IDEAS[ask.idea].difficulty) for ask in record.plan} == {("kv_cache", 2)}
    assert room.screen.heading.startswith("Question 1 of 3: ")
    assert "extra time 1.5×" in room.screen.about


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ({"mode": "today"}, "Nothing is due today; a sprint asks ten mixed questions."),
        ({"mode": "weak"}, "Nothing of this is among your mistakes; a sprint asks ten mixed questions."),
        (
            {"mode": "sprint", "length": "many"},
            "'many' is no number of questions; write one like 5, or leave it empty.",
        ),
        ({"mode": "sprint", "length": "0"}, "Length=0 must be a whole number of at least 1."),
        ({"mode": "exam"}, "Mode='exam' is not known"),
    ],
)
def test_what_cannot_be_begun_is_a_sentence_on_the_form(file: Path, wish: dict[str, object], told: str) -> None:
    room = interview.room(file)
    room.act({"do": "begin", **wish})
    assert room.screen.stage == "start"
    assert told in room.screen.said
    assert room.history.unfinished() is None


def test_a_history_that_cannot_be_kept_is_said_and_the_room_opens(tmp_path: Path) -> None:
    (tmp_path / "damaged").write_bytes(b"this is no database, and long enough to be taken for one" * 40)
    room = interview.room(tmp_path / "damaged")
    assert "is no history file" in room.screen.said
    assert "nothing will be kept" in room.screen.said
    room.act({"do": "begin", "mode": "sprint"})
    assert room.screen.stage == "asking"
    assert "is no history file" in interview.progress(tmp_path / "damaged").text


# --- asking and answering -----------------------------------------------------------------------


def test_nothing_of_an_answer_is_sent_before_the_question_is_answered(file: Path) -> None:
    keys = [key for key, idea in ideas.IDEAS.items() if "number" in idea.ask]
    room = held(file, keys=keys)
    for _ in keys:
        question = standing(room)
        sent = synced(room)
        for secret in (question.working, *question.hints, question.working.split("\n")[1].strip(" =")):
            assert secret not in sent, question.idea
        do(room, "skip")
    assert room.screen.stage == "over"


@pytest.mark.parametrize("kind", sorted({kind for idea in ideas.IDEAS.values() for kind in idea.ask}))
def test_every_kind_of_question_can_be_shown_and_given_up(file: Path, kind: str) -> None:
    keys = [key for key, idea in ideas.IDEAS.items() if kind in idea.ask]
    room = held(file, keys=keys, kind=kind)
    for _ in keys:
        question = standing(room)
        assert question.working not in synced(room)
        assert "\n".join(str(block["text"]) for block in room.screen.blocks) == question.text
        do(room, "give up")
        assert shown_working(room) == "\n".join(filter(None, (question.unmarked, question.working)))
        do(room, "next")


def test_that_search_can_fail(file: Path) -> None:
    room = held(file)
    question = standing(room)
    do(room, "give up")
    assert question.working in synced(room)


def test_a_slip_is_named_with_time_working_and_place(file: Path) -> None:
    room = held(file)
    question = standing(room)
    do(room, "answer", written=typed(question, slip=0))
    assert room.screen.stage == "answered"
    assert room.screen.said.startswith(DRILLS[question.idea].slips[0].story)
    assert f" s of {question.allowed_s:.0f} s." in room.screen.said
    assert question.working not in room.screen.said
    assert shown_working(room) == question.working
    assert room.screen.given == typed(question, slip=0)
    assert room.screen.clock is None
    assert room.screen.score == "0 right of 1."
    assert [attempt.status for attempt in room.history.attempts()] == ["wrong"]
    do(room, "next")
    assert room.screen.heading.startswith("Question 2 of 4")
    assert (room.screen.working, room.screen.said) == ((), "")


def test_what_cannot_be_read_is_asked_again(file: Path) -> None:
    room = held(file)
    do(room, "answer", written="lots")
    assert room.screen.stage == "asking"
    assert "'lots' is not a number with a unit" in room.screen.said
    assert room.history.attempts() == []


def test_in_a_warm_up_the_question_stands_and_has_no_clock(file: Path) -> None:
    room = held(file, "warm-up")
    assert room.screen.clock is None
    assert "no clock" in room.screen.about
    do(room, "answer", written=typed(standing(room), slip=0))
    assert (room.screen.stage, shown_working(room)) == ("asking", "")
    do(room, "answer", written=typed(standing(room)))
    assert room.screen.stage == "answered"


def test_a_hints_price_is_said_before_it_is_paid(file: Path) -> None:
    room = held(file)
    question = standing(room)
    costs = []
    for number in range(3):
        costs.append(room.screen.hint_cost)
        assert question.hints[number] not in synced(room)
        do(room, "hint")
        assert room.screen.said == question.hints[number]
        assert room.screen.hints == question.hints[: number + 1]
    assert len(set(costs)) == 3
    assert room.screen.hint_cost == ""
    do(room, "answer", written=typed(question))
    assert room.history.attempts()[0].hints == 3


def test_a_press_that_was_meant_for_the_question_before_does_nothing(file: Path) -> None:
    room = held(file)
    turn = room.panel.screen["turn"]
    do(room, "answer", written=typed(standing(room)))
    do(room, "next")
    for name in ("answer", "next", "skip", "give up", "hint", "stop"):
        room.act({"do": name, "turn": turn, "written": "5 GB"})
    assert room.screen.heading.startswith("Question 2 of 4")
    assert len(room.history.attempts()) == 1
    room.act({"do": "begin", "mode": "sprint", "turn": turn})
    assert room.screen.heading.startswith("Question 2 of 4")


def test_a_hint_that_was_asked_for_twice_while_the_kernel_was_busy_is_paid_once(file: Path) -> None:
    room = held(file)
    turn = room.panel.screen["turn"]
    for _ in range(2):
        room.act({"do": "hint", "turn": turn})
    assert len(room.screen.hints) == 1


def test_every_press_is_answered_even_if_nothing_changes(file: Path) -> None:
    room = held(file)
    turns = []
    for _ in range(3):
        do(room, "answer", written="lots")
        turns.append(room.panel.screen["turn"])
    assert len(set(turns)) == 3


def test_a_mock_ends_with_what_to_say_aloud(file: Path) -> None:
    room = held(file, "mock", keys=KEYS[:1])
    do(room, "answer", written=typed(standing(room)))
    do(room, "next")
    assert (room.screen.stage, len(room.screen.checklist)) == ("over", len(CHECKLIST))
    assert (room.screen.heading, room.screen.said) == ("This mock is over.", "1 right of 1.")
    assert "[ ]" not in room.screen.text


# --- two doors ----------------------------------------------------------------------------------


def test_what_was_left_here_goes_on_there_and_back(file: Path) -> None:
    room = held(file)
    do(room, "answer", written=typed(standing(room)))
    do(room, "stop")
    assert room.screen.unfinished.startswith("sprint, question 2 of 4, begun ")
    assert "book.py drill --continue" in room.screen.said
    there = Session(History(file), str(History(file).unfinished()))
    assert there.question is not None
    assert there.answer(typed(there.question)).verdict.right
    do(room, "continue")
    assert room.screen.heading.startswith("Question 3 of 4")


def test_an_answer_given_elsewhere_meanwhile_is_the_one_that_counts(file: Path) -> None:
    room = held(file)
    assert room.session is not None
    elsewhere = Session(History(file), room.session.name)
    assert elsewhere.question is not None
    elsewhere.answer(typed(elsewhere.question, slip=0))
    do(room, "answer", written=typed(standing(room)))
    assert "already answered in another window" in room.screen.said
    assert [attempt.status for attempt in room.history.attempts()] == ["wrong"]


def test_the_form_learns_what_another_door_has_begun_meanwhile(file: Path) -> None:
    room = interview.room(file)
    assert room.screen.unfinished == ""
    History(file).begin("sprint", {"extra": 1.0}, [Ask(idea=KEYS[0], kind="number", seed="w")])
    room.act({"do": "sync"})
    assert room.screen.unfinished.startswith("sprint, question 1 of 1")
    assert room.panel.screen["unfinished"] == room.screen.unfinished


def test_a_button_that_brings_the_reader_back_to_the_window_is_pressed(file: Path) -> None:
    """The browser says first that it is in sight again, then what was pressed, on the screen as it was."""
    room = held(file)
    do(room, "stop")
    turn = room.panel.screen["turn"]
    there = Session(History(file), str(History(file).unfinished()))
    there.skip()
    there.next()
    room.act({"do": "sync"})
    assert room.screen.unfinished.startswith("sprint, question 2 of 4")
    room.act({"do": "continue", "turn": turn})
    assert room.screen.heading.startswith("Question 2 of 4")


def test_a_sitting_that_was_finished_elsewhere_is_said_to_be(file: Path) -> None:
    room = held(file, keys=KEYS[:1])
    do(room, "stop")
    there = Session(History(file), str(History(file).unfinished()))
    there.skip()
    there.next()
    do(room, "continue")
    assert "finished in another window" in room.screen.said


# --- the clock ----------------------------------------------------------------------------------


@pytest.mark.parametrize("allowed_s", [8, 25, 45, 60, 61, 150])
def test_the_browser_speaks_when_the_engines_clock_would(allowed_s: int) -> None:
    ticks = [elapsed / 2 for elapsed in range(2 * allowed_s + 8)]
    hands = [0.0]
    clock = QuestionClock(target_s=allowed_s, monotonic=lambda: hands[0], wall=lambda: hands[0])
    said = []
    for before, now in itertools.pairwise(ticks):
        hands[0] = now
        said.append((allowed_s - now, clock.spoken(allowed_s - before)))
    assert [(left, words) for left, words in said if words] == view.marks(allowed_s)


def test_the_browser_is_told_where_the_clock_stands(file: Path) -> None:
    room = held(file)
    assert room.screen.clock is not None
    assert room.session is not None
    assert room.screen.clock["allowed_s"] == standing(room).allowed_s
    assert room.screen.clock["left_s"] == pytest.approx(room.session.clock.left_s, abs=2)


def test_a_page_that_asks_for_the_clock_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = held(file)
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(room.panel, "send", sent.append)
    room.act({"do": "sync"})
    assert sent[0]["clock"]["allowed_s"] == standing(room).allowed_s
    do(room, "give up")
    room.act({"do": "sync"})
    assert len(sent) == 1


# --- the place in the book ----------------------------------------------------------------------


def test_the_link_leads_from_the_readers_copy_to_a_part_that_is_there(file: Path) -> None:
    key = next(key for key in DRILLS if (DRILLS[key].loop, DRILLS[key].section) == ("inner", "Roofline"))
    room = held(file, keys=[key])
    do(room, "give up")
    assert room.screen.link == "../chapters/1_inner_loop/2_roofline.ipynb"
    assert room.screen.link.removeprefix("../") in {place.copy for place in contents.places(contents.book_root())}
    assert room.screen.taught == "chapter 1, part 2, Roofline"


# --- the page of progress -----------------------------------------------------------------------


def attempt(place: int, *, status: str = "right", slips: str = "", seconds: float = 30, key: str = KEYS[0]) -> Attempt:
    return Attempt(
        session="s",
        position=place,
        idea=key,
        topic=DRILLS[key].family,
        kind="number",
        seed="a",
        written="",
        status=status,
        slips=slips,
        seconds=seconds,
        target_s=60,
        extra=1.0,
        hints=0,
        at_s=1.7e9 + place,
    )


def test_the_page_says_what_the_terminal_says_and_names_the_slips_by_their_sentence(file: Path) -> None:
    slip = DRILLS[KEYS[0]].slips[0]
    History(file).add([*(attempt(place) for place in range(5)), attempt(5, status="wrong", slips=slip.key)])
    page = interview.progress(file)
    assert f"{DRILLS[KEYS[0]].family.replace('_', ' ')}</th>" in page.html
    assert "5 of 6" in page.html
    assert "0.50×" in page.html
    assert "83.3 %" in page.html
    assert page.html.count('scope="col"') == len(progress_page.COLUMNS)
    assert any(slip.story in line and line.startswith("1 time, ") for line in progress.slip_lines(page.report))
    assert "due today" in page.html
    assert "5 of 6" in page.text


def test_a_slip_that_belongs_to_no_drill_keeps_its_name(file: Path) -> None:
    History(file).add([attempt(0, status="wrong", slips="binary-as-decimal")])
    (line,) = progress.slip_lines(interview.progress(file).report)
    assert line.endswith(": binary as decimal")


def test_before_the_first_answer_the_page_says_how_to_begin(file: Path) -> None:
    page = interview.progress(file)
    assert page.html == "<p>Nothing answered yet. A sprint asks ten questions; your first is your placement.</p>"


# --- every place gets something to show ---------------------------------------------------------


def test_without_a_browser_the_room_is_words(file: Path) -> None:
    room = interview.room(file)
    data, _ = room._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == room.panel.model_id
    assert all(words in data["text/plain"] for words in ("The interview room", *MODES.values()))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("One sentence.", [False]),
        ("What?\n  A  1 s\n\n  B  2 s\nAnswer.", [False, True, False]),
        ("a b\n\nc d", [False]),
    ],
)
def test_columns_are_told_from_sentences_and_nothing_is_lost(text: str, columns: list[bool]) -> None:
    pieces = view.blocks(text)
    assert [piece["columns"] for piece in pieces] == columns
    assert "\n".join(str(piece["text"]) for piece in pieces) == text


# --- how sure -----------------------------------------------------------------------------------


def test_how_sure_is_said_in_a_field_of_its_own(file: Path) -> None:
    room = held(file)
    do(room, "answer", written=typed(standing(room)), sure="70 %")
    do(room, "next")
    do(room, "answer", written=typed(standing(room)), sure="")
    do(room, "next")
    do(
        room, "answer", written=f"{typed(standing(room))} @60", sure="90"
    )  # what stands behind the answer is nearer to it
    assert [one.sure for one in room.history.attempts()] == [70.0, None, 60.0]


def test_a_confidence_that_is_none_is_asked_again_before_the_verdict(file: Path) -> None:
    room = held(file)
    do(room, "answer", written=typed(standing(room)), sure="very")
    assert room.screen.stage == "asking"
    assert "'very' is no confidence" in room.screen.said
    assert not room.history.attempts()

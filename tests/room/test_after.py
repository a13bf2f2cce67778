"""How sure an answer was, whether that holds, and which question follows on a mistake."""

import itertools
import json
import math
import sqlite3
from pathlib import Path

import pytest
from tests.room.test_history import NOON_S, attempt
from tests.room.test_session import Hands, right_answer, sitting, wrong_answer
from tests.room.test_terminal import RIGHT, SLIP, drill, run

from threeloops import wall_clock
from threeloops.drills.engine.bank import DRILLS
from threeloops.room import moving, terminal
from threeloops.room.after import calibration, following, sure
from threeloops.room.attempts import Ask, Attempt
from threeloops.room.history import NOWHERE, History
from threeloops.room.ideas import IDEAS
from threeloops.room.notebook.progress_page import page
from threeloops.room.plan import Wish, offered
from threeloops.room.progress import in_words, progress
from threeloops.room.session import Session


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history.sqlite3")


# --- said ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "answer", "percent"),
    [
        ("27.6 kB @80", "27.6 kB", 80.0),
        ("27.6 kB@80%", "27.6 kB", 80.0),
        ("27.6 kB @ 80 percent", "27.6 kB", 80.0),
        ("c, a @0.65", "c, a", 65.0),
        ("43 $ @100", "43 $", 100.0),
        ("43 @0", "43", 0.0),
        ("43 @0.5 %", "43", 0.5),
        ("43 @1 %", "43", 1.0),
        ("5 @ 2 GHz", "5 @ 2 GHz", None),
        ("27.6 kB", "27.6 kB", None),
        ("@80", "@80", None),  # no answer at all: the judge says so
    ],
)
def test_how_sure_stands_behind_an_answer(written: str, answer: str, percent: float | None) -> None:
    assert sure.stated(written) == (answer, percent)


def test_what_is_no_percentage_is_asked_again_and_nothing_is_kept(history: History) -> None:
    held = sitting(history, "sprint", [Ask(idea="kv-paged-blocks", kind="number", seed="a")], Hands())
    reply = held.answer(f"{right_answer(held)} @120")
    assert not reply.done
    assert "0 to 100" in reply.verdict.message
    assert not history.attempts()
    for line in ("very", "-5", "101"):
        with pytest.raises(ValueError, match="0 to 100"):
            sure.read(line)


def test_the_first_readable_answer_s_confidence_is_kept_without_its_mark(history: History) -> None:
    held = sitting(history, "warm-up", [Ask(idea="kv-paged-blocks", kind="number", seed="a")], Hands())
    wrong = held.answer(f"{wrong_answer(held)} @90")
    assert any("90 % sure" in line for line in wrong.lines)
    assert held.answer(f"{right_answer(held)} @10").verdict.right
    (kept,) = history.attempts()
    assert (kept.status, kept.sure, "@" in kept.written) == ("wrong", 90.0, False)


def test_who_is_asked_is_asked_after_a_readable_answer_and_before_its_verdict() -> None:
    printed = drill("lots", SLIP, "sure enough", "70", RIGHT, "quit", flags=("--sure",))
    assert printed.count(sure.ASKED) == 1  # neither for "lots" nor for the second answer
    assert printed.index(sure.ASKED) < printed.index("'sure enough' is no confidence") < printed.index("Right.")


def test_a_sitting_that_asks_goes_on_asking_when_it_is_continued(history: History) -> None:
    begun = Session.begin(history, "sprint", Wish(), sure=True)
    assert begun.asks_sure
    assert Session(history, begun.name).asks_sure
    assert not Session.begin(history, "sprint", Wish()).asks_sure


def test_a_task_in_code_keeps_what_looks_like_a_confidence(history: History) -> None:
    held = sitting(history, "sprint", [Ask(idea="code-ring-step", kind="code", seed="a")], Hands())
    assert held.question is not None
    held.answer(f"{held.question.starter}\n# @80")
    assert [one.sure for one in history.attempts()] in ([], [None])


# --- kept ---------------------------------------------------------------------------------------


def test_a_file_from_before_confidences_is_read_and_written_on(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite3"
    old = History(path)
    old.record(attempt())
    old.close()
    with sqlite3.connect(path) as file:
        file.execute("alter table attempts drop column sure")
    new = History(path)
    assert new.attempts() == [attempt()]
    new.record(attempt(1, sure=75.0))
    assert [one.sure for one in History(path).attempts()] == [None, 75.0]


@pytest.mark.parametrize("name", ["a.json", "a.csv"])
def test_confidences_move_house_and_older_exports_are_taken_in(history: History, name: str, tmp_path: Path) -> None:
    history.add([attempt(), attempt(1, sure=0.0), attempt(2, sure=62.5)])
    moving.export(history, tmp_path / name)
    assert [one.sure for one in moving.read(tmp_path / name)] == [None, 0.0, 62.5]
    if name == "a.json":
        rows = json.loads((tmp_path / name).read_text(encoding="utf-8"))
        for row in rows["attempts"]:
            del row["sure"]
        (tmp_path / name).write_text(json.dumps(rows), encoding="utf-8")
        assert [one.sure for one in moving.read(tmp_path / name)] == [None] * 3


def test_a_confidence_beyond_a_hundred_is_damage() -> None:
    with pytest.raises(ValueError, match="no percentage"):
        attempt(sure=101)


# --- compared -----------------------------------------------------------------------------------


@pytest.mark.parametrize("stated", [[0.5], [0.9, 0.8, 0.55], [0.99, 0.2, 0.7, 0.65, 0.5]])
def test_the_chance_of_so_few_is_that_of_all_outcomes_summed(stated: list[float]) -> None:
    for right in range(len(stated) + 1):
        outcomes = itertools.product((False, True), repeat=len(stated))
        expected = sum(
            math.prod(one if hit else 1 - one for one, hit in zip(stated, outcome, strict=True))
            for outcome in outcomes
            if sum(outcome) <= right
        )
        assert calibration.so_few(stated, right) == pytest.approx(expected, abs=1e-9)


def answers(topic: str, rows: list[tuple[float, bool]], *, start: int = 0) -> list[Attempt]:
    return [
        attempt(start + place, topic=topic, sure=sureness, status="right" if right else "wrong", at_s=NOON_S + place)
        for place, (sureness, right) in enumerate(rows)
    ]


def test_the_table_counts_each_answer_in_its_row() -> None:
    rows = [(100.0, True), (95.0, False), (94.9, True), (70.0, False), (69.0, True), (0.0, False)]
    found = calibration.calibration([*answers("queues", rows), attempt(9), attempt(10, status="given-up", sure=80.0)])
    assert [(row.low, row.answers, row.right) for row in found.rows] == [
        (0, 1, 0),
        (50, 1, 1),
        (70, 1, 0),
        (85, 1, 1),
        (95, 2, 1),
    ]
    assert found.answers == 6
    assert found.rows[-1].said == 97.5
    assert found.rows[-1].share == 50
    assert all("answers" in line or "%" in line or "#" in line for line in found.lines)


def test_a_topic_is_named_only_where_chance_seldom_does_that() -> None:
    surely_wrong = [(90.0, False)] * 3 + [(90.0, True)] * 3  # 1 - binomial: 1.6 %
    as_sure_as_right = [(60.0, True)] * 3 + [(60.0, False)] * 3
    too_few = [(95.0, False)] * (calibration.FEWEST - 1)
    timid = [(10.0, True)] * 8
    found = calibration.calibration(
        answers("queues", surely_wrong)
        + answers("roofline", as_sure_as_right)
        + answers("amdahl", too_few)
        + answers("pipeline", timid)
    )
    assert [one.topic for one in found.surer] == ["queues"]
    assert found.surer[0].chance == pytest.approx(0.01585, abs=1e-5)
    assert (found.surer[0].said, found.surer[0].right) == (90, 50)


def test_one_wrong_answer_of_many_certain_ones_is_no_overconfidence() -> None:
    found = calibration.calibration(answers("queues", [(100.0, True)] * 20 + [(100.0, False)]))
    assert not found.surer


def test_progress_the_plan_and_the_page_name_the_topic(history: History) -> None:
    history.add(answers("queues", [(90.0, False)] * 6))
    for text in (in_words(progress(history, now=wall_clock.now())), page(history).html):
        assert text.count("Surer than right: queues (stated 90 %, right 0 % of 6 answers)") == 1
    told = terminal.prepare(history, interview="2199-01-01", minutes=None, track=None)
    assert "Surer than right: queues" in told
    text = in_words(progress(history, now=wall_clock.now()))
    assert text.count("Surer than right") == 1  # in the plan
    assert "85 to 94 %" in page(history).html


def test_without_a_confidence_nothing_is_said_of_it(history: History) -> None:
    history.add([attempt()])
    assert "sure" not in in_words(progress(history, now=wall_clock.now())).lower()
    assert "How sure" not in page(history).html


def test_the_commands_go_together(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite3"
    drill(f"{RIGHT} @85", "quit", history=file)
    printed = run(["progress", "--history", str(file)], ()).stdout
    assert "1 answer with a stated confidence" in printed
    assert "85 to 94 %" in printed


# --- what follows -------------------------------------------------------------------------------


def test_a_miss_is_followed_by_another_idea_with_the_same_trap(history: History) -> None:
    keys = ["kv-bytes-per-token", "roofline-ridge-point", "busbw", "queue-p99", "spec-overlap"]
    held = sitting(history, "warm-up", [Ask(idea=key, kind="number", seed="a") for key in keys], Hands())
    made = DRILLS[keys[0]].slips[0].key
    held.answer(wrong_answer(held))
    held.answer(right_answer(held))
    held.next()
    assert held.question is not None
    assert held.follows == made
    assert held.question.idea not in keys
    assert following.trap(made) & {slip.key for slip in DRILLS[held.question.idea].slips}
    assert IDEAS[held.question.idea].difficulty <= IDEAS[keys[0]].difficulty
    asked = [ask.idea for ask in history.session(held.name).plan]
    assert asked.index(keys[0], 1) == 4  # itself again after three others, the follow-up among them
    held.answer(right_answer(held))
    held.next()
    assert held.follows == ""


def test_a_trap_is_followed_up_once_and_a_follow_up_is_no_repeat(history: History) -> None:
    held = sitting(history, "warm-up", [Ask(idea="kv-bytes-per-token", kind="number", seed="a")], Hands())
    followed = []
    while held.question is not None and len(followed) < 30:
        if held.follows:
            followed.append(following.trap(held.follows))
        held.answer(wrong_answer(held))
        held.answer(right_answer(held))
        held.next()
    assert held.over
    assert followed
    assert len(followed) <= 3 * len({tuple(sorted(one)) for one in followed})  # each comes back twice itself
    assert len(history.session(held.name).plan) < 15


def test_a_sprint_a_topic_by_key_and_a_case_bring_no_follow_up(history: History) -> None:
    for mode, topic in (("sprint", None), ("warm-up", "kv-bytes-per-token")):
        name = history.begin(mode, {"topic": topic}, [Ask(idea="kv-bytes-per-token", kind="number", seed="a")])
        held = Session(history, name)
        held.answer(wrong_answer(held))
        plan = history.session(name).plan
        assert {ask.idea for ask in plan} == {"kv-bytes-per-token"}


def test_a_follow_up_stays_in_the_topic_or_track_that_was_asked_for() -> None:
    assert {idea.topic for idea in offered({"topic": "queues"})} == {"queues"}
    assert {idea.loop for idea in offered({"track": "kernels"})} == {"inner"}
    assert offered({"topic": "a topic of another edition"}) == []
    assert len(offered({})) == len(IDEAS)


def test_every_trap_is_met_in_two_drills_and_no_mistake_is_in_two_traps() -> None:
    own = {slip.key for one in DRILLS.values() for slip in one.slips}
    for name, kinds in following.TRAPS.items():
        met = {one.key for one in DRILLS.values() if kinds & {slip.key for slip in one.slips}}
        assert len(met) >= 2, name
        assert kinds & own, name
    counted = [slip for kinds in following.TRAPS.values() for slip in kinds]
    assert len(counted) == len(set(counted))


def test_a_history_that_keeps_nothing_keeps_confidences_while_it_lasts() -> None:
    kept = History(NOWHERE)
    kept.record(attempt(sure=50.0))
    assert kept.attempts()[0].sure == 50.0

"""A sitting: what counts, what comes back, what the clock says."""

import datetime as dt
import re
from collections import Counter
from pathlib import Path

import pytest
from fsrs import Rating

from threeloops import wall_clock
from threeloops.drills.engine.bank import DRILLS
from threeloops.room import ideas, plan, progress, schedule
from threeloops.room.attempts import Ask, Attempt
from threeloops.room.clock import GAP_S, QuestionClock
from threeloops.room.history import History
from threeloops.room.kinds.cases import CASES
from threeloops.room.letters import read
from threeloops.room.plan import SPRINT_QUESTIONS, Wish
from threeloops.room.preparation import MOCK_S
from threeloops.room.question import READ_PER_MINUTE, draw_of, number, size
from threeloops.room.session import Session

KEY = "kv-paged-blocks"


class Hands:
    """Two clocks that a test moves."""

    def __init__(self) -> None:
        self.ticked, self.wall = 1000.0, wall_clock.now_s()

    def wait(self, seconds: float) -> None:
        self.ticked += seconds
        self.wall += seconds


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history.sqlite3")


def sitting(history: History, mode: str, asks: list[Ask], hands: Hands, *, extra: float = 1.0) -> Session:
    name = history.begin(mode, {"extra": extra}, asks)
    return Session(history, name, monotonic=lambda: hands.ticked, wall=lambda: hands.wall)


def asks(number_of: int = 12) -> list[Ask]:
    return [Ask(idea=key, kind="number", seed="a") for key in list(DRILLS)[:number_of]]


def right_answer(held: Session) -> str:
    assert held.question is not None
    drill = DRILLS[held.question.idea]
    return f"{drill.derive(draw_of(drill, held.question.seed)).value!r} {drill.unit}".strip()


def wrong_answer(held: Session) -> str:
    """The number of the first slip."""
    assert held.question is not None
    drill = DRILLS[held.question.idea]
    return f"{drill.slips[0].wrong(draw_of(drill, held.question.seed))!r} {drill.unit}".strip()


# --- what counts --------------------------------------------------------------------------------


def test_in_a_sprint_the_first_readable_answer_is_the_one(history: History) -> None:
    held = sitting(history, "sprint", asks(), Hands())
    assert not held.answer("lots").done
    assert not history.attempts()
    reply = held.answer(wrong_answer(held))
    assert reply.done
    assert DRILLS[next(iter(DRILLS))].slips[0].story == reply.verdict.message
    (kept,) = history.attempts()
    assert (kept.status, kept.slips) == ("wrong", DRILLS[kept.idea].slips[0].key)


def test_in_a_warm_up_the_question_stands_until_it_is_right_and_the_first_answer_counts(history: History) -> None:
    held = sitting(history, "warm-up", asks(), Hands())
    assert not held.answer(wrong_answer(held)).done
    assert held.answer(right_answer(held)).done
    assert [kept.status for kept in history.attempts()] == ["wrong"]


def test_every_drill_accepts_its_own_answer_in_the_room() -> None:
    for drill in DRILLS.values():
        asked = number(drill, "seed")
        assert asked.judge(f"{drill.derive(draw_of(drill, 'seed')).value!r} {drill.unit}").right
        assert asked == asked.__class__(
            **{
                name: getattr(ideas.pose(drill.key, "number", "seed"), name)
                for name in asked.__slots__
                if name != "judge"
            },
            judge=asked.judge,
        )


def test_next_waits_for_an_answer(history: History) -> None:
    held = sitting(history, "sprint", asks(), Hands())
    with pytest.raises(ValueError, match="stands unanswered"):
        held.next()
    held.skip()
    assert held.next() is not None
    assert held.position == 1


def test_a_sitting_ends_and_says_so(history: History) -> None:
    held = sitting(history, "sprint", asks(1), Hands())
    held.answer(right_answer(held))
    assert held.next() is None
    assert held.over
    assert history.unfinished() is None
    with pytest.raises(ValueError, match="this sitting is over"):
        held.answer("1 B")


def test_what_was_begun_in_one_door_goes_on_in_the_other(history: History) -> None:
    first = sitting(history, "sprint", asks(), Hands())
    first.answer(right_answer(first))
    first.next()
    second = Session(History(history.path), first.name)
    assert (second.position, second.question and second.question.text) == (1, first.question and first.question.text)


def test_two_windows_on_one_sitting_count_an_answer_once(history: History) -> None:
    first = sitting(history, "sprint", asks(), Hands())
    second = Session(History(history.path), first.name)
    first.answer(right_answer(first))
    reply = second.answer(wrong_answer(second))
    assert any("another window" in line for line in reply.lines)
    assert [kept.status for kept in history.attempts()] == ["right"]
    second.next()
    assert second.position == 1


# --- hints --------------------------------------------------------------------------------------


def test_hints_say_their_price_first_and_come_closer_step_by_step(history: History) -> None:
    held = sitting(history, "warm-up", asks(), Hands())
    assert held.question is not None
    drill = DRILLS[held.question.idea]
    derivation = drill.derive(draw_of(drill, held.question.seed))
    costs, told = [], []
    while held.hint_cost():
        costs.append(held.hint_cost())
        told.append(held.hint())
    assert len(set(costs)) == len(told) == 3
    assert "no fourth hint" in held.hint()
    assert derivation.formula in told[1]
    assert derivation.in_numbers in told[2]
    held.answer(right_answer(held))
    assert history.attempts()[0].hints == 3


def test_the_first_hint_holds_the_answer_and_never_narrows_it_below_a_factor_of_two() -> None:
    drill = DRILLS["kv-bytes-per-token"]
    for value in (1.0, 1.99, 2.0, 4.9, 5.1, 9.99, 24.5e9, 7e-6):
        low, high = (
            float(side.split()[0]) * _prefix(side.split()[1])
            for side in size(value, drill).removeprefix("between ").split(" and ")
        )
        assert low * 1.9 <= value * 1.0001 or value >= low * 2 * 0.99
        assert low <= value <= high
        assert high / value >= 1.9


def _prefix(unit: str) -> float:
    return (
        {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(unit[0], 1.0)
        if unit != "B"
        else 1.0
    )


# --- the clock ----------------------------------------------------------------------------------


def test_time_is_said_against_the_target_and_extra_time_is_named(history: History) -> None:
    hands = Hands()
    held = sitting(history, "sprint", asks(), hands, extra=1.5)
    assert held.question is not None
    hands.wait(held.question.allowed_s * 1.4)
    assert any("extra time 1.5×" in line and "too slow" not in line for line in held.answer(right_answer(held)).lines)
    held.next()
    hands.wait(held.clock.allowed_s + 5)
    assert any("too slow" in line for line in held.answer(right_answer(held)).lines)
    assert [kept.extra for kept in history.attempts()] == [1.5, 1.5]


@pytest.mark.parametrize(
    ("ticked", "wall", "said"),
    [
        (30, 1500, "clock jumped by 24 minutes"),
        (30, -4000, "clock jumped"),
        (2000, 2000, "Nobody answered for 33 minutes"),
    ],
    ids=["closed lid", "clock set back", "walked away"],
)
def test_a_long_gap_is_an_interruption_and_no_mistake(history: History, ticked: float, wall: float, said: str) -> None:
    hands = Hands()
    held = sitting(history, "sprint", asks(), hands)
    hands.ticked += ticked
    hands.wall += wall
    reply = held.answer(wrong_answer(held))
    assert reply.done
    assert said in reply.lines[0]
    assert [kept.status for kept in history.attempts()] == ["interrupted"]
    assert not history.cards()
    assert held.next() is not None


def test_a_short_sleep_is_counted() -> None:
    hands = Hands()
    clock = QuestionClock(target_s=60, monotonic=lambda: hands.ticked, wall=lambda: hands.wall)
    hands.ticked += 20
    hands.wall += 80
    assert clock.elapsed_s == pytest.approx(80)
    assert not clock.interrupted


def test_a_killed_process_does_not_stop_the_clock(history: History) -> None:
    hands = Hands()
    first = sitting(history, "sprint", asks(), hands)
    hands.wait(70)
    again = Session(history, first.name, monotonic=lambda: 5.0, wall=lambda: hands.wall)
    assert again.clock.elapsed_s == pytest.approx(70, abs=2)


def test_the_clock_speaks_at_sixty_thirty_ten_and_never_twice() -> None:
    hands = Hands()
    clock = QuestionClock(target_s=90, monotonic=lambda: hands.ticked, wall=lambda: hands.wall)
    said, before = [], clock.left_s
    for _ in range(250):
        hands.wait(0.5)
        said.append(clock.spoken(before))
        before = clock.left_s
    assert [words for words in said if words] == ["60 seconds left", "30 seconds left", "10 seconds left", "time is up"]


def test_an_extra_time_that_is_not_offered_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1, 1\.25, 1\.5, 2"):
        QuestionClock(target_s=60, extra=3)


def test_a_mock_interview_ends_after_thirty_minutes(history: History) -> None:
    hands = Hands()
    held = sitting(history, "mock", asks(), hands)
    hands.wait(GAP_S)  # so slow that it takes three of them
    for _ in range(2):
        held.skip()
        assert held.next() is not None
        hands.wait(GAP_S)
    held.skip()
    hands.wait(2)
    assert held.next() is None
    assert held.time_is_up


# --- what comes back ----------------------------------------------------------------------------


def test_a_missed_idea_returns_after_three_others_and_again_after_eight_with_fresh_numbers(history: History) -> None:
    held = sitting(history, "warm-up", asks(14), Hands())
    missed = held.question and held.question.idea
    order, texts = [], []
    while held.question is not None:
        order.append(held.question.idea)
        if held.question.idea == missed:
            texts.append(held.question.text)
            held.give_up()
        else:
            held.answer(right_answer(held))
        held.next()
    places = [place for place, idea in enumerate(order) if idea == missed]
    assert places == [0, schedule.LADDER[0] + 1, schedule.LADDER[0] + 1 + schedule.LADDER[1] + 1]
    assert len(set(texts)) == 3


def test_a_sprint_repeats_nothing(history: History) -> None:
    held = sitting(history, "sprint", asks(), Hands())
    held.answer(wrong_answer(held))
    assert len(held.history.session(held.name).plan) == 12


def test_ratings_follow_correctness_time_and_hints() -> None:
    def rated(**changes: float) -> Rating:
        return schedule.rating(**({"right": True, "seconds": 60, "target_s": 90, "hints": 0} | changes))  # type: ignore[arg-type]

    assert rated() == Rating.Good
    assert rated(seconds=20) == Rating.Easy
    assert rated(seconds=91) == Rating.Hard
    assert rated(hints=1) == Rating.Hard
    assert rated(hints=3) == rated(right=False) == Rating.Again


def test_nothing_is_scheduled_past_the_interview() -> None:
    start, interview = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC), dt.date(2026, 3, 20)
    card, at = None, start
    for _ in range(12):
        card = schedule.review(card, Rating.Easy, at=at)
        at = schedule.due(card, interview=interview)
        assert at.date() <= interview
        if at.date() >= dt.date(2026, 3, 17):
            break
    assert card is not None
    assert schedule.due(card, interview=None).date() > interview  # which is what would have happened without it


# --- modes --------------------------------------------------------------------------------------


def planned(mode: str, history: History, **wish: object) -> list[Ask]:
    return plan.questions(mode, Wish(**wish), history, seed="s", now=wall_clock.now())  # type: ignore[arg-type]


def test_a_sprint_asks_ten_and_no_topic_twice_before_all_had_their_turn(history: History) -> None:
    topics = [ideas.IDEAS[ask.idea].topic for ask in planned("sprint", history)]
    assert len(topics) == SPRINT_QUESTIONS
    assert max(Counter(topics).values()) <= -(-SPRINT_QUESTIONS // min(len(ideas.TOPICS), SPRINT_QUESTIONS))


def test_a_mock_fills_its_thirty_minutes_and_no_more(history: History) -> None:
    taken = sum(ideas.pose(ask.idea, ask.kind, ask.seed).allowed_s for ask in planned("mock", history))
    assert MOCK_S - 200 < taken <= MOCK_S


def test_the_same_seed_plans_the_same_and_another_does_not(history: History) -> None:
    assert planned("mock", history) == planned("mock", history)
    assert planned("mock", history) != plan.questions("mock", Wish(), history, seed="t", now=wall_clock.now())


def missed(idea: str, position: int, *, status: str = "wrong", days_ago: float = 0) -> Attempt:
    at_s = wall_clock.now_s() - days_ago * 86400
    values = {
        "session": "old",
        "position": position,
        "idea": idea,
        "topic": DRILLS[idea].family,
        "kind": "number",
        "seed": "1",
        "written": "",
        "slips": "",
    }
    return Attempt(**values, status=status, seconds=30, target_s=90, extra=1, hints=0, at_s=at_s)  # type: ignore[arg-type]


def test_weak_spots_are_what_was_missed_most_until_it_is_right_twice(history: History) -> None:
    history.record(missed("kv-paged-blocks", 0))
    history.record(missed("kv-largest-batch", 1))
    history.record(missed("kv-largest-batch", 2))
    assert [ask.idea for ask in planned("weak", history)] == ["kv-largest-batch", "kv-paged-blocks"]
    history.record(missed("kv-largest-batch", 3, status="right"))
    history.record(missed("kv-largest-batch", 4, status="right"))
    assert [ask.idea for ask in planned("weak", history)] == ["kv-paged-blocks"]


def test_today_asks_what_is_due_longest_overdue_first(history: History) -> None:
    history.record(missed("kv-paged-blocks", 0, days_ago=20))
    history.record(missed("kv-largest-batch", 1, days_ago=30))
    history.record(missed("kv-bytes-per-token", 2))
    assert [ask.idea for ask in planned("today", history)] == ["kv-largest-batch", "kv-paged-blocks"]


def test_nothing_to_do_is_said_in_a_sentence(history: History) -> None:
    with pytest.raises(ValueError, match="nothing is due today"):
        Session.begin(history, "today", Wish())
    with pytest.raises(ValueError, match="nothing of this is among your mistakes"):
        Session.begin(history, "weak", Wish(topic="roofline"))


@pytest.mark.parametrize(
    ("mode", "wish", "told"),
    [
        ("spirnt", {}, "did you mean 'sprint'"),
        ("sprint", {"topic": "kv_cash"}, "did you mean 'kv_cache'"),
        ("sprint", {"difficulty": 9}, "choose 1, 2 or 3"),
    ],
)
def test_a_wish_that_cannot_be_met_is_refused(history: History, mode: str, wish: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        planned(mode, history, **wish)


# --- progress -----------------------------------------------------------------------------------


def test_progress_counts_what_was_answered(history: History) -> None:
    for position in range(6):
        history.record(missed("kv-paged-blocks", position, status="right" if position else "wrong"))
    (topic,) = progress.progress(history, now=wall_clock.now()).topics
    assert (topic.answered, topic.right, topic.in_time, topic.latest, topic.known) == (6, 5, 5, 6, 1)
    assert topic.pace == pytest.approx(30 / 90)
    assert topic.readiness == "ready"


def test_progress_without_answers_says_where_to_begin(history: History) -> None:
    assert "sprint" in progress.in_words(progress.progress(history, now=wall_clock.now()))


def test_progress_mentions_slips_interview_and_extra_time(history: History) -> None:
    held = sitting(history, "sprint", asks(), Hands(), extra=2.0)
    held.answer(wrong_answer(held))
    day = wall_clock.today() + dt.timedelta(days=30)
    history.set("interview", day.isoformat())
    words = progress.in_words(progress.progress(history, now=wall_clock.now()))
    assert DRILLS[next(iter(DRILLS))].slips[0].story in words
    assert day.isoformat() in words
    assert "extra time" in words


@pytest.mark.parametrize("kind", ["number", "choice", "diagnosis"])
def test_reading_is_given_by_the_length_of_the_text(kind: str) -> None:
    """The options of a choice and what a colleague should be told are long, and take their time to be read."""
    for key in ("kv-bytes-per-token", "pipeline-step-time", "roofline-time-bound"):
        asked = ideas.pose(key, kind, "1")
        assert asked.reading_s == pytest.approx(60 * len(asked.text.split()) / READ_PER_MINUTE, abs=0.5)
        assert asked.allowed_s == asked.target_s + asked.reading_s
        assert asked.reading_s >= ideas.pose(key, "number", "1").reading_s > 5


def test_an_honest_marking_of_a_case_is_not_asked_again_and_its_points_are_one_mistake(history: History) -> None:
    idea, kind = CASES["case-low-mfu"].kinds[0]
    held = sitting(history, "warm-up", [Ask(idea=idea, kind=kind, seed="m")], Hands())
    reply = held.answer("none")
    assert not reply.verdict.right
    assert reply.done
    assert held.question is not None
    assert held.question.working in reply.lines
    report = progress.progress(history, now=wall_clock.now())
    assert report.slips == ((idea, "unsaid", 1),)
    assert "points of a good answer left out" in progress.slip_lines(report)[0]
    assert ":" not in progress.slip_lines(report)[0].partition(": ")[2]


def test_an_answer_in_columns_counts_by_what_is_right_of_it(history: History) -> None:
    key = "scenario-nan-in-fp16"
    held = sitting(history, "sprint", [Ask(idea=key, kind="scenario", seed="m")], Hands())
    assert held.question is not None
    right = re.findall(r"^  [A-Z][\w ]+: ([A-D]),", held.question.working, re.MULTILINE)
    wrong = next(letter for letter in "ABCD" if letter != right[-1])
    reply = held.answer(" ".join((*right[:-1], wrong)))
    assert reply.verdict.message.startswith("2 of 3 right")
    assert held.score == "0.7 right of 1."
    assert Session(history, held.name).score == held.score  # and as it was written
    (topic,) = progress.progress(history, now=wall_clock.now()).topics
    assert topic.right == pytest.approx(2 / 3)
    assert "0.7 of 1" in progress.in_words(progress.progress(history, now=wall_clock.now()))


def test_letters_may_be_joined_by_and() -> None:
    assert read("A and C", (3, 3)) == ["A", "C"]

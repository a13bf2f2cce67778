"""The plan to an interview: new ideas in order, repeats when they are due, the last days for what was wrong."""

import datetime as dt
from pathlib import Path

import pytest
from tests.room.test_history import attempt
from tests.room.test_terminal import drill, refused

from threeloops import wall_clock
from threeloops.drills.engine.bank import DRILLS
from threeloops.room import conversations, plan, preparation, schedule
from threeloops.room.history import History
from threeloops.room.ideas import IDEAS
from threeloops.room.kinds.band_draws import INTERVIEW
from threeloops.room.kinds.cases import CASES
from threeloops.room.plan import Wish
from threeloops.room.session import Session


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history.sqlite3")


def planned(
    history: History, *, ahead: int = 9, minutes: float = 30, track: str = "everything"
) -> list[preparation.Day]:
    history.set("interview", (wall_clock.today() + dt.timedelta(days=ahead)).isoformat())
    history.set("minutes", str(minutes))
    history.set("track", track)
    return preparation.days(history, today=wall_clock.today())


def test_an_interview_in_a_thousand_years_is_planned_as_far_as_anybody_looks(tmp_path: Path) -> None:
    history = History(tmp_path / "history.sqlite3")
    history.set("interview", "2999-01-01")
    planned = preparation.days(history, today=dt.date(2026, 11, 23))
    assert len(planned) == preparation.HORIZON
    told = preparation.in_words(planned, preparation.wishes(history)).splitlines()
    assert (
        told[-1]
        == f"  and {(dt.date(2999, 1, 1) - dt.date(2026, 11, 23)).days - 60:,} days more, planned when they come nearer"
    )
    assert preparation.days(history, today=dt.date(2026, 11, 23), most=1) == planned[:1]


def test_every_day_to_the_interview_is_planned_and_fits_its_minutes(history: History) -> None:
    days = planned(history)
    assert [day.date for day in days] == [wall_clock.today() + dt.timedelta(days=place) for place in range(9)]
    for day in days:
        asked_s = sum(IDEAS[key].target_s for key in (*day.repeats, *day.new))
        assert asked_s * preparation.READING + (preparation.MOCK_S if day.mock else 0) <= 30 * 60
        assert day.last == schedule.is_last_days(day.date, history.interview)


def test_no_idea_is_new_twice_and_none_comes_before_what_it_builds_on(history: History) -> None:
    new = [key for day in planned(history, ahead=60, minutes=60) for key in day.new]
    assert len(set(new)) == len(new) > 200
    for place, key in enumerate(new):
        assert not set(IDEAS[key].prerequisites) & set(new[place:])


def test_what_interviewers_ask_comes_before_what_they_do_not(history: History) -> None:
    new = [
        key for day in planned(history, ahead=40, track="training") for key in day.new if IDEAS[key].loop == "training"
    ]
    asked = [place for place, key in enumerate(new) if key in INTERVIEW]
    builds = {needed for key in INTERVIEW for needed in IDEAS[key].prerequisites}
    others = [place for place, key in enumerate(new) if key not in INTERVIEW and key not in builds]
    assert max(asked) < min(others) + len(builds)


@pytest.mark.parametrize("track", preparation.TRACKS)
def test_a_track_asks_its_own_loops_first_and_no_others(history: History, track: str) -> None:
    loops = [IDEAS[key].loop for day in planned(history, track=track) for key in day.new]
    assert loops[0] == preparation.TRACKS[track][0]
    assert set(loops) <= set(preparation.TRACKS[track])


def test_the_placement_decides_which_topic_comes_first(history: History) -> None:
    topics = {"roofline": "right", "gpu_kernels": "wrong"}
    for place, (topic, status) in enumerate(topics.items()):
        idea = next(idea for idea in IDEAS.values() if idea.topic == topic)
        history.record(attempt(place, idea=idea.key, topic=topic, status=status, at_s=wall_clock.now_s()))
    unasked = [
        IDEAS[key].topic
        for day in planned(history, ahead=90, track="kernels")
        for key in day.new
        if IDEAS[key].topic in topics and key not in INTERVIEW
    ]
    assert unasked.index("gpu_kernels") < unasked.index("roofline")


@pytest.mark.parametrize("ahead", [0, 1])
def test_whoever_comes_late_gets_the_most_asked_of_the_track_first(history: History, ahead: int) -> None:
    (day,) = planned(history, ahead=ahead, track="serving")
    assert day.last
    assert len(day.new) >= 5
    assert all(IDEAS[key].loop == "product" and IDEAS[key].topic != preparation.NUMBERS for key in day.new)
    assert {IDEAS[key].topic for key in day.repeats} == {preparation.NUMBERS}
    assert sum(IDEAS[key].target_s for key in (*day.new, *day.repeats)) * preparation.READING <= 30 * 60
    assert "wrong" not in preparation.in_words([day], preparation.wishes(history))
    asked = plan.questions("today", Wish(track="serving"), history, seed="late", now=wall_clock.now())
    assert [one.idea for one in asked] == [*day.new, *day.repeats]


def test_the_last_days_hold_what_was_wrong_and_the_numbers_and_nothing_new(history: History) -> None:
    history.record(attempt(0, status="wrong", at_s=wall_clock.now_s()))
    history.record(attempt(1, idea="ring-time", topic="all_reduce", status="right", at_s=wall_clock.now_s()))
    met = [key for key in DRILLS if key not in ("kv-paged-blocks", "ring-time")][: preparation.ENOUGH_MET]
    for number, key in enumerate(met, 2):
        history.record(attempt(number, idea=key, topic=DRILLS[key].family, status="right", at_s=wall_clock.now_s()))
    (day, *_) = planned(history, ahead=1)
    assert day.last
    assert day.repeats[0] == "kv-paged-blocks"
    assert "ring-time" not in day.repeats
    assert {IDEAS[key].topic for key in day.repeats[1:]} == {preparation.NUMBERS}
    assert day.new == ()


def test_a_repeat_stands_on_the_day_on_which_it_is_due(history: History) -> None:
    history.record(attempt(0, status="wrong", at_s=wall_clock.now_s()))
    (card,) = history.cards().values()
    days = planned(history)
    due = schedule.due(card, interview=history.interview).astimezone().date()
    assert [day.date for day in days if "kv-paged-blocks" in day.repeats and not day.last] == [due]


def test_today_asks_what_the_plan_says_for_today(history: History) -> None:
    (day, *_) = planned(history)
    asks = plan.questions("today", Wish(), history, seed="s", now=wall_clock.now())
    assert [ask.idea for ask in asks] == [*day.repeats, *day.new]


def test_the_terminal_prints_the_plan_and_begins_with_today(tmp_path: Path) -> None:
    flags = (
        "--interview",
        (wall_clock.today() + dt.timedelta(days=5)).isoformat(),
        "--minutes",
        "20",
        "--track",
        "serving",
    )
    printed = drill("quit", topic=None, flags=flags, history=tmp_path / "h.sqlite3")
    assert "20 minutes a day, track serving" in printed
    assert printed.count(" new: ") == 3
    assert printed.count("`--mode mock`: a mock interview of 30 minutes\n") == 1
    assert printed.count("only what was wrong") == 1
    assert "today (track serving)" in printed


def test_there_is_a_mock_every_week_and_two_days_before_the_interview(history: History) -> None:
    days = planned(history, ahead=30, minutes=45)
    ahead = [(history.interview - day.date).days for day in days if day.mock]
    assert ahead == [23, 16, 9, 2]  # none on the first day, on which nothing was answered yet
    assert all(day.new or day.last for day in days if day.mock)  # fifteen minutes are left beside it
    assert all("`--mode mock`" in line for line in told(history).splitlines() if "a mock interview" in line)
    assert all("`--mode " in line for line in told(history).splitlines()[1:])


def told(history: History) -> str:
    return preparation.in_words(preparation.days(history, today=wall_clock.today()), preparation.wishes(history))


def test_a_repeat_that_a_mock_leaves_no_room_for_comes_a_day_later(history: History) -> None:
    history.record(attempt(0, status="wrong", at_s=wall_clock.now_s() - 86400))  # due today
    first, second, *_ = planned(history, ahead=9)
    assert first.mock
    assert (first.repeats, first.new) == ((), ())
    assert second.repeats == ("kv-paged-blocks",)
    with pytest.raises(ValueError, match="today's plan is a mock interview; `python3 book.py drill --mode mock`"):
        Session.begin(history, "today", Wish())
    assert preparation.mode_of_today(history) == "mock"
    Session.begin(history, "mock", Wish())
    assert not planned(history, ahead=9)[0].mock
    assert preparation.mode_of_today(history) == "today"


@pytest.mark.parametrize("track", preparation.TRACKS)
def test_a_mock_asks_of_its_track_alone_and_its_case_is_of_the_tracks_own_loop(history: History, track: str) -> None:
    for seed in "abc":
        asks = plan.questions("mock", Wish(track=track), history, seed=seed, now=wall_clock.now())
        assert {IDEAS[ask.idea].loop for ask in asks} <= set(preparation.TRACKS[track])
        cases = {ask.kind.split(":")[1] for ask in asks if ask.kind.startswith("case:")}
        assert len(cases) == 1
        if track != preparation.EVERYTHING:
            assert {CASES[key].loop for key in cases} == {preparation.TRACKS[track][0]}


def test_a_track_with_too_little_to_talk_about_is_refused_a_mock(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "CASES", {})
    with pytest.raises(ValueError, match="the track kernels has 0 open cases and 5 chains of follow-ups, and a mock"):
        plan.questions("mock", Wish(track="kernels"), history, seed="s", now=wall_clock.now())


def test_the_track_reaches_a_mock_from_the_command_line_and_a_topic_by_name_comes_before_it(tmp_path: Path) -> None:
    kept = tmp_path / "h.sqlite3"
    assert drill("quit", topic=None, flags=("--mode", "mock", "--track", "serving"), history=kept).startswith(
        "mock (track serving)"
    )
    assert drill("quit", topic=None, flags=("--mode", "sprint"), history=kept).startswith("sprint (track serving)")
    assert drill("quit", topic="roofline", flags=("--mode", "sprint"), history=kept).startswith("sprint (roofline)")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--minutes", "-5"), "--minutes -5.0 must be greater"),
        (("--minutes", "half"), "invalid float value"),
        (("--track", "sales"), "is not known"),
    ],
)
def test_a_wish_that_makes_no_sense_is_one_sentence(words: tuple[str, ...], told: str) -> None:
    assert told in refused("drill", *words)

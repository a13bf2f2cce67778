"""Scenarios: one right entry per column, and every other one belongs to a scenario that could not be meant."""

import itertools
import re

import pytest

from threeloops.drills.engine.drill import seeded
from threeloops.room import ideas
from threeloops.room.kinds.scenario_near import NEAR
from threeloops.room.kinds.scenario_table import SCENARIOS, Scenario
from threeloops.room.kinds.scenarios import BY_KEY, PARTS, columns, what_is_wrong
from threeloops.room.question import Question

every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.key)
SEEDS = [str(seed) for seed in range(10)]


@every_scenario
def test_exactly_one_cause_look_and_fix_are_right_and_they_are_the_rows_own(scenario: Scenario) -> None:
    for seed in SEEDS:
        asked = what_is_wrong(scenario.key, seed)
        rights = [answer for answer in itertools.product("ABCD", repeat=4) if asked.judge("".join(answer)).right]
        ((_, *right),) = {("", *answer[1:]) for answer in rights}
        shown = re.findall(r"^  ([A-H])  (.+)$", asked.text, re.MULTILINE)
        assert len(shown) == 16
        for place, part in enumerate(PARTS.values(), 1):
            options = dict(shown[4 * place : 4 * place + 4])
            assert options[right[place - 1]] == part(scenario)
            assert len(set(options.values())) == 4
        (whole,) = [answer for answer in rights if asked.judge("".join(answer)).message == "Right."]
        assert dict(shown[:4])[whole[0]].startswith(scenario.loop)


@every_scenario
def test_no_kindred_entry_is_offered_as_wrong(scenario: Scenario) -> None:
    for seed in SEEDS:
        asked = what_is_wrong(scenario.key, seed)
        for key in scenario.akin:
            assert not any(part(BY_KEY[key]) in asked.text for part in PARTS.values())


@every_scenario
def test_wrong_entries_are_near_cases_and_over_many_seeds_all_of_them(scenario: Scenario) -> None:
    offered = {
        option.key
        for seed in range(60)
        for column in columns(scenario, seeded(str(seed)))[1:]
        for option in column.options
    }
    assert offered == {scenario.key, *NEAR[scenario.key]}
    assert len(NEAR[scenario.key]) >= 4
    assert not set(NEAR[scenario.key]) & {scenario.key, *scenario.akin}


def test_every_near_case_has_what_speaks_against_it_and_gives_nothing_away() -> None:
    assert set(NEAR) == set(BY_KEY)
    for key, others in NEAR.items():
        assert len(set(others.values())) == len(others)
        for other, against in others.items():
            assert other in BY_KEY
            assert against.endswith(".")
            assert not any(part(BY_KEY[key]) in against for part in PARTS.values())


def words(text: str) -> set[str]:
    """The words of a text that say something, without their endings."""
    return {word[:5] for word in re.findall(r"[a-z]{4,}", text.lower())}


def test_matching_words_is_not_enough() -> None:
    """In fewer than a third of the columns does the right option share more words with the symptom than any other."""
    told = [
        all(shared[column.right] > number for key, number in shared.items() if key != column.right)
        for scenario in SCENARIOS
        for seed in range(20)
        for column in columns(scenario, seeded(str(seed)))[1:]
        for shared in [{option.key: len(words(scenario.symptom) & words(option.text)) for option in column.options}]
    ]
    assert sum(told) / len(told) < 1 / 3


def letters_of(asked: Question) -> list[str]:
    return re.findall(r"^  [A-Z][\w ]+: ([A-D]),", asked.working, re.MULTILINE)


@every_scenario
def test_a_wrong_letter_is_told_by_its_column_with_what_speaks_against_it(scenario: Scenario) -> None:
    asked = what_is_wrong(scenario.key, "3")
    letters = letters_of(asked)
    assert asked.judge(" ".join(letters)).right
    wrong = next(letter for letter in "ABCD" if letter != letters[2])
    verdict = asked.judge(" ".join((*letters[:2], wrong, letters[3])))
    (slip,) = verdict.slips
    against = NEAR[scenario.key][slip.removeprefix("first look:")]
    assert verdict.message == f"2 of 3 right: cause and fix. First look: it is not {wrong}. {against}"
    assert verdict.share == pytest.approx(2 / 3)


@every_scenario
def test_the_loop_is_scored_and_makes_no_answer_wrong(scenario: Scenario) -> None:
    """Some illnesses sit between two loops; cause, first look and fix are what is asked."""
    asked = what_is_wrong(scenario.key, "3")
    loop, *others = letters_of(asked)
    wrong = next(letter for letter in "ABCD" if letter != loop)
    verdict = asked.judge(" ".join((wrong, *others)))
    assert verdict.right
    assert verdict.message == (
        f"Right: cause, first look and fix. Loop: it is not {wrong}. That alone makes no answer wrong."
    )


def test_the_room_asks_them_and_no_title_tells() -> None:
    for scenario in SCENARIOS:
        assert ideas.pose(f"scenario-{scenario.key}", "scenario", "1").text == what_is_wrong(scenario.key, "1").text
    assert len({ideas.IDEAS[f"scenario-{scenario.key}"].title for scenario in SCENARIOS}) == 1

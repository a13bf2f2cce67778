"""Scenarios: one right entry per column, and every other one belongs to a scenario that could not be meant."""

import itertools
import re

import pytest

from threeloops.room import ideas
from threeloops.room.kinds.scenario_table import SCENARIOS, Scenario
from threeloops.room.kinds.scenarios import BY_KEY, PARTS, columns, strangers, what_is_wrong

every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.key)
SEEDS = [str(seed) for seed in range(10)]


@every_scenario
def test_exactly_one_answer_of_all_is_right_and_it_is_the_rows_own(scenario: Scenario) -> None:
    for seed in SEEDS:
        asked = what_is_wrong(scenario.key, seed)
        (right,) = [answer for answer in itertools.product("ABCD", repeat=4) if asked.judge("".join(answer)).right]
        shown = re.findall(r"^  ([A-H])  (.+)$", asked.text, re.MULTILINE)
        assert len(shown) == 16
        for place, part in enumerate(PARTS.values(), 1):
            options = dict(shown[4 * place : 4 * place + 4])
            assert options[right[place]] == part(scenario)
            assert len(set(options.values())) == 4
        assert dict(shown[:4])[right[0]].startswith(scenario.loop)


@every_scenario
def test_no_kindred_entry_is_offered_as_wrong(scenario: Scenario) -> None:
    for seed in SEEDS:
        asked = what_is_wrong(scenario.key, seed)
        for key in scenario.akin:
            assert not any(part(BY_KEY[key]) in asked.text for part in PARTS.values())


@every_scenario
def test_over_many_seeds_all_strangers_come_up(scenario: Scenario) -> None:
    from threeloops.drills.engine.drill import seeded

    offered = {
        option.key
        for seed in range(60)
        for column in columns(scenario, seeded(str(seed)))[1:]
        for option in column.options
    }
    assert offered == {scenario.key, *(other.key for other in strangers(scenario))}
    assert len(strangers(scenario)) >= 8


def test_kinship_is_mutual_and_between_rows_that_exist() -> None:
    for scenario in SCENARIOS:
        for key in scenario.akin:
            assert scenario.key in BY_KEY[key].akin


def test_every_entry_is_told_apart_from_every_other() -> None:
    for part in PARTS.values():
        assert len({part(scenario) for scenario in SCENARIOS}) == len(SCENARIOS)
    assert len(SCENARIOS) >= 12
    assert {scenario.loop for scenario in SCENARIOS} == {"inner", "training", "product", "driving"}


@every_scenario
def test_a_wrong_letter_is_told_by_its_column_and_kept_as_the_row_it_came_from(scenario: Scenario) -> None:
    asked = what_is_wrong(scenario.key, "3")
    letters = re.findall(r"^  [A-Z][\w ]+: ([A-D]),", asked.working, re.MULTILINE)
    assert asked.judge(" ".join(letters)).right
    wrong = next(letter for letter in "ABCD" if letter != letters[2])
    verdict = asked.judge(" ".join((*letters[:2], wrong, letters[3])))
    assert verdict.message == f"First look: not {wrong}. Right: loop, cause, fix."
    (slip,) = verdict.slips
    assert slip.removeprefix("first look:") in BY_KEY


def test_the_room_asks_them_and_no_title_tells() -> None:
    for scenario in SCENARIOS:
        assert ideas.pose(f"scenario-{scenario.key}", "scenario", "1").text == what_is_wrong(scenario.key, "1").text
    assert len({ideas.IDEAS[f"scenario-{scenario.key}"].title for scenario in SCENARIOS}) == 1

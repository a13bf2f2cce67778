"""Choices: one right answer, every other one wrong, and the letters judged as they should be."""

import re

import pytest
from tests.each import each
from tests.seeds import seeds

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Drill
from threeloops.room.kinds.choices import LETTERS, choice, diagnosis
from threeloops.room.question import draw_of

every_drill = each("drill", DRILLS, by=lambda drill: drill.family)
SEEDS = [str(seed) for seed in seeds(20)]


def options(text: str) -> dict[str, str]:
    return dict(re.findall(r"^  ([A-H])  (.+)$", text, re.MULTILINE))


def key_of(drill: Drill, seed: str) -> tuple[str, str]:
    """The two letters, worked out from what is printed: the shown right value, and the shown value of the quoted
    slip.
    """
    p, asked = draw_of(drill, seed), choice(drill, seed)
    shown = {value: letter for letter, value in options(asked.text).items()}
    quoted = next(slip for slip in drill.slips if f"“{slip.story}”" in asked.text)
    return shown[drill.shown(drill.derive(p).value)], shown[drill.shown(quoted.wrong(p))]


@every_drill
def test_exactly_one_choice_is_right_and_no_two_look_alike(drill: Drill) -> None:
    for seed in SEEDS:
        asked = choice(drill, seed)
        shown = options(asked.text)
        assert 4 <= len(shown) <= 5
        assert len(set(shown.values())) == len(shown)
        right, culprit = key_of(drill, seed)
        assert asked.working.startswith(f"  {right} is right; the mistake leads to {culprit}.\n")
        accepted = [(one, two) for one in shown for two in shown if asked.judge(f"{one} {two}").right]
        assert accepted == [(right, culprit)]


@every_drill
def test_a_wrong_number_gets_its_own_mistake_told(drill: Drill) -> None:
    asked = choice(drill, "7")
    p, right = draw_of(drill, "7"), key_of(drill, "7")[0]
    for letter, shown in options(asked.text).items():
        if letter != right:
            (slip,) = [slip for slip in drill.slips if drill.shown(slip.wrong(p)) == shown]
            verdict = asked.judge(f"{letter} {right}")
            assert verdict.slips == (slip.key,)
            assert slip.story in verdict.message


@every_drill
def test_a_colleagues_mistake_has_one_name(drill: Drill) -> None:
    for seed in SEEDS:
        asked, p = diagnosis(drill, seed), draw_of(drill, seed)
        (right,) = [letter for letter in options(asked.text) if asked.judge(letter).right]
        (made,) = [slip for slip in drill.slips if slip.story == options(asked.text)[right]]
        assert f"A colleague says: {drill.shown(made.wrong(p))}." in asked.text
        assert asked.working.startswith(f"  The mistake was {right}. {made.story}\n")


@pytest.mark.parametrize("written", ["", "A", "A B C", "A Z", "1 2", "A B?!", "the first"])
def test_what_is_no_pair_of_letters_is_asked_again(written: str) -> None:
    assert choice(DRILLS["kv-paged-blocks"], "1").judge(written).status == "unreadable"


@pytest.mark.parametrize(
    "written", ["{0} {1}", "{0}{1}", "{0}, {1}", " {0}/{1} ", "{0}-{1}", "{0}) {1})", "({0}) ({1})", "{0}: {1}."]
)
def test_letters_are_read_however_they_are_set(written: str) -> None:
    drill = DRILLS["kv-paged-blocks"]
    right, culprit = key_of(drill, "1")
    assert choice(drill, "1").judge(written.format(right.lower(), culprit)).right


def test_the_example_is_never_the_answer() -> None:
    for drill in DRILLS.values():
        for seed in SEEDS:
            asked = choice(drill, seed)
            example = re.search(r"like ([A-H]) ([A-H])\.", asked.text)
            assert example
            assert not asked.judge(f"{example[1]} {example[2]}").right


def test_there_are_letters_enough() -> None:
    assert len(LETTERS) > max(len(options(choice(drill, "1").text)) for drill in DRILLS.values())

"""A trial says of a drill that is broken in some way what the tests would say, and of a sound one nothing."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from threeloops.cli import main
from threeloops.drills.engine import bank
from threeloops.drills.engine.drill import FEWEST, Drill, Slip, Taught
from threeloops.drills.engine.trial import DRAWS, tried

SOUND = bank.defined("failure-lost-time")
EMPTY = SOUND.derive(SOUND.draw(random.Random(1)))
TWIN = Slip("twin", lambda p: 1.01 * SOUND.slips[0].wrong(p)) | "Twice the same."


def derived(**other: object) -> Drill:
    """The same with a derivation of which something is another."""
    return replace(SOUND, derive=lambda p: replace(SOUND.derive(p), **other))


BREAKS: dict[str, tuple[Callable[[], Drill], str]] = {
    "a count of something else": (
        lambda: replace(SOUND, count=lambda p: 2 * SOUND.count(p)),
        "small draw 0:",
    ),
    "a slip that is right": (
        lambda: replace(SOUND, apart=0.0, slips=(*SOUND.slips, replace(TWIN, wrong=lambda p: SOUND.derive(p).value))),
        "who makes the slip twin is told: right",
    ),
    "two slips that are one": (
        lambda: replace(SOUND, apart=0.0, slips=(*SOUND.slips, TWIN)),
        "who makes the slip",
    ),
    "three slips": (lambda: replace(SOUND, slips=SOUND.slips[:3]), "there are 3 slips, and 4 are wanted"),
    "a working of something else": (lambda: derived(substitution="1 + 1"), "the substitution 1 + 1 is not"),
    "no year": (lambda: derived(source="a book"), "the source has no year"),
    "no formula": (
        lambda: replace(SOUND, derive=lambda p: replace(EMPTY, value=100.0, substitution="100")),
        "the answer calls no formula of the library",
    ),
    "another chapter": (lambda: replace(SOUND, taught=Taught("outer", "x")), "the loop 'outer' is none of inner"),
    "a story that breaks off": (
        lambda: replace(SOUND, slips=(*SOUND.slips[1:], replace(SOUND.slips[0], story="You"))),
        "a story ends without",
    ),
    "no time": (lambda: replace(SOUND, target_s=5), "target_s=5 is not within"),
    "few answers": (lambda: replace(SOUND, fewest=2000), "there are "),
}


def test_a_sound_drill_has_no_fault() -> None:
    found = tried(SOUND)
    assert found.faults == ()
    assert FEWEST < len(found.answers) <= DRAWS
    low, high = found.numbers["detect_s"]
    assert 120 <= low < high < 900


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_one_is_told(name: str) -> None:
    broken, sentence = BREAKS[name]
    assert any(fault.startswith(sentence) for fault in tried(broken()).faults), name


def test_what_can_never_be_asked_is_refused_with_the_reason() -> None:
    with pytest.raises(
        ValueError, match=r"none of 2000 draws can be asked: \d+ times twin and whole-interval look alike"
    ):
        tried(replace(SOUND, slips=(*SOUND.slips, TWIN)))
    with pytest.raises(ValueError, match="2000 times `wanted` refuses the numbers"):
        tried(replace(SOUND, wanted=lambda p: False))


def test_draws_that_were_drawn_again_are_counted_by_reason() -> None:
    found = tried(replace(SOUND, wanted=lambda p: p.detect_s < 300))
    assert found.numbers["detect_s"][1] < 300
    assert found.again["`wanted` refuses the numbers"] > DRAWS
    assert any("look alike" in why for why in found.again)


def test_the_command_tells_question_working_and_spread(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drills", "try", SOUND.key]) == 0
    told = capsys.readouterr().out
    shown = ("counts as right", "Source: Daly", "no-rollback", "different answers", "drawn again", "Nothing that")
    for part in (SOUND.title, *shown):
        assert part in told, told


def test_the_command_lists_every_idea_and_refuses_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drills", "list"]) == 0
    told = capsys.readouterr().out
    assert all(f"  {key} " in told for key in bank.DRILLS)
    assert main(["drills", "list", "kv_cash"]) == 2
    assert "did you mean 'kv_cache'" in capsys.readouterr().err
    assert main(["drills", "try", "kv-slidin-window"]) == 2
    assert "did you mean 'kv-sliding-window'" in capsys.readouterr().err

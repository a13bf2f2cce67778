"""`threeloops drill` as a reader meets it: a real process, lines in, lines out."""

import os
import subprocess
import sys

import pytest

from threeloops.drills.bank import DRILLS, FAMILIES
from threeloops.drills.drill import Draw, Drill, seeded
from threeloops.drills.terminal import HELP, chosen

SEED = "a seed for the tests"
KEY = "kv-paged-blocks"
DRILL = DRILLS[KEY]


def first_draw(drill: Drill = DRILL, round_number: int = 1) -> Draw:
    """The numbers of a drill in a round, as the terminal draws them from the seed."""
    return drill.draw(seeded(SEED, str(round_number), drill.key))


def typed(value: float, drill: Drill = DRILL) -> str:
    return f"{value!r} {drill.unit}".strip()


RIGHT = typed(DRILL.derive(first_draw()).value)
WORKING = DRILL.derive(first_draw()).substitution


def drill(*lines: str, topic: str | None = KEY, seed: str | None = SEED, code: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command with these lines on its standard input, which then ends."""
    words = ["drill", *([topic] if topic else []), *(["--seed", seed] if seed else [])]
    program = ["-c", code, *words] if code else ["-m", "threeloops.cli", *words]
    return subprocess.run(
        [sys.executable, *program],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=60,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"} | environment,
    )


def said(*lines: str, **options: str | None) -> str:
    """What the command prints; it must end well and without a word on stderr."""
    run = drill(*lines, **options)  # type: ignore[arg-type]
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return run.stdout


def test_a_right_answer_shows_its_working_and_the_next_round_has_other_numbers() -> None:
    printed = said(RIGHT, "quit")
    assert "Right.\n" in printed
    assert WORKING in printed
    assert "Source: Kwon" in printed
    assert "That was round 1: 1 right of 1." in printed
    assert DRILL.prompt(first_draw()) in printed
    assert DRILL.prompt(first_draw(round_number=2)) in printed
    assert first_draw() != first_draw(round_number=2)
    assert printed.endswith("1 right of 1.\n")


def test_a_slip_is_named_and_the_question_stands_until_it_is_right() -> None:
    slip = DRILL.slips[0]
    printed = said(typed(slip.wrong(first_draw())), RIGHT, "quit")
    assert slip.story in printed
    assert printed.index(slip.story) < printed.index("Right.")
    assert printed.count(DRILL.prompt(first_draw())) == 1
    assert printed.endswith("0 right of 1.\n")  # right, but not at the first try


def test_a_wrong_answer_does_not_show_the_working() -> None:
    printed = said(typed(DRILL.slips[0].wrong(first_draw())), "1 B", "quit")
    assert WORKING not in printed
    assert "Right." not in printed
    assert "too small" in printed


@pytest.mark.parametrize(("line", "told"), [("551", "551 of what?"), ("lots", "is not a number with a unit"), ("", "is not a number with a unit")])
def test_what_cannot_be_read_is_asked_again_and_held_against_nobody(line: str, told: str) -> None:
    printed = said(line, RIGHT, "quit")
    assert told in printed
    assert printed.endswith("1 right of 1.\n")


def test_show_gives_the_working_and_no_point() -> None:
    printed = said("show", "quit")
    assert WORKING in printed
    assert "Right." not in printed
    assert printed.endswith("0 right of 1.\n")


def test_skip_gives_neither() -> None:
    printed = said("skip", "quit")
    assert WORKING not in printed
    assert printed.endswith("0 right of 1.\n")


@pytest.mark.parametrize("line", ["help", "?"])
def test_help_says_what_can_be_typed(line: str) -> None:
    assert said(line, "quit").count(HELP) == 2  # once at the start, once when asked


@pytest.mark.parametrize("line", ["quit", "q", "exit", "  quit  "])
def test_quit_ends_it(line: str) -> None:
    printed = said(line, RIGHT)
    assert "Right." not in printed
    assert printed.endswith("0 right of 0.\n")


def test_the_end_of_the_input_ends_it_too() -> None:
    assert said().endswith("0 right of 0.\n")
    assert said(RIGHT).endswith("1 right of 1.\n")
    assert said("551").endswith("0 right of 0.\n")  # in the middle of a question


def test_the_same_seed_asks_the_same() -> None:
    lines = ["show"] * 15
    assert said(*lines, topic="kv_cache") == said(*lines, topic="kv_cache")
    assert said(*lines, topic="kv_cache") != said(*lines, topic="kv_cache", seed="another")


def test_without_a_seed_one_is_drawn_and_told() -> None:
    printed = said("quit", seed=None)
    drawn = printed.split("--seed ")[1].split("`")[0]
    asked = printed.split("stop.\n")[1]
    assert said("quit", seed=drawn).split("stop.\n")[1] == asked


def test_a_family_asks_each_of_its_drills_once_a_round() -> None:
    family = FAMILIES["kv_cache"]
    printed = said(*["skip"] * len(family), topic="kv_cache")
    assert f"{len(family)} questions" in printed
    for each in family:
        assert printed.count(each.prompt(first_draw(each))) == 1
    assert f"That was round 1: 0 right of {len(family)}." in printed


def test_no_topic_means_every_drill() -> None:
    assert chosen(None) == list(DRILLS.values())
    assert f"{len(DRILLS)} questions" in said("quit", topic=None)


def test_an_unknown_topic_is_refused_with_the_nearest_one() -> None:
    run = drill(topic="kv_cash")
    assert run.returncode == 2
    assert run.stdout == ""
    assert "did you mean 'kv_cache'" in run.stderr
    assert run.stderr.count("\n") == 1


def test_the_lines_are_plain() -> None:
    printed = said("show", "show", "quit")
    assert "\x1b" not in printed
    assert "\r" not in printed
    assert "\t" not in printed


def test_a_terminal_that_lacks_our_signs_still_gets_its_drill() -> None:
    printed = said("show", "quit", PYTHONIOENCODING="ascii")
    assert "tokens / block" in printed
    assert printed.endswith("0 right of 1.\n")


WITHOUT = """import sys
sys.modules["numpy"] = sys.modules["torch"] = None  # so that importing them fails
from threeloops.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_every_drill_can_be_asked_and_answered_without_numpy_and_torch() -> None:
    printed = said(*["show"] * len(DRILLS), topic=None, code=WITHOUT)
    assert f"That was round 1: 0 right of {len(DRILLS)}." in printed
    assert printed.count("  Source: ") == len(DRILLS)


def test_that_check_can_fail() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT.replace("from threeloops.cli import main", "import numpy")], capture_output=True, text=True)
    assert "ModuleNotFoundError" in run.stderr

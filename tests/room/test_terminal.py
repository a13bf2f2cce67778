"""`threeloops drill` as a reader meets it: a real process, lines in, lines out."""

import datetime as dt
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from threeloops import wall_clock
from threeloops.contents import STARTER
from threeloops.drills.engine import answers
from threeloops.drills.engine.bank import DRILLS, FAMILIES
from threeloops.drills.engine.drill import Draw, Drill
from threeloops.drills.engine.student_draws import wrapped
from threeloops.room import terminal
from threeloops.room.history import History
from threeloops.room.idea import LONGEST_S
from threeloops.room.ideas import FIRST, IDEAS, chosen, pose
from threeloops.room.question import draw_of, number
from threeloops.room.terminal import CHECKLIST, HELP

SEED = "a seed for the tests"
KEY = "kv-paged-blocks"
DRILL = DRILLS[KEY]
Said = Callable[..., str]


def first_draw(drill: Drill = DRILL, place: int = 0) -> Draw:
    """The numbers of a drill at a place of a sitting, as the terminal draws them from the seed."""
    return draw_of(drill, f"{SEED}-{place}")


def typed(value: float, drill: Drill = DRILL) -> str:
    return f"{value!r} {drill.unit}".strip()


RIGHT = typed(DRILL.derive(first_draw()).value)
SLIP = typed(DRILL.slips[0].wrong(first_draw()))
ASKED = number(DRILL, f"{SEED}-0")
WORKING = DRILL.derive(first_draw()).in_numbers


def run(
    command: list[str], lines: tuple[str, ...], code: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command with these lines on its standard input, which then ends."""
    program = ["-c", code, *command] if code else ["-m", "threeloops", *command]
    return subprocess.run(
        [sys.executable, *program],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=60,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"} | environment,
    )


def drill(
    *lines: str,
    topic: str | None = KEY,
    seed: str | None = SEED,
    flags: tuple[str, ...] = (),
    history: object = "none",
    **options: str,
) -> str:
    """What `threeloops drill` prints; it must end well and without a word on stderr."""
    words = [
        "drill",
        *([topic] if topic else []),
        *(["--seed", seed] if seed else []),
        "--history",
        str(history),
        *flags,
    ]
    ended = run(words, lines, **options)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    return ended.stdout


def refused(*words: str) -> str:
    ended = run([*words, "--history", "none"], ())
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    return ended.stderr


# --- a warm-up ----------------------------------------------------------------------------------


def test_a_right_answer_shows_its_working_and_then_other_numbers_come() -> None:
    printed = drill(RIGHT, "quit")
    assert "Right.\n" in printed
    assert WORKING in printed
    assert "Source: Kwon" in printed
    assert DRILL.prompt(first_draw()) in printed
    assert "1 right of 1." in printed
    assert "Again, with other numbers." in printed
    assert printed.count("How many bytes are reserved") == 2
    assert printed.count(DRILL.prompt(first_draw())) == 1


def test_a_slip_is_named_and_the_question_stands_until_it_is_right() -> None:
    printed = drill(SLIP, RIGHT, "quit")
    assert DRILL.slips[0].story in printed
    assert printed.index(DRILL.slips[0].story) < printed.index("Right.")
    assert printed.count(DRILL.prompt(first_draw())) == 1
    assert "1 right" not in printed  # right, but not at the first try


def test_a_wrong_answer_does_not_show_the_working() -> None:
    printed = drill(SLIP, "1 B", "quit")
    assert WORKING not in printed
    assert "Right." not in printed
    assert "too small" in printed


@pytest.mark.parametrize(
    ("line", "told"),
    [("551", "551 of what?"), ("lots", "is not a number with a unit"), ("", "Nothing is written; write it like")],
)
def test_what_cannot_be_read_is_asked_again_and_held_against_nobody(line: str, told: str) -> None:
    printed = drill(line, RIGHT, "quit")
    assert told in printed
    assert "1 right of 1." in printed


def test_show_gives_the_working_and_no_point() -> None:
    printed = drill("show", "quit")
    assert WORKING in printed
    assert "Right." not in printed
    assert "0 right of 0, 1 given up." in printed


def test_skip_gives_neither() -> None:
    printed = drill("skip", "quit")
    assert WORKING not in printed
    assert "0 right of 0, 1 skipped." in printed


def test_a_hint_is_given_after_its_price_is_taken() -> None:
    printed = drill("hint", "no", "hint", "yes", "quit")
    assert printed.count("counts as slow. Take it?") == 2
    assert printed.count("The answer is between") == 1


@pytest.mark.parametrize("line", ["help", "?"])
def test_help_says_what_can_be_typed(line: str) -> None:
    assert drill(line, "quit").count(HELP) == 2  # once at the start, once when asked


@pytest.mark.parametrize("line", ["quit", "q", "exit", "  quit  "])
def test_quit_ends_it(line: str) -> None:
    printed = drill(line, RIGHT)
    assert "Right." not in printed
    assert "0 right of 0." in printed


def test_the_end_of_the_input_ends_it_too() -> None:
    assert "0 right of 0." in drill()
    assert "0 right of 0." in drill("551")  # in the middle of a question


def test_the_same_seed_asks_the_same() -> None:
    lines = ["show"] * 8
    assert drill(*lines, topic="kv_cache") == drill(*lines, topic="kv_cache")
    assert drill(*lines, topic="kv_cache") != drill(*lines, topic="kv_cache", seed="another")


def test_a_topic_asks_each_of_its_drills() -> None:
    asked = chosen("kv_cache")
    assert {each.key for each in FAMILIES["kv_cache"]} <= {idea.key for idea in asked}
    printed = drill(*["skip"] * len(asked), topic="kv_cache")
    assert f"{len(asked)} questions" in printed
    for idea in asked:
        assert idea.title in printed


def test_the_set_to_begin_with_is_asked_by_its_name() -> None:
    printed = drill(*["skip"] * len(FIRST), topic=STARTER)
    assert f"{len(FIRST)} questions" in printed
    assert all(DRILLS[key].title in printed for key in FIRST)


def test_no_topic_means_every_drill() -> None:
    assert f"{len(DRILLS)} questions" in drill("quit", topic=None) or len(DRILLS) < int(
        drill("quit", topic=None).split(" questions")[0].split()[-1]
    )


def test_an_unknown_topic_is_refused_with_the_nearest_one() -> None:
    assert "did you mean 'kv_cache'" in refused("drill", "kv_cash")


# --- modes --------------------------------------------------------------------------------------


def test_a_sprint_takes_one_answer_says_the_time_and_goes_on() -> None:
    printed = drill(SLIP, "quit", flags=("--mode", "sprint"))
    assert f"({ASKED.allowed_s:.0f} s, {ASKED.reading_s:.0f} s of them to read)" in printed
    assert f"0 s of {ASKED.allowed_s:.0f} s." in printed
    assert WORKING in printed
    assert printed.rstrip().endswith("0 right of 1.")


def test_extra_time_is_given_and_named() -> None:
    printed = drill(RIGHT, flags=("--mode", "sprint", "--extra", "1.5"))
    assert f"0 s of {1.5 * ASKED.allowed_s:.0f} s (extra time 1.5×)." in printed


def test_a_mock_ends_with_what_to_say_aloud() -> None:
    printed = drill("skip", flags=("--mode", "mock", "--length", "1"))
    assert CHECKLIST[0] in printed


def test_what_was_left_is_taken_up_again(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite3"
    drill("skip", "quit", topic="kv_cache", history=file, flags=("--mode", "sprint"))
    ended = run(["drill", "--continue", "--history", str(file)], ("quit",))
    assert "[2 of 10]" in ended.stdout
    assert "9 questions, the same numbers." in ended.stdout
    assert "fresh numbers" not in ended.stdout
    assert f"drill --continue --history {file}`" in ended.stdout
    assert len(History(file).attempts()) == 1


def test_an_interview_date_is_kept_and_a_past_one_refused(tmp_path: Path) -> None:
    day = (wall_clock.today() + dt.timedelta(days=20)).isoformat()
    assert f"Interview on {day}" in drill("quit", flags=("--interview", day), history=tmp_path / "h.sqlite3")
    assert History(tmp_path / "h.sqlite3").interview == dt.date.fromisoformat(day)
    assert "has passed" in refused("drill", "--interview", "2020-01-01")
    assert "is not a date" in refused("drill", "--interview", "Thursday")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--mode", "exam"], "--mode 'exam' is not known"),
        (["--continue"], "no sitting was left"),
        (["--length", "0"], "--length 0 must be"),
    ],
)
def test_a_wrong_flag_is_one_sentence(words: list[str], told: str) -> None:
    assert told in refused("drill", *words)


# --- progress and history -----------------------------------------------------------------------


def test_progress_shows_what_was_answered_and_history_moves_it(tmp_path: Path) -> None:
    here, there, file = tmp_path / "a.sqlite3", tmp_path / "b.sqlite3", tmp_path / "attempts.csv"
    drill(RIGHT, "quit", history=here)
    assert "1 of 1" in run(["progress", "--history", str(here)], ()).stdout
    assert "1 attempt written" in run(["history", "export", str(file), "--history", str(here)], ()).stdout
    assert "1 new attempt taken in" in run(["history", "import", str(file), "--history", str(there)], ()).stdout
    assert "Nothing was forgotten." in run(["history", "forget", "all", "--history", str(there)], ("no",)).stdout
    assert "1 attempt forgotten." in run(["history", "forget", "all", "--history", str(there)], ("yes",)).stdout
    assert "Nothing answered yet." in run(["progress", "--history", str(there)], ()).stdout


# --- terminals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("sits", [True, False])
def test_what_reads_answers_is_loaded_while_somebody_at_a_terminal_thinks(
    sits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = threading.Event()
    monkeypatch.setattr(answers, "get_ready", loaded.set)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: sits))
    terminal._read_ahead.cache_clear()
    before = threading.active_count()
    terminal._read_ahead()
    assert loaded.wait(5 if sits else 0) == sits
    assert sits or threading.active_count() == before
    terminal._read_ahead.cache_clear()


SPEAKING = """import itertools, sys
from threeloops import cli
from threeloops.room.clock import QuestionClock
turns = itertools.count(1)
QuestionClock.spoken = lambda self, before_s: "" if next(turns) % 4 else "the clock speaks"
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
def test_the_clock_leaves_the_typed_line_alone_and_the_line_can_be_edited(tmp_path: Path) -> None:
    pexpect = pytest.importorskip("pexpect")
    file = tmp_path / "history.sqlite3"
    words = ["-c", SPEAKING, "drill", KEY, "--mode", "sprint", "--seed", SEED, "--history", str(file)]
    sitting = pexpect.spawn(sys.executable, words, encoding="utf-8", timeout=60, dimensions=(50, 120))
    sitting.expect("the clock speaks")
    sitting.send("gave up")
    sitting.expect("gave up")  # on the screen
    sitting.expect("the clock speaks")
    sitting.expect("gave up")  # still, below what the clock said
    sitting.send("\x1b[D" * 4 + "\b\b" + "iv")  # left past "e up", two letters away, two in
    sitting.expect("the clock speaks")
    sitting.send("\r")
    sitting.expect(pexpect.EOF)
    assert [one.status for one in History(file).attempts()] == ["given-up"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
@pytest.mark.parametrize("columns", [80, 132])
def test_lines_are_as_wide_as_the_window_and_lists_hang(columns: int) -> None:
    pexpect = pytest.importorskip("pexpect")
    words = ["-m", "threeloops", "drill", "scenario-slow-loader", "--seed", SEED, "--history", "none"]
    sitting = pexpect.spawn(sys.executable, words, encoding="utf-8", timeout=60, dimensions=(50, columns))
    sitting.expect("Answer with four letters")
    lines = sitting.before.splitlines()
    assert columns - 15 < max(map(len, lines)) <= columns
    assert any(line.startswith("     ") for line in lines) == (columns == 80)  # below an option's first word
    sitting.expect(">")
    sitting.send("quit\r")
    sitting.expect(pexpect.EOF)


def test_nothing_that_is_asked_or_explained_is_wider_than_a_small_window() -> None:
    for key, idea in IDEAS.items():
        for kind in idea.ask:
            asked = pose(key, kind, SEED)
            for text in (asked.text, asked.working, asked.unmarked, *asked.hints):
                wide = [line for line in wrapped(text, 80).splitlines() if len(line) > 80 and "http" not in line]
                assert not wide, (key, kind)


def test_the_lines_are_plain() -> None:
    printed = drill("show", "show", "quit")
    assert "\x1b" not in printed
    assert "\r" not in printed
    assert "\t" not in printed


def test_a_terminal_that_lacks_our_signs_still_gets_its_drill() -> None:
    printed = drill("show", "quit", PYTHONIOENCODING="ascii")
    assert "tokens / block" in printed
    assert "0 right of 0, 1 given up." in printed


WITHOUT = """import sys
sys.modules["numpy"] = sys.modules["torch"] = None  # so that importing them fails
from threeloops.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_every_drill_can_be_asked_and_answered_without_numpy_and_torch() -> None:
    printed = drill(*["show"] * 3 * len(IDEAS), "quit", topic=None, code=WITHOUT)
    printed += drill(*["show"] * 3 * len(chosen("code")), "quit", topic="code", code=WITHOUT)
    assert all(each.title in printed for each in IDEAS.values() if each.target_s <= LONGEST_S or each.topic == "code")


def test_that_check_can_fail() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT.replace("from threeloops.cli import main", "import numpy")],
        capture_output=True,
        text=True,
    )
    assert "ModuleNotFoundError" in ended.stderr

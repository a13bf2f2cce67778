"""What goes wrong with a reader's history file costs nobody an answer and shows nobody a traceback: a full disk, a lock
of another program, flipped bits, questions of another edition.
"""

import os
import random
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.room.test_history import attempt
from tests.seeds import todays

from threeloops import cli
from threeloops.room import ideas, moving
from threeloops.room.attempts import Ask
from threeloops.room.history import History, HistoryError
from threeloops.room.session import Session

ASKS = [Ask(idea="kv-paged-blocks", kind="number", seed=str(place)) for place in range(3)]


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "my" / "history.sqlite3")


def lock(history: History) -> sqlite3.Connection:
    """Another program that writes and does not stop; the history waits for it a moment only."""
    other = sqlite3.connect(history.path, isolation_level=None)
    other.execute("begin immediate")
    history._file.execute("pragma busy_timeout = 50")
    return other


def test_a_sitting_goes_on_while_another_program_holds_the_file_and_is_kept_afterwards(history: History) -> None:
    sitting = Session(history, history.begin("sprint", {}, ASKS))
    other = lock(history)
    for _ in range(2):
        assert "Your answer is not lost" in "\n".join(sitting.answer("1 GB").lines)
        sitting.next()
    assert sitting.position == 2
    assert history.attempts() == []
    other.execute("rollback")
    assert "Everything is kept now" in moving.rescue(history)
    assert [one.position for one in history.attempts()] == [0, 1]
    assert moving.rescue(history) == ""


def test_a_missed_idea_returns_although_the_plan_could_not_be_written(history: History) -> None:
    sitting = Session(history, history.begin("weak", {}, ASKS[:1]))
    other = lock(history)
    sitting.give_up()
    assert sitting.next() is not None
    assert sitting.position == 1
    other.execute("rollback")


def test_what_stays_locked_is_set_aside_and_taken_in_later(history: History) -> None:
    other = lock(history)
    with pytest.raises(HistoryError, match="busy"):
        history.record(attempt())
    said = moving.rescue(history)
    other.execute("rollback")
    aside = Path(shlex.split(re.findall(r"`python3 book.py history import ([^`]+)`", said)[0])[0])
    assert aside.parent == history.path.parent
    assert History(history.path).add(moving.read(aside)) == 1


ON_A_FULL_DISK = """
import sys
from threeloops import cli
from threeloops.room import history
record = history.History.record
def fill(self, *words):
    with open("/full/filler", "wb", buffering=0) as filler:
        try:
            while filler.write(bytes(4096)):
                pass
        except OSError:
            pass
    return record(self, *words)
history.History.record = fill  # the disk is full from the first answer on
sys.exit(cli.main(["drill", "kv-paged-blocks", "--mode", "sprint", "--history", "/full/my/history.sqlite3"]))
"""


@pytest.mark.skipif(not shutil.which("bwrap"), reason="a small disk needs bubblewrap: apt install bubblewrap")
def test_answers_given_on_a_full_disk_are_found_in_a_file_beside_it(tmp_path: Path) -> None:
    box = ["bwrap", "--dev-bind", "/", "/", "--size", "200000", "--tmpfs", "/full"]
    probe = subprocess.run([*box, "true"], capture_output=True, text=True)
    if probe.returncode and os.environ.get("CI") != "true":
        pytest.skip(f"bubblewrap may not make a disk here: {probe.stderr.strip()}")
    ended = subprocess.run(
        [*box, "--setenv", "HOME", str(tmp_path), sys.executable, "-c", ON_A_FULL_DISK],
        input="show\n" * 3,
        capture_output=True,
        encoding="utf-8",
    )
    assert ended.returncode == 0, ended.stderr
    assert "the disk is full" in ended.stdout
    (aside,) = tmp_path.glob("three-loops-answers-*.json")
    assert f"history import {aside}" in ended.stdout
    assert {one.idea for one in moving.read(aside)} == {"kv-paged-blocks"}


def test_a_damaged_card_is_worked_out_again(history: History) -> None:
    history.record(attempt())
    cards = history.cards()
    for damage in ("{", "{}", '{"card_id": 1}', "null", "7"):
        history._file.execute("update cards set card = ?", [damage])
        assert history.cards() == cards
    history.record(attempt(1))
    assert history.cards() != cards


def test_a_sitting_of_another_edition_passes_over_what_has_gone(history: History) -> None:
    gone = Ask(idea="an-idea-of-old", kind="number", seed="1")
    sitting = Session(history, history.begin("sprint", {}, [gone, ASKS[0], gone, ASKS[1]]))
    assert sitting.position == 1
    sitting.answer("1 GB")
    sitting.next()
    assert sitting.position == 3
    sitting.answer("1 GB")
    assert sitting.next() is None
    assert not ideas.known(gone)


def test_no_flipped_bit_ends_in_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = tmp_path / "whole.sqlite3"
    kept = History(whole)
    kept.set("interview", "2999-01-01")
    Session(kept, kept.begin("sprint", {}, ASKS)).skip()
    for position in range(40):
        kept.record(attempt(position, session="t", slips="no-weights", status="wrong"))
    kept._file.execute("pragma journal_mode=delete")
    kept.close()
    content, told = whole.read_bytes(), 0
    for number in todays(range(120), shares=3):
        flipped, rng = bytearray(content), random.Random(number)
        for _ in range(rng.choice((1, 30))):
            flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
        file = tmp_path / f"{number}.sqlite3"
        file.write_bytes(flipped)
        for command in (["progress"], ["history", "export"]):
            words = [*command, *([str(tmp_path / "out.json")] if len(command) > 1 else []), "--history", str(file)]
            assert cli.main(words) in (0, 2)
            said = capsys.readouterr().err
            assert said.count("\n") <= 1
            told += bool(said)
    assert told  # some damage was met


COMMAND = re.compile(r"`python3 book\.py ((?:drill|progress|history)[^`]*)`")


def test_every_command_that_the_room_advises_is_one() -> None:
    room = Path(ideas.__file__).parent
    files = [*room.rglob("*.py"), *room.rglob("*.js")]
    joined = [re.sub(r'"\n\s*f?"', "", file.read_text(encoding="utf-8")) for file in files]
    advised = {words for text in joined for words in COMMAND.findall(text) if "{" not in words}
    assert len(advised) >= 4
    for words in advised:
        cli.parser().parse_args(shlex.split(words))
    assert not [text for text in joined if re.search(r"`threeloops (drill|progress|history)", text)]

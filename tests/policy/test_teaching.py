"""The teacher's page: every command on it is one that exists, with flags that it takes, and every file that it names
is there.
"""

import json
import re
import shlex
from pathlib import Path

import pytest

from threeloops import cli
from threeloops.classroom.term import similar
from threeloops.room.ideas import IDEAS, chosen
from threeloops.sheets.sheet import SHEETS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "TEACHING.md").read_text(encoding="utf-8")
COMMANDS = re.findall(
    r'(?:python3 book\.py|threeloops) ((?:grade|quiz|sheet|drill|classroom)\b(?:"[^"\n]*"|[^`\n)"])*)', PAGE
)


def test_the_page_names_commands() -> None:
    assert {command.split()[0] for command in COMMANDS} == {"grade", "quiz", "sheet", "drill", "classroom"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_on_the_page_is_understood(command: str) -> None:
    given = cli.parser().parse_args(shlex.split(command))
    for topic in getattr(given, "topics", []):
        assert chosen(topic)
    if getattr(given, "topic", None):
        assert given.topic in IDEAS
    if command.startswith("sheet"):
        assert given.name in SHEETS


def test_that_check_can_fail() -> None:
    with pytest.raises(SystemExit):
        cli.parser().parse_args(["quiz", "--copies", "30"])


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith(("quiz", "sheet"))])
def test_a_command_that_writes_does_so(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build").mkdir()
    assert cli.main(shlex.split(command)) == 0
    written = {path.name for path in (tmp_path / "build").rglob("*") if path.is_file()}
    assert written
    for name in written:
        assert name in PAGE or name == "product.html"


def test_what_the_page_says_of_a_class_of_300_was_measured() -> None:
    """By tests/bench/term.py --record."""
    recorded = json.loads((ROOT / "tests" / "bench" / "term_recorded.json").read_text())
    (block,) = [block for block in re.findall(r"```\n(.*?)```", PAGE, re.DOTALL) if "classroom collect" in block]
    verbs = [line.split()[2] for line in block.splitlines()]
    assert ["zero", "one", "two", "three", "four", "five", "six"][len(verbs)] + " commands" in PAGE
    ran_s = sum(recorded["seconds"][verb] for verb in verbs)
    said = f"For {recorded['hand_ins']} hand-ins the commands ran for {ran_s:.0f} seconds on {recorded['cores']} cores"
    assert said in PAGE
    assert recorded["load"] < recorded["cores"] + 1, "the cores were free: measure it on a quiet machine"
    assert recorded["seconds"]["grade"] > 0.8 * ran_s, "nearly all of it"
    assert f"any of {similar.DEALS}\nrandom deals" in PAGE


def test_what_the_page_says_of_files_and_flags_is_so() -> None:
    for name in ("solutions", "drills", "nbgrader_config.py"):
        assert (ROOT / name).exists()
    assert "WrittenAnswers.points" in (ROOT / "nbgrader_config.py").read_text()
    grading = "".join(path.read_text() for path in (ROOT / "lib" / "threeloops" / "classroom").rglob("*.py"))
    assert '"grading.key"' in grading
    for flag in re.findall(r"`(--[a-z-]+)", PAGE):
        assert flag in Path(cli.__file__).read_text() + "".join(
            path.read_text() for path in (ROOT / "lib" / "threeloops" / "commands").rglob("*.py")
        )

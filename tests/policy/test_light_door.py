"""The light door is light: what is on the screen before an answer has to be read is made by the standard library
alone.
"""

import subprocess
import sys

import pytest


def loaded_by(statement: str) -> set[str]:
    """Third-party packages that a fresh interpreter holds after a statement."""
    code = (
        f"import sys\nbefore = set(sys.modules)\n{statement}\nprint(*{{name.split('.')[0] for name in set(sys.modules)"
        " - before})"
    )
    names = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    return {name for name in names if name not in sys.stdlib_module_names and name != "threeloops"}


def test_the_look_at_loaded_packages_sees_one() -> None:
    assert "numpy" in loaded_by("import numpy")


RUN = """import contextlib, io, sys
from threeloops.cli import main
sys.stdin, said = io.StringIO({typed!r}), io.StringIO()
with contextlib.redirect_stdout(said):
    assert main({words!r}) == 0
assert {shown!r} in said.getvalue(), said.getvalue()"""


def command(words: str, shown: str, typed: str = "quit\n") -> str:
    """A statement that runs the command with these lines typed, and sees to it that it got as far as it should."""
    return RUN.format(words=words.split(), shown=shown, typed=typed)


LIGHT = {
    "the bank": "import threeloops.drills.engine.bank",
    "a sprint's first question": command("drill --mode sprint --seed a --history none", "[1 of 10]"),
    "a mock's first question": command("drill --mode mock --seed a --history none", "[1 of "),
    "a topic's first question": command("drill kv_cache --seed a --history none", "[1 of "),
    "progress": command("progress --history none", "Nothing answered yet"),
    "a sheet": command("sheet inner", "Numbers of the inner loop"),
    "kv": command("kv --model llama-3-8b --tokens 8192 --cache bf16", "KV cache of llama-3-8b"),
    "roofline": command("roofline --hardware h100-sxm5 --dtype bf16 --gemm 512 512 512", "FLOP"),
}


@pytest.mark.parametrize("statement", LIGHT.values(), ids=LIGHT)
def test_what_needs_no_answer_read_loads_only_the_standard_library(statement: str) -> None:
    assert loaded_by(statement) == set()


def test_that_check_sees_what_the_first_answer_loads() -> None:
    answered = command("drill kv-paged-blocks --seed a --history none", "[1 of 1]", typed="3 GB\nshow\nquit\n")
    assert {"pint", "fsrs"} <= loaded_by(answered)
    assert "pint" in loaded_by("from threeloops.drills.engine import answers; answers.get_ready()")


WITHOUT_CATALOGUE = "import tomllib; tomllib.loads = None; import threeloops.room.session, threeloops.room.terminal"


def test_the_room_opens_without_reading_the_catalogue() -> None:
    assert loaded_by(WITHOUT_CATALOGUE) == set()
    with pytest.raises(subprocess.CalledProcessError):
        loaded_by(f"{WITHOUT_CATALOGUE}; threeloops.room.session.ideas.pose('fact-h100-sxm5-sms', 'flash', 'a')")

"""Code under the clock: judged in the sandbox that grades, written in the reader's file, remembered as answers are."""

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from threeloops.drills.coding.tasks import TASKS
from threeloops.drills.engine.code_task import CodeTask
from threeloops.room import code_file, terminal
from threeloops.room.history import NOWHERE, History
from threeloops.room.ideas import pose
from threeloops.room.kinds import code
from threeloops.room.notebook.interview import Room
from threeloops.room.plan import Wish
from threeloops.sandbox import calling, walls
from threeloops.sandbox.kernel import Kernel
from threeloops.sandbox.walls import Limits
from threeloops.site import functions

RING = TASKS["code-ring-step"]
HEAD = RING.head
SLIP = RING.changes[0]


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    """One process for all tasks: starting it is most of the time."""
    sandboxed = not walls.problem()
    with Kernel(
        posed={},
        whose={},
        limits=Limits(),
        sandboxed=sandboxed,
        deadline=time.monotonic() + 600,
        notebook=False,
    ) as started:
        yield started


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that never ends need not be waited for long."""
    monkeypatch.setattr(calling, "AT_HOME", Limits(cell_s=1.0, call_s=0.5, total_s=60.0, printed=2_000))


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_what_is_right_and_what_is_wrong_come_through_the_sandbox_as_they_are(kernel: Kernel, task: CodeTask) -> None:
    draws = task.draws("through the wall")
    for source, slips in ((task.solution, ()), *((task.changed(one), (one.key,)) for one in task.changes[:2])):
        returned = calling.tried_by(kernel, source, task.name, task, draws)
        assert not isinstance(returned, str), returned
        verdict = task.verdict(draws, returned)
        assert (verdict.right, verdict.slips) == (not slips, slips)


def test_a_verdict_names_the_mistake_and_shows_a_call_on_which_it_is_one() -> None:
    assert pose(RING.key, "code", "a").judge(RING.solution).right
    wrong = pose(RING.key, "code", "a").judge(RING.changed(SLIP))
    assert (wrong.status, wrong.slips) == ("slip", (SLIP.key,))
    story, call, gave, expected = wrong.message.split("\n")
    assert story == SLIP.story
    assert call.startswith("  reduce_scatter(held=[[")
    assert gave.removeprefix("  gave:     ") != expected.removeprefix("  expected: ")


def test_other_code_is_tried_on_other_calls() -> None:
    """What was made to fit the last call that was shown fits that one alone."""
    one, other = (code.judged(RING, "a", RING.changed(SLIP) + end).message for end in ("", "# again\n"))
    assert one.split("\n")[1] != other.split("\n")[1]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("", "Nothing is written yet"),
        (RING.starter("a"), "The file is as you got it"),
        ("def reduce_scatter(:\n", "This is not Python yet: line 1, "),
        ("(" * 500, "This is not Python yet"),
        ("a\0b", "null bytes"),
        ("x" * 200_000, "is read"),
    ],
)
def test_what_is_no_code_yet_is_asked_again_and_starts_nothing(
    written: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "Kernel", None)
    verdict = code.judged(RING, "a", written)
    assert (verdict.status, told in verdict.message) == ("unreadable", True), verdict.message


def refused(written: str) -> str:
    """The sentence on code that does not come through; it counts for nothing."""
    verdict = code.judged(RING, "a", written)
    assert verdict.status == "unreadable", verdict.message
    return verdict.message.split("\n")[0]


@pytest.mark.usefixtures("hurried")
def test_code_that_never_ends_is_ended_and_told_so() -> None:
    endless = "    while True:\n        print('x' * 100_000)\n"
    assert "took longer than 0.5 s" in refused(HEAD + endless)
    assert "did not come to its end in 1 s" in refused("while True:\n    pass\n" + RING.solution)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        pytest.param(written, told, id=told)
        for written, told in (
            (HEAD + "    import os\n    os._exit(0)\n", "ended the process"),
            (HEAD + "    return held[99]\n", "raised IndexError in line 11"),
            (HEAD + "    pass\n", "returns nothing yet"),
            (HEAD + "    held.append(held)\n    return held\n", "neither a number nor a list of numbers"),
            (HEAD + "    return 7\n", "returned a number, not a list"),
            ("import nowhere_to_be_found\n", "ModuleNotFoundError"),
            ("raise SystemExit\n", "cannot be run"),
            ("x = 1\n", "no function called reduce_scatter"),
        )
    ],
)
def test_code_that_does_not_come_through_is_one_sentence_and_held_against_nobody(written: str, told: str) -> None:
    assert told in refused(written)


def test_a_child_that_comes_back_and_a_flood_of_printing_change_nothing() -> None:
    noisy = "for _ in range(50):\n    print('x' * 100_000)\n" + RING.solution
    assert code.judged(RING, "a", noisy).right
    if hasattr(os, "fork"):
        forked = RING.solution.replace("    n = len(held)", "    import os\n    os.fork()\n    n = len(held)")
        assert forked != RING.solution
        assert code.judged(RING, "a", forked).right


def test_without_a_sandbox_it_says_what_is_missing_and_judges_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bool(code.without_walls()) == bool(walls.problem())
    monkeypatch.setattr(walls, "problem", lambda: "bubblewrap is not installed")
    assert "bubblewrap is not installed. Your code runs as your own program" in code.without_walls()
    assert code.judged(RING, "a", RING.solution).right


# --- in the terminal -----------------------------------------------------------------------------


def sat(history: History, *lines: str, monkeypatch: pytest.MonkeyPatch, topic: str = RING.key) -> None:
    """A sitting of one task with these lines typed."""
    typed = iter(lines)
    monkeypatch.setattr(terminal, "_line", lambda: lambda prompt: next(typed))
    monkeypatch.setattr(terminal, "_somebody", lambda: True)
    terminal.practise(history, "sprint", Wish(topic=topic), extra=1.0, seed="a")


def editing(tmp_path: Path, source: str) -> str:
    """An editor that writes this over whatever it opens."""
    (tmp_path / "written.py").write_text(source)
    (tmp_path / "editor.py").write_text(
        f"import pathlib, sys\npathlib.Path(sys.argv[1]).write_text(open({str(tmp_path / 'written.py')!r}).read())\n"
    )
    return f"'{sys.executable}' '{tmp_path / 'editor.py'}'"


@pytest.mark.skipif(sys.platform == "win32", reason="the editor of this test is quoted as a POSIX shell does")
def test_the_editor_is_opened_and_what_it_leaves_is_judged_and_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", editing(tmp_path, RING.changed(SLIP)))
    history = History(tmp_path / "history.sqlite3")
    sat(history, monkeypatch=monkeypatch)
    said = capsys.readouterr().out
    assert SLIP.story in said
    assert re.search(r"\d+ s of \d+ s", said), "the time is said"
    assert "held[(r + 1) % n]" in said, "the working follows a wrong answer under the clock"
    (attempt,) = history.attempts()
    assert (attempt.idea, attempt.kind, attempt.status, attempt.slips) == (RING.key, "code", "wrong", SLIP.key)
    assert (tmp_path / "code" / "ring-step.py").read_text() == RING.changed(SLIP)


def test_without_an_editor_enter_runs_the_file_as_it_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "")
    history, file = History(tmp_path / "history.sqlite3"), tmp_path / "code" / "ring-step.py"

    steps = iter((RING.starter("a-0"), "def f(:\n", RING.solution))

    def saved(prompt: str) -> str:
        file.write_text(next(steps))
        return ""

    monkeypatch.setattr(terminal, "_line", lambda: saved)
    terminal.practise(history, "sprint", Wish(topic=RING.key), extra=1.0, seed="a")
    said = capsys.readouterr().out
    assert f"Your file: {file}." in said
    assert said.index("as you got it") < said.index("not Python yet") < said.index("Right on 5")
    assert [attempt.status for attempt in history.attempts()] == ["right"]


def test_a_file_comes_back_to_its_question_and_gives_way_to_another_one(tmp_path: Path) -> None:
    history = History(tmp_path / "history.sqlite3")
    mine = code_file.placed(pose(RING.key, "code", "a"), history)
    mine.write(f"{mine.text()}# mine\n")
    again = code_file.placed(pose(RING.key, "code", "a"), history)
    assert (again.text().endswith("# mine\n"), again.aside) == (True, None)
    other = code_file.placed(pose(RING.key, "code", "b"), history)
    assert other.aside is not None
    assert other.aside.read_text().endswith("# mine\n")
    assert other.aside.name in other.told
    assert other.text() == pose(RING.key, "code", "b").starter


def test_an_editor_that_does_not_start_or_changes_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    file = code_file.placed(pose(RING.key, "code", "a"), History(tmp_path / "history.sqlite3"))
    for command, told in (("", "no editor is set"), (str(tmp_path / "nowhere"), "did not start")):
        monkeypatch.setenv("EDITOR", command)
        typed = iter(("edit", "show"))
        assert code_file.reader(file, lambda typed=typed: next(typed), opens=False)() == "show"  # type: ignore[misc]
        assert told in capsys.readouterr().out.lower()


# --- in the notebook -----------------------------------------------------------------------------


def test_the_notebook_shows_a_field_for_the_file_and_keeps_what_is_written_in_it(tmp_path: Path) -> None:
    room = Room(History(tmp_path / "history.sqlite3"))
    room.act({"do": "begin", "mode": "sprint", "topic": RING.key, "seed": "a"})
    screen = room.screen
    assert screen.starter.startswith(f"# {RING.key}, question a-0\n")
    room.act({"do": "keep", "key": screen.key, "written": "# half of it\n"})
    assert (tmp_path / "code" / "ring-step.py").read_text() == "# half of it\n"
    room.act({"do": "hint"})
    assert room.screen.starter == "# half of it\n", "it comes back as it was left"
    room.act({"do": "answer", "written": RING.solution})
    assert room.screen.stage == "answered"
    assert "Right on 5" in room.screen.said
    assert RING.solution.strip() in str(room.screen.blocks[-1]["text"])
    assert RING.solution.splitlines()[-1] in (tmp_path / "code" / "ring-step.py").read_text()


def test_who_wants_nothing_kept_gets_a_folder_that_goes_with_the_process() -> None:
    path = code_file.placed(pose(RING.key, "code", "a"), History(NOWHERE)).path
    assert "three-loops-code-" in path.parent.name


# --- kernels --------------------------------------------------------------------------------------

SUM = TASKS["code-gpu-block-sum"]


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("    while True:\n        yield t.load(x, 0)\n", "took longer than 0.5 s"),
        ("    while True:\n        pass\n    yield\n", "took longer than 0.5 s"),
        ("    import os\n    os._exit(0)\n    yield\n", "ended the process"),
        ("    yield t.load(x, n)\n", "what the machine refuses: index "),
        ("    t.store(sums, 0, 1)\n    yield t.load(x, 0)\n", "not yielded"),
        ("    return 1\n", "yields nothing"),
        ("    if t.thread == 0:\n        yield t.barrier()\n", "wait at a barrier"),
        ("    yield t.store(sums, t.block, 'many')\n", "raised TypeError"),
        ("    yield t.store(sums, t.block, 10**400)\n", "raised OverflowError"),
        ("    import sys\n    sys.modules.clear()\n    yield t.load(x, 0)\n    y = 1 // 0\n", "On one draw"),
        ("    raise NotImplementedError\n", "returns nothing yet"),
    ],
)
def test_kernels_that_do_not_come_through_are_one_sentence(body: str, told: str) -> None:
    verdict = code.judged(SUM, "a", SUM.head + body)
    assert (verdict.status, told in verdict.message.split("\n")[0]) == ("unreadable", True), verdict.message


def test_where_the_library_has_no_source_a_kernel_finds_the_machine_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on the pages, whose Python has the library compiled."""

    def no_source(_: object) -> str:
        raise OSError("could not get source code")

    monkeypatch.setattr("threeloops.drills.engine.kernel_task.inspect.getsource", no_source)
    assert SUM.given == ""
    told = functions.tried(SUM.key, SUM.name, "a", SUM.changed(SUM.changes[0]), lambda sentence, seconds: None)
    assert json.loads(told)["slips"] == ["race"]


def test_a_kernel_that_moves_too_much_is_told_what_was_counted() -> None:
    assert code.judged(SUM, "a", SUM.solution).right
    changed = next(one for one in SUM.changes if one.key == "atomics")
    verdict = code.judged(SUM, "a", SUM.changed(changed))
    assert (verdict.status, verdict.slips) == ("slip", ("atomics",))
    assert "atomic requests to global memory; at most 0." in verdict.message
    assert "expected:" not in verdict.message, "what it gives is right"

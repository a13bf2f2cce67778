"""A cell that cannot run here shows its recorded run and says why; every other error stays the reader's."""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from typing import Any

import pytest

from threeloops import stand_in

MARKED = "import torch\nprint('fresh')\n6 * 7"
RECORDED = stand_in.RecordedCell(
    (
        {"output_type": "stream", "name": "stdout", "text": ["printed ", "then"]},
        {"output_type": "execute_result", "data": {"text/plain": ["42"]}},
    ),
    "a desk computer, on 2026-01-02",
)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], tuple[Any, str]]]:
    """Runs a cell in a real IPython that watches; gives (result, what it printed)."""
    shell_class = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    shell = shell_class()
    monkeypatch.setattr(stand_in, "_shell", lambda: shell)
    monkeypatch.setattr(
        stand_in, "recorded_cells", lambda: {MARKED: RECORDED, "raise_it()": RECORDED, "print(made_earlier)": RECORDED}
    )
    stand_in.watch()
    stand_in.watch()
    assert len([one for one in shell.ast_transformers if isinstance(one, stand_in.Watcher)]) == 1

    def ran(source: str) -> tuple[Any, str]:
        printed = io.StringIO()
        with redirect_stdout(printed):
            result = shell.run_cell(source)
        return result, printed.getvalue()

    yield ran
    shell.history_manager.end_session()


def raising(name: str, base: type[Exception] = RuntimeError) -> str:
    return f"class {name}({base.__name__}): pass\ndef raise_it(): raise {name}('rank 1 of 4 did not answer\\nand more')"


def test_without_torch_a_marked_cell_shows_what_was_recorded(
    run: Callable[[str], tuple[Any, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    result, printed = run(MARKED)
    assert result.success
    assert "torch is not installed" in printed
    assert "a desk computer, on 2026-01-02" in printed
    assert "printed then" in printed
    assert "fresh" not in printed


def test_where_torch_is_a_marked_cell_runs_and_shows_its_last_value(run: Callable[[str], tuple[Any, str]]) -> None:
    pytest.importorskip("torch")
    result, printed = run(MARKED)
    assert result.success
    assert "fresh" in printed
    assert "42" in printed
    assert "Recorded" not in printed


def test_ranks_that_fail_are_replaced_and_the_reason_is_said(run: Callable[[str], tuple[Any, str]]) -> None:
    run(raising("RankError"))
    result, printed = run("raise_it()")
    assert result.success
    assert "rank 1 of 4 did not answer)" in printed
    assert "and more" not in printed
    assert "printed then" in printed
    result, printed = run("print(made_earlier)")  # a marked cell that needs what the other did not make
    assert result.success
    assert "an earlier one" in printed


def test_a_name_that_nothing_stood_in_for_is_an_error(run: Callable[[str], tuple[Any, str]]) -> None:
    result, printed = run("print(made_earlier)")
    assert isinstance(result.error_in_exec, NameError)
    assert "Recorded" not in printed


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ProcessSilent", "the processes of this cell did not do their work here (rank 1 of 4 did not answer)"),
        ("NodeCreationFailure", "iceoryx2 cannot set up its shared memory here (rank 1 of 4 did not answer)"),
    ],
)
def test_a_silent_process_and_a_middleware_without_room_are_replaced_too(
    run: Callable[[str], tuple[Any, str]], name: str, told: str
) -> None:
    run(raising(name))
    result, printed = run("raise_it()")
    assert result.success
    assert told in printed
    assert "printed then" in printed


@pytest.mark.parametrize("name", ["ValueError", "MyError"])
def test_any_other_error_stays_an_error(run: Callable[[str], tuple[Any, str]], name: str) -> None:
    run(raising(name))
    result, printed = run("raise_it()")
    assert type(result.error_in_exec).__name__ == name
    assert "Recorded" not in printed


def test_a_cell_that_the_reader_changed_is_left_alone(
    run: Callable[[str], tuple[Any, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    result, _ = run(MARKED + " + 1")
    assert isinstance(result.error_in_exec, ModuleNotFoundError)


def test_outside_a_notebook_nothing_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stand_in, "_shell", lambda: None)
    stand_in.watch()

"""Ask first, in IPython itself: what a reader's cell shows before its prediction, and what it makes all the same."""

from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from threeloops.drills.engine.ask_first import READER, ask_first

COMPARE = 'roof = 4\nprint(roof)\npredicted.compare(prediction, roof, "B")\nroof'


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = InteractiveShell()
    monkeypatch.setattr("IPython.get_ipython", lambda: made)
    monkeypatch.setenv(READER, "1")
    ask_first()
    ask_first()
    assert len(made.ast_transformers) == 1
    made.run_cell(
        "from threeloops.drills.engine import sheet\nfrom threeloops.drills.engine import prediction as predicted"
    )
    return made


def test_before_the_prediction_nothing_is_shown_and_everything_made(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("prediction = ...")
    assert shell.run_cell(COMPARE).success
    assert capsys.readouterr().out.splitlines() == [
        "First your prediction: the card above takes a number, or skip. Then run this cell again."
    ]
    assert shell.user_ns["roof"] == 4


@pytest.mark.parametrize(
    ("written", "said"), [("'5 B'", "You said 5 B"), ("'skip'", "Skipped: it comes out at 4.00 B")]
)
def test_after_it_the_cell_is_what_it_is(
    shell: Any, written: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell(f"prediction = {written}")
    shell.run_cell(COMPARE)
    assert said in capsys.readouterr().out


def test_where_nobody_can_be_asked_the_cell_goes_on(
    shell: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(READER)
    shell.run_cell("prediction = ...")
    shell.run_cell(COMPARE)
    assert "It comes out at 4.00 B" in capsys.readouterr().out


@pytest.mark.parametrize("call", ['sheet.check("kv-latent", cache)', 'sheet.check_function("kv-paged-blocks", cache)'])
def test_a_check_before_its_answer_says_so_where_nbgrader_counts_it_as_not_passed(
    shell: Any, call: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run_cell(call).success
    said = capsys.readouterr()
    assert "needs `cache`, which is made in a cell above" in said.err
    assert said.out == ""


def test_an_error_of_the_cell_is_still_the_readers_to_see(shell: Any) -> None:
    shell.run_cell("prediction = ...")
    assert not shell.run_cell("1 / 0\n" + COMPARE).success

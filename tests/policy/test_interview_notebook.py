"""drills/interview.ipynb is written by hand, so it is held to what the chapters are held to; and it is no nbgrader
assignment.
"""

import json
import re
from pathlib import Path
from typing import Any

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.student_draws import HOME_COURSE, HOME_STUDENT, posed
from threeloops.room.plan import MODES

PATH = Path(__file__).parents[2] / "drills" / "interview.ipynb"
TEXT = PATH.read_text(encoding="utf-8")
NOTEBOOK: dict[str, Any] = json.loads(TEXT)
CELLS: list[dict[str, Any]] = NOTEBOOK["cells"]
CODE = [cell for cell in CELLS if cell["cell_type"] == "code"]


def shown(cell: dict[str, Any]) -> str:
    return "".join(
        "".join(output.get("data", {}).get("text/plain", output.get("text", ""))) for output in cell["outputs"]
    )


def test_cells_are_short_and_called_by_words() -> None:
    assert all(len("".join(cell["source"]).splitlines()) <= 8 for cell in CODE)
    ids = [cell["id"] for cell in CELLS]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z][a-z-]+", name) for name in ids)


def test_it_is_committed_executed_in_words_and_without_a_widgets_state() -> None:
    assert [cell["execution_count"] for cell in CODE] == list(range(1, len(CODE) + 1))
    assert all(
        output["output_type"] in ("execute_result", "stream") and output.get("name") != "stderr"
        for cell in CODE
        for output in cell["outputs"]
    )
    assert "application/vnd.jupyter.widget" not in TEXT
    assert set(NOTEBOOK["metadata"]) <= {"kernelspec", "language_info"}
    assert all(words in shown(CODE[0]) for words in MODES.values())
    assert "Nothing answered yet" in shown(CODE[-1]), (
        "executed with somebody's own history: THREELOOPS_HISTORY=/tmp/empty.sqlite3 keeps it out"
    )
    assert "unfinished" not in shown(CODE[0])


def test_nbgrader_has_no_business_with_it() -> None:
    assert "nbgrader" not in TEXT
    assert not (PATH.parents[1] / "solutions" / "interview").exists()
    assert not (PATH.parents[1] / "solutions" / "interview.ipynb").exists()


def test_no_answer_and_no_question_stands_in_it() -> None:
    for drill in DRILLS.values():
        p = posed(drill, course=HOME_COURSE, student=HOME_STUDENT)
        assert drill.title not in TEXT
        assert drill.derive(p).in_numbers not in TEXT


def test_the_committed_form_is_kept() -> None:
    assert json.dumps(NOTEBOOK, indent=1, ensure_ascii=False) + "\n" == TEXT

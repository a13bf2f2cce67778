"""Submissions for the tests of grading: the empty one, the reference, and notebooks with chosen answers in chosen
places.
"""

import contextlib
import copy
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from threeloops.classroom.questions import Question, mark, own_mark, questions, source
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.function_bank import FUNCTIONS
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.student_draws import posed

ROOT = Path(__file__).parents[2]
SETS = sorted(path.parent.name for path in ROOT.glob("solutions/*/*.ipynb"))
Notebook = dict[str, Any]


def released(name: str) -> Notebook:
    return json.loads((ROOT / "drills" / name / f"{name}.ipynb").read_text())


def solution(name: str) -> Notebook:
    return json.loads((ROOT / "solutions" / name / f"{name}.ipynb").read_text())


def asked(name: str) -> dict[str, Question]:
    """Every question of a set, by grade_id."""
    return {one.grade_id: one for one in questions(released(name))}


def maximum(name: str) -> float:
    return sum(one.points for one in asked(name).values())


def written_number(drill: str, value: float) -> str:
    return f"{value!r} {DRILLS[drill].unit}".strip()


def right_number(one: Question, *, student: str, course: str = "home") -> str:
    """The right answer of that student, as they would write it."""
    return written_number(
        one.drill, DRILLS[one.drill].derive(posed(DRILLS[one.drill], course=course, student=student)).value
    )


def set_source(notebook: Notebook, grade_id: str, text: str) -> None:
    """Write into one cell."""
    (cell,) = [cell for cell in notebook["cells"] if mark(cell, "grade_id") == grade_id or cell["id"] == grade_id]
    cell["source"] = text


def signed(notebook: Notebook, *, student: str, course: str = "home") -> Notebook:
    """The notebook with its id cell filled in."""
    (cell,) = [cell for cell in notebook["cells"] if cell["id"] == "who"]
    assert own_mark(cell, "yours")
    cell["source"] = f"student = {student!r}\ncourse = {course!r}"
    return notebook


def filled(name: str, *, student: str, course: str = "home", wrong: Mapping[str, str] = {}) -> Notebook:  # read only
    """The reference submission of a student, except for the cells in `wrong` (grade_id of the question -> source of
    its answer cell).
    """
    notebook = signed(released(name), student=student, course=course)
    solved = {mark(cell, "grade_id"): source(cell) for cell in solution(name)["cells"] if mark(cell, "solution")}
    for grade_id, one in asked(name).items():
        right = (
            solved[f"{grade_id}-answer"]
            if one.kind == "function"
            else f"{one.name} = {right_number(one, student=student, course=course)!r}"
        )
        set_source(notebook, f"{grade_id}-answer", wrong.get(grade_id, right))
    return notebook


# Hidden draws without end cannot be told in a table; while few_draws holds, every one of them is one of these.
POOL = 24
_draws = FunctionDrill.draws


def pooled(drill: FunctionDrill, *words: str) -> list[Draw]:
    """The five draws for these words, out of the pool."""
    return _draws(drill, "pool", str(zlib.crc32(repr(words).encode()) % POOL))


@contextlib.contextmanager
def few_draws() -> Iterator[None]:
    """While this holds, functions are tried on the draws of the pool alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FunctionDrill, "draws", pooled)
        yield


def slipped_function(one: Question, slip_key: str) -> str:
    """A function that makes one slip on every draw of the pool: a table, because a slip's formula is not there to be
    called.
    """
    drill = FUNCTIONS[one.drill]
    (slip,) = [slip for slip in drill.drill.slips if slip.key == slip_key]
    rows = {}
    for number in range(POOL):
        for p in _draws(drill, "pool", str(number)):
            with contextlib.suppress(ArithmeticError):
                rows[tuple(map(_fixed, drill.arguments(p).values()))] = float(slip.wrong(p))
    table = ", ".join(f"{numbers!r}: {value!r}" for numbers, value in rows.items())
    return (
        f"def {one.name}(**given):\n    return {{{table}}}[tuple(tuple(one) if isinstance(one, list) else one for one"
        f" in map(given.get, {drill.takes!r}))]"
    )


def _fixed(argument: object) -> object:
    """A list of numbers as something that a table can be looked up by."""
    return tuple(argument) if isinstance(argument, list) else argument


def write(notebook: Notebook, folder: Path, student: str, name: str) -> Path:
    """Hand a notebook in: folder/student/set.ipynb."""
    path = folder / student / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(copy.deepcopy(notebook)))
    return path


def canvas_zip(path: Path, files: Mapping[str, str]) -> Path:
    """Canvas's download of an assignment, by file: sortable name, LATE or not, number of the user, of the file."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def moodle_zip(path: Path, files: Mapping[tuple[str, int], str], name: str) -> Path:
    """Moodle's download of an assignment “in folders”, as Moodle names them since 4.1: full name, number of the
    participant, kind of plugin, plugin.
    """
    return canvas_zip(
        path,
        {f"{who}_{number}_assignsubmission_file/{name}.ipynb": content for (who, number), content in files.items()},
    )

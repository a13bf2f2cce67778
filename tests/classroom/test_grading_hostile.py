"""Hostile and broken submissions, each handed in between two honest ones: none earns a point it should not, and nobody
else notices.

Those who come next look for whatever the one before them has left. Two classes are graded side by side, each by one
worker, so that everybody's side is forked from the same warm process.
"""

import csv
import hashlib
import json
import multiprocessing
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from attacks import CODE, DESERVED, KEPT, MARK, SET, THROUGH, TRACES, Attack, honest
from attacks_cells import BROKEN, CELLS
from attacks_code import CODE_ATTACKS, CODE_ENDS
from attacks_limits import LIMIT_ENDS
from attacks_limits import LIMITS as TOO_MUCH
from attacks_line import LINE_ATTACKS, LINE_ENDS
from attacks_walls import WALL_ENDS, WALLS
from bs4 import BeautifulSoup
from submissions import ROOT, Notebook, maximum, write

from threeloops.classroom.course import Course
from threeloops.classroom.grade import _grade_class
from threeloops.classroom.intake import handed_in
from threeloops.classroom.judging import STATUSES
from threeloops.sandbox import walls

ATTACKS: dict[str, Attack] = CELLS | CODE_ATTACKS | LINE_ATTACKS | WALLS | TOO_MUCH
ENDS: dict[str, str | tuple[str, ...]] = CODE_ENDS | LINE_ENDS | WALL_ENDS | LIMIT_ENDS  # the others are graded
CLASSES = 4
LEFT = "LEFT-BEHIND"  # what those who come next print of the one before
# on the wall: honest cells take milliseconds, and a neighbour may take the core
LIMITS = {"cell_s": 3.0, "call_s": 2.0, "total_s": 45.0}

pytestmark = pytest.mark.skipif(bool(walls.problem()), reason=f"attacks run in the sandbox alone: {walls.problem()}")


def looking(student: str) -> Notebook:
    """The right answers of one who first looks round, and whose code warns: a warning is no mistake."""
    notebook = honest(student)
    look = {"cell_type": "code", "source": TRACES, "metadata": {}, "outputs": [], "id": "look"}
    notebook["cells"].insert(0, look)
    for cell in notebook["cells"]:
        if cell["id"].endswith("-answer") and cell["cell_type"] == "code":
            cell["source"] = (
                f"import sys, warnings\nwarnings.warn('careful')\nprint(1, file=sys.stderr)\n{cell['source']}"
            )
    return notebook


HANDED_IN = [*ATTACKS, *BROKEN]


def called(name: str) -> str:
    """Whom an attack is handed in by."""
    return f"{HANDED_IN.index(name) // CLASSES:03d}a-{name}"


def after(name: str) -> str:
    """Who comes next in the same class."""
    return f"{HANDED_IN.index(name) // CLASSES:03d}b-after-{name}"


@dataclass(frozen=True, kw_only=True)
class Graded:
    rows: dict[str, list[dict[str, str]]]  # student -> rows of the grade CSV
    courses: list[Course]
    untouched: bool  # were the files that were handed in left as they were?

    def points(self, student: str) -> float:
        return sum(float(row["points"]) for row in self.rows[student])

    def status(self, student: str) -> str:
        return self.rows[student][0]["status"]

    def course(self, name: str) -> Course:
        return self.courses[HANDED_IN.index(name) % CLASSES]

    def judged(self, name: str, student: str | None = None) -> str:
        """All that came of the notebook: what its cells put out, and what was noted beside them."""
        path = self.course(name).folder("autograded", student or called(name), SET) / f"{SET}.ipynb"
        notebook = json.loads(path.read_text())
        return json.dumps([[cell.get("outputs", []), cell["metadata"]] for cell in notebook["cells"]])

    def page(self, name: str, student: str | None = None) -> str:
        return (self.course(name).folder("feedback", student or called(name), SET) / f"{SET}.html").read_text()


def handed_in_digest(folder: Path) -> str:
    files = sorted(folder.glob("class-*/*/*.ipynb"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def grade(folder: Path, course: Course) -> None:
    _grade_class(handed_in(folder, course.sets()), course, trust_students=False, workers=1)


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    folder = tmp_path_factory.mktemp("hostile")
    for number, name in enumerate(HANDED_IN):
        place = folder / f"class-{number % CLASSES}"
        write(looking(after(name)), place, after(name), SET)
        if name in ATTACKS:
            write(ATTACKS[name](called(name)), place, called(name), SET)
        else:
            (place / called(name)).mkdir()
            (place / called(name) / f"{SET}.ipynb").write_bytes(BROKEN[name])
    for number in range(CLASSES):
        write(looking("000-before"), folder / f"class-{number}", "000-before", SET)
    (folder / "class-0" / "absent").mkdir()
    os.symlink(folder / "class-0" / "000-before", folder / "class-0" / "linked")
    before = handed_in_digest(folder)
    courses = [Course(root=ROOT, work=folder / f"work-{n}", code=CODE, judge=LIMITS) for n in range(CLASSES)]
    context = multiprocessing.get_context("fork")
    runs = [context.Process(target=grade, args=(folder / f"class-{n}", course)) for n, course in enumerate(courses)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert [run.exitcode for run in runs] == [0] * CLASSES
    rows: dict[str, list[dict[str, str]]] = {}
    for course in courses:
        with (course.work / f"grades-{SET}.csv").open() as file:
            for row in csv.DictReader(file):
                rows.setdefault(row["student"], []).append(row)
    return Graded(rows=rows, courses=courses, untouched=handed_in_digest(folder) == before)


def test_there_are_as_many_attacks_as_were_promised() -> None:
    assert len(HANDED_IN) >= 120
    assert {*ENDS} <= {*ATTACKS}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_earns_what_was_answered_honestly_and_no_more(graded: Graded, name: str) -> None:
    student = called(name)
    assert graded.points(student) == DESERVED, [
        row for row in graded.rows[student] if float(row["points"]) or row["question"] == KEPT
    ]
    assert sum(float(row["maximum"]) for row in graded.rows[student]) == maximum(SET)
    ends = ENDS.get(name, "graded")
    assert graded.status(student) in ((ends,) if isinstance(ends, str) else ends), graded.rows[student][0]["notes"]
    assert graded.status(student) in STATUSES


@pytest.mark.parametrize("name", ATTACKS)
def test_the_machine_lets_no_attack_through(graded: Graded, name: str) -> None:
    assert THROUGH not in graded.judged(name)


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_notebook_is_said_to_be_unparsable(graded: Graded, name: str) -> None:
    assert (graded.status(called(name)), graded.points(called(name))) == ("unparsable", 0)
    assert graded.rows[called(name)][0]["notes"]


@pytest.mark.parametrize("name", HANDED_IN)
def test_who_comes_next_is_not_disturbed_and_finds_nothing(graded: Graded, name: str) -> None:
    student = after(name)
    assert (graded.status(student), graded.points(student)) == ("graded", maximum(SET)), graded.rows[student]
    found = graded.judged(name, student)
    assert LEFT not in found, found[found.index(LEFT) :][:200]


def test_a_missing_notebook_is_listed_and_a_link_is_not_followed(graded: Graded) -> None:
    assert graded.status("absent") == "missing"
    assert "linked" not in graded.rows
    assert graded.points("000-before") == CLASSES * maximum(SET)


def test_the_gradebook_is_whole_and_says_the_same(graded: Graded) -> None:
    for name in ATTACKS:
        for student in (called(name), after(name)):
            scores = graded.course(name).scores(SET, student)
            assert sum(score.points for score in scores) == graded.points(student)
            assert sum(score.maximum for score in scores) == maximum(SET)
            assert not any(score.by_hand for score in scores)


def test_nothing_that_was_handed_in_has_changed(graded: Graded) -> None:
    assert graded.untouched


def test_the_sandbox_showed_nothing(graded: Graded) -> None:
    search = graded.judged("search-the-disk")
    assert "FOUND 0 []" in search
    assert "NOTHING in the frames" in search
    assert "GRADEBOOK /" not in graded.judged("gradebook")


@pytest.mark.parametrize("name", [name for name in ATTACKS if name.startswith("function-")])
def test_hidden_draws_do_not_come_out_with_the_grade(graded: Graded, name: str) -> None:
    outputs = graded.judged(name)
    assert MARK not in outputs
    assert MARK not in json.dumps(graded.rows[called(name)])
    assert " in line " not in outputs, "a line's number can be a draw's"


def acting(page: str) -> list[str]:
    """What a page does rather than says: programs, frames, handlers, addresses that are code."""
    soup = BeautifulSoup(page, "html.parser")
    found = [
        f"{tag.name} {tag.get('src', '')}{tag.string}"
        for tag in soup(["script", "iframe", "object", "embed", "svg", "base", "form"])
    ]
    found += [f"{tag.name} {key}" for tag in soup(True) for key in tag.attrs if key.lower().startswith("on")]
    return found + [
        str(value)
        for tag in soup(True)
        for key, value in tag.attrs.items()
        if key in ("href", "src", "action")
        and str(value).strip().lower().startswith(("javascript", "data:", "http://127"))
    ]


@pytest.mark.parametrize("name", CELLS)
def test_a_page_does_what_an_honest_ones_does(graded: Graded, name: str) -> None:
    page = graded.page(name)
    assert acting(page) == acting(graded.page(name, after(name)))
    assert "x-mathjax-config" not in page or "Safe" in page.partition("x-mathjax-config")[0], "formulas are no programs"


def test_prose_is_still_there_to_be_read(graded: Graded) -> None:
    assert "My explanation" in graded.page("script-in-output")
    assert "49" not in graded.page("prose-template").partition("resources.nbgrader")[0][-80:]


def test_self_marks_are_shown_apart_and_never_counted(graded: Graded) -> None:
    assert "1e+308" not in graded.judged("mark-of-the-richest")

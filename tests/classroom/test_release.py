"""solutions/ and drills/: one is made from the other by nbgrader, always the same, and the other gives nothing
away.
"""

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.utils import determine_grade
from submissions import ROOT, SETS, Notebook, asked, released, signed, solution
from tests.chapters.execute import run_through
from tests.seeds import seeds

from threeloops.classroom.questions import mark, own_mark, source
from threeloops.contents import STARTER
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.function_bank import FUNCTIONS
from threeloops.drills.engine.student_draws import posed

every_set = pytest.mark.parametrize("name", SETS)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All sets generated anew by nbgrader's own command, without a gradebook."""
    folder = tmp_path_factory.mktemp("release") / "drills"
    command = [
        sys.executable,
        "-m",
        "nbgrader",
        "generate_assignment",
        "--assignment=*",
        "--force",
        "--no-db",
        f"--CourseDirectory.release_directory={folder}",
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(folder.parent)},
    )
    assert done.returncode == 0, done.stderr
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below the folders of sets (interview.ipynb stands beside them and is no set)."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.glob("*/**/*")
        if path.is_file() and ".ipynb_checkpoints" not in path.parts
    }


def test_the_release_is_what_nbgrader_makes_of_the_sources(fresh: Path) -> None:
    made, committed = tree(fresh), tree(ROOT / "drills")
    assert made.keys() == committed.keys(), "run: nbgrader generate_assignment --assignment='*' --force --no-db"
    assert [name for name in made if made[name] != committed[name]] == [], (
        "run: nbgrader generate_assignment --assignment='*' --force --no-db"
    )


def test_every_source_is_named_like_its_folder() -> None:
    assert {path.relative_to(ROOT / "solutions").as_posix() for path in (ROOT / "solutions").rglob("*.ipynb")} == {
        f"{name}/{name}.ipynb" for name in SETS
    }
    assert SETS


def test_the_readme_counts_the_sets_and_names_each() -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    (told,) = re.findall(r"(\S+) drill sets are graded", readme)
    assert told == {27: "Twenty-seven"}[len(SETS)]
    assert set(SETS) <= set(re.findall(r"`(\w+)`", readme))
    assert f"{told.lower()} sets" in (ROOT / "CHANGELOG.md").read_text()


def texts(notebook: Notebook) -> str:
    return "\n".join(source(cell) for cell in notebook["cells"])


def solution_lines(name: str) -> set[str]:
    """The lines between BEGIN and END SOLUTION."""
    blocks = re.findall(r"### BEGIN SOLUTION\n(.*?)\s*### END SOLUTION", texts(solution(name)), re.DOTALL)
    return {line.strip() for block in blocks for line in block.splitlines() if line.strip()}


@every_set
def test_no_line_of_a_solution_survives(name: str) -> None:
    assert len(solution_lines(name)) >= len(asked(name))
    left = {line.strip() for line in texts(released(name)).splitlines()}
    assert not solution_lines(name) & left
    assert "SOLUTION" not in texts(released(name))
    assert "worked" not in texts(released(name))


def test_that_search_can_fail() -> None:
    name = SETS[0]
    assert solution_lines(name) & {line.strip() for line in texts(solution(name)).splitlines()}


@every_set
def test_no_answer_stands_in_the_release(name: str) -> None:
    figures = {
        float(figure.replace(",", ""))
        for figure in re.findall(r"\d[\d,]*\.?\d*", texts(released(name)))
        if len(figure) > 2
    }
    for number in seeds(200):
        for one in asked(name).values():
            drill = DRILLS[one.drill]
            value = drill.derive(posed(drill, course="home", student=f"student-{number}")).value
            assert not figures & {value, round(value, 1), round(value)}, (one.grade_id, value)


@every_set
def test_source_and_release_are_clean(name: str) -> None:
    for notebook in (solution(name), released(name)):
        assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
        nbformat.validate(nbformat.from_dict(notebook))
        ids = [cell["id"] for cell in notebook["cells"]]
        assert len(set(ids)) == len(ids)
        assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", one) for one in ids), "cell ids are words"
        grade_ids = [mark(cell, "grade_id") for cell in notebook["cells"] if mark(cell, "grade_id")]
        assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", one) for one in grade_ids), "grade ids are words"
        for cell in notebook["cells"]:
            assert "execution" not in cell["metadata"]
            read = [
                line for line in source(cell).splitlines() if "### " not in line
            ]  # marks of a solution: nobody sees them
            assert len(read) <= 15 or cell["cell_type"] == "markdown"
            if cell["cell_type"] == "code":
                assert (cell["outputs"], cell["execution_count"]) == ([], None)
        assert notebook["metadata"]["language_info"] == {"name": "python"}


@every_set
def test_every_question_can_be_asked(name: str) -> None:
    text = texts(released(name))
    for one in asked(name).values():
        assert one.drill in (FUNCTIONS if one.kind == "function" else DRILLS)
        assert one.kind == "function" or f'sheet.ask("{one.drill}")' in text
    graded = [cell for cell in released(name)["cells"] if mark(cell, "grade")]
    assert all(source(cell).startswith('"""') for cell in graded), "a graded cell opens with what it checks"
    prose = "\n".join(source(cell) for cell in released(name)["cells"] if cell["cell_type"] == "markdown")
    headings = re.findall(r"^#+ .*$", prose, re.MULTILINE)
    assert len(set(headings)) == len(headings)
    assert [heading.split()[0] for heading in headings] == ["#"] + ["##"] * (len(headings) - 1)
    assert len([cell for cell in released(name)["cells"] if own_mark(cell, "written")]) == (name != STARTER)


@every_set
def test_a_stub_takes_the_arguments_that_its_function_is_given(name: str) -> None:
    for one in asked(name).values():
        if one.kind == "function":
            (stub,) = [
                source(cell) for cell in released(name)["cells"] if mark(cell, "grade_id") == f"{one.grade_id}-answer"
            ]
            (function,) = [node for node in ast.parse(stub).body if isinstance(node, ast.FunctionDef)]
            assert tuple(argument.arg for argument in function.args.kwonlyargs) == FUNCTIONS[one.drill].takes
            assert not function.args.args


def executed(notebook: Notebook) -> Notebook:
    """A release or a source, run as a reader or a teacher runs it, in a plain kernel with the whole library."""
    nodes = nbformat.reads(json.dumps(signed(notebook, student="ada", course="stock")), as_version=4)
    run_through(nodes, limit_s=60)
    return nodes


def stock_points(notebook: Notebook) -> dict[str, float]:
    """What a grader that knows nothing of this book would give."""
    return {cell.metadata.nbgrader.grade_id: determine_grade(cell)[0] for cell in notebook.cells if mark(cell, "grade")}  # type: ignore[attr-defined]


@every_set
def test_even_stock_nbgrader_gives_the_stub_nothing_and_the_source_everything(name: str) -> None:
    stub, solved = executed(released(name)), executed(solution(name))
    assert set(stock_points(stub).values()) == {0}
    assert stock_points(solved) == {grade_id: one.points for grade_id, one in asked(name).items()}


def test_a_written_explanation_is_graded_only_when_a_teacher_says_so(tmp_path: Path) -> None:
    name = "kv_cache"
    (cell,) = [cell for cell in released(name)["cells"] if own_mark(cell, "written")]
    assert mark(cell, "grade") is None
    shutil.copytree(ROOT / "solutions" / name, tmp_path / "solutions" / name)
    (tmp_path / "nbgrader_config.py").write_text(
        (ROOT / "nbgrader_config.py").read_text() + "\nc.WrittenAnswers.points = 3\n"
    )
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", name, "--no-db"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    made = json.loads((tmp_path / "drills" / name / f"{name}.ipynb").read_text())
    (cell,) = [cell for cell in made["cells"] if own_mark(cell, "written")]
    assert (mark(cell, "grade"), mark(cell, "solution"), mark(cell, "points")) == (True, True, 3)
    assert source(cell) == "*Your explanation goes here.*"

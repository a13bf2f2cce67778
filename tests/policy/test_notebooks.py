"""How chapters are kept: short cells, unique headings, words as ids, numbers bound, nothing that changes from run to
run.
"""

import functools
import importlib
import itertools
import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from tests.chapters import parts_in_figures

from threeloops.contents import STARTER
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.student_draws import HOME_COURSE, HOME_STUDENT, posed

ROOT = Path(__file__).parents[2]
LIB = ROOT / "lib" / "threeloops"
CHAPTERS = sorted(ROOT.glob("chapters/*.ipynb"))
every_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=[path.stem for path in CHAPTERS])
FIRST_SET = ROOT / "drills" / STARTER / f"{STARTER}.ipynb"
whatever_is_bound = pytest.mark.parametrize("path", [*CHAPTERS, FIRST_SET], ids=lambda path: path.stem)
QUESTION_MINUTES = 1.0  # to work out and write a number whose formula stands above it

UNIT = r"(?:[kMGTP]?i?B(?:/s|/token)?|[kMGTPE]?FLOP(?:/s|/B)?|[mµn]?s\b(?!\w)|%|percent|[kMGT]bit/s|W\b|GHz|MHz)"
QUANTITY = re.compile(rf"(?<![\w.])(\d[\d,]*(?:\.\d+)?)[  ]({UNIT})(?!\w)")


def cells(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def bare(markdown: str) -> str:
    """Markdown without code, formulas and link targets."""
    return re.sub(r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$\n]*\$|\]\([^)]*\)", " ", markdown, flags=re.DOTALL)


def test_there_are_chapters() -> None:
    assert CHAPTERS


@every_chapter
def test_code_cells_are_short(path: Path) -> None:
    long = {
        cell["id"]: source(cell).count("\n") + 1
        for cell in cells(path)
        if cell["cell_type"] == "code" and parts_in_figures.lines_to_read(source(cell)) > parts_in_figures.LONGEST_CELL
    }
    assert not long


@every_chapter
def test_headings_are_one_tree_and_unique(path: Path) -> None:
    headings = [
        line
        for cell in cells(path)
        if cell["cell_type"] == "markdown"
        for line in source(cell).splitlines()
        if re.match(r"#+ ", line)
    ]
    assert sum(line.startswith("# ") for line in headings) == 1
    assert len(set(headings)) == len(headings)
    levels = [len(line.split()[0]) for line in headings]
    assert all(deeper <= level + 1 for level, deeper in itertools.pairwise(levels)), "a heading level is skipped"
    assert all(re.search(r" · \d+ min$", line) for line in headings if line.startswith("## ")), (
        "a part's heading ends with its minutes"
    )


@every_chapter
def test_cells_have_words_for_ids(path: Path) -> None:
    ids = [cell["id"] for cell in cells(path)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z][a-z0-9-]+", name) for name in ids)


@every_chapter
def test_a_chapter_keeps_the_form_of_notebooks(path: Path) -> None:
    nbformat.validate(json.loads(path.read_text(encoding="utf-8")))


@every_chapter
def test_nothing_is_stored_that_changes_from_run_to_run(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert set(notebook["metadata"]) <= {"kernelspec", "language_info", "threeloops"}
    assert notebook["metadata"]["language_info"] == {"name": "python"}
    assert not [cell["id"] for cell in notebook["cells"] if "execution" in cell["metadata"]]
    assert path.stat().st_size < 4_000_000
    assert "application/vnd.jupyter.widget" not in path.read_text(encoding="utf-8")


@every_chapter
def test_no_error_is_committed_and_every_code_cell_was_run(path: Path) -> None:
    for cell in cells(path):
        if cell["cell_type"] == "code":
            assert cell["execution_count"], cell["id"]
            said = ["".join(output["text"]) for output in cell["outputs"] if output.get("name") == "stderr"]
            assert not [output for output in cell["outputs"] if output["output_type"] == "error"], cell["id"]
            assert set(said) <= {"No answer yet.\n"}, cell["id"]  # a check that waits for its reader


@every_chapter
def test_every_picture_says_in_words_what_it_shows(path: Path) -> None:
    for cell in cells(path):
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                words = "".join(output["data"].get("text/plain", ""))
                assert len(words.split()) >= 8, f"{cell['id']}: the picture's text is {words!r}"


@every_chapter
def test_readme_promises_the_hours_that_the_headings_add_up_to(path: Path) -> None:
    minutes = sum(
        int(found) for cell in cells(path) for found in re.findall(r"^## .* · (\d+) min$", source(cell), re.MULTILINE)
    )
    (row,) = [
        line
        for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
        if f"(chapters/{path.name}) |" in line
    ]
    assert f"| {minutes / 60:.1f} of reading" in row


@functools.cache
def names() -> dict[str, Any]:
    """What a binding may use: the modules of facts and formulas, each by the last word of its name."""
    rooms = ("facts", "operations", "models", "foundations", "inner_loop", "training_loop", "product_loop", "driving")
    paths = [
        LIB / "units.py",
        LIB / "dtypes.py",
        *(path for room in rooms for path in (LIB / room).rglob("*.py") if path.name != "__init__.py"),
    ]
    modules = [".".join(("threeloops", *path.relative_to(LIB).with_suffix("").parts)) for path in paths]
    assert len({name.rpartition(".")[2] for name in modules}) == len(modules), (
        "two modules share their last word: a binding could mean either"
    )
    return {name.rpartition(".")[2]: importlib.import_module(name) for name in modules}


def printed_digits(figure: str) -> float:
    """The largest error that rounding to the printed figure allows, relative."""
    digits = figure.replace(",", "")
    value = float(digits)
    decimals = len(digits.partition(".")[2])
    zeros = 0 if decimals else len(digits) - len(digits.rstrip("0"))
    return 0.5 * 10.0 ** (zeros - decimals) / value * 1.001


@whatever_is_bound
def test_numbers_in_sentences_are_bound_or_given(path: Path) -> None:
    for cell in cells(path):
        if cell["cell_type"] != "markdown":
            continue
        allowed = {*cell["metadata"].get("numbers", {}), *cell["metadata"].get("givens", [])}
        found = {f"{number} {unit}" for number, unit in QUANTITY.findall(bare(source(cell)))}
        assert found <= allowed, f"{cell['id']}: {sorted(found - allowed)} stand in a sentence without a binding"


@whatever_is_bound
def test_bound_numbers_are_what_the_library_says(path: Path) -> None:
    for cell in cells(path):
        for figure, expression in cell["metadata"].get("numbers", {}).items():
            number = figure.split()[0]
            assert number in source(cell), f"{cell['id']} binds {figure!r}, which it does not contain"
            value = eval(expression, {**names()})
            assert float(number.replace(",", "")) == pytest.approx(value, rel=printed_digits(number)), (
                f"{cell['id']}: {figure} is {value}"
            )


def test_the_search_for_numbers_finds_them() -> None:
    assert QUANTITY.findall("it takes 3.5 ms, 1,024 GiB/s, 12 % and 2,731 FLOP/B") == [
        ("3.5", "ms"),
        ("1,024", "GiB/s"),
        ("12", "%"),
        ("2,731", "FLOP/B"),
    ]
    assert not QUANTITY.findall("32 heads, 8 requests, part 2, $3$")


MOST_WORDS = {
    "1_inner_loop": 38_500,
    "2_training_loop": 36_500,
    "3_product_loop": 30_000,
    "4_driving_case_study": 22_200,
}


@every_chapter
def test_a_part_has_a_short_way_that_ends_and_pictures(path: Path) -> None:
    whole = parts_in_figures.parts(path)
    assert sum(parts_in_figures.words(inside) for inside in whole.values()) <= MOST_WORDS[path.stem]
    for heading, inside in whole.items():
        stops = sum(parts_in_figures.STOP in source(cell) for cell in inside)
        assert stops == 1, f"{heading}: {stops} cells say {parts_in_figures.STOP}"
        short = parts_in_figures.short_way(inside)
        assert parts_in_figures.words(short) <= 1800, f"{heading}: the short way is too long"
        drawn = parts_in_figures.pictures(inside)
        assert drawn >= 2, f"{heading}: {drawn} pictures"
        asked = "".join(source(cell) for cell in short[:-1])
        assert "sheet.ask(" in asked, f"{heading}: no drill on the short way"
        assert "prediction = ..." in asked, f"{heading}: nothing to predict on the short way"


@every_chapter
def test_a_card_promises_the_minutes_that_its_part_is_reckoned_at(path: Path) -> None:
    for heading, inside in parts_in_figures.parts(path).items():
        said = re.search(r"· (\d+) min", heading)
        short = re.search(r"\*\*Short way\*\* (\d+) min, \*\*depth\*\* (\d+) min", source(inside[0]))
        assert said, heading
        assert short, heading
        assert int(said[1]) == int(short[1]) + int(short[2]), heading
        assert abs(int(said[1]) - parts_in_figures.minutes(inside)) <= 5, heading
        assert abs(int(short[1]) - parts_in_figures.minutes(parts_in_figures.short_way(inside))) <= 5, heading
        assert int(short[1]) <= 25, heading


def test_the_first_set_takes_the_minutes_that_it_promises() -> None:
    """Its words, those of its questions, and the time to answer."""
    inside = cells(FIRST_SET)
    keys = [found for cell in inside for found in re.findall(r'^sheet\.ask\("([\w-]+)"\)', source(cell))]
    asked = [DRILLS[key].prompt(posed(DRILLS[key], course=HOME_COURSE, student=HOME_STUDENT)) for key in keys]
    words = parts_in_figures.words(inside) + sum(len(question.split()) for question in asked)
    reckoned = words / parts_in_figures.WORDS_A_MINUTE + QUESTION_MINUTES * len(asked)
    assert "about twelve minutes" in source(inside[0])
    assert abs(reckoned - 12) <= 1, f"{reckoned:.1f} minutes"


@every_chapter
def test_a_prediction_is_told_of_two_wrong_numbers(path: Path) -> None:
    """Near its answer, in a sentence or in what `compare` prints: what is most likely said instead."""
    inside, poor = cells(path), {}
    for place, cell in enumerate(inside):
        if cell["cell_type"] != "code" or not re.search(r"= \.\.\.  # (?!one sentence)", source(cell)):
            continue
        found = 0
        for later in inside[place + 1 : place + 16]:
            if source(later).startswith("prediction = ...") or (found and source(later).startswith("#")):
                break
            printed = [text for output in later.get("outputs", []) for text in output.get("text", [])]
            found += len(re.findall(r"[Ii]f you said", source(later) if later["cell_type"] == "markdown" else ""))
            found += sum(line.startswith("If you said") for line in printed)
        if found < 2:
            poor[cell["id"]] = found
    assert not poor

"""Without torch a chapter still runs from end to end: what needs it shows its recorded run and says so."""

import copy
from pathlib import Path

import nbformat
import pytest

from tests.chapters.execute import ROOT, run_through
from tests.seeds import todays
from threeloops import stand_in

CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
BLOCK = "import sys\nsys.modules['torch'] = None  # so that importing it fails"

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("path", todays(CHAPTERS, shares=2), ids=lambda path: path.stem)
def test_a_chapter_runs_without_torch(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    marked = [cell.id for cell in notebook.cells if stand_in.TAG in cell.metadata.get("tags", ())]
    fresh = copy.deepcopy(notebook)
    fresh.cells.insert(0, nbformat.v4.new_code_cell(BLOCK))
    run_through(fresh)
    said = {
        cell.id
        for cell in fresh.cells
        if any("Recorded run: torch is not installed" in output.get("text", "") for output in cell.get("outputs", ()))
    }
    assert marked
    assert said == set(marked)
    for cell in notebook.cells:
        if cell.id in said and cell.outputs:
            shown = next(one for one in fresh.cells if one.id == cell.id)
            assert len(shown.outputs) >= len([output for output in cell.outputs if output.output_type != "stream"])


def test_every_part_that_measures_watches_for_cells_that_cannot_run() -> None:
    """In its loading cell, so that a part run alone is served as well."""
    for path in CHAPTERS:
        parts: list[list[nbformat.NotebookNode]] = [[]]
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.source.startswith("## "):
                parts.append([])
            parts[-1].append(cell)
        for part in parts:
            marked = [number for number, cell in enumerate(part) if stand_in.TAG in cell.metadata.get("tags", ())]
            watching = [number for number, cell in enumerate(part) if "stand_in.watch()" in cell.source]
            assert not marked or (watching and watching[0] < marked[0]), (
                f"{path.name}, {part[0].source.splitlines()[0]}"
            )

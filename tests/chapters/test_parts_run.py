"""Every part runs alone from a clean kernel and prints what the committed chapter shows."""

from pathlib import Path

import nbformat
import pytest

from tests.chapters.execute import executed, parts, pictures, rounded_text

CHAPTERS = sorted((Path(__file__).parents[2] / "chapters").glob("*.ipynb"))
PARTS = {
    f"{path.stem}-{heading}": part for path in CHAPTERS for heading, part in parts(nbformat.read(path, as_version=4))
}
WITH_CODE = {name: part for name, part in PARTS.items() if any(cell.cell_type == "code" for cell in part.cells)}


@pytest.mark.parametrize("name", WITH_CODE)
def test_a_part_alone_prints_what_is_committed(name: str) -> None:
    part = WITH_CODE[name]
    fresh = executed(part)
    committed = rounded_text(part)
    for cell, text in rounded_text(fresh).items():
        assert text == committed[cell], f"cell {cell} of {name} prints something else than the committed chapter shows"
    assert pictures(fresh) == pictures(part)


def test_there_is_something_to_run() -> None:
    assert WITH_CODE

"""The drill sets as pages, made from what students are given: questions with the numbers of whoever reads alone, and
no answers.
"""

import json
import re
from pathlib import Path

from threeloops.site import cards, cells
from threeloops.site.links import page_label
from threeloops.site.parts import Cell, text

HOW = (
    "Answer the questions here, as often as you like and with other numbers each time. The set itself is a notebook,"
    " with numbers of your own, functions that are tried on cases that nobody has seen, and a grade:"
    "\n\n```text\npython3 book.py drills/{name}\n```"
)


def paths(root: Path) -> list[Path]:
    """The notebooks of all sets."""
    return sorted(root.glob("drills/*/*.ipynb"))


def page(path: Path) -> list[Cell]:
    """The cells of a set's page: its words, its questions, the stubs of its functions."""
    source = json.loads(path.read_text(encoding="utf-8"))["cells"]
    opening, *rest = source
    made = [
        cells.prose(f"({page_label('drills/' + path.stem)})=\n{text(opening)}"),
        cells.prose(HOW.format(name=path.stem)),
    ]
    return made + [one for cell in rest for one in _shown(cell)]


def title(path: Path) -> str:
    """The set's heading."""
    return re.sub(r"^#+ ", "", text(json.loads(path.read_text(encoding="utf-8"))["cells"][0]).splitlines()[0])


def _shown(cell: Cell) -> list[Cell]:
    source = text(cell)
    if cell["cell_type"] == "markdown":
        about_the_notebook = source.startswith("**How this works.**") or "written" in cell["metadata"].get(
            "threeloops", {}
        )
        return [] if about_the_notebook else [cells.prose(source)]
    asked = cells.ASKED.search(source)
    if asked:
        return [cells.html(cards.graded(asked["key"]))]
    return [{**cell, "metadata": {}}] if "def " in source else []

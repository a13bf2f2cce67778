"""The drill sets as pages, made from what students are given: questions with the numbers of whoever reads alone, and
no answers.
"""

import json
import re
from pathlib import Path

from threeloops.contents import STARTER
from threeloops.drills.engine.bank import DRILLS
from threeloops.site import cards, cells
from threeloops.site.links import page_label
from threeloops.site.parts import Cell, text

HOW = (
    "Answer the questions here, as often as you like and with other numbers each time{functions}. The set itself is a"
    " notebook, with numbers of your own and a grade:\n\n```text\npython3 book.py drills/{name}\n```"
)
FUNCTIONS = ", and write the functions: they are tried in your browser"
ABOUT_THE_NOTEBOOK = ("**How this works.**", "**Your grade.**")
TRIED = re.compile(r'^sheet\.check_function\("(?P<key>[^"]+)", (?P<name>\w+)\)', re.MULTILINE)


def paths(root: Path) -> list[Path]:
    """The notebooks of all sets, first the one to begin with."""
    return sorted(root.glob("drills/*/*.ipynb"), key=lambda path: (path.stem != STARTER, path))


def page(path: Path) -> list[Cell]:
    """The cells of a set's page: its words, its questions, the stubs of its functions."""
    source = json.loads(path.read_text(encoding="utf-8"))["cells"]
    opening, *rest = source
    functions = FUNCTIONS if any(TRIED.search(text(cell)) for cell in rest) else ""
    following = [*rest[1:], {"cell_type": "markdown", "source": "", "metadata": {}}]
    made = [
        cells.prose(f"({page_label('drills/' + path.stem)})=\n{text(opening)}"),
        cells.prose(HOW.format(name=path.stem, functions=functions)),
    ]
    return made + [one for cell, after in zip(rest, following, strict=True) for one in _shown(cell, after)]


def title(path: Path) -> str:
    """The set's heading."""
    return re.sub(r"^#+ ", "", text(json.loads(path.read_text(encoding="utf-8"))["cells"][0]).splitlines()[0])


def _shown(cell: Cell, following: Cell) -> list[Cell]:
    source = text(cell)
    if cell["cell_type"] == "markdown":
        about_the_notebook = source.startswith(ABOUT_THE_NOTEBOOK) or "written" in cell["metadata"].get(
            "threeloops", {}
        )
        return [] if about_the_notebook else [cells.prose(source)]
    asked = cells.ASKED.search(source)
    if asked:
        return [cells.html(cards.graded(asked["key"]))]
    tried = TRIED.search(text(following))
    if not tried:
        return []
    title = f"Write: {DRILLS[tried['key']].title}"
    return [cells.html(cards.function(tried["key"], tried["name"], source, title))]

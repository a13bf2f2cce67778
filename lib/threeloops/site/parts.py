"""A chapter, cut into its parts: a page each, with the cells that belong to it and the places in it that links lead to.

>>> plain("4-The-programming-model-·-80-min"), plain("4 The programming model · 75 min")
('4 the programming model', '4 the programming model')
"""

import ast
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threeloops.contents import PART_HEADING, Place, places

Cell = dict[str, Any]
HEADING = re.compile(r"^(?P<depth>#{1,6}) +(?P<title>.+?)\s*$")
IMPORTS = ("import ", "from ", "stand_in.watch()")
FENCE = re.compile(r"^\s*(?:> ?)*(```|~~~)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One page: a part of a chapter, or, without a place, what stands before the first part."""

    notebook: str  # "chapters/1_inner_loop.ipynb"
    place: Place | None
    page: str  # "1_inner_loop/2_roofline"
    cells: tuple[Cell, ...]

    @property
    def word(self) -> str:
        """What to tell `book.py` to open it: "1.2"."""
        chapter = self.page.partition("_")[0]
        return f"{chapter}.{self.place.number}" if self.place else f"{chapter}.1"

    @property
    def title(self) -> str:
        """The heading without the minutes."""
        return f"{self.place.number} {self.place.title}".strip() if self.place else headline(self.cells)

    @property
    def name(self) -> str:
        """The title as it stands beside others', with the chapter: "1.2 Roofline"."""
        return f"{self.place.chapter}.{self.title}" if self.place else self.title


def headline(cells: tuple[Cell, ...]) -> str:
    """The first heading of some cells."""
    titles = (match["title"] for cell in cells for line in text(cell).splitlines() if (match := HEADING.match(line)))
    return next(titles, "")


def text(cell: Cell) -> str:
    """What stands in a cell."""
    return "".join(cell["source"])


def slug(words: str) -> str:
    """Words as they stand in an address.

    >>> slug("GEMM and tensor cores"), slug("F1 Foundations: networks")
    ('gemm_and_tensor_cores', 'f1_foundations_networks')
    """
    return re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")


def plain(anchor: str) -> str:
    """A heading, or the anchor made of it, as it is compared: without its minutes, which change more often than
    links.
    """
    return re.sub(r" · \d+ min$", "", anchor.replace("-", " ").strip()).lower()


def label(chapter: str, heading: str) -> str:
    """The name of a heading that links lead to. It begins with a letter: docutils strips digits from the front of
    one.
    """
    return f"c{chapter}-" + slug(plain(heading)).replace("_", "-")


def headings(source: str) -> Iterator[tuple[int, int, str]]:
    """(line, depth, text) of every heading of a markdown source; what a fence holds is no heading.

    >>> list(headings("# A\\n```\\n# no heading\\n```\\n## B"))
    [(0, 1, 'A'), (4, 2, 'B')]
    """
    fenced = False
    for number, line in enumerate(source.splitlines()):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced and (match := HEADING.match(line)):
            yield number, len(match["depth"]), match["title"]


def _cut(cell: Cell) -> Iterator[Cell]:
    """A cell, cut before every part heading in it."""
    if cell["cell_type"] != "markdown":
        yield cell
        return
    lines = text(cell).splitlines(keepends=True)
    starts = [number for number, depth, _ in headings(text(cell)) if depth == 2]
    edges = [0, *(number for number in starts if number), len(lines)]
    for first, end in itertools.pairwise(edges):
        yield {**cell, "source": "".join(lines[first:end])}


APART = "-imports"  # behind the id of a cell that was cut, for the half with its imports


def imports_apart(cells: Sequence[Cell]) -> list[Cell]:
    """Cells of a part, of which the first that imports is cut behind its imports: those are folded, and what stands
    below them is not.

    >>> first = {"cell_type": "code", "id": "load", "source": "import math\\n\\nx = 2\\nx", "outputs": ["2"]}
    >>> [(cell["id"], cell["source"], cell["outputs"]) for cell in imports_apart([first])]
    [('load-imports', 'import math', []), ('load', 'x = 2\\nx', ['2'])]
    """
    found = list(cells)
    code = (place for place, cell in enumerate(cells) if cell["cell_type"] == "code")
    place = next((place for place in code if text(cells[place]).startswith(IMPORTS)), len(found))
    for cell in found[place : place + 1]:
        lines = text(cell).splitlines(keepends=True)
        starts = [node.lineno - 1 for node in ast.parse(text(cell)).body]
        rest = next((line for line in starts if not lines[line].startswith(IMPORTS)), 0)
        if rest:
            ready = "".join(lines[:rest]).rstrip()
            apart = {**cell, "id": cell["id"] + APART, "source": ready, "outputs": []}
            found[place : place + 1] = [apart, {**cell, "source": "".join(lines[rest:])}]
    return found


def parts(root: Path) -> list[Part]:
    """Every page of every chapter, in reading order; the chapter's opening first."""
    known = {(place.notebook, place.heading): place for place in places(root)}
    found = []
    for path in sorted(root.glob("chapters/*.ipynb")):
        notebook = path.relative_to(root).as_posix()
        gathered: list[tuple[Place | None, list[Cell]]] = [(None, [])]
        for whole in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for cell in _cut(whole):
                match = PART_HEADING.match(text(cell)) if cell["cell_type"] == "markdown" else None
                if match:
                    gathered.append((known[notebook, match[0].removeprefix("## ")], []))
                gathered[-1][1].append(cell)
        found += [
            Part(notebook=notebook, place=place, page=f"{path.stem}/{_name(place)}", cells=tuple(imports_apart(cells)))
            for place, cells in gathered
        ]
    return found


def _name(place: Place | None) -> str:
    return slug(f"{place.number} {place.title}") if place else "index"

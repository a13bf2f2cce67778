"""Parts: the reader's notebook of each part, made from its committed chapter, and the links from one to another.

A committed chapter holds eighty cells a part and a dozen parts; JupyterLab is quick with one part and lost in all of
them. What was a link inside the chapter becomes a link to another notebook.
"""

import json
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any
from urllib.parse import quote, unquote

from threeloops import contents
from threeloops.contents import Place
from threeloops.site import behind
from threeloops.site.cells import is_plumbing
from threeloops.site.parts import imports_apart

START = "start.html"  # below my/: the start page, for whoever opens it without the book's JupyterLab
TOP, END = "desk-top", "desk-end"  # ids of the cells that lead from part to part
# Code first, so that nothing in it is taken for a link; then a link of markdown, then one of HTML.
LINKS = re.compile(
    r"```.*?```|`[^`\n]*`|(?P<markdown>\]\()(?P<to>[^)\s]+)|(?P<html>href=\")(?P<there>[^\"]+)", re.DOTALL
)
# Code of a drill set or of the interview room that a reader runs and need not read.
OF_SETS = re.compile(r"^(student = |sheet\.(begin|ask|check|check_function)\(|interview\.)", re.MULTILINE)
STOP = "**You can stop here.**"
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|/")

Cell = dict[str, Any]
Notebook = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part as its chapter has it, without outputs, and its neighbours in reading order."""

    place: Place
    cells: Sequence[Cell]
    metadata: Mapping[str, Any]
    before: Place | None = None
    after: Place | None = None


def cleared(cells: Sequence[Cell]) -> list[Cell]:
    """Cells without outputs and execution counts."""
    empty: Cell = {"outputs": [], "execution_count": None}
    return [cell | empty if cell["cell_type"] == "code" else dict(cell) for cell in cells]


def marked(cells: Sequence[Cell]) -> list[Cell]:
    """Cells with their outputs; those that ask for a number know which ones give it away, by id, so that the book's
    JupyterLab can keep them out of sight until it is answered (lab/threeloops/static/behind.js).
    """
    found = list(cells)
    for question, places in behind.spans(cells):
        asking = found[question.asked]
        own = asking["metadata"].get("threeloops", {})
        hides = list(dict.fromkeys([*own.get("hides", []), *(cells[place]["id"] for place in places)]))
        found[question.asked] = asking | {"metadata": asking["metadata"] | {"threeloops": own | {"hides": hides}}}
    return found


def folded(cells: Sequence[Cell], plumbing: Callable[[Cell], bool]) -> list[Cell]:
    """Cells of which the code that only gets things ready is folded, as JupyterLab itself folds it: one click opens
    it.
    """
    hidden = {"jupyter": {"source_hidden": True}}
    return [
        cell | {"metadata": cell["metadata"] | hidden} if cell["cell_type"] == "code" and plumbing(cell) else cell
        for cell in cells
    ]


def source(cell: Cell) -> str:
    """A cell's text, which a file may hold in lines."""
    return "".join(cell["source"])


def parts(root: Path) -> list[Part]:
    """Every part of the book in reading order; what a chapter says before its first part belongs to that one."""
    places = contents.places(root)
    chapters = {path: json.loads((root / path).read_text(encoding="utf-8")) for path in {at.notebook for at in places}}
    found = []
    for place, before, after in zip(places, [None, *places], [*places[1:], None], strict=False):
        chapter = chapters[place.notebook]
        ids = [cell["id"] for cell in chapter["cells"]]
        first = ids.index(place.cell) if before and before.notebook == place.notebook else 0
        end = ids.index(after.cell) if after and after.notebook == place.notebook else len(ids)
        cells = cleared(marked(imports_apart(chapter["cells"][first:end])))
        found.append(Part(place=place, cells=cells, metadata=chapter["metadata"], before=before, after=after))
    return found


@dataclass(frozen=True, kw_only=True)
class Links:
    """Where everything that the book's notebooks link to stands below my/."""

    headings: Mapping[tuple[str, str], str]  # (chapter, anchor of a heading) -> the copy of its part
    tops: frozenset[str]  # anchors of the parts' own headings: nobody has to scroll to them
    sets: Mapping[str, str]  # drill set, or the interview room -> its copy
    titles: Mapping[str, str]  # drill set -> what it is called

    def moved(self, markdown: str, *, notebook: str, copy: str, whole: bool = False) -> str:
        """The markdown of a committed notebook with its links as they have to be in a copy of it. In a whole chapter
        the links inside it stay.
        """

        def renewed(match: re.Match[str]) -> str:
            target = match["to"] or match["there"]
            if target is None or ELSEWHERE.match(target) or (whole and target.startswith("#")):
                return match[0]
            return (match["markdown"] or match["html"]) + self._target(target, notebook, copy)

        return LINKS.sub(renewed, markdown)

    def _target(self, target: str, notebook: str, copy: str) -> str:
        path, _, anchor = target.partition("#")
        asked = normpath(join(dirname(notebook), unquote(path))) if path else notebook
        heading = timeless(unquote(anchor))
        there = self.headings.get((asked, heading))
        if there == copy or (not path and not there):
            return f"#{anchor}"
        if there:
            onward = "" if not anchor or heading in self.tops else f"#{anchor}"
            return quote(relpath(there, dirname(copy))) + onward
        stands = self.sets.get(asked, f"../{asked}")  # what has no copy is read where it lies
        return quote(relpath(stands, dirname(copy))) + (f"#{anchor}" if anchor else "")


def timeless(anchor: str) -> str:
    """An anchor without a part's minutes, which another chapter's link need not know.

    >>> timeless("2-Roofline-·-75-min")
    '2-Roofline'
    """
    return re.sub(r"-·-\d+-min$", "", anchor)


def links(made: Sequence[Part], sets: Mapping[str, str], titles: Mapping[str, str]) -> Links:
    """The links of the whole book."""
    headings: dict[tuple[str, str], str] = {}
    for part in made:
        headings.setdefault((part.place.notebook, ""), part.place.copy)
        for cell in part.cells:
            if cell["cell_type"] == "markdown":
                for heading in re.findall(r"^#+ (.+?)\s*$", source(cell), re.MULTILINE):
                    headings[part.place.notebook, timeless(heading.replace(" ", "-"))] = part.place.copy
    tops = frozenset(timeless(part.place.heading.replace(" ", "-")) for part in made)
    return Links(headings=headings, tops=tops, sets=sets, titles=titles)


def part_notebook(part: Part, all_links: Links) -> Notebook:
    """The reader's notebook of a part: its cells, and at both ends the way on."""
    copy = part.place.copy
    cells = moved_cells(part.cells, all_links, notebook=part.place.notebook, copy=copy)
    cells = folded(cells, is_plumbing)
    onward = f"From here: {_onward(part, all_links)}"
    cells = [
        cell | {"source": f"{source(cell)}\n\n{onward}"}
        if cell["cell_type"] == "markdown" and STOP in source(cell)
        else cell
        for cell in map(partial(_named, part.place), cells)
    ]
    return noted({"cells": [_note(TOP, _top(part)), *cells, _note(END, _end(part))], "metadata": part.metadata})


def _named(place: Place, cell: Cell) -> Cell:
    """A cell as it is, and the part's own heading with the chapter: "## 1.2 Roofline · 110 min"."""
    if cell["id"] != place.cell or not place.number:
        return cell
    return cell | {"source": source(cell).replace(f"## {place.heading}", f"## {place.chapter}.{place.heading}", 1)}


def set_notebook(notebook: Notebook, *, name: str, copy: str, made: Sequence[Part], all_links: Links) -> Notebook:
    """The reader's notebook of a drill set: after its opening, the parts that send its readers there."""
    link = f"/{name}"
    senders = [
        part.place
        for part in made
        if any(cell["cell_type"] == "markdown" and link in source(cell) for cell in part.cells)
    ]
    leads = [f"[{place.name}]({_way(place.copy, copy)})" for place in senders]
    words = _start(copy) + (f" · goes with {' and '.join(leads)}" if leads else "")
    cells = moved_cells(cleared(notebook["cells"]), all_links, notebook=name, copy=copy)
    cells = [_begun(cell) for cell in folded(cells, lambda cell: bool(OF_SETS.search(source(cell))))]
    return noted(notebook | {"cells": [_note(TOP, words), *cells]})


def _begun(cell: Cell) -> Cell:
    """A cell as it is; the interview room's runs as soon as the notebook is open (lab/threeloops/static/reading.js)."""
    if "interview.room(" not in source(cell):
        return cell
    return cell | {"metadata": cell["metadata"] | {"threeloops": {"opens": True}}}


def moved_cells(
    cells: Sequence[Cell], all_links: Links, *, notebook: str, copy: str, whole: bool = False
) -> list[Cell]:
    """Cells with their links as they have to be in the copy."""
    return [
        cell | {"source": all_links.moved(source(cell), notebook=notebook, copy=copy, whole=whole)}
        if cell["cell_type"] == "markdown"
        else dict(cell)
        for cell in cells
    ]


def noted(notebook: Notebook) -> Notebook:
    """The notebook with what JupyterLab would note in it as soon as a kernel answers: so that opening changes nothing
    that would have to be saved.
    """
    language = {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
        "version": platform.python_version(),
    }
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return {
        "cells": notebook["cells"],
        "metadata": {"kernelspec": kernel, "language_info": language},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _note(name: str, markdown: str) -> Cell:
    return {"cell_type": "markdown", "id": name, "metadata": {"threeloops": {"way": True}}, "source": markdown}


def _way(there: str, here: str) -> str:
    return quote(relpath(there, dirname(here)))


def _start(copy: str) -> str:
    return f"[Start]({_way(START, copy)})"


def _top(part: Part) -> str:
    place = part.place
    title = dict(contents.CHAPTERS.values()).get(place.chapter, "")
    chapter = f"Chapter {place.chapter}" + (f", {title}" if title else "")
    return " · ".join([_start(place.copy), chapter, *_neighbours(part)])


def _end(part: Part) -> str:
    return " · ".join([*_neighbours(part), _start(part.place.copy)])


def _onward(part: Part, all_links: Links) -> str:
    """Links to the drill sets that the part names, the part after it and the start page."""
    here = part.place.copy
    named = re.findall(r"\((?:\.\./)*(drills/\w+/\w+\.ipynb)", "\n".join(map(source, part.cells)))
    sets = [
        f"drill set [{all_links.titles[name]}]({_way(all_links.sets[name], here)})"
        for name in dict.fromkeys(named)
        if name in all_links.titles and name in all_links.sets
    ]
    return " · ".join([*sets, *_neighbours(part)[-1:] * bool(part.after), _start(here)])


def _neighbours(part: Part) -> list[str]:
    """Links to the part before and the part after."""
    said = [(word, place) for word, place in (("before", part.before), ("after", part.after)) if place]
    return [f"{word}: [{place.name}]({_way(place.copy, part.place.copy)})" for word, place in said]

"""The card on top of a feedback page: every question with its points, the answer that was given, what it looks like
and where the book teaches it, wrong ones first. A step of nbgrader's generate_feedback; templates/threeloops shows it.

And what makes pages quicker to write: a class has the same questions, and most pages need no afterthoughts.
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bs4 import BeautifulSoup
from nbconvert.filters.highlight import Highlight2HTML
from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor  # type: ignore[import-untyped]

from threeloops import contents
from threeloops.classroom.questions import Notebook, Question, mark, question, source
from threeloops.drills.engine.bank import DRILLS

LONGEST_ANSWER = 80  # letters of an expression that still fit into a line

IN_COLOUR = 512  # sources that are kept in colour: those of a set, and some of a student's
# What nbconvert changes in a page that it has made: pictures without a description, and the Lab's own cells.
AFTERTHOUGHT = re.compile(r"<img(?![^>]*\salt=)|jp-Notebook", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One question of the card."""

    grade_id: str
    title: str
    points: float
    maximum: float
    given: str  # as it was written; empty for a function, and where nothing was
    message: str
    taught: str  # "chapter 3, part 3, KV cache"
    command: str  # that opens it

    @property
    def full(self) -> bool:
        return self.points >= self.maximum


class FeedbackCard(NbGraderPreprocessor):  # type: ignore[misc]
    """At generate_feedback, after GetGrades: what the template needs for the card."""

    def preprocess(self, notebook: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        resources["threeloops"] = {"lines": card(notebook), "notes": _notes(notebook)}
        return notebook, resources


def card(notebook: Notebook) -> list[Line]:
    """Every question of a judged notebook with its scores, in order, those that lost points first."""
    title, found, answers = "", list[Line](), dict[str, str]()
    for cell in notebook["cells"]:
        heading = re.search(r"^#+ +(.+?)\s*$", source(cell), re.MULTILINE) if cell["cell_type"] == "markdown" else None
        title = heading[1] if heading else title
        if cell["cell_type"] == "code":
            answers |= dict(re.findall(r"^(\w+) *= *(.+?) *(?:#.*)?$", source(cell), re.MULTILINE))
        asked = question(cell)
        if asked:
            found.append(_line(cell, asked, title, answers))
    return sorted(found, key=lambda line: line.full)


def _line(cell: Mapping[str, Any], asked: Question, title: str, answers: Mapping[str, str]) -> Line:
    drill = DRILLS.get(asked.drill)
    taught = contents.taught(drill.section, drill.loop, contents.book_root())[0] if drill else ""
    where, _, opens = taught.partition("; `")
    given = answers.get(asked.name, "").strip("\"'")
    recorded = cell["metadata"].get("threeloops", {})
    return Line(
        grade_id=asked.grade_id,
        title=title,
        points=float(mark(cell, "score") or 0),
        maximum=asked.points,
        given="" if given == "..." else given[:LONGEST_ANSWER],
        message=str(recorded.get("message", "")),
        taught=where,
        command=opens.partition("`")[0],
    )


def _notes(notebook: Notebook) -> list[str]:
    return [str(note) for note in notebook["metadata"].get("threeloops", {}).get("notes", ())]


class Unread:
    """A page in which there is nothing to change."""

    def __init__(self, page: str) -> None:
        self._page = page

    def select(self, _: str) -> tuple[()]:
        return ()

    def __str__(self) -> str:
        return self._page


def read_where_needed(page: str, features: str) -> Any:
    """In place of nbconvert's BeautifulSoup: a page of half a megabyte is read anew only when that will change it.

    >>> str(read_where_needed("<p>Right<br>", "html.parser")), str(read_where_needed("<img src='x'>", "html.parser"))
    ('<p>Right<br>', '<img src="x"/>')
    """
    return BeautifulSoup(page, features) if AFTERTHOUGHT.search(page) else Unread(page)


@functools.lru_cache(IN_COLOUR)
def _in_colour(source: str, language: str) -> str:
    coloured: str = Highlight2HTML(pygments_lexer=language)(source)  # type: ignore[no-untyped-call]
    return coloured


def in_colour(source: str, language: str | None = None, metadata: Any = None) -> str:
    """The filter `highlight_code`, for notebooks whose language is Python throughout."""
    return _in_colour(source, language or "python")

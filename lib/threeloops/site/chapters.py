"""The chapters as pages: a notebook a part for Sphinx, an opening that lists them."""

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from threeloops.contents import CHAPTERS
from threeloops.site import behind, cards, cells, predictions, printing
from threeloops.site.front import far
from threeloops.site.links import Places, page_label
from threeloops.site.parts import Cell, Part, text
from threeloops.site.predictions import Question
from threeloops.site.running import marks, needs
from threeloops.site.running.needs import Needs

NOTEBOOK = {
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}, "language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
OPENS = "**In JupyterLab,** as a copy of your own to write in:\n\n```text\npython3 book.py {word}\n```"

PDF = '<p class="on-the-page"><a href="{file}">This chapter as a PDF</a>, to print or to read without a browser</p>'


def chapter_title(part: Part) -> str:
    """What a chapter is called in lists: "1 The inner loop"."""
    number = PurePosixPath(part.page).parts[0].partition("_")[0]
    return next(f"{digit} {title}" for digit, title in CHAPTERS.values() if digit == number)


def page(part: Part, pages: list[Part], known: Places, prints: Sequence[str]) -> list[Cell]:
    """The cells of one page; of an opening, with the way to the chapter's PDF where it is printed."""
    asked = predictions.questions(part.cells)
    waiting = behind.waiting(part.cells)
    needed = needs.needs(part.cells)
    runs = itertools.groupby(enumerate(part.cells), key=lambda numbered: waiting.get(numbered[0], ()))
    made = [
        one
        for names, run in runs
        for one in _folded(
            [shown for place, cell in run for shown in _shown(place, cell, part, known, asked, needed)], names
        )
    ]
    heading = re.sub(r"^# .*$", f"# {part.name}", made[0]["source"], count=1, flags=re.MULTILINE)
    made[0] = cells.prose(f"({page_label(part.page)})=\n{heading}")
    if part.place is None:
        chapter = PurePosixPath(part.page).parts[0]
        pdf = [cells.html(PDF.format(file=PurePosixPath(printing.file(chapter)).name))] if chapter in prints else []
        within = [one for one in pages if one.notebook == part.notebook and one.place is not None]
        return [*made, *pdf, cells.html(far.strip(within)), cells.prose(_contents(part, pages))]
    return [made[0], cells.prose(OPENS.format(word=part.word)), *made[1:]]


def _shown(
    place: int, cell: Cell, part: Part, known: Places, asked: list[Question], needed: Mapping[int, Needs]
) -> list[Cell]:
    """What stands on the page for a cell; where it asks for a number, cards."""
    asks = [
        cells.html(predictions.card(question, number))
        for number, question in enumerate(asked, 1)
        if question.asked == place
    ]
    if asks:
        beside = predictions.without(text(cell))
        shown = [*([{**cell, "source": beside, "metadata": {}}] if beside else []), *asks]
    else:
        shown = cells.shown(cell, part, known, cards.quick_check)
    if place in needed:
        is_code = not asks and any(one["cell_type"] == "code" for one in shown)
        mark = marks.mark(place, cell, needed[place], word=part.word, hidden=not is_code)
        at = next((number for number, one in enumerate(shown) if one["cell_type"] == "code"), -1) + 1
        shown.insert(at, cells.html(mark)) if mark else None
    return shown


def _folded(shown: list[Cell], names: Sequence[str]) -> list[Cell]:
    """Cells of a page, folded until the cards with these results have been answered; as they are, where there are none.
    Without a script a click unfolds them.
    """
    return (
        [cells.html(predictions.FOLD.format(names=" ".join(names))), *shown, cells.html(predictions.UNFOLD)]
        if names
        else shown
    )


def _contents(opening: Part, pages: list[Part]) -> str:
    """The parts of a chapter, as a list and for the navigation beside every page."""
    parts = [part for part in pages if part.notebook == opening.notebook and part.place is not None]
    lines = [f"{part.name} <{PurePosixPath(part.page).name}>" for part in parts]
    return "\n".join(["**The parts**", "", "```{toctree}", ":maxdepth: 1", "", *lines, "```"])

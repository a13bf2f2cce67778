"""The chapters as pages: a notebook a part for Sphinx, an opening that lists them."""

from pathlib import PurePosixPath

from threeloops.contents import CHAPTERS
from threeloops.site import cards, cells
from threeloops.site.links import Places, page_label
from threeloops.site.parts import Cell, Part

NOTEBOOK = {
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}, "language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
OPENS = "**In JupyterLab,** as a copy of your own to write in:\n\n```text\npython3 book.py {word}\n```"


def chapter_title(part: Part) -> str:
    """What a chapter is called in lists: "1 The inner loop"."""
    number = PurePosixPath(part.page).parts[0].partition("_")[0]
    return next(f"{digit} {title}" for digit, title in CHAPTERS.values() if digit == number)


def page(part: Part, pages: list[Part], known: Places) -> list[Cell]:
    """The cells of one page."""
    made = [one for cell in part.cells for one in cells.shown(cell, part, known, cards.quick_check)]
    made[0] = cells.prose(f"({page_label(part.page)})=\n{made[0]['source']}")
    if part.place is None:
        return [*made, cells.prose(_contents(part, pages))]
    return [made[0], cells.prose(OPENS.format(word=part.word)), *made[1:]]


def _contents(opening: Part, pages: list[Part]) -> str:
    """The parts of a chapter, as a list and for the navigation beside every page."""
    parts = [part for part in pages if part.notebook == opening.notebook and part.place is not None]
    lines = [f"{part.title} <{PurePosixPath(part.page).name}>" for part in parts]
    return "\n".join(["**The parts**", "", "```{toctree}", ":maxdepth: 1", "", *lines, "```"])

"""Explorers in a notebook of their own, in a real browser: opened, run, and turned by keyboard."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.chapters.conftest import Door, Sight
from tests.chapters.keys import run, within

CELL = ".jp-Notebook .jp-Cell"
NAME = "control => control.labels[0].textContent"  # what a screen reader calls it
SAYS = "([cell, words]) => cell.querySelector('[role=status]')?.textContent.includes(words)"
SHOWS = "([cell, words]) => cell.querySelector('figure')?.textContent.includes(words)"


def explorers(look: Callable[[Door], Sight], folder: Door, *modules: str, then: Sequence[str] = ()) -> Any:
    """The page of a notebook with one explorer per cell, all run; `modules` like "inner_loop.roofline". The cells of
    `then` stand below, not run.
    """
    sources = [f"from threeloops.widgets.{module} import explorer\n\nexplorer()" for module in modules]
    cells = [
        {"cell_type": "code", "id": f"cell-{n}", "metadata": {}, "source": text, "outputs": [], "execution_count": None}
        for n, text in enumerate([*sources, *then])
    ]
    kernel = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}}
    (folder.root / "explorers.ipynb").write_text(
        json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})
    )
    page = look(replace(folder, page=folder.address("explorers.ipynb"))).page
    page.wait_for_selector(CELL)
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()
    run_all(page, [page.locator(CELL).nth(number) for number in range(len(sources))])
    return page


def run_all(page: Any, cells: Sequence[Any]) -> None:
    """Run cells that stand below each other: one key after the other, while the kernel is still at the first; again by
    itself, where a key was lost.
    """
    run(page, cells[0])
    page.keyboard.press("Escape")
    for _ in cells[1:]:
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Control+Enter")
    for cell in cells[1:]:
        prompt = cell.locator(".jp-InputPrompt").first
        if not within(page, 120, lambda: prompt.text_content() != "[*]:") or prompt.text_content() == "[ ]:":  # noqa: B023
            run(page, cell)


def explorer(page: Any, number: int) -> Any:
    """The cell of an explorer, once it is drawn."""
    cell = page.locator(CELL).nth(number)
    cell.scroll_into_view_if_needed()
    cell.locator("[role=graphics-document]").wait_for()
    return cell


def wait(page: Any, cell: Any, condition: str, words: str) -> None:
    page.wait_for_function(condition, arg=[cell.element_handle(), words])


def tab_to(page: Any, control: Any) -> None:
    """Go on with Tab until a control has the focus; one that plays brings its buttons as stops."""
    for _ in range(5):
        page.keyboard.press("Tab")
        if control.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError("Tab does not lead to the next control")


def depth(cell: Any) -> float:
    """From the cell's upper edge down to its table: what a redraw must not change, wherever the page was scrolled."""
    return float(cell.locator("table").bounding_box()["y"] - cell.bounding_box()["y"])

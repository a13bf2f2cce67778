"""Explorers in a notebook of their own, in a real browser: opened, run, and turned by keyboard."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.chapters.conftest import Sight, running
from threeloops import desk

CELL = ".jp-Notebook .jp-Cell"
SAYS = "([cell, words]) => cell.querySelector('[role=status]')?.textContent.includes(words)"
SHOWS = "([cell, words]) => cell.querySelector('[role=graphics-document]')?.textContent.includes(words)"


@contextlib.contextmanager
def explorers(look: Callable[[str], Sight], folder: Path, *modules: str) -> Iterator[Any]:
    """The page of a notebook with one explorer per cell, all run; `modules` are named as in threeloops.widgets."""
    sources = [f"from threeloops.widgets import {module}\n\n{module}.explorer()" for module in modules]
    cells = [{"cell_type": "code", "id": f"cell-{n}", "metadata": {}, "source": text, "outputs": [], "execution_count": None} for n, text in enumerate(sources)]
    kernel = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}}
    notebook = folder / "explorers.ipynb"
    notebook.write_text(json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))
    with running(desk.lab_command(notebook, None, browser=False, root=folder), folder, folder / "jupyter") as door:
        page = look(door.page).page
        page.wait_for_selector(CELL, timeout=60_000)
        page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for(timeout=60_000)
        for number in range(len(sources)):
            run(page, number)
        yield page


def run(page: Any, number: int) -> None:
    """Run a cell by keyboard; a kernel that is still being connected forgets what it was asked, so ask until the cell has been run."""
    cell = page.locator(CELL).nth(number)
    for _ in range(5):
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        page.wait_for_timeout(2_000)
        if cell.locator(".jp-InputPrompt").first.text_content() != "[ ]:":
            return
    raise AssertionError(f"the kernel did not take cell {number + 1}")


def explorer(page: Any, number: int) -> Any:
    """The cell of an explorer, once it is drawn."""
    cell = page.locator(CELL).nth(number)
    cell.scroll_into_view_if_needed()
    cell.locator("[role=graphics-document]").wait_for(timeout=60_000)
    return cell


def wait(page: Any, cell: Any, condition: str, words: str) -> None:
    page.wait_for_function(condition, arg=[cell.element_handle(), words], timeout=20_000)


def tab_to(page: Any, control: Any) -> None:
    """Go on with Tab until a control has the focus; a slider may bring its readout as a stop of its own."""
    for _ in range(3):
        page.keyboard.press("Tab")
        if control.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError("Tab does not lead to the next control")

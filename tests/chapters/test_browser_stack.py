"""The training-stack explorer in a real browser, turned by keyboard."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.chapters.conftest import Sight, running
from threeloops import desk

CELL = ".jp-Notebook .jp-Cell"
SOURCES = ("from threeloops.widgets import training_stack\n\ntraining_stack.explorer()",)
SAYS = "([cell, words]) => cell.querySelector('[role=status]')?.textContent.includes(words)"
SHOWS = "([cell, words]) => cell.querySelector('[role=graphics-document]')?.textContent.includes(words)"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def page(look: Callable[[str], Sight], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A notebook with one explorer per cell, both run."""
    root = tmp_path_factory.mktemp("explorers")
    cells = [{"cell_type": "code", "id": f"cell-{n}", "metadata": {}, "source": text, "outputs": [], "execution_count": None} for n, text in enumerate(SOURCES)]
    kernel = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}}
    (root / "explorers.ipynb").write_text(json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))
    with running(desk.lab_command(root / "explorers.ipynb", None, browser=False, root=root), root, tmp_path_factory.mktemp("jupyter")) as door:
        page = look(door.page).page
        page.wait_for_selector(CELL, timeout=60_000)
        page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for(timeout=60_000)
        for number in range(len(SOURCES)):
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


def test_the_stack_works_by_keyboard(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "the loader sets the pace")
    below = cell.locator("table").bounding_box()["y"]
    cell.locator("[role=slider]").first.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    wait(page, cell, SAYS, "the device sets the pace")
    wait(page, cell, SHOWS, "16 workers")
    tab_to(page, cell.get_by_label("precision", exact=True))
    page.keyboard.press("End")
    wait(page, cell, SHOWS, "bf16")
    tab_to(page, cell.get_by_label("kernels", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SHOWS, "compiled")
    wait(page, cell, SAYS, "It fits.")
    assert cell.locator("table").bounding_box()["y"] == below, "the page jumped"


def test_the_stacks_bars_and_sliders_have_words(page: Any) -> None:
    cell = explorer(page, 0)
    slider = cell.locator("[role=slider]").first
    assert slider.get_attribute("aria-label") == "workers"
    assert slider.get_attribute("aria-valuetext") in ("1", "2", "4", "8", "16")
    assert cell.locator("[role=graphics-document]").get_attribute("aria-label").startswith("Seconds of a step")
    assert cell.locator("[aria-label^='device, products']").count() == 1

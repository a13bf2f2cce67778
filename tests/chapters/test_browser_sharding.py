"""The sharding explorer in a real browser, turned by keyboard."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.chapters.conftest import Sight, running
from threeloops import desk

CELL = ".jp-Notebook .jp-Cell"
SOURCE = "from threeloops.widgets import sharding\n\nsharding.explorer()"
SAYS = "([cell, words]) => cell.querySelector('[role=status]')?.textContent.includes(words)"
SHOWS = "([cell, words]) => cell.querySelector('[role=graphics-document]')?.textContent.includes(words)"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def cell(look: Callable[[str], Sight], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The cell of the explorer, run and drawn."""
    root = tmp_path_factory.mktemp("explorer")
    cells = [{"cell_type": "code", "id": "cell-0", "metadata": {}, "source": SOURCE, "outputs": [], "execution_count": None}]
    kernel = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}}
    (root / "explorer.ipynb").write_text(json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))
    with running(desk.lab_command(root / "explorer.ipynb", None, browser=False, root=root), root, tmp_path_factory.mktemp("jupyter")) as door:
        page = look(door.page).page
        page.wait_for_selector(CELL, timeout=60_000)
        page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for(timeout=60_000)
        found = page.locator(CELL).nth(0)
        for _ in range(5):  # a kernel that is still being connected forgets what it was asked
            found.locator(".cm-content").click()
            page.keyboard.press("Control+Enter")
            page.wait_for_timeout(2_000)
            if found.locator(".jp-InputPrompt").first.text_content() != "[ ]:":
                break
        found.scroll_into_view_if_needed()
        found.locator("[role=graphics-document]").wait_for(timeout=60_000)
        yield found


def wait(cell: Any, condition: str, words: str) -> None:
    cell.page.wait_for_function(condition, arg=[cell.element_handle(), words], timeout=20_000)


def tab_to(cell: Any, control: Any) -> None:
    """Go on with Tab until a control has the focus; a slider may bring its readout as a stop of its own."""
    for _ in range(3):
        cell.page.keyboard.press("Tab")
        if control.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError("Tab does not lead to the next control")


def test_it_works_by_keyboard_and_nothing_jumps(cell: Any) -> None:
    wait(cell, SAYS, "ZeRO-3 (FSDP): the fullest GPU holds")
    below = cell.locator("table").bounding_box()["y"]
    cell.get_by_label("way", exact=True).focus()
    cell.page.keyboard.press("ArrowDown")
    wait(cell, SAYS, "Tensor parallelism: the fullest GPU holds")
    wait(cell, SHOWS, "Tensor parallelism")
    cell.page.keyboard.press("ArrowDown")
    wait(cell, SAYS, "Pipeline: the fullest GPU holds")
    tab_to(cell, cell.get_by_label("model", exact=True))
    cell.page.keyboard.press("ArrowDown")
    wait(cell, SHOWS, "Llama 2 13B")
    tab_to(cell, cell.locator("[role=slider]").first)
    cell.page.keyboard.press("ArrowRight")
    wait(cell, SAYS, "8,192 tokens")
    tab_to(cell, cell.get_by_label("activations", exact=True))
    before = cell.locator("table").text_content()
    cell.page.keyboard.press("ArrowDown")
    cell.page.wait_for_function("([cell, words]) => cell.querySelector('table').textContent !== words", arg=[cell.element_handle(), before], timeout=20_000)
    assert cell.locator("table").bounding_box()["y"] == below, "the page jumped"


def test_pieces_and_controls_have_words(cell: Any) -> None:
    assert cell.locator("[role=slider]").first.get_attribute("aria-label") == "sequence"
    assert "GPU 1: weights" in cell.locator("[role=graphics-document]").get_attribute("aria-label")
    assert cell.locator("[aria-label^='GPU 4: ']").count() >= 4
    assert cell.locator("tbody tr").count() == 4

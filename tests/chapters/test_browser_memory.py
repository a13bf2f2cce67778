"""The training memory explorer in a real browser, turned by keyboard."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.chapters.conftest import Sight, running
from tests.chapters.test_browser_timeline import CELL, SAYS, SHOWS, explorer, run, tab_to, wait
from threeloops import desk

SOURCE = "from threeloops.widgets import training_memory\n\ntraining_memory.explorer()"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def page(look: Callable[[str], Sight], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A notebook with the explorer, run."""
    root = tmp_path_factory.mktemp("memory")
    cell = {"cell_type": "code", "id": "cell", "metadata": {}, "source": SOURCE, "outputs": [], "execution_count": None}
    kernel = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}}
    (root / "memory.ipynb").write_text(json.dumps({"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))
    with running(desk.lab_command(root / "memory.ipynb", None, browser=False, root=root), root, tmp_path_factory.mktemp("jupyter")) as door:
        page = look(door.page).page
        page.wait_for_selector(CELL, timeout=60_000)
        page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for(timeout=60_000)
        run(page, 0)
        yield page


def test_memory_is_turned_by_keyboard_and_says_so(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "14.5 GiB too many")
    below = cell.locator("table").bounding_box()["y"]
    cell.locator("[role=slider]").first.focus()
    tab_to(page, cell.get_by_label("recomputed", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SAYS, "runs twice")
    wait(page, cell, SAYS, "17.5 GiB to spare")
    wait(page, cell, SHOWS, "every layer")
    tab_to(page, cell.get_by_label("ZeRO stage", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SHOWS, "ZeRO stage 2")
    tab_to(page, cell.get_by_label("in host memory", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SAYS, "cross the bus in every step")
    assert cell.locator("table").bounding_box()["y"] == below, "the page jumped"


def test_columns_have_words(page: Any) -> None:
    cell = explorer(page, 0)
    assert cell.locator("[role=graphics-document]").get_attribute("aria-label").startswith("66 moments from forward, layer 1 to update")
    assert cell.locator("[aria-label^='backward, layer 32: kept for backward']").count() == 1

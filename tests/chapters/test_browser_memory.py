"""The training memory explorer in a real browser, turned by keyboard."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.chapters.conftest import Door, Sight
from tests.chapters.explorers import SAYS, SHOWS, depth, explorer, explorers, tab_to, wait

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def page(look: Callable[[Door], Sight], folder: Door) -> Any:
    """A notebook with the explorer, run."""
    return explorers(look, folder, "training_loop.memory")


def test_memory_is_turned_by_keyboard_and_says_so(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "22.3 GiB too many")
    below = depth(cell)
    cell.locator("input[type=range]").first.focus()
    tab_to(page, cell.get_by_label("recomputed", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SAYS, "runs twice")
    wait(page, cell, SAYS, "9.69 GiB to spare")
    wait(page, cell, SHOWS, "every layer")
    tab_to(page, cell.get_by_label("cross-entropy", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SHOWS, "in slices")
    wait(page, cell, SAYS, "20.4 GiB to spare")
    tab_to(page, cell.get_by_label("ZeRO stage", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SHOWS, "ZeRO stage 2")
    tab_to(page, cell.get_by_label("in host memory", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SAYS, "cross the bus in every step")
    assert depth(cell) == pytest.approx(below, abs=1), "the page jumped"


def test_columns_have_words(page: Any) -> None:
    cell = explorer(page, 0)
    assert cell.locator("[role=graphics-document]").get_attribute("aria-label").startswith("Most: ")
    expect(cell.locator("[aria-label^='backward, layer 32: kept for backward']")).to_have_count(1)

"""The capacity explorer in a real browser, turned by keyboard."""

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
    return explorers(look, folder, "product_loop.capacity_plan")


def test_the_capacity_explorer_works_by_keyboard(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "5 GPUs: the rate decides")
    below = depth(cell)
    sliders = cell.locator("input[type=range]")
    sliders.nth(0).focus()
    page.keyboard.press("ArrowRight")
    wait(page, cell, SAYS, "9 GPUs: the rate decides")
    page.keyboard.press("ArrowLeft")
    wait(page, cell, SAYS, "5 GPUs: the rate decides")
    tab_to(page, sliders.nth(1))
    page.keyboard.press("Home")
    wait(page, cell, SAYS, "the ITL decides")
    wait(page, cell, SHOWS, "ITL 6 ms")
    expect(cell.locator("table")).to_contain_text("what makes it smaller")
    assert depth(cell) == pytest.approx(below, abs=1), "the page jumped"


def test_the_capacity_figure_has_words(page: Any) -> None:
    cell = explorer(page, 0)
    assert cell.locator("[role=graphics-document]").get_attribute("aria-label").startswith("GPUs by bound.")

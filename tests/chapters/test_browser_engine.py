"""The engine explorer in a real browser, turned by keyboard."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.chapters.conftest import Door, Sight
from tests.chapters.explorers import NAME, SAYS, SHOWS, depth, explorer, explorers, tab_to, wait

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def page(look: Callable[[Door], Sight], folder: Door) -> Any:
    """A notebook with the explorer, run."""
    return explorers(look, folder, "product_loop.engine")


def test_the_engines_switches_work_by_keyboard(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "1,290 kernels")
    below = depth(cell)
    cell.get_by_label("kernels", exact=True).focus()
    page.keyboard.press("ArrowDown")
    wait(page, cell, SAYS, "227 kernels")
    tab_to(page, cell.get_by_label("matmuls", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SHOWS, "matmuls in int8")
    tab_to(page, cell.get_by_label("launches", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SHOWS, "one graph")
    tab_to(page, cell.locator("input[type=range]"))
    page.keyboard.press("End")
    wait(page, cell, SHOWS, "batch 128")
    wait(page, cell, SAYS, "Most of the step: attention")
    expect(cell.locator("table")).to_contain_text("waiting for launches")
    assert depth(cell) == pytest.approx(below, abs=1), "the page jumped"


def test_the_engines_bars_and_slider_have_words(page: Any) -> None:
    cell = explorer(page, 0)
    assert cell.locator("input[type=range]").evaluate(NAME) == "batch"
    expect(cell.locator("[aria-label^='now, attention']")).to_have_count(1)

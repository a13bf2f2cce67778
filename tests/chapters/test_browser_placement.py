"""The placement explorer in a real browser, turned by keyboard."""

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
    return explorers(look, folder, "driving.placement")


def test_chip_engine_and_bytes_are_turned_by_keyboard(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "the memory is the bottleneck")
    cell.get_by_label("chip", exact=True).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    wait(page, cell, SAYS, "AGX Orin 64GB, 30 W, camera stage on the GPU")
    tab_to(page, cell.get_by_label("camera stage", exact=True))
    page.keyboard.press("End")
    wait(page, cell, SHOWS, "DLAs")
    below = depth(cell)
    slider = cell.locator("input[type=range]")
    tab_to(page, slider)
    page.keyboard.press("ArrowRight")
    wait(page, cell, SAYS, "50 % of its bytes in memory")
    expect(cell.locator("tbody tr")).to_have_count(7)
    cell.get_by_label("camera stage", exact=True).select_option("GPU")
    wait(page, cell, SAYS, "camera stage on the GPU")
    assert depth(cell) == pytest.approx(below, abs=1), "the page jumped"
    assert slider.evaluate(NAME) == "in memory"

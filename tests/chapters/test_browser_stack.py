"""The training-stack explorer in a real browser, turned by keyboard."""

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
    return explorers(look, folder, "training_loop.stack")


def test_the_stack_works_by_keyboard(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "the loader is the bottleneck")
    below = depth(cell)
    cell.locator("input[type=range]").first.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    wait(page, cell, SAYS, "the device is the bottleneck")
    wait(page, cell, SHOWS, "16 workers")
    tab_to(page, cell.get_by_label("precision", exact=True))
    page.keyboard.press("End")
    wait(page, cell, SHOWS, "bf16")
    tab_to(page, cell.get_by_label("kernels", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SHOWS, "compiled")
    wait(page, cell, SAYS, "It fits.")
    assert depth(cell) == pytest.approx(below, abs=1), "the page jumped"


def test_the_stacks_bars_and_sliders_have_words(page: Any) -> None:
    cell = explorer(page, 0)
    slider = cell.locator("input[type=range]").first
    assert slider.evaluate(NAME) == "workers"
    assert slider.get_attribute("aria-valuetext") in ("1", "2", "4", "8", "16")
    assert cell.locator("[role=graphics-document]").get_attribute("aria-label").startswith("Seconds of a step")
    expect(cell.locator("[aria-label^='device, matmuls']")).to_have_count(1)

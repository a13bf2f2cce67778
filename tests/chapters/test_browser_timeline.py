"""Two explorers in a real browser, turned by keyboard: the timeline and the number line."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.chapters.conftest import Door, Sight
from tests.chapters.explorers import NAME, SAYS, SHOWS, depth, explorer, explorers, tab_to, wait

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def page(look: Callable[[Door], Sight], folder: Door) -> Any:
    """A notebook with both explorers, run."""
    return explorers(look, folder, "inner_loop.timeline", "inner_loop.number_line")


def test_the_timeline_works_by_keyboard(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "1 worker, a value read in every layer")
    below = depth(cell)
    cell.locator("input[type=range]").first.focus()
    for words in ("2 workers", "3 workers", "4 workers"):
        page.keyboard.press("ArrowRight")
        wait(page, cell, SAYS, words)
    wait(page, cell, SHOWS, "4 workers")
    expect(cell.get_by_role("status")).to_contain_text("First suspect: hidden syncs")
    tab_to(page, cell.get_by_label("values read", exact=True))
    page.keyboard.press("ArrowUp")
    wait(page, cell, SAYS, "a value read once a step")
    expect(cell.locator("table")).to_contain_text("waiting for the network")
    tab_to(page, cell.get_by_label("kernels", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SAYS, "kernels compiled")
    tab_to(page, cell.get_by_label("gradients", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SAYS, "gradients sent during backward")
    wait(page, cell, SHOWS, "during")  # the caption is broken into lines
    assert depth(cell) == pytest.approx(below, abs=1), "the page jumped"


def test_the_timelines_bars_and_sliders_have_words(page: Any) -> None:
    cell = explorer(page, 0)
    slider = cell.locator("input[type=range]").first
    assert slider.evaluate(NAME) == "workers"
    assert slider.get_attribute("aria-valuetext") in ("1", "2", "3", "4", "6", "8")
    assert cell.locator("[role=graphics-document]").get_attribute("aria-label").startswith("From 0 to")
    assert cell.locator("[aria-label^='GPU: matmul']").count() > 10


def test_the_number_line_works_by_keyboard(page: Any) -> None:
    cell = explorer(page, 1)
    wait(page, cell, SAYS, "Up to 8,")
    below = depth(cell)
    cell.get_by_role("checkbox", name="BF16").focus()
    tab_to(page, cell.locator("input[type=range]").nth(0))
    page.keyboard.press("ArrowRight")
    wait(page, cell, SAYS, "Up to 32,")
    wait(page, cell, SHOWS, "from 0 to 32")
    tab_to(page, cell.locator("input[type=range]").nth(1))
    before = cell.get_by_role("status").text_content()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "([cell, words]) => cell.querySelector('[role=status]').textContent !== words",
        arg=[cell.element_handle(), before],
    )
    expect(cell.get_by_role("status")).to_contain_text("becomes")
    assert depth(cell) == pytest.approx(below, abs=1), "the page jumped"


def test_formats_are_chosen_by_keyboard(page: Any) -> None:
    cell = explorer(page, 1)
    rows = cell.locator("tbody tr").count()
    cell.get_by_role("checkbox", name="BF16").focus()
    page.keyboard.press("Space")
    expect(cell.get_by_role("status")).not_to_contain_text("BF16")
    expect(cell.locator("tbody tr")).to_have_count(rows - 1)
    assert cell.get_by_role("group", name="formats").count() == 1

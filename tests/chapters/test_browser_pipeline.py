"""The pipeline explorer in a real browser, turned by keyboard."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.chapters.conftest import Door, Sight
from tests.chapters.explorers import NAME, SAYS, SHOWS, depth, explorer, explorers, tab_to, wait

DRAWN = (
    "([cell, number]) => cell.querySelectorAll(\"[aria-label^='rank '][aria-label*=': forward']\").length === number"
)

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def page(look: Callable[[Door], Sight], folder: Door) -> Any:
    """A notebook with the explorer, run."""
    return explorers(look, folder, "training_loop.pipeline")


def test_a_reader_steps_through_the_schedule_by_keyboard(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "Step 0 of 31")
    step = cell.locator("input[type=range]").nth(2)
    step.focus()
    page.keyboard.press("End")
    wait(page, cell, SAYS, "Step 31 of 31")
    expect(cell.get_by_role("status")).to_contain_text(re.compile("(is done.*){4}"))
    below = depth(cell)
    page.keyboard.press("Home")
    wait(page, cell, SAYS, "Step 0 of 31, time 0: rank 1 runs F1; rank 2 waits")
    for words in ("Step 1 of 31, time 1", "Step 2 of 31, time 2", "Step 3 of 31, time 3"):
        page.keyboard.press("ArrowRight")
        wait(page, cell, SAYS, words)
    # forward passes of ranks 1, 2, 3; rank 4 is about to begin
    page.wait_for_function(DRAWN, arg=[cell.element_handle(), 3 + 2 + 1])
    assert depth(cell) == pytest.approx(below, abs=1), "the page jumped"


def test_another_schedule_brings_its_own_micro_batches_and_starts_at_its_end(page: Any) -> None:
    cell = explorer(page, 0)
    schedule = cell.get_by_label("schedule", exact=True)
    schedule.focus()
    page.keyboard.press("ArrowUp")
    wait(page, cell, SHOWS, "GPipe: ranks are idle")
    expect(cell.get_by_role("status")).to_contain_text("is done")
    tab_to(page, cell.locator("input[type=range]").nth(0))
    page.keyboard.press("ArrowRight")
    wait(page, cell, SHOWS, "6 stages, 6 micro-batches")
    tab_to(page, cell.locator("input[type=range]").nth(1))
    page.keyboard.press("End")
    wait(page, cell, SHOWS, "6 stages, 24 micro-batches")
    expect(cell.locator("tbody tr")).to_have_count(6)


def test_the_pipelines_bars_and_sliders_have_words(page: Any) -> None:
    cell = explorer(page, 0)
    names = [cell.locator("input[type=range]").nth(number).evaluate(NAME) for number in range(3)]
    assert names == ["stages", "micro-batches", "step"]
    cell.get_by_label("shown", exact=True).select_option("the whole step")
    cell.locator("input[type=range]").nth(2).focus()
    page.keyboard.press("End")
    expect(cell.locator("[aria-label^='rank 1: forward']")).to_have_count(24)

"""The batching explorer in a real browser: stepped by keyboard, and played."""

import re
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
    return explorers(look, folder, "product_loop.batching")


def test_a_reader_steps_and_changes_the_rate_by_keyboard(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "Step 30 of 60")
    below = depth(cell)
    rate, step = cell.locator("input[type=range]").nth(0), cell.locator("input[type=range]").nth(1)
    step.focus()
    page.keyboard.press("Home")
    wait(page, cell, SAYS, "Step 0 of 60")
    for words in ("Step 1 of 60", "Step 2 of 60"):
        page.keyboard.press("ArrowRight")
        wait(page, cell, SAYS, words)
    rate.focus()
    page.keyboard.press("End")
    wait(page, cell, SHOWS, "0.7 requests arrive per step")
    tab_to(page, step)
    page.keyboard.press("End")
    wait(page, cell, SAYS, "Step 60 of 60")
    expect(cell.locator("tbody tr")).to_have_count(2)
    assert depth(cell) == pytest.approx(below, abs=1), "the page jumped"


def test_it_plays_and_stops(page: Any) -> None:
    cell = explorer(page, 0)
    step = cell.locator("input[type=range]").nth(1)
    step.focus()
    page.keyboard.press("Home")
    wait(page, cell, SAYS, "Step 0 of 60")
    play = cell.locator(".tl-play button").nth(1)
    play.focus()
    page.keyboard.press("Enter")
    wait(page, cell, SAYS, "Step 3 of 60")
    play.focus()
    page.keyboard.press("Enter")
    expect(cell.get_by_role("status")).to_contain_text(re.compile(r"Step \d+ of 60"))


def test_its_dots_and_sliders_have_words(page: Any) -> None:
    cell = explorer(page, 0)
    names = [cell.locator("input[type=range]").nth(number).evaluate(NAME) for number in range(2)]
    assert names == ["requests a step", "step"]
    step = cell.locator("input[type=range]").nth(1)
    step.focus()
    page.keyboard.press("End")
    wait(page, cell, SAYS, "Step 60 of 60")
    expect(cell.locator("[aria-label*='makes a token']").first).to_be_attached()

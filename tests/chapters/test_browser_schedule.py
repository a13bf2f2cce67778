"""The schedule explorer in a real browser, turned by keyboard."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.chapters.conftest import Door, Sight
from tests.chapters.explorers import NAME, SAYS, depth, explorer, explorers, tab_to, wait

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def page(look: Callable[[Door], Sight], folder: Door) -> Any:
    """A notebook with the explorer, run."""
    return explorers(look, folder, "driving.schedule")


def test_a_reader_makes_somebody_late_by_keyboard(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "No task is late")
    below = depth(cell)
    perception, cost = cell.locator("input[type=range]").nth(0), cell.locator("input[type=range]").nth(1)
    perception.focus()
    page.keyboard.press("ArrowRight")
    wait(page, cell, SAYS, "Late: map")
    tab_to(page, cost)
    page.keyboard.press("Home")
    wait(page, cell, SAYS, "No task is late")
    cell.locator("select").select_option("no preemption")
    wait(page, cell, SAYS, "Late: control")
    expect(cell.locator("tbody tr")).to_have_count(3)
    assert depth(cell) == pytest.approx(below, abs=1), "the page jumped"


def test_its_bars_and_controls_have_words(page: Any) -> None:
    cell = explorer(page, 0)
    names = [cell.locator("input[type=range]").nth(number).evaluate(NAME) for number in range(2)]
    assert names == ["perception, ms", "map, ms"]
    expect(cell.locator("[aria-label*='control runs']").first).to_be_attached()

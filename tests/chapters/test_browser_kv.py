"""The KV explorer in a real browser, turned by keyboard."""

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
    return explorers(look, folder, "product_loop.kv")


def test_a_reader_fills_the_card_by_keyboard(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "32 requests of 8,192 tokens: 34.4 GB of cache")
    below = depth(cell)
    requests = cell.locator("input[type=range]").nth(2)
    requests.focus()
    page.keyboard.press("ArrowRight")
    wait(page, cell, SAYS, "64 requests of 8,192 tokens")
    wait(page, cell, SHOWS, "It does not fit")
    expect(cell.get_by_role("status")).to_contain_text("Most that fit: 55")
    assert depth(cell) == pytest.approx(below, abs=1), "the page jumped"


def test_another_format_makes_it_fit_again(page: Any) -> None:
    cell = explorer(page, 0)
    kept_in = cell.get_by_label("cache in", exact=True)
    kept_in.focus()
    page.keyboard.press("ArrowDown")
    wait(page, cell, SHOWS, "It fits")
    expect(cell.get_by_role("status")).to_contain_text("Most that fit: 111")
    tab_to(page, cell.locator("input[type=range]").nth(1))
    page.keyboard.press("Home")
    wait(page, cell, SAYS, "64 requests of 512 tokens")
    expect(cell.locator("tbody tr")).to_have_count(4)


def test_the_sliders_have_names(page: Any) -> None:
    cell = explorer(page, 0)
    for number, name in enumerate(("GPUs", "tokens", "requests")):
        assert cell.locator("input[type=range]").nth(number).evaluate(NAME) == name

"""The compression explorer in a real browser, turned by keyboard."""

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
    return explorers(look, folder, "product_loop.compression")


def test_bits_sparsity_and_student_are_turned_by_keyboard(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "teacher, 8 bits, nothing pruned")
    below = depth(cell)
    sliders = cell.locator("input[type=range]")
    sliders.nth(0).focus()
    page.keyboard.press("End")
    wait(page, cell, SAYS, "teacher, 2 bits")
    tab_to(page, sliders.nth(1))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    wait(page, cell, SHOWS, "2 bits, 50 % pruned")
    tab_to(page, cell.get_by_label("network", exact=True))
    page.keyboard.press("End")
    wait(page, cell, SAYS, "student, distilled, 2 bits")
    expect(cell.get_by_role("status")).to_contain_text("times smaller")
    expect(cell.locator("tbody tr")).to_have_count(7)
    assert depth(cell) == pytest.approx(below, abs=1), "the page jumped"


def test_the_compression_explorer_has_words(page: Any) -> None:
    cell = explorer(page, 0)
    names = [cell.locator("input[type=range]").nth(number).evaluate(NAME) for number in range(2)]
    assert names == ["bits", "pruned"]
    expect(cell.locator("[role=graphics-document]")).to_have_attribute("aria-label", re.compile("against"))

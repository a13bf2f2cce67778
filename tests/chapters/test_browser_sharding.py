"""The sharding explorer in a real browser, turned by keyboard."""

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
    return explorers(look, folder, "training_loop.sharding")


@pytest.fixture(scope="module")
def cell(page: Any) -> Any:
    """The cell of the explorer, drawn."""
    return explorer(page, 0)


def test_it_works_by_keyboard_and_nothing_jumps(cell: Any) -> None:
    wait(cell.page, cell, SAYS, "ZeRO-3 (FSDP): the fullest GPU holds")
    below = depth(cell)
    cell.get_by_label("way", exact=True).focus()
    cell.page.keyboard.press("ArrowDown")
    wait(cell.page, cell, SAYS, "Tensor parallelism: the fullest GPU holds")
    wait(cell.page, cell, SHOWS, "Tensor parallelism")
    cell.page.keyboard.press("ArrowDown")
    wait(cell.page, cell, SAYS, "Pipeline: the fullest GPU holds")
    tab_to(cell.page, cell.get_by_label("model", exact=True))
    cell.page.keyboard.press("ArrowDown")
    wait(cell.page, cell, SHOWS, "Llama 2 13B")
    tab_to(cell.page, cell.locator("input[type=range]").first)
    cell.page.keyboard.press("ArrowRight")
    wait(cell.page, cell, SAYS, "8,192 tokens")
    tab_to(cell.page, cell.get_by_label("activations", exact=True))
    before = cell.locator("table").text_content()
    cell.page.keyboard.press("ArrowDown")
    cell.page.wait_for_function(
        "([cell, words]) => cell.querySelector('table').textContent !== words", arg=[cell.element_handle(), before]
    )
    assert depth(cell) == pytest.approx(below, abs=1), "the page jumped"


def test_pieces_and_controls_have_words(cell: Any) -> None:
    assert cell.locator("input[type=range]").first.evaluate(NAME) == "sequence"
    assert "GPU 1: weights" in cell.locator("[role=graphics-document]").get_attribute("aria-label")
    assert cell.locator("[aria-label^='GPU 4: ']").count() >= 4
    expect(cell.locator("tbody tr")).to_have_count(4)

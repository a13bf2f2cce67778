"""The scaling explorer in a real browser, turned by keyboard."""

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
    return explorers(look, folder, "training_loop.scaling")


def test_the_scaling_explorer_works_by_keyboard(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "1,024 GPUs: a step takes")
    below = depth(cell)
    sliders = cell.locator("input[type=range]")
    sliders.nth(0).focus()
    page.keyboard.press("ArrowLeft")
    wait(page, cell, SAYS, "512 GPUs: a step takes")
    wait(page, cell, SHOWS, "512 GPUs work like")
    page.keyboard.press("ArrowRight")
    wait(page, cell, SHOWS, "1,024 GPUs work like")
    for words in ("512 GPUs:", "256 GPUs:", "128 GPUs:", "64 GPUs:"):
        page.keyboard.press("ArrowLeft")
        wait(page, cell, SAYS, words)
    tab_to(page, cell.get_by_label("network cards", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SHOWS, "H100s, 1 network")
    tab_to(page, sliders.nth(1))
    page.keyboard.press("ArrowRight")
    wait(page, cell, SHOWS, "30 billion parameters")
    tab_to(page, sliders.nth(2))
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    wait(page, cell, SHOWS, "262,144 tokens per step")
    expect(cell.get_by_role("status")).to_contain_text("64 GPUs")
    expect(cell.locator("table")).to_contain_text("exchange, waited for")
    assert depth(cell) == pytest.approx(below, abs=1), "the page jumped"


def test_a_smaller_batch_takes_gpus_away(page: Any) -> None:
    cell = explorer(page, 0)
    gpus = cell.locator("input[type=range]").nth(0)
    assert gpus.evaluate(NAME) == "GPUs"
    gpus.focus()
    page.keyboard.press("End")
    wait(page, cell, SAYS, "256 GPUs:")  # 2^18 tokens have no more sequences
    expect(gpus).to_have_attribute("aria-valuetext", "256")


def test_the_scaling_figure_has_words(page: Any) -> None:
    cell = explorer(page, 0)
    assert (
        cell.locator("[role=graphics-document]")
        .get_attribute("aria-label")
        .startswith("Tokens per second against GPUs")
    )
    assert cell.locator("[aria-label*='GPUs: ']").count() >= 1

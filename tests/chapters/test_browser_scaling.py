"""The scaling explorer in a real browser, turned by keyboard."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.chapters.conftest import Sight
from tests.chapters.explorers import SAYS, SHOWS, explorer, explorers, tab_to, wait

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def page(look: Callable[[str], Sight], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A notebook with the explorer, run."""
    with explorers(look, tmp_path_factory.mktemp("explorers"), "scaling") as page:
        yield page


def test_the_scaling_explorer_works_by_keyboard(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "256 GPUs: a step takes")
    below = cell.locator("table").bounding_box()["y"]
    sliders = cell.locator("[role=slider]")
    sliders.nth(0).focus()
    page.keyboard.press("ArrowRight")
    wait(page, cell, SAYS, "512 GPUs: a step takes")
    wait(page, cell, SHOWS, "512 GPUs work like")
    for words in ("256 GPUs:", "128 GPUs:", "64 GPUs:"):
        page.keyboard.press("ArrowLeft")
        wait(page, cell, SAYS, words)
    tab_to(page, sliders.nth(1))
    page.keyboard.press("ArrowRight")
    wait(page, cell, SHOWS, "30 billion parameters")
    tab_to(page, sliders.nth(2))
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    wait(page, cell, SHOWS, "262,144 tokens per step")
    assert "64 GPUs" in cell.get_by_role("status").text_content()
    assert "exchange, waited for" in cell.locator("table").text_content()
    assert cell.locator("table").bounding_box()["y"] == below, "the page jumped"


def test_a_smaller_batch_takes_gpus_away(page: Any) -> None:
    cell = explorer(page, 0)
    gpus = cell.locator("[role=slider]").nth(0)
    assert gpus.get_attribute("aria-label") == "GPUs"
    gpus.focus()
    page.keyboard.press("End")
    wait(page, cell, SAYS, "128 GPUs:")  # 2^18 tokens have no more sequences
    assert gpus.get_attribute("aria-valuetext") == "128"


def test_the_scaling_figure_has_words(page: Any) -> None:
    cell = explorer(page, 0)
    assert cell.locator("[role=graphics-document]").get_attribute("aria-label").startswith("Tokens per second against GPUs")
    assert cell.locator("[aria-label*='GPUs: ']").count() >= 1

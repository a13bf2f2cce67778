"""The training-stack explorer in a real browser, turned by keyboard."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.chapters.conftest import Sight
from tests.chapters.explorers import SAYS, SHOWS, explorer, explorers, tab_to, wait

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def page(look: Callable[[str], Sight], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A notebook with the explorer, run."""
    with explorers(look, tmp_path_factory.mktemp("explorers"), "training_stack") as page:
        yield page


def test_the_stack_works_by_keyboard(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "the loader sets the pace")
    below = cell.locator("table").bounding_box()["y"]
    cell.locator("[role=slider]").first.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    wait(page, cell, SAYS, "the device sets the pace")
    wait(page, cell, SHOWS, "16 workers")
    tab_to(page, cell.get_by_label("precision", exact=True))
    page.keyboard.press("End")
    wait(page, cell, SHOWS, "bf16")
    tab_to(page, cell.get_by_label("kernels", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SHOWS, "compiled")
    wait(page, cell, SAYS, "It fits.")
    assert cell.locator("table").bounding_box()["y"] == below, "the page jumped"


def test_the_stacks_bars_and_sliders_have_words(page: Any) -> None:
    cell = explorer(page, 0)
    slider = cell.locator("[role=slider]").first
    assert slider.get_attribute("aria-label") == "workers"
    assert slider.get_attribute("aria-valuetext") in ("1", "2", "4", "8", "16")
    assert cell.locator("[role=graphics-document]").get_attribute("aria-label").startswith("Seconds of a step")
    assert cell.locator("[aria-label^='device, products']").count() == 1

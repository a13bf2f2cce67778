"""The training memory explorer in a real browser, turned by keyboard."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.chapters.conftest import Sight
from tests.chapters.explorers import SAYS, SHOWS, explorer, explorers, tab_to, wait

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def page(look: Callable[[str], Sight], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A notebook with the explorer, run."""
    with explorers(look, tmp_path_factory.mktemp("explorers"), "training_memory") as page:
        yield page


def test_memory_is_turned_by_keyboard_and_says_so(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "14.5 GiB too many")
    below = cell.locator("table").bounding_box()["y"]
    cell.locator("[role=slider]").first.focus()
    tab_to(page, cell.get_by_label("recomputed", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SAYS, "runs twice")
    wait(page, cell, SAYS, "17.5 GiB to spare")
    wait(page, cell, SHOWS, "every layer")
    tab_to(page, cell.get_by_label("ZeRO stage", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SHOWS, "ZeRO stage 2")
    tab_to(page, cell.get_by_label("in host memory", exact=True))
    page.keyboard.press("ArrowDown")
    wait(page, cell, SAYS, "cross the bus in every step")
    assert cell.locator("table").bounding_box()["y"] == below, "the page jumped"


def test_columns_have_words(page: Any) -> None:
    cell = explorer(page, 0)
    assert cell.locator("[role=graphics-document]").get_attribute("aria-label").startswith("66 moments from forward, layer 1 to update")
    assert cell.locator("[aria-label^='backward, layer 32: kept for backward']").count() == 1

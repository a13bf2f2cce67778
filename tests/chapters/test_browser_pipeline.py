"""The pipeline explorer in a real browser, turned by keyboard."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.chapters.conftest import Sight
from tests.chapters.explorers import SAYS, SHOWS, explorer, explorers, tab_to, wait

DRAWN = "([cell, number]) => cell.querySelectorAll(\"[aria-label^='rank '][aria-label*=': forward']\").length === number"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def page(look: Callable[[str], Sight], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A notebook with the explorer, run."""
    with explorers(look, tmp_path_factory.mktemp("explorers"), "pipeline") as page:
        yield page


def test_a_reader_steps_through_the_schedule_by_keyboard(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "Step 31 of 31")
    assert cell.get_by_role("status").text_content().count("is done") == 4
    below = cell.locator("table").bounding_box()["y"]
    step = cell.locator("[role=slider]").nth(2)
    step.focus()
    page.keyboard.press("Home")
    wait(page, cell, SAYS, "Step 0 of 31, time 0: rank 1 runs F1; rank 2 waits")
    for words in ("Step 1 of 31, time 1", "Step 2 of 31, time 2", "Step 3 of 31, time 3"):
        page.keyboard.press("ArrowRight")
        wait(page, cell, SAYS, words)
    page.wait_for_function(DRAWN, arg=[cell.element_handle(), 3 + 2 + 1], timeout=20_000)  # forward passes of ranks 1, 2, 3; rank 4 is about to begin
    assert cell.locator("table").bounding_box()["y"] == below, "the page jumped"


def test_another_schedule_brings_its_own_micro_batches_and_starts_at_its_end(page: Any) -> None:
    cell = explorer(page, 0)
    schedule = cell.get_by_label("schedule", exact=True)
    schedule.focus()
    page.keyboard.press("ArrowUp")
    wait(page, cell, SHOWS, "GPipe: ranks stand idle")
    assert "is done" in cell.get_by_role("status").text_content()
    tab_to(page, cell.locator("[role=slider]").nth(0))
    page.keyboard.press("ArrowRight")
    wait(page, cell, SHOWS, "6 stages, 6 micro-batches")
    tab_to(page, cell.locator("[role=slider]").nth(1))
    page.keyboard.press("End")
    wait(page, cell, SHOWS, "6 stages, 24 micro-batches")
    assert cell.locator("tbody tr").count() == 6


def test_the_pipelines_bars_and_sliders_have_words(page: Any) -> None:
    cell = explorer(page, 0)
    names = [cell.locator("[role=slider]").nth(number).get_attribute("aria-label") for number in range(3)]
    assert names == ["stages", "micro-batches", "step"]
    assert cell.locator("[aria-label^='rank 1: forward']").count() == 24

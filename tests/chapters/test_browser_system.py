"""The map of the whole system in a real browser: a stage is chosen by click and by keyboard, and the slider moves
numbers.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.chapters.conftest import Door, Sight
from tests.chapters.explorers import NAME, depth
from tests.chapters.keys import run
from tests.chapters.test_browser import CELL, ERROR_OUTPUT, Reader, numbered
from threeloops import contents

PART = "loops"
LOAD, PREDICTION, MAP = "loops-load", "loops-system-prediction", "loops-system-map"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def reader(open_at: Callable[[str], Door], look: Callable[[Door], Sight]) -> Reader:
    """The part, with the map's cell run."""
    door = open_at(PART)
    place = contents.find_place(PART, door.root)
    sight = look(door)
    sight.page.wait_for_selector(CELL)
    copy = door.root / "my" / place.copy
    reader = Reader(
        door=door, page=sight.page, sight=sight, copy=copy, place=place, cells=json.loads(copy.read_text())["cells"]
    )
    reader.page.wait_for_selector(".threeloops-bar[data-kernel='idle']")
    run(reader.page, reader.cell(index(reader, LOAD)))
    reader.cell(index(reader, PREDICTION)).get_by_role("button", name="skip", exact=True).click()
    run(reader.page, reader.cell(index(reader, MAP)))
    reader.idle()
    return reader


def index(reader: Reader, wanted: str) -> int:
    return [cell["id"] for cell in reader.cells].index(wanted)


@pytest.fixture(scope="module")
def cell(reader: Reader) -> Any:
    """The map's cell, on the screen."""
    found = reader.cell(index(reader, MAP))
    found.scroll_into_view_if_needed()
    found.get_by_role("radiogroup", name="stage").wait_for()
    return found


def says(reader: Reader, cell: Any, words: str) -> None:
    """Wait until the spoken summary contains these words."""
    reader.page.wait_for_function(
        "([cell, words]) => cell.querySelector('[role=status]')?.textContent.includes(words)",
        arg=[cell.element_handle(), words],
    )


def test_a_stage_is_chosen_by_click_and_by_arrow_keys(reader: Reader, cell: Any) -> None:
    says(reader, cell, "Training (training loop)")
    place = depth(cell)
    cell.get_by_role("radio", name="serving").click()
    says(reader, cell, "Serving (product loop)")
    expect(cell.get_by_role("radio", checked=True)).to_have_count(1)
    reader.page.keyboard.press("ArrowRight")
    says(reader, cell, "Vehicle (product loop)")
    reader.page.keyboard.press("ArrowRight")  # around the end
    says(reader, cell, "Data (before the loops)")
    reader.page.keyboard.press("End")
    says(reader, cell, "Vehicle (product loop)")
    chosen = cell.get_by_role("radio", name="vehicle", checked=True)
    expect(chosen, "the focus stays with the chosen stage").to_be_focused()
    assert depth(cell) == pytest.approx(place, abs=1), "the page jumped"


def test_the_slider_follows_by_keyboard_and_moves_the_pace(reader: Reader, cell: Any) -> None:
    place = depth(cell)
    cell.get_by_role("radio", checked=True).focus()
    reader.page.keyboard.press("Tab")
    for _ in range(2):  # 128, 256
        reader.page.keyboard.press("ArrowRight")
    says(reader, cell, "256 GPUs: a step takes 400 ms, and the loader is the bottleneck.")
    expect(cell.get_by_role("radio", name="loader")).to_contain_text("400 ms, bottleneck")
    expect(cell.locator("tr", has_text="all-reduce")).to_have_count(1)
    slider = cell.locator("input[type=range]")
    assert slider.evaluate(NAME) == "GPUs"
    expect(slider).to_have_attribute("aria-valuetext", "256")
    assert depth(cell) == pytest.approx(place, abs=1), "the page jumped"


def test_no_cell_complains(reader: Reader, cell: Any) -> None:
    assert cell.locator(ERROR_OUTPUT).count() == 0


def test_a_page_without_a_kernel_shows_the_maps_picture(reader: Reader, cell: Any) -> None:
    page = reader.page.context.new_page()
    page.goto(reader.door.address(reader.place.notebook, workspace="committed"))
    committed = json.loads((reader.door.root / reader.place.notebook).read_text())["cells"]
    shown = page.locator(numbered([one["id"] for one in committed].index(MAP)))
    shown.wait_for(state="attached")
    shown.scroll_into_view_if_needed()
    picture = shown.locator(".jp-OutputArea-output img")
    picture.wait_for()
    assert picture.evaluate("image => image.naturalWidth") > 600
    assert picture.evaluate("image => image.offsetWidth") <= 640


def test_a_stage_leads_to_its_part(reader: Reader, cell: Any) -> None:
    cell.get_by_role("radio", name="serving").click()
    says(reader, cell, "Serving (product loop)")
    link = cell.get_by_role("link", name="Open part 3.5 Batching")
    reader.page.evaluate(
        """addEventListener('threeloops:open', event => {
             window.asked = event.detail; event.preventDefault(); event.stopImmediatePropagation();
           }, {capture: true, once: true})"""
    )
    link.click()
    assert reader.page.evaluate("window.asked.path").endswith(contents.find_place("batching", reader.door.root).copy)

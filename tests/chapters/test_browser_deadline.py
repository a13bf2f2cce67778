"""The deadline explorer in a real browser: turned by keyboard, and played."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.chapters.conftest import Door, Sight
from tests.chapters.explorers import CELL, NAME, SAYS, SHOWS, depth, explorer, explorers, tab_to, wait
from tests.chapters.keys import run
from threeloops.units import ms
from threeloops.widgets.driving.deadline_view import STAGES, START, view

pytestmark = pytest.mark.timeout(300)
# an explorer whose every answer takes as long as on a very slow machine
SLOW = """
import time
from threeloops.widgets.driving import deadline
from threeloops.widgets.explorer import Explorer


def view(state):
    time.sleep(1)
    return deadline.view(state)


Explorer(deadline.START, view=view, controls=deadline.controls, settled=deadline.settled)
"""


@pytest.fixture(scope="module")
def page(look: Callable[[Door], Sight], folder: Door) -> Any:
    """A notebook with the explorer, run."""
    return explorers(look, folder, "driving.deadline", then=[SLOW])


def test_the_repairs_are_switched_by_keyboard(page: Any) -> None:
    cell = explorer(page, 0)
    wait(page, cell, SAYS, "At 1.00 s the newest answer is")
    wait(page, cell, SHOWS, "a frame, late")
    below = depth(cell)
    cell.get_by_label("backbones", exact=True).focus()
    page.keyboard.press("ArrowDown")
    wait(page, cell, SHOWS, "a frame, in time")
    state = replace(START, shared=True)
    for label, switch in (("convolutions", "int8"), ("boxes", "predicted")):
        tab_to(page, cell.get_by_label(label, exact=True))
        page.keyboard.press("ArrowDown")
        state = replace(state, **{switch: True})
        wait(page, cell, SAYS, view(state).summary)
    expect(cell.locator("tbody tr")).to_have_count(6)
    expect(cell.locator("table")).to_be_visible()
    assert depth(cell) == pytest.approx(below, abs=1), "the page jumped"


def test_a_stage_is_chosen_and_gets_the_readers_own_time(page: Any) -> None:
    cell = explorer(page, 0)
    for label in ("backbones", "convolutions", "boxes"):
        cell.get_by_label(label, exact=True).select_option(index=0)
    wait(page, cell, SAYS, view(START).summary)
    stages = cell.get_by_role("radio")
    assert stages.count() == len(STAGES)
    expect(stages.nth(STAGES.index("backbone"))).to_have_attribute("aria-checked", "true")
    stages.nth(STAGES.index("backbone")).focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")  # lift, heads
    time = cell.get_by_label("time of this stage", exact=True)
    expect(time).to_have_attribute("aria-valuetext", "recorded")
    tab_to(page, time)
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    own = tuple(3 * ms if name == "heads" else None for name in STAGES)
    told = view(replace(START, stage="heads", own=own))
    wait(page, cell, SAYS, told.summary)
    wait(page, cell, SHOWS, told.figure.title)
    expect(stages.nth(STAGES.index("heads"))).to_contain_text("3.00 ms")
    expect(cell.locator("[aria-label^='heads: 3.0']")).to_have_count(1)
    stages.nth(STAGES.index("plan")).click()
    expect(time).to_have_attribute("aria-valuetext", "recorded")
    expect(stages.nth(STAGES.index("heads"))).to_contain_text("3.00 ms")
    stages.nth(STAGES.index("heads")).click()
    expect(time).to_have_attribute("aria-valuetext", "3 ms")
    time.focus()
    page.keyboard.press("Home")
    wait(page, cell, SHOWS, view(START).figure.title)


def test_what_is_turned_before_an_answer_counts_in_the_readers_order(page: Any) -> None:
    run(page, page.locator(CELL).nth(1))
    cell = explorer(page, 1)
    stages, time = cell.get_by_role("radio"), cell.get_by_label("time of this stage", exact=True)
    stages.nth(STAGES.index("plan")).click()
    stages.nth(STAGES.index("lift")).click()
    time.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    own = tuple(4 * ms if name == "lift" else None for name in STAGES)
    wait(page, cell, SHOWS, view(replace(START, stage="lift", own=own)).figure.title)
    expect(time).to_have_attribute("aria-valuetext", "4 ms")
    expect(stages.nth(STAGES.index("lift"))).to_contain_text("4.00 ms")


def test_it_steps_plays_and_stops(page: Any) -> None:
    cell = explorer(page, 0)
    moment = cell.locator("input[type=range]").nth(1)
    moment.focus()
    page.keyboard.press("Home")
    wait(page, cell, SAYS, "no answer is ready yet")
    play = cell.locator(".tl-play button").nth(1)
    play.focus()
    page.keyboard.press("Enter")
    wait(page, cell, SAYS, "At 0.07 s")
    play.focus()
    page.keyboard.press("Enter")
    expect(cell.get_by_role("status")).to_contain_text(re.compile(r"At \d\.\d\d s"))


def test_its_boxes_bars_and_sliders_have_words(page: Any) -> None:
    cell = explorer(page, 0)
    names = [cell.locator("input[type=range]").nth(number).evaluate(NAME) for number in range(2)]
    assert names == ["time of this stage", "moment"]
    cell.locator("input[type=range]").nth(1).focus()
    page.keyboard.press("End")
    wait(page, cell, SAYS, "At 1.97 s")
    expect(cell.locator("[aria-label*='m from the nearest car']").first).to_be_attached()
    expect(cell.locator("[aria-label^='heads: ']")).to_have_count(1)

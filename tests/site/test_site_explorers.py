"""Explorers that move in the page: all of the chapters', by the panel of JupyterLab and the Python of the book."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.seeds import todays
from tests.site.conftest import ROOT, Page, Visit
from tests.site.test_site_axe import NARROW, axe, findings
from tests.site.test_site_cards import ALL
from tests.site.test_site_predictions import the_result_waits_for_the_prediction
from tests.widgets.test_explorers import MODULES
from threeloops.site import explorers, exploring, parts
from threeloops.site.front import page
from threeloops.site.parts import Cell
from threeloops.widgets import system_map
from threeloops.widgets.controls import Control

__all__ = ["axe"]
pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
# Modules that a page has not.
BARE = """
import sys
for name in ("numpy", "torch", "anywidget", "traitlets", "ipywidgets", "vl_convert", "IPython"):
    sys.modules[name] = None
from threeloops.site import exploring
for name in exploring.EXPLORERS:
    exploring.begun(name)
    exploring.turned(name, '{"serial": 1, "turns": []}')
"""
WIDTHS = (
    "all => all.map(svg => [svg.getBoundingClientRect().width, svg.viewBox.baseVal.width]).filter(([shown]) => shown)"
)
CUT = """all => all.flatMap(select => {
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = getComputedStyle(select).font;
  const needs = word => pen.measureText(word).width + 24;  // padding and arrow
  return [...select.options].map(option => option.text).filter(word => needs(word) > select.clientWidth);
})"""
LETTER, LEAST = 13, 10  # pixels of a drawing's letters, and of those that can be read; from there on it scrolls
WAITS = "Turn something, and the picture follows."


def code(*lines: str) -> Cell:
    return {"cell_type": "code", "source": "\n".join(lines)}


def test_every_explorer_lives_and_needs_nothing_but_python() -> None:
    shown = [explorers.shown_by(cell, part.cells) for part in parts.parts(ROOT) for cell in part.cells if is_code(cell)]
    assert len(set(filter(None, shown))) == len([*filter(None, shown)]) >= 20
    assert sorted(exploring.EXPLORERS) == MODULES
    done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def is_code(cell: Cell) -> bool:
    return bool(cell["cell_type"] == "code")


def test_an_explorer_that_no_page_can_show_stops_the_build() -> None:
    load = code("from threeloops.widgets.inner_loop import roofline as chart, roofline_view")
    for call in ("chart.explorer(roofline_view.State())", "drawing.explorer()"):
        with pytest.raises(ValueError, match="no page can show"):
            explorers.shown_by(code(call), [load])
    assert explorers.shown_by(code("chart.explorer()  # turn it"), [load]) == "inner_loop.roofline"
    load = code("from threeloops.widgets.inner_loop import attention")
    assert explorers.shown_by(code("attention.explorer()"), [load]) == "inner_loop.attention"
    assert explorers.shown_by(code("shown = chart.explorer(3)", "shown.state"), [load]) == ""


def told(page: Page) -> dict[str, Any]:
    """Where an explorer of a page begins."""
    found = re.search(r'<script type="application/json">(.*?)</script>', page.source, re.DOTALL)
    assert found
    return dict(json.loads(found[1]))


def shown_on(pages: dict[str, Page]) -> dict[str, str]:
    """Explorer -> the page that shows it."""
    return {
        found: name
        for name, page in pages.items()
        if name != "index.html"
        for found in re.findall('data-explorer="([^"]+)"', page.source)
    }


def test_without_a_script_there_are_drawing_words_and_table(pages: dict[str, Page]) -> None:
    places = shown_on(pages)
    assert len(places) >= 20
    for name, place in places.items():
        section = pages[place].source.partition(f'<section class="explorer" data-explorer="{name}"')[2]
        for mark in ("<svg", 'role="img" aria-label="', 'class="tl-said"', 'class="tl-table"><table'):
            assert mark in section.partition("<script")[0], (name, mark)
    opening = told(pages["index.html"])
    assert opening == json.loads(exploring.begun(page.MOVES))


def test_the_map_leads_to_pages(pages: dict[str, Page]) -> None:
    for stage in system_map.STAGES.values():
        assert stage.copy.removeprefix("chapters/").replace(".ipynb", ".html") in pages


def one_on(control: Control, at: Any) -> tuple[str, Any]:
    """A key that turns a control, and where it stands then."""
    if control.kind == "several":
        return "Space", [place for place in at if place != 0] if 0 in at else [0, *at]
    last = len(control.values) - 1
    forward, back = ("ArrowDown", "ArrowUp") if control.kind == "menu" else ("ArrowRight", "ArrowLeft")
    return (forward, at + 1) if at < last else (back, at - 1)


def test_a_control_is_turned_and_python_comes_and_answers(
    visit: Callable[..., Visit], pages: dict[str, Page], axe: str
) -> None:
    places = shown_on(pages)
    seen = visit("index.html", reduced_motion="reduce")
    for name in todays(list(places)):
        seen.asked.clear()
        seen.page.set_viewport_size({"width": 1280, "height": 900})
        seen.page.goto(places[name])
        stands_behind = is_behind_a_card(seen.page, name)
        it_moves(seen, name)
        nobody_is_kept_out_once_it_moves(seen, axe)
        the_page_says_what_python_says_here(seen.page, name)
        if not stands_behind:  # else that card is skipped already
            the_result_waits_for_the_prediction(seen.page)


def is_behind_a_card(page: Any, name: str) -> bool:
    """Whether an explorer's picture gives a prediction away; its card is skipped then, and those before it."""
    explorer = page.locator(f"[data-explorer='{name}']")
    explorer.wait_for(state="attached")
    hidden = not explorer.is_visible()
    for skip in page.get_by_role("button", name="Skip", exact=True).all():
        if not explorer.is_visible():
            skip.click()
    assert explorer.is_visible()
    return hidden


def it_moves(seen: Visit, name: str) -> None:
    page, made = seen.page, exploring.explorer(name)
    explorer = page.locator(f"[data-explorer='{name}']")
    explorer.get_by_text(WAITS).wait_for()
    assert explorer.locator(".tl-explorer").count() == 1, "the still words have gone"
    assert explorer.locator(".tl-said").inner_text() == made.view.summary
    asked = [address for address in seen.asked if re.search(r"/python/|vega\.js", address)]
    assert not asked, "nothing that draws or answers before the first touch"
    (key, place), control = turn(made, explorer)
    for serial in (1, 2, 3):
        page.wait_for_timeout(200)  # so that the next answer may be there before it is asked for
        page.keyboard.press(key)
        made.turned({"serial": serial, "turns": [(control.name, place)]})
        expect(explorer.locator(".tl-said")).to_have_text(said(made))
        key, place = one_on(made.controls[control.name], json.loads(made.message.shown)["standing"][control.name])
    if made.message.chart:
        drawing = explorer.locator("[role=graphics-document]")
        expect(drawing).to_have_attribute("aria-label", made.view.figure.alt)


def turn(made: Any, explorer: Any) -> tuple[tuple[str, Any], Control]:
    """Put the focus on an explorer's first control; the key that turns it."""
    control = next(iter(made.controls.values()))
    inputs = ".tl-controls :is(input, select, [role=radio][tabindex='0'])"
    explorer.locator(inputs).first.focus()
    return one_on(control, json.loads(made.message.shown)["standing"][control.name]), control


def said(made: Any) -> str:
    return str(json.loads(made.message.shown)["said"])


def nobody_is_kept_out_once_it_moves(seen: Visit, axe: str) -> None:
    seen.page.evaluate(axe)
    for scheme in ("light", "dark"):
        seen.page.evaluate("scheme => { document.documentElement.dataset.theme = scheme; }", scheme)
        assert not findings(seen, scheme)
    for width in (660, NARROW):  # one column of controls, and the narrowest
        seen.page.set_viewport_size({"width": width, "height": 700})
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        assert seen.page.locator(".tl-control > select").evaluate_all(CUT) == [], width
    drawings = seen.page.locator(".tl-chart svg").evaluate_all(WIDTHS)
    assert all(LETTER * shown / whole > LEAST for shown, whole in drawings), drawings


def the_page_says_what_python_says_here(page: Any, name: str) -> None:
    """Every control, one option on."""
    made, calls = exploring.explorer(name), [("exploring.begun", name)]
    for serial, (key, control) in enumerate(made.controls.items(), 1):
        _, place = one_on(control, json.loads(made.message.shown)["standing"][key])
        calls.append(("exploring.turned", name, json.dumps({"serial": serial, "turns": [(key, place)]})))
    there = page.evaluate(ALL, calls)
    here = [json.loads(getattr(exploring, call.partition(".")[2])(*words)) for call, *words in calls]
    assert [plain(one) for one in there] == [plain(one) for one in here]


def plain(message: dict[str, str]) -> dict[str, Any]:
    """A message, its numbers to twelve digits: the last ones are the processor's."""
    shown = json.loads(message["shown"])
    rows = {
        name: json.loads(text, parse_float=lambda digits: f"{float(digits):.11e}")
        for name, text in shown["rows"].items()
    }
    return {**message, "shown": {**shown, "rows": rows, "signals": None}}


def test_while_a_slider_is_held_axes_stay_and_the_former_state_is_in_sight(visit: Callable[..., Visit]) -> None:
    page = visit("1_inner_loop/2_roofline.html").page
    shown = page.locator("[data-explorer='inner_loop.roofline']")
    slider = shown.get_by_label("bandwidth", exact=True)
    ticks = lambda: shown.locator(".tl-chart svg > g:not(.tl-ghost) .role-axis-label text").all_text_contents()  # noqa: E731
    slider.scroll_into_view_if_needed()
    shown.get_by_label("batch", exact=True).press("ArrowRight")
    expect(shown.locator(".tl-chart")).to_have_attribute("aria-busy", "false")
    before, box = ticks(), slider.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 4, box["y"] + box["height"] / 2, steps=8)
    expect(shown.locator(".tl-said")).to_contain_text("times the bandwidth")
    expect(shown.locator(".tl-chart")).to_have_attribute("aria-busy", "false")
    assert ticks() == before
    assert shown.locator(".tl-ghost path").count() > 5
    page.mouse.up()
    expect(shown.locator(".tl-ghost")).to_have_count(0)
    page.wait_for_function(
        "([one, was]) => one.textContent !== was",
        arg=[shown.locator(".tl-chart svg .role-axis-label").nth(1).element_handle(), "".join(before)],
    )
    assert ticks() != before

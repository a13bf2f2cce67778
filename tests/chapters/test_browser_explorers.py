"""All explorers in a real browser, by geometry: nothing overlaps, nothing is cut, and everything can be read; light,
dark, in a narrow window and at twice the size, with the sliders at both ends.
"""

import io
import itertools
import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.chapters.conftest import PATIENCE_MS, Door, Sight
from tests.chapters.explorers import CELL, SAYS, explorers, wait
from tests.chapters.keys import run, within
from tests.widgets.test_explorers import MODULES

FIGURE = "from threeloops.widgets.inner_loop.roofline import explorer\n\nexplorer().view.figure"
LIGHT, DARK = "JupyterLab Light", "JupyterLab Dark"
# What stands where it should not: sentences, none of them where all is well.
FAULTS = """
async ({sweep}) => {
  const faults = [];
  const frame = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const visible = node => node.getClientRects().length && node.textContent.trim();
  const outside = (inner, outer, slack) => inner.left < outer.left - slack || inner.right > outer.right + slack;
  const cross = (one, other, slack) =>
    Math.min(one.right, other.right) - Math.max(one.left, other.left) > slack &&
    Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > slack;
  const luminance = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(part => part / 255).map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const solid = colour => !/rgba\\(.*, ?0\\)|transparent/.test(colour);
  const behind = node => { for (; node; node = node.parentElement) { const colour = getComputedStyle(node).backgroundColor; if (solid(colour)) return colour; } return 'rgb(255, 255, 255)'; };
  const pen = document.createElement('canvas').getContext('2d');

  const look = (name, root) => {
    const say = words => faults.push(`${name}: ${words}`);
    const area = root.closest('.jp-OutputArea-output').getBoundingClientRect();
    const box = root.getBoundingClientRect();
    if (outside(box, area, 1)) say('leaves its output');
    if (root.scrollWidth > root.clientWidth + 1) say(`is ${root.scrollWidth} wide in ${root.clientWidth}`);
    const controls = [...root.querySelectorAll('.tl-control, .tl-several, .tl-tiles button, .tl-play > *')];
    for (const control of controls) {
      if (outside(control.getBoundingClientRect(), box, 1)) say(`control leaves: ${control.textContent.slice(0, 30)}`);
      if (control.scrollWidth > control.clientWidth + 1) say(`control is cut: ${control.textContent.slice(0, 30)}`);
      for (const other of controls) {
        if (control !== other && !control.contains(other) && !other.contains(control) && cross(control.getBoundingClientRect(), other.getBoundingClientRect(), 1)) say(`controls overlap: ${control.textContent.slice(0, 30)}`);
      }
    }
    for (const select of root.querySelectorAll('select')) {
      pen.font = getComputedStyle(select).font;
      for (const option of select.options) {
        const needs = pen.measureText(option.text).width + 24;  // padding and arrow
        if (needs > select.clientWidth) say(`"${option.text}" needs ${Math.round(needs)} px and has ${select.clientWidth}`);
      }
    }
    const words = ['.tl-title', '.tl-caption', '.tl-said', 'td', 'th', '.tl-control label', '.tl-readout', 'button'];
    for (const node of root.querySelectorAll(words.join(', '))) {
      if (!visible(node) || node.disabled) continue;
      const [low, high] = [luminance(getComputedStyle(node).color), luminance(behind(node))].sort((a, b) => a - b);
      if ((high + 0.05) / (low + 0.05) < 4.4 && !/rgba/.test(getComputedStyle(node).color)) say(`too pale: ${node.textContent.slice(0, 30)}`);
    }
    const svg = root.querySelector('.tl-chart svg');
    if (!svg) return;
    const dark = document.body.dataset.jpThemeLight === 'false';
    if ((getComputedStyle(svg).filter !== 'none') !== dark) say('the drawing is not turned to the page');
    const sheet = root.querySelector('.tl-chart').getBoundingClientRect();  // what stands out of it is cut
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    // a halo is the same text drawn wider below it; what is turned has a box far larger than itself
    const texts = [...svg.querySelectorAll('text')].filter(text => visible(text) && !/rotate\\((?!0)/.test(text.getAttribute('transform') ?? ''));
    const seen = new Map();
    for (const text of texts) {
      const place = text.getBoundingClientRect();
      seen.set(`${text.textContent} ${Math.round(place.x)} ${Math.round(place.y)}`, [text.textContent, place]);
      if (outside(place, sheet, 2)) say(`text leaves the drawing: ${text.textContent}`);
    }
    const all = [...seen.values()];
    all.forEach(([word, place], at) => all.slice(at + 1).forEach(([other, there]) => {
      if (cross(place, there, 4 * scale)) say(`texts overlap: ${word} / ${other}`);
    }));
  };

  // answered and drawn, and then the same twice; a turn that is never answered is a fault
  const settle = async (name, root) => {
    const begun = performance.now(), busy = () => root.querySelector('.tl-chart').getAttribute('aria-busy') !== 'false';
    for (let last, now; busy() || now !== last || now === undefined; last = now, now = root.outerHTML) {
      if (performance.now() - begun > PATIENCE) return faults.push(`${name} never rests`);
      await frame();
    }
  };
  for (const cell of document.querySelectorAll('CELL')) {
    const root = cell.querySelector('.tl-explorer');
    if (!root) continue;
    const name = cell.querySelector('.cm-content').textContent.match(/widgets\\.?([\\w.]*)/)[1];
    cell.scrollIntoView();
    await frame();
    look(name, root);
    if (!sweep) continue;
    for (const control of root.querySelectorAll('input[type=range], .tl-control > select')) {
      const ends = control.tagName === 'SELECT' ? [control.options.length - 1, 0] : [control.max, control.min];
      for (const end of ends) {
        if (control.tagName === 'SELECT') control.selectedIndex = end; else control.value = end;
        control.dispatchEvent(new Event(control.tagName === 'SELECT' ? 'change' : 'input', {bubbles: true}));
        const turned = `${name}, ${control.labels[0].textContent} at ${end}`;
        await settle(turned, root);
        look(turned, root);
      }
    }
  }
  return [...new Set(faults)];
}
""".replace("CELL", CELL).replace("PATIENCE", str(PATIENCE_MS))  # noqa: E501

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def page(look: Callable[[Door], Sight], folder: Door) -> Any:
    """A notebook with every explorer, run."""
    page = explorers(look, folder, *MODULES)
    for number in range(len(MODULES)):
        cell = page.locator(CELL).nth(number)
        cell.scroll_into_view_if_needed()
        cell.locator(".tl-explorer").wait_for()
        if MODULES[number] != "system_map":
            cell.locator(".tl-chart svg").wait_for()
    return page


@pytest.fixture
def themed(folder: Door, page: Any) -> Iterator[Callable[[str], None]]:
    """Choose JupyterLab's theme as its menu does; light again afterwards."""

    def choose(theme: str) -> None:
        request = urllib.request.Request(
            f"{folder.server}lab/api/settings/@jupyterlab/apputils-extension:themes",
            data=json.dumps({"raw": json.dumps({"theme": theme})}).encode(),
            method="PUT",
            headers={"Authorization": f"token {folder.token}", "Content-Type": "application/json"},
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30):
            pass

    yield choose
    choose(LIGHT)


def faults(page: Any, *, sweep: bool = False) -> list[str]:
    found: list[str] = page.evaluate(FAULTS, {"sweep": sweep})
    return found


def test_nothing_overlaps_or_is_cut_in_a_wide_window_at_both_ends_of_every_control(page: Any) -> None:
    assert page.locator(".jp-Notebook .tl-explorer").count() == len(MODULES)
    assert faults(page, sweep=True) == []


def test_that_look_sees_what_is_cut_and_what_overlaps(page: Any) -> None:
    style = page.add_style_tag(content=".tl-control > select {width: 60px} .tl-chart svg text {font-size: 30px}")
    found = " ".join(faults(page))
    style.evaluate("style => style.remove()")
    assert "needs" in found
    assert "texts overlap" in found


@pytest.mark.parametrize(("width", "height"), [(1024, 700), (800, 700), (760, 700), (640, 500)])
def test_nothing_overlaps_or_is_cut_in_a_narrow_window(page: Any, width: int, height: int) -> None:
    """640 by 500 is what a window of 1280 by 1000 has at 200 %; in 800 two columns of controls just fit, in 760 they no
    longer do. tests/site looks at 320, which JupyterLab's own bars leave little of.
    """
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_timeout(1_000)
    within(page, 20, lambda: faults(page) == [])  # until everything has its new width
    found = faults(page)
    page.set_viewport_size({"width": 1280, "height": 1000})
    assert found == []


def test_an_operation_and_the_roof_are_dragged(page: Any) -> None:
    cell = page.locator(CELL).nth(MODULES.index("inner_loop.roofline"))
    cell.get_by_label("accelerator").select_option("A100 SXM4 80GB")
    cell.get_by_label("phase").select_option("decode")
    for label in ("FLOP/s", "bandwidth"):
        turned(cell, label, 8)  # the chip's own
    turned(cell, "batch", 3)
    wait(page, cell, SAYS, "batch 8,")
    cell.locator(".tl-chart").scroll_into_view_if_needed()
    wait_still(page, cell)
    drag(page, cell.locator("path[aria-label*='gate up projection: memory-bound']"), 70, 0)
    expect(cell.get_by_role("status")).to_contain_text(re.compile("batch (24|32|48|64),"))
    roof = cell.locator(".tl-chart svg text", has_text="tensor cores").last
    drag(page, roof, 0, -40, from_below=4)
    expect(cell.get_by_role("status")).to_contain_text("times the FLOP/s")
    assert float(cell.get_by_label("FLOP/s", exact=True).get_attribute("aria-valuetext").removeprefix("× ")) > 1.5
    assert cell.locator(".tl-drag").count() == 0, "the line ends with the drag"


def test_a_curve_is_drawn_across_the_chart_before_it_appears(page: Any) -> None:
    cell = page.locator(CELL).nth(MODULES.index("product_loop.drawn_wait"))
    cell.locator(".tl-chart").scroll_into_view_if_needed()
    wait_still(page, cell)
    box = cell.locator(".tl-chart svg").bounding_box()
    low, high = box["y"] + 0.75 * box["height"], box["y"] + 0.3 * box["height"]
    page.mouse.move(box["x"] + 0.15 * box["width"], low)
    page.mouse.down()
    for part in range(1, 26):
        page.mouse.move(box["x"] + (0.15 + 0.8 * part / 25) * box["width"], low + (high - low) * part / 25)
        page.wait_for_timeout(40)
    page.mouse.up()
    sliders = cell.locator("input[type=range]")
    stand = [int(sliders.nth(number).input_value()) for number in range(sliders.count())]
    assert all(low < high for low, high in itertools.pairwise(stand)), f"drawn upwards from left to right: {stand}"
    expect(cell.locator(".tl-chart svg")).not_to_contain_text("as it is")
    cell.get_by_label("the curve").select_option("show it beside mine")
    expect(cell.get_by_role("status")).to_contain_text("it is")
    expect(cell.locator(".tl-chart svg")).to_contain_text("as it is")


def turned(cell: Any, label: str, place: int) -> None:
    """Put a slider to a place, as a hand does."""
    cell.get_by_label(label, exact=True).evaluate(
        "(slider, place) => { slider.value = place; slider.dispatchEvent(new Event('input', {bubbles: true})); }", place
    )


def wait_still(page: Any, cell: Any) -> None:
    """Wait until the drawing stays where it is."""
    page.wait_for_function(
        """async cell => { const at = () => JSON.stringify(cell.querySelector('svg').getBoundingClientRect());
           const before = at(); await new Promise(done => setTimeout(done, 300)); return at() === before; }""",
        arg=cell.element_handle(),
    )


def drag(page: Any, mark: Any, right: float, down: float, *, from_below: float | None = None) -> None:
    """Take hold of a mark, or of what lies below it, and draw it away."""
    mark.scroll_into_view_if_needed()
    wait_still(page, mark.locator("xpath=ancestor::*[contains(@class, 'tl-chart')]"))
    box = mark.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    if from_below is not None:
        x, y = box["x"] + box["width"] - 20, box["y"] + box["height"] + from_below
    page.mouse.move(x, y)
    page.mouse.down()
    for part in range(1, 8):
        page.mouse.move(x + right * part / 7, y + down * part / 7)
        page.wait_for_timeout(40)
    page.mouse.up()


@pytest.mark.clock("steps that a browser paints in time")
def test_a_pipeline_plays_pauses_and_steps(page: Any) -> None:
    cell = page.locator(CELL).nth(MODULES.index("training_loop.pipeline"))
    player = cell.locator(".tl-play")
    player.get_by_label("speed").select_option("0.5 ×")
    cell.get_by_label("schedule").select_option("1F1B")
    turned(cell, "micro-batches", 0)
    turned(cell, "stages", 10_000)  # wherever another test left them
    wait(page, cell, SAYS, "Step 16 of 16")
    turned(cell, "micro-batches", 10_000)  # 115 steps of 1.2 s: no slow machine is at the end before it pauses
    wait(page, cell, SAYS, "Step 115 of 115")
    turned(cell, "step", 0)
    wait(page, cell, SAYS, "Step 0 of")
    player.get_by_role("button", name="play", exact=True).press("Enter")
    wait(page, cell, SAYS, "Step 2 of")
    play, pause = (player.get_by_role("button", name=name, exact=True) for name in ("play", "pause"))
    for _ in range(4):  # again where JupyterLab had taken the focus
        if pause.count():
            pause.press("Enter")
        if within(page, 5, play.count):
            break
    assert play.count(), player.inner_text()  # no longer playing: a step takes nearly as long as the look below
    page.wait_for_timeout(500)
    stopped = cell.get_by_label("step", exact=True).input_value()
    page.wait_for_timeout(800)
    assert cell.get_by_label("step", exact=True).input_value() == stopped
    player.get_by_role("button", name="one step back").press("Enter")
    wait(page, cell, SAYS, f"Step {int(stopped) - 1} of")
    turned(cell, "step", 10_000)  # the end
    expect(player.get_by_role("button", name="play again")).to_be_visible()
    expect(player.get_by_role("button", name="one step on")).to_be_disabled()


@pytest.mark.clock("steps that a browser paints in time")
def test_whoever_wants_less_motion_gets_slow_steps(page: Any) -> None:
    page.emulate_media(reduced_motion="reduce")
    cell = page.locator(CELL).nth(MODULES.index("training_loop.pipeline"))
    turned(cell, "step", 0)
    wait(page, cell, SAYS, "Step 0 of")
    cell.get_by_label("speed").select_option("4 ×")
    times = page.evaluate(
        """async cell => {
          const at = [], slider = cell.querySelector('.tl-plays input');
          cell.querySelector(".tl-play button[aria-label='play']").click();
          for (let last = slider.value; at.length < 3; await new Promise(done => setTimeout(done, 20)))
            if (slider.value !== last) { last = slider.value; at.push(performance.now()); }
          cell.querySelector(".tl-play button[aria-label='pause']").click();
          return at;
        }""",
        cell.element_handle(),
    )
    page.emulate_media(reduced_motion="no-preference")
    assert all(later - sooner > 900 for sooner, later in itertools.pairwise(times))


def test_everything_can_be_read_in_the_dark(
    page: Any, themed: Callable[[str], None], look: Callable[[Door], Sight], folder: Door
) -> None:
    themed(DARK)
    dark = explorers(look, folder, "inner_loop.roofline", "system_map", "product_loop.batching", then=[FIGURE])
    dark.wait_for_function("document.body.dataset.jpThemeLight === 'false'")
    dark.locator(".tl-chart svg").nth(1).wait_for()
    assert faults(dark) == []
    cell = dark.locator(CELL).last
    run(dark, cell)
    figure = cell.locator(".vega-embed svg")
    figure.wait_for()
    seen = Image.open(io.BytesIO(figure.screenshot())).convert("L")
    assert seen.getpixel((2, 2)) < 60, "the paper of a figure is the page's own"
    assert max(seen.getextrema()) > 180, "its words are light"

"""The module of an explorer in a bare page, without JupyterLab and without a kernel: a stand-in model of five functions
is all that it needs, and a page without a Vega of its own is lent one.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.chapters.conftest import PATIENCE_MS
from threeloops.figures import still
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.panel import Panel
from threeloops.widgets.training_loop import memory, pipeline

# What anywidget's models can do, and no more.
STAND_IN = """
async ([module, state, name]) => {
  const load = text => import(URL.createObjectURL(new Blob([text], {type: 'text/javascript'})));
  const heard = {};
  const model = {
    get: key => state[key],
    set: (key, value) => { state[key] = value; },
    on: (event, tell) => { (heard[event] ??= []).push(tell); },
    save_changes: async () => {
      Object.assign(state, await window[`${name}_answers`](state.turned));
      heard['change:shown'].forEach(tell => tell());
    },
    send: async message => {
      const answer = await window[`${name}_lends`](message);
      heard['msg:custom'].forEach(tell => tell(answer));
    },
  };
  const el = document.createElement('div');
  document.body.append(el);
  window[`${name}_end`] = (await load(module)).default.render({model, el});
}
"""

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def page(chromium: Any) -> Iterator[Any]:
    """A page of nobody's."""
    context = chromium.new_context(viewport={"width": 900, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.goto("data:text/html,<!doctype html><title>bare</title><body>")
    yield page
    context.close()


def shown(page: Any, name: str, explorer: Explorer[Any]) -> Any:
    """Put an explorer on the page, answered by the Python of this test."""
    asked: list[object] = []

    def answers(turned: dict[str, Any]) -> dict[str, str]:
        explorer.panel.turned = turned
        return {"chart": explorer.panel.chart, "shown": explorer.panel.shown}

    def lends(message: dict[str, str]) -> dict[str, str]:
        asked.append(message)
        return {"vega": still.library()}

    page.expose_function(f"{name}_answers", answers)
    page.expose_function(f"{name}_lends", lends)
    state = {"chart": explorer.panel.chart, "shown": explorer.panel.shown}
    page.evaluate(STAND_IN, [str(explorer.panel._esm), state, name])
    root = page.locator(".tl-explorer").last
    root.locator(".tl-chart svg").wait_for()
    return root, asked


def test_a_page_without_a_vega_asks_once_and_a_stand_in_is_enough(page: Any) -> None:
    explorer = memory.explorer()
    root, asked = shown(page, "memory", explorer)
    assert asked == [{"wants": "vega"}]
    expect(root.get_by_role("status")).to_have_text(explorer.view.summary)
    drawing = root.locator("[role=graphics-document]")
    expect(drawing).to_have_attribute("aria-label", explorer.view.figure.alt)
    svg = root.locator(".tl-chart svg").element_handle()
    root.get_by_label("micro-batch").focus()
    page.keyboard.press("ArrowRight")
    expect(root.locator("figure")).to_contain_text("2 x 8,192 tokens")
    expect(drawing).to_have_attribute("aria-label", explorer.view.figure.alt)
    assert svg.evaluate("svg => svg.isConnected"), "the drawing was built anew"
    root.get_by_label("recomputed", exact=True).select_option("every layer")
    expect(root.get_by_role("status")).to_contain_text("runs twice")
    assert explorer.state.recompute == "every layer"

    second, asked_again = shown(page, "pipeline", pipeline.explorer())
    assert asked_again == [], "the page has a Vega now"
    second.get_by_role("button", name="one step on").click()
    expect(second.get_by_role("status")).to_contain_text(re.compile("Step 1 of 31"))
    page.evaluate("window.pipeline_end()")
    assert page.errors == []


def test_only_who_asks_for_vega_is_lent_one() -> None:
    panel, sent = Panel(), []
    panel.send = lambda content: sent.append(content)
    for content in ({"wants": "tea"}, "vega", {"wants": "vega"}):
        panel._handle_custom_msg(content, [])
    (lent,) = sent
    assert lent["vega"] == still.library()

"""The pages on a phone: nothing is cut without a sign, no letter is too small to read, one finger draws."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.seeds import todays
from tests.site.conftest import Page, Visit
from tests.site.test_site_axe import ALWAYS, UNFOLD

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
PHONE = {"width": 390, "has_touch": True, "is_mobile": True}
DRAWN = "inner_loop.drawn_speedup"
# What is wider than its place and bears no sign of it; letters below 10 pixels. The letters of a picture are 13 pixels
# of the width at which it was drawn (figures/look.py).
WRONG = """() => {
  const found = [];
  const shown = one => one.checkVisibility() && !one.closest('.katex-mathml');
  for (const one of document.querySelectorAll('article *')) {
    if (!one.clientWidth || one.matches('select, input, textarea') || one.closest('svg *') || !shown(one)) continue;
    const cut = one.scrollWidth - one.clientWidth > 2 && getComputedStyle(one).overflowX !== 'visible';
    if (cut && !one.matches('.more-left, .more-right')) found.push(`cut: ${one.outerHTML.slice(0, 150)}`);
  }
  const texts = document.createTreeWalker(document.querySelector('article') ?? document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const one = texts.currentNode.parentElement, svg = one.closest('svg');
    if (!texts.currentNode.data.trim() || one.closest('script, style, option, .katex') || !shown(one)) continue;
    const shrunk = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    const letter = shrunk * parseFloat(getComputedStyle(one).fontSize);
    if (letter < 10) found.push(`${letter.toFixed(1)} pixels: ${texts.currentNode.data.trim().slice(0, 80)}`);
  }
  for (const one of document.querySelectorAll('.image-reference img')) {
    if (!shown(one)) continue;
    const slim = one.parentElement.querySelector('source'), wide = one.style.getPropertyValue('--wide');
    const drawn = slim && matchMedia(slim.media).matches ? slim.width : parseFloat(wide);
    const letter = 13 * one.getBoundingClientRect().width / drawn;
    if (!(letter >= 10)) found.push(`${letter.toFixed(1)} pixels: ${one.alt.slice(0, 80)}`);
  }
  return found;
}"""
RESTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"


def wrong(page: Any) -> list[str]:
    page.evaluate(UNFOLD)
    page.evaluate(RESTED)
    return list(page.evaluate(WRONG))


def test_nothing_is_cut_and_every_letter_can_be_read(visit: Callable[..., Visit], pages: dict[str, Page]) -> None:
    page = visit("index.html", **PHONE).page
    found = {}
    for name in sorted({*todays(list(pages)), *ALWAYS}):
        page.goto(name)
        found[name] = wrong(page)
    assert not {name: said for name, said in found.items() if said}


def test_what_is_cut_or_small_is_found(visit: Callable[..., Visit]) -> None:
    page = visit("1_inner_loop/2_roofline.html", **PHONE).page
    assert wrong(page) == []
    page.evaluate("""() => {
      for (const one of document.querySelectorAll('.more-right')) one.classList.remove('more-right');
      document.querySelector('article p').style.fontSize = '9px';
      for (const {style} of document.querySelectorAll('.image-reference img')) {
        Object.assign(style, {minWidth: 0, maxWidth: '50%'});
      }
    }""")
    said = " ".join(page.evaluate(WRONG))
    assert all(mark in said for mark in ("cut: <pre", "9.0 pixels: ", "pixels: Roofline."))


def test_the_list_of_headings_closes_once_one_is_chosen(visit: Callable[..., Visit]) -> None:
    page = visit("1_inner_loop/2_roofline.html", **PHONE).page
    page.get_by_role("button", name="On this page").tap()
    drawer = page.locator("#pst-secondary-sidebar-modal")
    drawer.locator("a[href^='#']").nth(2).tap()
    page.wait_for_url("**/2_roofline.html#*")
    page.wait_for_function("!document.querySelector('dialog[open]')")


def test_the_first_stroke_of_a_finger_draws(visit: Callable[..., Visit]) -> None:
    """Five seconds, since Python and Vega come meanwhile: what was drawn before them is not lost."""
    page = visit("1_inner_loop/1_three_loops.html", **PHONE).page
    chart = page.locator(f"[data-explorer='{DRAWN}'] .tl-chart")
    page.locator(f"[data-explorer='{DRAWN}'] .explorer-note").wait_for()  # its controls are there: nothing moves now
    chart.evaluate("one => one.scrollIntoView({block: 'center', behavior: 'instant'})")
    page.wait_for_load_state("networkidle")
    points = "all => all.map(one => one.value)"
    sliders = page.locator(f"[data-explorer='{DRAWN}'] input[type=range]")
    before = sliders.evaluate_all(points)
    box = chart.bounding_box()
    finger = page.context.new_cdp_session(page)
    at = lambda share: [  # noqa: E731
        {"x": box["x"] + (0.2 + 0.7 * share) * box["width"], "y": box["y"] + (0.6 - 0.3 * share) * box["height"]}
    ]
    finger.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": at(0)})
    for step in range(1, 41):
        finger.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": at(step / 40)})
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    moved = f"before => [...document.querySelectorAll(\"[data-explorer='{DRAWN}'] input[type=range]\")]"
    page.wait_for_function(f"{moved}.every((one, place) => one.value !== before[place])", arg=before)
    assert page.evaluate("scrollX") == 0
    drawn = [int(value) for value in sliders.evaluate_all(points)]
    assert drawn == sorted(drawn), "the stroke went up"

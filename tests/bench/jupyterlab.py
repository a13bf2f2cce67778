"""How a part behaves in JupyterLab, in a real browser: python tests/bench/jupyterlab.py [PART]

The start page (nothing cached), the click on a part until its text can be read (aim 4 s), a jump in the contents
(0.3 s), a key typed in the last code cell (40 ms), and whether a widget that was scrolled out of sight and back still
answers. PART is a number or a word of a title, as for `book.py`; without it, roofline. Prints; fails on no time.
`--smoke` is the smallest run.
"""

import contextlib
import json
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.chapters.conftest import ROOT, chromium_path, running
from tests.chapters.test_browser import numbered
from threeloops import contents
from threeloops.desk import copies
from threeloops.desk.jupyter import lab_command
from threeloops.units import fmt_seconds, ms

OPENINGS, KEYS, WIDGET = 3, 40, "_widget.explorer("
IDLE = ".threeloops-bar[data-kernel='idle']"
SHOWN = """title => { const box = [...document.querySelectorAll('.jp-Notebook h1, .jp-Notebook h2, .jp-Notebook h3')]
  .find(found => found.textContent.includes(title))?.getBoundingClientRect(); return box && box.top >= 0 && box.bottom < window.innerHeight; }"""  # noqa: E501
# Presses an entry of the contents and waits, frame by frame, until its heading is in sight.
JUMP = """
async heading => {
  const entry = [...document.querySelectorAll('#table-of-contents .jp-tocItem-heading')].find(found => found.textContent.includes(heading));
  const start = performance.now();
  entry.dispatchEvent(new MouseEvent('mousedown', {bubbles: true, cancelable: true}));
  while (!(SHOWN)(heading)) {
    if (performance.now() - start > 5000) {
      const found = [...document.querySelectorAll('.jp-Notebook h2, .jp-Notebook h3')].find(one => one.textContent.includes(heading));
      return {missed: found ? `is at ${Math.round(found.getBoundingClientRect().top)} px` : 'is not drawn'};
    }
    await new Promise(done => requestAnimationFrame(done));
  }
  return {taken: performance.now() - start};
}""".replace("SHOWN", SHOWN)  # noqa: E501
# Notes, for every key that reaches the page, when the frame with the changed text was drawn.
WATCH_KEYS = """
() => {
  window.keyTimes = [];
  const editor = document.activeElement.closest('.cm-content');
  let pressed = 0;
  editor.addEventListener('keydown', () => { pressed = performance.now(); }, true);
  new MutationObserver(() => {
    const since = pressed;
    pressed = 0;
    if (since) requestAnimationFrame(() => setTimeout(() => window.keyTimes.push(performance.now() - since)));
  }).observe(editor, {childList: true, characterData: true, subtree: true});
}"""


def said(what: str, seconds: Sequence[float], aim: str) -> None:
    print(
        f"{what}: median {fmt_seconds(statistics.median(seconds))}, slowest {fmt_seconds(max(seconds))} of"
        f" {len(seconds)} (aim {aim})",
        flush=True,
    )


def opened(browser: Any, address: str, copy: str, heading: str) -> tuple[Any, float, float]:
    """A page in a browser that has cached nothing: how long until the start page could be read, and from the click on
    a part until its heading could.
    """
    page = browser.new_context(viewport={"width": 1280, "height": 1000}).new_page()
    start = time.perf_counter()
    page.goto(address)
    page.locator(".threeloops-start h1").wait_for(timeout=60_000)
    clicked = time.perf_counter()
    page.locator(f'.threeloops-start th a[href="{copy}"]').click()
    page.wait_for_function(SHOWN, arg=heading, timeout=60_000, polling="raf")
    return page, clicked - start, time.perf_counter() - clicked


def jumps(page: Any, headings: list[str]) -> None:
    page.locator("#table-of-contents").get_by_text(headings[-1]).first.wait_for(timeout=30_000)
    for which in ("first", "second"):
        arrived = []
        for heading in [*headings[1:], headings[0]]:
            jump = page.evaluate(JUMP, heading)
            if "taken" in jump:
                arrived.append(jump["taken"] * ms)
            else:
                print(f"jump in the contents, {which} time round: not in sight after 5 s: {heading} {jump['missed']}")
        if arrived:
            said(f"jump in the contents, {which} time round", arrived, "0.3 s")


def keys(page: Any, index: int, count: int) -> None:
    cell = page.locator(numbered(index))
    cell.scroll_into_view_if_needed()
    cell.locator(".cm-content").click()
    page.evaluate(WATCH_KEYS)
    for letter in ("abcdefghij" * count)[:count]:
        page.keyboard.press(letter)
        page.wait_for_timeout(80)
    said("a key typed in the last code cell", [taken * ms for taken in page.evaluate("window.keyTimes")], "40 ms")


def widget(page: Any, index: int, last: int) -> None:
    """Run the widget's cell, scroll to the last part and back, and move its slider by a key."""
    cell = page.locator(numbered(index))
    cell.scroll_into_view_if_needed()
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    cell.locator("[role=graphics-document]").wait_for(timeout=60_000)
    for place in (last, index):
        page.locator(numbered(place)).scroll_into_view_if_needed()
        page.wait_for_timeout(1500)
    cell.locator("input[type=range]").first.focus()
    before = cell.locator("[role=graphics-document]").get_attribute("aria-label")
    start = time.perf_counter()
    page.keyboard.press("ArrowRight")
    try:
        page.wait_for_function(
            "([cell, before]) => { const now = cell.querySelector('[role=graphics-document]')?.ariaLabel; return now"
            " && now !== before; }",
            arg=[cell.element_handle(), before],
            timeout=10_000,
            polling="raf",
        )
        print(f"a widget scrolled away and back: alive, redrawn after {fmt_seconds(time.perf_counter() - start)}")
    except Exception as error:
        print(f"a widget scrolled away and back: DEAD ({type(error).__name__})")


def main(words: list[str]) -> None:
    smoke = "--smoke" in words
    place = contents.find_place(next((word for word in words if word != "--smoke"), "roofline"), ROOT)
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        root = Path(folder) / "root"
        for name in ("chapters", "drills"):
            shutil.copytree(ROOT / name, root / name)
        copy = copies.all_copies(root)[copies.part_key(place)]
        cells = json.loads(copy.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells]
        headings = [match[1] for source in sources if (match := re.match(r"#{2,3} (.*)", source))]
        code = [index for index, cell in enumerate(cells) if cell["cell_type"] == "code"]
        own = [cell["metadata"].get("threeloops", {}) for cell in cells]
        behind = {name for one in own for name in one.get("hides", ())}
        typed = [index for index in code if "card" not in own[index] and cells[index]["id"] not in behind]
        print(
            f"{place.name}: {len(cells)} cells, {len(headings)} headings, {copy.stat().st_size / 1e3:.0f} kB",
            flush=True,
        )
        driver = stack.enter_context(sync_playwright())
        browser = driver.chromium.launch(
            executable_path=chromium_path(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        history = {"THREELOOPS_HISTORY": str(Path(folder) / "history.sqlite3")}
        command = lab_command(None, browser=False, root=root)
        with running(command, root, Path(folder) / "jupyter", **history) as door:
            starts, clicks = [], []
            for _ in range(openings := 1 if smoke else OPENINGS):
                page, start, click = opened(browser, door.page, place.copy, headings[0])
                starts.append(start)
                clicks.append(click)
                if len(starts) < openings:
                    page.context.close()
            said("the start page, nothing cached", starts, "4 s")
            said("from the click to a part's text", clicks, "4 s")
            page.wait_for_selector(IDLE, timeout=60_000)
            page.wait_for_timeout(3000)  # JupyterLab still moves the focus for a moment
            jumps(page, [headings[0], headings[-1]] if smoke else headings)
            keys(page, typed[-1], 3 if smoke else KEYS)
            explorer = next((index for index in code if WIDGET in sources[index]), None)
            if explorer is None:
                print("no widget in this part")
            else:
                widget(page, explorer, len(cells) - 1)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])

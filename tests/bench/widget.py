"""Slider to redraw, in a real browser: python tests/bench/widget.py [candidate ...]

For every candidate: 60 presses of an arrow key on the batch slider, one after another, each timed from the key event
to the frame after the one in which the new batch stands in the figure; then 50 presses 40 ms apart, as when a key is
held, of which the figures that were really drawn are counted. The candidates draw the same layer. One that is not
installed is left out. `--smoke` is the smallest run, of the one that the book uses.
"""

import contextlib
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.chapters.conftest import chromium_path, running
from threeloops.desk.jupyter import lab_command
from threeloops.widgets.inner_loop.roofline import BATCHES

START = """
import ipywidgets as W
from dataclasses import replace
from threeloops.widgets.inner_loop import roofline, roofline_view
state = roofline.START
slider = W.SelectionSlider(description="batch", options=roofline.BATCHES, value=8)
def shown(batch): return roofline_view.view(replace(state, batch=batch))
"""
END = "\nredraw(8)\nslider.observe(lambda change: redraw(change['new']), 'value')\nW.VBox([slider, output])"
CANDIDATES = {
    "explorer (Vega-Lite, rows alone are sent)": (
        "ipywidgets",
        "from threeloops.widgets.inner_loop import roofline\nroofline.explorer()",
    ),
    "SVG string in ipywidgets.HTML": (
        "ipywidgets",
        START
        + """
import math
output = W.HTML()
def redraw(batch):
    figure = shown(batch).figure
    marks = [layer for layer in figure.body["layer"] if isinstance(layer["mark"], dict) and layer["mark"]["type"] == "point"][0]["data"]["values"]
    def place(mark): return f"x='{100 * math.log10(mark['x'] / 0.05):.1f}' y='{55 * (15 - math.log10(mark['y'])):.1f}'"
    dots = "".join(f"<rect {place(mark)} width='8' height='8'/><text {place(mark)}>{mark['words']}</text>" for mark in marks)
    output.value = f"<svg width='640' height='450' role='graphics-document'><text y='20'>{figure.caption}</text>{dots}</svg>"
"""  # noqa: E501
        + END,
    ),
    "altair JupyterChart, offline": (
        "altair",
        START
        + """
import altair
altair.JupyterChart.enable_offline()
def chart(batch):
    spec = {**shown(batch).figure.spec, "$schema": "https://vega.github.io/schema/vega-lite/v6.1.0.json"}
    return altair.Chart.from_dict(spec)
output = altair.JupyterChart(chart(8), embed_options={"renderer": "svg", "actions": False})
def redraw(batch): output.chart = chart(batch)
"""
        + END,
    ),
    "matplotlib, PNG in ipywidgets.Image": (
        "matplotlib",
        START
        + """
import io
import matplotlib; matplotlib.use("agg")
import matplotlib.pyplot as plt
picture, words = W.Image(width=640), W.HTML()
output = W.VBox([picture, words])
canvas, axes = plt.subplots(figsize=(6.4, 4.5), dpi=150)
def redraw(batch):
    view = shown(batch); axes.clear()
    axes.loglog([row.arithmetic_intensity for row in view.rows], [row.flops_per_s for row in view.rows], "o")
    for row in view.rows: axes.annotate(row.name, (row.arithmetic_intensity, row.flops_per_s))
    file = io.BytesIO(); canvas.savefig(file, format="png"); picture.value = file.getvalue()
    words.value = f"<div role='graphics-document'>{view.figure.caption}</div>"
"""
        + END,
    ),
}
# Watches the page: when a key goes down, and when the frame after the one with a new drawing of that batch is there.
WATCH = """
selector => {
  const frame = () => new Promise(done => requestAnimationFrame(done));
  const area = document.querySelector(selector);
  const figures = () => [...document.querySelectorAll('[role=graphics-document]')];
  // what is drawn, in words: the drawing's own, which change after its marks have
  const drawn = () => figures().map(figure => figure.getAttribute('aria-label') ?? figure.textContent).join(' ');
  const batch = () => (area.textContent.match(/batch ([\\d,]+),/) ?? [])[1];
  let pressed = 0;
  document.addEventListener('keydown', () => { pressed = performance.now(); }, true);
  window.once = async wanted => {
    const before = drawn();
    pressed = 0;
    const asked = performance.now();
    while (!pressed || batch() !== wanted || drawn() === before) {
      if (performance.now() - asked > 10000) throw Error('never drawn: ' + wanted);
      await frame();
    }
    await frame();
    return performance.now() - pressed;
  };
  window.held = {redraws: 0, heights: []};
  const heights = new Set();
  window.watch = async () => {
    let last = drawn();
    for (;;) {
      const now = drawn();
      if (now && now !== last) { last = now; window.held.redraws++; }
      heights.add(area.offsetHeight);
      window.held.heights = [...heights];
      await frame();
    }
  };
}
"""


def presses(count: int) -> list[tuple[str, int]]:
    """Up and down the slider, from 8."""
    place, step, found = BATCHES.index(8), 1, []
    for _ in range(count):
        step = -1 if place == len(BATCHES) - 2 else 1 if place == 1 else step
        place += step
        found.append(("ArrowRight" if step > 0 else "ArrowLeft", BATCHES[place]))
    return found


def measured(browser: Any, address: str, count: int) -> str:
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    requests: list[str] = []
    page.on(
        "request",
        lambda request: (
            requests.append(request.url) if "localhost" not in request.url and request.url.startswith("http") else None
        ),
    )
    page.goto(address)
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status='idle']", timeout=60_000)
    page.wait_for_timeout(2000)  # JupyterLab still moves the focus for a moment
    page.click(".jp-Notebook .jp-CodeCell .cm-content")
    start = time.perf_counter()
    page.keyboard.press("Control+Enter")
    try:
        page.wait_for_function(
            "() => document.querySelector('[role=graphics-document]')"
            " && document.querySelector('.jp-OutputArea').textContent.includes('batch 8,')",
            timeout=60_000,
        )
    except Exception:
        return f"never drawn: {page.inner_text('.jp-OutputArea')[-300:]!r}"
    first_s = time.perf_counter() - start
    page.locator("input[aria-valuetext='8'], [role=slider]").first.focus()
    page.evaluate(WATCH, ".jp-OutputArea")
    times = []
    for key, batch in presses(count):
        page.evaluate(f"window.waiting = window.once('{batch:,}'); undefined")
        page.keyboard.press(key)
        times.append(page.evaluate("window.waiting"))
        page.wait_for_timeout(60)
    page.wait_for_timeout(1000)
    page.evaluate("window.watch(); undefined")
    for key, _ in presses(min(count, 50)):
        page.keyboard.press(key)
        page.wait_for_timeout(40)
    page.wait_for_timeout(1500)
    held = page.evaluate("window.held")
    page.close()
    times = sorted(times[min(5, count // 2) :])
    jump = max(held["heights"]) - min(held["heights"])
    drawn = f"{held['redraws']:8} of {min(count, 50)}"
    return (
        f"{statistics.median(times):7.0f} {times[int(0.95 * len(times))]:7.0f} {drawn} {first_s:9.1f} {jump:9}"
        f" {len(requests):8}"
    )


def main(words: list[str]) -> None:
    from playwright.sync_api import sync_playwright

    smoke, names = (
        "--smoke" in words,
        [word for word in words if word != "--smoke"] or (["explorer"] if "--smoke" in words else []),
    )
    chosen = {
        name: code
        for name, (needs, code) in CANDIDATES.items()
        if importlib.util.find_spec(needs) and (not names or any(n in name for n in names))
    }
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        roots = [Path(folder) / f"root-{index}" for index in range(len(chosen))]  # what was open in one stays there
        for root, code in zip(roots, chosen.values(), strict=True):
            root.mkdir()
            cell: dict[str, Any] = {
                "cell_type": "code",
                "id": "cell",
                "metadata": {},
                "source": code,
                "outputs": [],
                "execution_count": None,
            }
            kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
            (root / "bench.ipynb").write_text(
                json.dumps({"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})
            )
        driver = stack.enter_context(sync_playwright())
        browser = driver.chromium.launch(
            executable_path=chromium_path(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        print(f"{'':42} median     p95   held key   first s  jump px  outside")
        for index, name in enumerate(chosen):
            command = lab_command(roots[index] / "bench.ipynb", browser=False, root=roots[index])
            with running(command, roots[index], Path(folder) / f"jupyter-{index}") as door:
                print(f"{name:42} {measured(browser, door.page, 4 if smoke else 60)}", flush=True)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])

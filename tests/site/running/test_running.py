"""Code run in the page: with what it needs above it, changed, put back, ended, and drawn for a phone."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.site.conftest import Visit
from tests.site.test_site_axe import RULES, findings
from tests.site.test_site_phone import PHONE, wrong
from threeloops.site import npm

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
PART = "1_inner_loop/2_roofline.html"
FORMATS = "machine_of = {"  # a cell that draws, and needs two above it


def cell(page: Any, words: str) -> Any:
    """The cell whose code has these words, with what stands below it."""
    return page.locator("div.cell", has=page.locator(".cell_input", has_text=words)).first


def below(one: Any) -> Any:
    return one.locator("xpath=following-sibling::div[contains(@class, 'run')][1]")


def test_a_cell_is_run_changed_and_put_back(visit: Callable[..., Visit]) -> None:
    seen = visit(PART, reduced_motion="reduce")
    page = seen.page
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert not [address for address in seen.asked if "python/" in address], "nothing of Python before the first run"
    one = cell(page, "for key in (*nvidia")
    book = one.locator(".cell_output").inner_text()
    one.get_by_role("button", name="Run").click()
    below(one).get_by_text("Run here.").wait_for()
    assert below(one).locator("pre").inner_text().split() == book.split()
    assert not one.locator(".cell_output").is_visible()
    one.get_by_role("button", name="Change").click()
    field = one.get_by_label("The code of cell")
    field.fill("print(f'{a100.name} {bandwidth:.3g}')\n1 / 0")
    field.press("Shift+Enter")
    below(one).get_by_text("It ended with an error.").wait_for()
    assert below(one).locator("pre").all_inner_texts() == [
        "NVIDIA A100 SXM4 80GB 2.04e+12\n",
        "line 2: 1 / 0\nZeroDivisionError: division by zero",
    ]
    axe_finds_nothing(seen)
    for word in ("Run", "Undo"):
        buttons = page.get_by_role("button", name=word)
        heard = [each.get_attribute("aria-label") for each in buttons.all()]
        assert len(heard) == len({*heard}), "which cell a button runs"
    assert one.get_by_role("button", name=re.compile(r"^Run cell \d+, \S")).count() == 1
    one.get_by_role("button", name="Undo").click()
    assert one.locator(".cell_output").is_visible()
    assert not below(one).inner_text().strip()
    assert page.evaluate("document.activeElement.textContent") == "Run"
    what_is_changed_above_counts_below(page)


def what_is_changed_above_counts_below(page: Any) -> None:
    first = cell(page, 'a100, h100 = hardware.part("a100-sxm4-80gb")')
    first.get_by_role("button", name="Change").click()
    field = first.get_by_label("The code of cell")
    field.fill(field.input_value().replace("a100-sxm4-80gb", "h200-sxm"))
    drawing = cell(page, FORMATS)
    drawing.get_by_role("button", name="Run").click()
    figure = below(drawing).get_by_role("img")
    figure.locator("svg").wait_for()
    assert "Memory 4.8" in figure.get_attribute("aria-label"), "of the other GPU"
    wide = figure.locator("svg").bounding_box()["width"]
    page.set_viewport_size({"width": PHONE["width"], "height": 844})
    drawing.get_by_role("button", name="Run").click()
    page.wait_for_function("wide => document.querySelector('.run-figure svg')?.clientWidth < wide", arg=wide)
    assert not wrong(page), "on a phone"


def axe_finds_nothing(seen: Visit) -> None:
    seen.page.evaluate((npm.kept("axe-core") / "axe.min.js").read_text(encoding="utf-8"))
    for scheme in RULES:
        seen.page.evaluate("scheme => { document.documentElement.dataset.theme = scheme; }", scheme)
        assert not findings(seen, scheme)

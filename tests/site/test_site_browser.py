"""The pages as somebody meets them in a browser."""

from collections.abc import Callable

import pytest

from tests.site.conftest import Visit

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
PART = "1_inner_loop/2_roofline.html"


def test_a_part_is_read_and_the_next_one_is_one_click_away(visit: Callable[..., Visit]) -> None:
    page = visit(PART).page
    assert page.locator("h1").inner_text().startswith("1.2 Roofline")
    assert page.get_by_text("python3 book.py 1.2").first.is_visible()
    page.locator("a.right-next").click()
    page.wait_for_url("**/3_the_gpu.html")


def test_dark_is_chosen_and_kept(visit: Callable[..., Visit]) -> None:
    page = visit(PART).page
    theme = "document.documentElement.dataset.theme"
    assert page.evaluate(theme) == "light"
    page.get_by_role("button", name="Color mode").click()
    page.get_by_role("button", name="Dark").click()
    page.wait_for_function(f"{theme} === 'dark'")
    page.reload()
    assert page.evaluate(theme) == "dark"
    assert visit(PART, scheme="dark").page.evaluate(theme) == "dark"


def test_without_scripts_the_page_is_there(visit: Callable[..., Visit]) -> None:
    page = visit(PART, java_script_enabled=False).page
    assert page.get_by_text("You can stop here.").is_visible()
    assert page.locator(".drill summary").first.is_visible()
    assert page.locator("img:visible").count()
    assert page.locator(".explorer .tl-wide svg").last.is_visible()
    assert page.locator(".explorer .tl-table").last.is_visible()

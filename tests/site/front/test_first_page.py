"""The first page: four chapters with what they ask and take, a way to start, to go on, and to spend five minutes."""

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.site.conftest import ROOT, Page, Visit
from threeloops.contents import CHAPTERS, places
from threeloops.drills.engine.bank import DRILLS
from threeloops.site.front import page
from threeloops.site.front.edition import edition

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
REFUSED = """Object.defineProperty(window, 'localStorage', {
  configurable: true, get() { throw new DOMException('denied'); },
})"""
FIRST_SCREEN = 900  # pixels, as in `visit`


def test_each_chapter_says_what_it_asks_and_takes(pages: dict[str, Page]) -> None:
    source = pages["index.html"].source
    assert source.count('class="front-question"') == len(CHAPTERS) == len(page.PROMISES)
    for number, title in CHAPTERS.values():
        parts = [place for place in places(ROOT) if place.chapter == number]
        hours = sum(place.minutes for place in parts) / 60
        assert f">{number} {title}</a></h2>" in source
        assert f"<p>{len(parts)} parts, {hours:.1f} hours; " in source
    told = edition(ROOT)
    assert f"Version {told.version} of {told.date}" in source
    assert ">Source<" in source or not told.repository


def test_the_drills_of_a_day_fit_into_five_minutes() -> None:
    drills = page.today()
    assert list(drills) == ["inner", "product", "training"]
    assert min(len(each) for each in drills.values()) > 20
    assert sum(max(DRILLS[key].target_s for key, _ in each) for each in drills.values()) <= 300


def test_a_reader_starts_and_is_led_back(visit: Callable[..., Visit]) -> None:
    seen = visit("index.html").page
    assert seen.locator("#front-last").is_hidden()
    start = seen.get_by_role("link", name="Start reading")
    assert start.bounding_box()["y"] < FIRST_SCREEN
    start.click()
    seen.wait_for_url("**/1_inner_loop/1_*.html")
    heading = seen.locator("article h2").nth(2)
    heading.evaluate("one => one.scrollIntoView({behavior: 'instant'})")
    name = heading.evaluate("one => one.parentElement.id")
    seen.goto("index.html")
    back = seen.locator("#front-last")
    assert back.inner_text() == "Where you were: 1.1 Three loops"
    assert back.get_attribute("href").endswith(f"1_three_loops.html#{name}")


def test_where_nothing_can_be_kept_the_page_is_whole(visit: Callable[..., Visit]) -> None:
    seen = visit("index.html").page
    seen.add_init_script(REFUSED)
    seen.goto("1_inner_loop/2_roofline.html")
    assert seen.evaluate("document.documentElement.dataset.theme") == "light"
    seen.goto("index.html")
    links = [seen.locator("#front-today a").nth(number).get_attribute("href") for number in range(3)]
    assert len({parse_qs(urlsplit(link).query)["drill"][0] for link in links} & set(DRILLS)) == 3


def test_what_is_not_there_is_answered_with_a_page(visit: Callable[..., Visit], home: str) -> None:
    seen = visit("404.html").page
    answer = seen.request.get(f"{home}1_inner_loop/no/such.html")
    assert answer.status == 404
    links = re.findall(r'href="([^"#:]+\.html)"', answer.text())
    assert '<base href="/" />' in answer.text()
    assert "index.html" in links
    assert not [link for link in links if link.startswith("..")]

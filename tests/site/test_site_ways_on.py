"""What leads on from a question: another one at random or due, the end of a set with its mistakes, how far one is."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.site.conftest import ROOT, Page, Visit, until
from tests.site.test_site_cards import answers, said
from threeloops.drills.engine.bank import DRILLS
from threeloops.room.mistakes import stories
from threeloops.site import parts
from threeloops.site.answering import SEED
from threeloops.site.front import far

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
FIRST_SET, PART = "drills/first_steps.html", "1_inner_loop/1_three_loops"
SETTLED = "async () => (await threeloops.all()).length === %d"


def test_a_set_ends_with_its_mistakes_and_they_are_practised(visit: Callable[..., Visit]) -> None:
    page = visit(FIRST_SET).page
    cards = page.locator(".drill[data-drill]")
    keys = [cards.nth(number).get_attribute("data-drill") for number in range(cards.count())]
    for number, key in enumerate(keys):
        right, wrong, *_ = answers(key, SEED)
        if number == len(keys) - 1:
            until(page, "async () => threeloops.book.running")
        for written in ([wrong] if number == 0 else []) + [right]:
            cards.nth(number).get_by_role("textbox").fill(written)
            cards.nth(number).get_by_role("button", name="Check").click()
            if written == wrong:
                until(page, SETTLED % 1)
        said(cards.nth(number), "Right.")
        until(page, SETTLED % (number + 1))
    end = page.locator(".set-end")
    page.get_by_text(f"{len(keys)} of {len(keys)} questions answered on this page").wait_for()
    # by itself, with the last answer counted
    end.get_by_text(
        f"Your first answer was right in {len(keys) - 1} of {len(keys)} questions. Look again at:"
    ).wait_for()
    end.get_by_role("button", name="How it went").click()
    missed = end.get_by_role("listitem")
    assert missed.count() == 1
    assert missed.inner_text().startswith(f"{DRILLS[keys[0]].title}: ")
    assert any(story in missed.inner_text() for story in stories(keys[0]).values())
    missed.get_by_role("link").click()
    page.wait_for_url(f"**/practise.html?drill={keys[0]}&seed=*")
    what_is_due_comes_again(page, keys)


def what_is_due_comes_again(page: Any, keys: list[str]) -> None:
    """Of a track and of a family alone; `Next question` goes on in the same way."""
    page.get_by_role("button", name="What is due").click()
    said(page, "Nothing else of this is due today.")
    page.goto("practise.html")
    page.get_by_label("Among").select_option("family:kv cache")
    page.wait_for_url("**/practise.html?drill=*")
    assert DRILLS[page.get_by_label("Drill", exact=True).input_value()].family == "kv_cache"
    page.get_by_label("Among").select_option("track:kernels")
    page.get_by_role("button", name="At random").click()
    until(
        page,
        f"async () => !{[key for key, one in DRILLS.items() if one.loop != 'inner']!r}"
        ".includes(document.getElementById('drill-choice').value)",
    )
    said(page, "A new question stands above.")
    key, seed = page.evaluate("[...new URLSearchParams(location.search).values()]")
    page.get_by_label("Your answer").fill(answers(key, seed)[0])
    page.get_by_label("Your answer").press("Enter")
    said(page, "Right.")
    until(page, f"async () => threeloops.left('right {key}')")
    page.get_by_role("button", name="Next question").click()
    said(page, "A new question stands above.")
    other = page.get_by_label("Drill", exact=True).input_value()
    assert DRILLS[other].loop == "inner"
    assert other != key


def test_how_far_a_reader_is_stands_at_the_chapter_and_on_the_first_page(visit: Callable[..., Visit]) -> None:
    (part,) = [one for one in parts.parts(ROOT) if one.page == PART]
    page = visit("1_inner_loop/index.html").page
    assert page.locator("section.far").is_hidden()
    page.goto(f"{PART}.html")
    page.locator(".drill[data-outcome]").first.get_by_role("button", name="Skip").click()
    until(page, "async () => (await threeloops.written()).length")
    page.goto("1_inner_loop/index.html")
    row = page.locator(f"[data-far='{PART}']")
    row.get_by_text(f"1 of {len(far.asked(part))}").wait_for()
    row.get_by_role("link").click()
    page.wait_for_url(f"**/{PART}.html")
    page.goto("index.html")
    page.locator("[data-far='1_inner_loop']", has_text="1 of ").wait_for()
    assert page.locator("[data-far='2_training_loop']").is_hidden()


def test_what_is_counted_is_what_the_pages_ask(pages: dict[str, Page]) -> None:
    for part in parts.parts(ROOT):
        source = pages[f"{part.page}.html"].source
        cards = source.count(' data-outcome="') + source.count(' data-drill="')
        assert len(far.asked(part)) == cards, part.page

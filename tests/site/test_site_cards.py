"""Questions answered in the page: Python comes on the first touch and not before, and says what it says at home."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.seeds import SHARES, todays
from tests.site.conftest import Visit, until
from threeloops.drills.engine.bank import DRILLS
from threeloops.room.question import draw_of
from threeloops.site import answering
from threeloops.site.answering import SEED

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
SET, KEY, NEXT = "drills/kv_cache.html", "kv-bytes-per-token", "kv-whole-requests"
ALL = """async calls => {
  const said = [];
  for (const [name, ...words] of calls) said.push(await threeloops.call(name, ...words));
  return said;
}"""


def answers(key: str, seed: str) -> list[str]:
    """The right answer of a question, and what each slip would have written."""
    drill = DRILLS[key]
    p = draw_of(drill, seed)
    values = [drill.derive(p).value, *(slip.wrong(p) for slip in drill.slips)]
    return [f"{value!r} {drill.unit}".strip() for value in values]


def left_to_python(written: str) -> str:
    """An answer in a spelling that a page does not read by itself.

    >>> left_to_python("14784 B")
    '14784 Bytes'
    """
    return f"{written}ytes"


def said(card: Any, start: str) -> None:
    """Wait until a card says something that begins so."""
    card.locator(".drill-said", has_text=re.compile(rf"^\s*{re.escape(start)}")).wait_for()


def test_wrong_then_right(visit: Callable[..., Visit]) -> None:
    seen = visit(SET)
    card = seen.page.locator(f".drill[data-drill={KEY}]")
    assert not [address for address in seen.asked if "python/" in address], "nothing of Python before the first touch"
    right, *wrong = answers(KEY, SEED)
    card.get_by_role("textbox").fill(wrong[0])
    card.get_by_role("button", name="Check").click()
    said(card, json.loads(answering.judged(KEY, SEED, wrong[0]))["message"])
    assert not card.locator("pre").is_visible()
    card.get_by_role("textbox").fill(right)
    card.get_by_role("textbox").press("Enter")
    said(card, "Right.")
    assert card.locator("pre").inner_text() == answering.put(KEY, SEED).working
    card.get_by_role("textbox").press("Tab")  # everything else is one key further: Check, then what is left
    seen.page.keyboard.press("Tab")
    assert seen.page.evaluate("document.activeElement.textContent") == "Next question"
    it_leads_on_and_is_ticked_on_return(seen.page, card)
    a_hint_says_its_cost_first_and_other_numbers_are_other(seen.page.locator(f".drill[data-drill={NEXT}]"))


def it_leads_on_and_is_ticked_on_return(page: Any, card: Any) -> None:
    drills = page.locator(".drill[data-drill]").count()
    standing = f"1 of {drills} questions answered on this page"
    page.get_by_text(standing).wait_for()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('.drill').dataset.drill") == NEXT
    until(page, "async () => (await threeloops.written()).length")
    page.reload()
    page.get_by_text(standing).wait_for()
    assert card.locator(".drill-title").inner_text().endswith("✓ right")
    assert page.get_by_text("✓").count() == 1


def a_hint_says_its_cost_first_and_other_numbers_are_other(card: Any) -> None:
    before = card.locator(".drill-question").inner_text()
    card.get_by_role("button", name="Hint").click()
    said(card, "A right answer after one hint counts as slow.")
    card.get_by_role("button", name="Hint").click()
    said(card, answering.put(NEXT, SEED).hints[0])
    card.get_by_role("button", name="Other numbers").click()
    said(card, "A new question stands above.")
    assert card.locator(".drill-question").inner_text() != before
    card.get_by_role("button", name="Show the working").click()
    card.locator("pre").wait_for()


def test_other_numbers_are_other_numbers() -> None:
    """Also where the new seed would have drawn the old question: here it is the very same seed."""
    for key in DRILLS:
        given = json.loads(answering.other(key, SEED, SEED))
        assert given["text"] == answering.put(key, given["seed"]).text != answering.put(key, SEED).text


def test_an_address_asks_that_very_question_and_every_verdict_is_that_of_python(visit: Callable[..., Visit]) -> None:
    page = visit(f"practise.html?drill={KEY}&seed=thursday").page
    said(page, "A new question")
    asked = answering.put(KEY, "thursday")
    shown = page.locator(".drill-question").inner_text().split()
    assert shown == asked.text.split()
    assert page.locator(".drill-title").inner_text() == asked.title
    page.get_by_label("Drill", exact=True).select_option("amdahl-one-part")
    page.wait_for_url("**/practise.html?drill=amdahl-one-part&seed=*")
    every_drill_is_judged_in_the_page_as_in_python(page)


def every_drill_is_judged_in_the_page_as_in_python(page: Any) -> None:
    for seed in todays([f"page-{number}" for number in range(SHARES)]):
        calls = [
            call
            for key in DRILLS
            for call in (
                ("pose", key, seed),
                ("working", key, seed),
                *(("judged", key, seed, written) for written in answers(key, seed)),
            )
        ]
        there = page.evaluate(ALL, calls)
        here = [json.loads(getattr(answering, name)(*words)) for name, *words in calls]
        differ = [(call, one, other) for call, one, other in zip(calls, there, here, strict=True) if one != other]
        assert not differ
        assert sum(one["status"] == "right" for one in here if "status" in one) >= len(DRILLS)


def test_an_unknown_drill_ends_in_a_sentence(visit: Callable[..., Visit]) -> None:
    said(visit("practise.html?drill=nonsense").page, "No drill is called nonsense")


def test_opened_as_a_file_the_page_says_what_would_help(chromium: Any, folder: Path) -> None:
    page = chromium.new_page()
    page.goto((folder / SET).as_uri())
    card = page.locator(".drill").first
    card.get_by_role("textbox").fill("138 kB")
    card.get_by_role("button", name="Check").click()
    said(card, "A browser runs nothing from a file.")
    page.close()

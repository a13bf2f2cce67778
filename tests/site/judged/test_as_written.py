"""Answers that a page judges by itself: the verdict is Python's, and so is what is remembered."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.seeds import todays
from tests.site.conftest import Visit, until
from tests.site.test_site_cards import KEY, SET, answers, said
from threeloops.drills.engine.bank import DRILLS, FAMILIES
from threeloops.site import answering, remembering
from threeloops.site.answering import SEED
from threeloops.site.judged import as_written

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
JUDGED = "calls => calls.map(([written, question]) => threeloops.verdict(written, question))"
AWAY = (0.5, 0.979, 0.98, 0.981, 1.019, 1.02, 1.021, 1.09, 2, 1000)  # times what is right, or what a slip gives


def written(key: str) -> list[str]:
    """The answer and each slip, and what lies beside them, as people write numbers."""
    unit = DRILLS[key].unit
    values = [float(one.partition(" ")[0]) for one in answers(key, SEED)]
    near = [f"{value * times:.4g} {unit}".strip() for value in values for times in AWAY]
    units = ("ms", "GB", "GB/s", "TFLOP", "TFLOP/s", "FLOP/B", "tokens", "tokens/s", "W", "km", "dollars", "%", "x")
    return [
        *answers(key, SEED),
        *(f"7 {other}" for other in units),
        *near,
        f"{values[0]:,.0f} {unit}".strip(),
        f"{values[0]}",
        "soon",
        f"~{values[0]}%",
    ]


def test_what_a_page_says_by_itself_is_what_python_says(visit: Callable[..., Visit], folder: Path) -> None:
    told: dict[str, Any] = {}
    for family in FAMILIES:
        path = folder / "_static" / as_written.FOLDER / f"{family}.json"
        told |= json.loads(path.read_text(encoding="utf-8"))
    assert set(told) == {key for key, drill in DRILLS.items() if not drill.whole}
    tried = [(key, one) for key in todays([*told]) for one in written(key)]
    there = visit("404.html").page.evaluate(JUDGED, [[one, told[key]] for key, one in tried])
    here = [json.loads(answering.judged(key, SEED, one)) for key, one in tried]
    differ = [(call, one, other) for call, one, other in zip(tried, there, here, strict=True) if one and one != other]
    assert not differ, differ[:3]
    plain = [one for one in there if one]
    assert len(plain) > len(tried) / 3
    assert {one["status"] for one in plain} == {"right", "slip", "unreadable"}


def test_a_wait_for_a_question_as_data_is_said(visit: Callable[..., Visit]) -> None:
    page = visit(SET, service_workers="block").page
    held: list[Any] = []
    page.context.route(f"**/{as_written.FOLDER}/*", lambda route: held.append(route))
    card = page.locator(f".drill[data-drill={KEY}]")
    right, *_ = answers(KEY, SEED)
    card.get_by_role("textbox").fill(right)
    card.get_by_role("button", name="Check").click()
    said(card, "One moment …")
    for route in held:
        route.continue_()
    said(card, "Right.")


def test_what_is_surely_not_right_is_said_before_python_says_why(visit: Callable[..., Visit]) -> None:
    page = visit(SET, service_workers="block").page
    held: list[Any] = []
    page.context.route("**/python/*", lambda route: held.append(route))
    card = page.locator(f".drill[data-drill={KEY}]")
    field = card.get_by_role("textbox")
    for written in ("77", "77 ms"):
        field.fill(written)
        field.press("Enter")
        said(card, json.loads(answering.judged(KEY, SEED, written))["message"])
    field.fill("77 B")
    field.press("Enter")
    said(card, "Not right. Which mistake it looks like, Python will say.")
    for route in held:
        route.continue_()
    page.context.unroute("**/python/*")
    said(card, json.loads(answering.judged(KEY, SEED, "77 B"))["message"])


def test_a_verdict_and_what_is_remembered_wait_for_no_python(visit: Callable[..., Visit]) -> None:
    page = visit(SET, service_workers="block").page
    page.context.route("**/python/*", lambda route: None)  # it never comes
    card = page.locator(f".drill[data-drill={KEY}]")
    right, wrong, *_ = answers(KEY, SEED)
    card.get_by_role("textbox").fill(wrong)
    card.get_by_role("button", name="Check").click()
    said(card, json.loads(answering.judged(KEY, SEED, wrong))["message"])
    until(page, "async () => (await threeloops.all()).length")
    (kept,) = page.evaluate("threeloops.all()")
    own = ("session", "seconds", "at_s")
    expected = json.loads(remembering.attempt(KEY, SEED, wrong, "wrong", kept["slips"], 1, 0, "", 0, 0))
    assert {**kept, **dict.fromkeys(own)} == {**expected, **dict.fromkeys(own)}
    assert kept["slips"]
    card.get_by_role("textbox").fill(right)
    card.get_by_role("textbox").press("Enter")
    said(card, "Right.")
    assert card.locator("pre").inner_text() == answering.put(KEY, SEED).working

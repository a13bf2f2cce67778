"""The interview room on its page: the room's own questions, clock and memory; it goes on where it was left."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.site.conftest import ROOT, Visit, until
from tests.site.test_site_cards import answers
from threeloops import wall_clock
from threeloops.contents import STARTER
from threeloops.room import ideas, plan
from threeloops.room.attempts import Attempt, plan_of
from threeloops.room.history import NOWHERE, History
from threeloops.site import parts, remembering
from threeloops.site.answering import put
from threeloops.site.rehearsal import sitting

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
ROOM, SITTING = "room.html", "room sitting"
TOPIC = "kv_cache"
PHONE = 390


def heading(page: Any, start: str) -> None:
    """Wait until the room's heading begins so."""
    page.locator(".interview-room h3", has_text=start).wait_for()


def left(page: Any) -> dict[str, Any]:
    """The sitting that the browser keeps, once it keeps one."""
    until(page, f"async () => (await threeloops.left('{SITTING}'))?.record")
    found: dict[str, Any] = page.evaluate(f"threeloops.left('{SITTING}')")["record"]
    return found


def button(page: Any, name: str) -> Any:
    return page.locator(".interview-room").get_by_role("button", name=name, exact=True)


def test_a_sprint_is_held_left_taken_up_and_remembered(visit: Callable[..., Visit]) -> None:
    seen = visit(ROOM, width=PHONE)
    page = seen.page
    heading(page, "The interview room")
    assert page.get_by_label("Mode", exact=True).input_value() == "sprint"
    assert not [address for address in seen.asked if "python/" in address], "nothing of Python before the first touch"
    page.get_by_label("Topic").select_option(TOPIC)
    page.get_by_label("Questions", exact=True).fill("2")
    button(page, "begin").click()
    heading(page, "Question 1 of 2: ")
    page.locator(".interview-room .clock", has_text="left of").wait_for()
    first, second = plan_of(left(page)["plan"])
    asked = ideas.pose(first.idea, first.kind, first.seed)
    assert page.locator(".interview-room h3").inner_text() == f"Question 1 of 2: {asked.title}"
    assert asked.text.split()[:5] == page.locator(".interview-room [id$=question]").inner_text().split()[:5]
    button(page, "give up").click()
    page.locator(".interview-room .said", has_text="Given up").wait_for()
    link = page.locator(".interview-room a[href]")
    assert (
        link.get_attribute("href") == {part.name: f"{part.page}.html" for part in parts.parts(ROOT)}[link.inner_text()]
    )
    until(page, "async () => (await threeloops.all()).length === 1")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE

    page.reload()
    page.get_by_text("Left unfinished: sprint, question 2 of 2").wait_for()
    button(page, "continue").click()
    heading(page, "Question 2 of 2: ")
    button(page, "give up").click()
    button(page, "next").click()
    heading(page, "This sprint is over.")
    page.get_by_text("What to look at again:").wait_for()
    until(page, f"async () => (await threeloops.left('{SITTING}')).record === null")
    kept = [Attempt(**one) for one in page.evaluate("threeloops.all()")]
    assert [(one.idea, one.kind, one.seed, one.status) for one in kept] == [
        (ask.idea, ask.kind, ask.seed, "given-up") for ask in (first, second)
    ]
    assert [one.target_s for one in kept] == [
        ideas.pose(ask.idea, ask.kind, ask.seed).allowed_s for ask in (first, second)
    ]
    what_is_due_here_is_due_at_the_desk(page, kept)


def what_is_due_here_is_due_at_the_desk(page: Any, kept: list[Attempt]) -> None:
    asked = {one.idea for one in kept}  # due tomorrow, not today
    others = [key for key in ("kv-latent", "kv-bytes-per-token", "kv-scales", "kv-paged-blocks") if key not in asked]
    missed = [
        json.loads(remembering.attempt(key, "s", "1 B", "wrong", "", 9, 0, "desk", number, 1.7e9))
        for number, key in enumerate(others[:2])
    ]
    page.evaluate("attempts => threeloops.add(attempts)", missed)
    desk = History(NOWHERE)
    desk.add([*kept, *(Attempt(**one) for one in missed)])
    due = plan.questions("today", plan.Wish(), desk, seed="a", now=wall_clock.now())
    assert {one["idea"] for one in missed} <= {ask.idea for ask in due}
    page.goto(f"{ROOM}?mode=today")
    assert page.get_by_label("Mode", exact=True).input_value() == "today"
    button(page, "begin").click()
    heading(page, f"Question 1 of {len(due)}: ")
    assert [ask.idea for ask in plan_of(left(page)["plan"])] == [ask.idea for ask in due]


def test_a_wrong_answer_is_told_its_mistake_and_stays_until_it_is_right(visit: Callable[..., Visit]) -> None:
    page = visit(f"{ROOM}?mode=warm-up").page
    page.get_by_label("Topic").select_option(STARTER)
    page.get_by_label("Questions", exact=True).fill("1")
    button(page, "begin").click()
    heading(page, "Question 1 of 1: ")
    assert page.locator(".interview-room .clock").is_hidden()
    (ask,) = plan_of(left(page)["plan"])
    right, wrong, *_ = answers(ask.idea, ask.seed)
    page.get_by_label("Your answer").fill(wrong)
    page.get_by_label("Your answer").press("Enter")
    page.locator(".interview-room .said", has_text=put(ask.idea, ask.seed).judge(wrong).message[:40]).wait_for()
    page.get_by_label("Your answer").fill(right)
    page.get_by_label("Your answer").press("Enter")
    page.locator(".interview-room .said", has_text="Right.").wait_for()
    button(page, "next").click()


BROKEN = "self.onmessage = ({data}) => self.postMessage({id: data.id, error: 'It broke.', again: true});"


def test_what_fails_at_once_leaves_no_wait_and_the_same_button_works_again(visit: Callable[..., Visit]) -> None:
    page = visit(f"{ROOM}?mode=warm-up", service_workers="block").page
    room = page.locator(".interview-room")
    page.context.route("**/worker.js", lambda route: route.fulfill(content_type="text/javascript", body=BROKEN))
    button(page, "begin").click()
    page.locator(".room-wait", has_text="It broke.").wait_for()
    page.wait_for_timeout(2000)  # longer than a wait that the room would explain
    assert "One moment" not in room.inner_text()
    page.context.unroute("**/worker.js")
    button(page, "begin").click()
    heading(page, "Question 1 of ")
    assert not page.locator(".room-wait").inner_text()


def test_opened_as_a_file_the_page_says_what_would_help(chromium: Any, folder: Path) -> None:
    page = chromium.new_page()
    page.goto((folder / ROOM).as_uri())
    page.get_by_text("A browser runs nothing from a file.").wait_for()
    page.close()


def test_a_sitting_of_another_edition_is_begun_anew() -> None:
    for damaged in (
        "{}",
        '{"id": "a", "mode": "sprint", "options": {}, "plan": "no", "started_s": 1, "position": 0}',
        "no",
    ):
        came = json.loads(sitting.entered("[]", damaged, "[]"))
        assert (came["screen"]["stage"], came["screen"]["unfinished"]) == ("start", "")


def test_a_sitting_with_a_question_that_is_asked_no_more_is_begun_anew() -> None:
    sitting.entered("[]", "null", "[]")
    wish = {"do": "begin", "mode": "warm-up", "topic": "kv-latent", "seed": "w", "turn": 0}
    begun = json.loads(sitting.acted(json.dumps(wish)))["sitting"]
    assert "kv-latent" in begun["plan"]
    for idea in ("dropped-idea", "kv-bytes-per-token"):
        plan_of_then = json.dumps([[idea, "dropped-kind", "w"]])
        came = json.loads(sitting.entered("[]", json.dumps({**begun, "plan": plan_of_then}), "[]"))
        assert (came["screen"]["unfinished"], came["sitting"]) == ("", None)


def test_the_clock_of_a_question_goes_on_while_its_sitting_is_left() -> None:
    sitting.entered("[]", "null", "[]")
    wish = {"do": "begin", "mode": "warm-up", "topic": "kv-latent", "seed": "w", "turn": 0}
    begun = json.loads(sitting.acted(json.dumps(wish)))["sitting"]
    earlier = {**begun, "shown_s": begun["shown_s"] - 60}
    assert json.loads(sitting.entered("[]", json.dumps(earlier), "[]"))["sitting"] == {
        **earlier,
        "words": begun["words"],
    }
    for do in ("sync", "continue", "stop", "sync"):
        assert json.loads(sitting.acted(json.dumps({"do": do})))["sitting"]["shown_s"] == earlier["shown_s"], do


def test_functions_are_never_asked() -> None:
    asks = plan.questions("warm-up", plan.Wish(tasks=False), History(NOWHERE), seed="a", now=wall_clock.now())
    assert len(asks) > 300
    assert not [ask for ask in asks if ask.kind == "code"]

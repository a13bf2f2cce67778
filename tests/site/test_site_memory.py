"""What the pages remember: it is the room's, it travels both ways, and it goes when it is told to."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.site.conftest import Visit, until
from tests.site.test_site_cards import KEY, SET, answers, said
from threeloops.room import moving
from threeloops.room.attempts import Ask, Attempt
from threeloops.room.history import NOWHERE, History
from threeloops.room.session import Session
from threeloops.site import remembering
from threeloops.site.answering import SEED

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
DESK = Attempt(**json.loads(remembering.attempt("kv-latent", "w-1", "3 GB", "wrong", "", 40, 0, "desk", 0, 1.7e9)))


def told(page: Any, words: str) -> None:
    """Wait until the page of the memory says something."""
    page.locator("#my-memory [role=status]", has_text=words).wait_for()


def test_what_is_answered_is_kept_taken_along_brought_in_and_deleted(
    visit: Callable[..., Visit], tmp_path: Path
) -> None:
    page = visit(SET).page
    card = page.locator(f".drill[data-drill={KEY}]")
    right, wrong, *_ = answers(KEY, SEED)
    for written, verdict in (("nonsense", "'nonsense'"), (wrong, ""), (right, "Right.")):
        card.get_by_role("textbox").fill(written)
        card.get_by_role("button", name="Check").click()
        said(card, verdict) if verdict else until(page, "async () => (await threeloops.all()).length")
    page.goto("memory.html")
    told(page, "1 attempt in this browser.")
    page.get_by_role("button", name="How am I doing").click()
    told(page, "due today")
    assert page.get_by_role("row", name="kv cache").inner_text().split("\t")[1] == "0 of 1"

    with page.expect_download() as download:
        page.get_by_role("button", name="Take it along").click()
    download.value.save_as(tmp_path / "page.json")
    (kept,) = moving.read(tmp_path / "page.json")
    assert (kept.idea, kept.seed, kept.status, kept.written) == (KEY, SEED, "wrong", wrong)
    assert kept.slips

    desk = History(NOWHERE)
    desk.add([DESK, kept])
    moving.export(desk, tmp_path / "desk.csv")
    page.get_by_label("Bring in a file").set_input_files(tmp_path / "desk.csv")
    told(page, "1 attempt taken in, 1 here already.")
    (tmp_path / "diary.json").write_text("{}")
    page.get_by_label("Bring in a file").set_input_files(tmp_path / "diary.json")
    told(page, "diary.json holds no attempts")

    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete everything").click()
    told(page, "Everything is deleted.")
    assert page.evaluate("threeloops.all()") == []


def test_what_follows_from_attempts_is_what_the_room_says() -> None:
    attempts = json.dumps([json.loads(remembering.attempt(KEY, "s", "1 B", "given-up", "", 9, 0, "page", 0, 1.7e9))])
    report = json.loads(remembering.report(attempts))
    (one,) = report["due"]
    assert (one["idea"], one["now"], one["page"]) == (KEY, True, f"practise.html?drill={KEY}")
    assert report["topics"] == [
        {"topic": "kv_cache", "right": 0, "answered": 1, "readiness": "too few answers to say (1 of 5)"}
    ]


def test_an_answer_has_as_long_as_in_the_room_with_the_time_to_read() -> None:
    desk = History(NOWHERE)
    sitting = Session(desk, desk.begin("sprint", {}, [Ask(idea=KEY, kind="number", seed="s")]))
    sitting.answer("1 B")
    (there,) = desk.attempts()
    here = Attempt(**json.loads(remembering.attempt(KEY, "s", "1 B", "wrong", "", 9, 0, "page", 0, 1.7e9)))
    assert here.target_s == there.target_s


def test_who_went_away_is_not_held_to_the_answer() -> None:
    kept = json.loads(remembering.attempt(KEY, SEED, "1 B", "wrong", "a", 5000, 0, "page", 0, 1.7e9))
    assert (kept["status"], kept["slips"]) == ("interrupted", "")

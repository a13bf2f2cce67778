"""The interview room in a real JupyterLab, by keyboard alone: a sprint with a slip, a hint and a surrender; the clock; 200 % zoom; a second door."""

import contextlib
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chapters.conftest import ROOT, Sight, running
from threeloops.drills.bank import DRILLS
from threeloops.room import ideas
from threeloops.room.history import Ask, History
from threeloops.room.question import Question, draw_of
from threeloops.room.session import Session

CELL = ".jp-Notebook .jp-Cell"
SAID = "(words) => document.querySelector('.interview-room .said').textContent.includes(words)"
HAS_FOCUS = "element => element === document.activeElement"

pytestmark = pytest.mark.timeout(600)


def asks() -> list[Ask]:
    """Six questions about numbers, so that the test knows what to type; the second is taught in a chapter that is written."""
    taught = next(idea.key for idea in ideas.IDEAS.values() if idea.loop == "inner" and idea.section == "Roofline")
    others = [key for key in DRILLS if key != taught][:5]
    return [Ask(idea=key, kind="number", seed="browser") for key in (others[0], taught, *others[1:])]


def typed(question: Question, slip: int | None = None) -> str:
    """The right answer, or that of a slip."""
    drill = DRILLS[question.idea]
    p = draw_of(drill, question.seed)
    value = drill.derive(p).value if slip is None else drill.slips[slip].wrong(p)
    return f"{value!r} {drill.unit}".strip()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A history of the test's own, for every process that it starts."""
    path = tmp_path_factory.mktemp("history") / "history.sqlite3"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("THREELOOPS_HISTORY", str(path))
        yield path


@pytest.fixture(scope="module")
def page(look: Callable[[str], Sight], file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The room as `book.py drills/interview` opens it, its cell run by keyboard."""
    root = tmp_path_factory.mktemp("book")
    shutil.copytree(ROOT / "chapters", root / "chapters")
    (root / "drills").mkdir()
    shutil.copy(ROOT / "drills" / "interview.ipynb", root / "drills")
    code = f"from pathlib import Path; from threeloops import desk; desk.open_book('drills/interview', browser=False, root=Path({str(root)!r}))"
    with contextlib.ExitStack() as stack:
        door = stack.enter_context(running([sys.executable, "-c", code], root, tmp_path_factory.mktemp("jupyter")))
        sight = look(door.page)
        sight.page.wait_for_selector(CELL, timeout=60_000)
        sight.page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for(timeout=60_000)
        run(sight.page, 2)
        yield sight.page


def run(page: Any, number: int) -> None:
    """Run a cell by keyboard; a kernel that is still being connected forgets what it was asked, so ask until the cell has been run."""
    cell = page.locator(CELL).nth(number)
    for _ in range(5):
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        page.wait_for_timeout(2_000)
        if re.fullmatch(r"\[\d+\]:", cell.locator(".jp-InputPrompt").first.text_content()):
            return
    raise AssertionError(f"the kernel did not take cell {number + 1}")


def room(page: Any) -> Any:
    return page.locator(".interview-room")


def tab_to(page: Any, target: Any, most: int = 12) -> None:
    """Go on with Tab until an element has the focus."""
    for _ in range(most):
        if target.evaluate(HAS_FOCUS):
            return
        page.keyboard.press("Tab")
    raise AssertionError("Tab does not lead there")


def press(page: Any, name: str) -> None:
    """A button of the room, by Tab and Enter."""
    button = room(page).get_by_role("button", name=name, exact=True)
    tab_to(page, button)
    page.keyboard.press("Enter")


def heading(page: Any, words: str) -> None:
    room(page).get_by_role("heading", name=re.compile(words)).wait_for(timeout=20_000)


def answer(page: Any, written: str) -> None:
    box = room(page).get_by_role("textbox", name="Your answer")
    assert box.evaluate(HAS_FOCUS), "the answer box has no focus"
    page.keyboard.insert_text(written)
    page.keyboard.press("Enter")


def begun(file: Path) -> tuple[History, str]:
    """A sprint begun at another door."""
    history = History(file)
    return history, history.begin("sprint", {"extra": 1.0}, asks())


def go_on(page: Any) -> None:
    """Leave what is held, if anything, and continue with the sitting that was begun last."""
    if room(page).get_by_role("button", name="stop", exact=True).is_visible():
        room(page).get_by_role("button", name="stop", exact=True).focus()
        page.keyboard.press("Enter")
        room(page).get_by_role("button", name="begin", exact=True).wait_for()
    page.evaluate("() => window.dispatchEvent(new Event('focus'))")  # the reader comes back from the other window
    page.wait_for_timeout(500)
    room(page).get_by_role("button", name="continue", exact=True).focus()
    page.keyboard.press("Enter")


def test_a_sprint_is_chosen_and_begun_by_keyboard(page: Any, file: Path) -> None:
    mode = room(page).get_by_label("Mode")
    mode.wait_for(timeout=60_000)
    mode.focus()
    page.keyboard.press("ArrowUp")  # sprint -> warm-up, and back
    assert mode.input_value() == "warm-up"
    page.keyboard.press("ArrowDown")
    tab_to(page, room(page).get_by_label("Topic"))
    page.keyboard.type("kv")
    tab_to(page, room(page).get_by_label("Questions"))
    page.keyboard.insert_text("3")
    tab_to(page, room(page).get_by_label("Extra time"))
    page.keyboard.press("ArrowDown")
    press(page, "begin")
    heading(page, "Question 1 of 3: ")
    assert room(page).get_by_role("textbox", name="Your answer").evaluate(HAS_FOCUS)
    history = History(file)
    record = history.session(str(history.unfinished()))
    assert (record.mode, record.options) == ("sprint", {"extra": 1.25, "topic": "kv_cache"})


def test_a_slip_a_right_answer_a_hint_and_a_surrender(page: Any, file: Path) -> None:
    history, name = begun(file)
    if room(page).get_by_role("button", name="stop", exact=True).is_visible():
        press(page, "stop")
    press(page, "continue")
    heading(page, "Question 1 of 6")
    questions = [ideas.pose(ask.idea, ask.kind, ask.seed) for ask in asks()]
    assert questions[0].working not in room(page).text_content()

    answer(page, typed(questions[0], slip=0))
    page.wait_for_function(SAID, arg=DRILLS[questions[0].idea].slips[0].story[:60])
    assert questions[0].working in room(page).text_content()
    following = room(page).get_by_role("button", name="next", exact=True)
    assert following.evaluate(HAS_FOCUS)
    page.keyboard.press("Enter")

    heading(page, "Question 2 of 6")
    answer(page, typed(questions[1]))
    page.wait_for_function(SAID, arg="Right.")
    assert room(page).get_by_role("link", name=re.compile("^chapter 1, part 2, Roofline$")).is_visible()
    press(page, "next")

    heading(page, "Question 3 of 6")
    assert "counts as slow" in room(page).get_by_role("button", name="hint").evaluate(
        "button => document.getElementById(button.getAttribute('aria-describedby')).textContent"
    )
    assert questions[2].hints[0] not in room(page).text_content()
    press(page, "hint")
    page.wait_for_function(SAID, arg=questions[2].hints[0])
    assert room(page).get_by_role("textbox", name="Your answer").evaluate(HAS_FOCUS)
    press(page, "give up")
    page.wait_for_function(SAID, arg="Given up")
    assert room(page).get_by_role("timer").is_hidden()
    press(page, "next")

    heading(page, "Question 4 of 6")
    press(page, "skip")
    heading(page, "Question 5 of 6")
    press(page, "stop")
    page.wait_for_function(SAID, arg="1 right of 2 answers.")

    kept = [attempt for attempt in history.attempts() if attempt.session == name]
    assert [(attempt.status, attempt.hints) for attempt in kept] == [("wrong", 0), ("right", 0), ("given-up", 1), ("skipped", 0)]
    assert kept[0].slips == DRILLS[kept[0].idea].slips[0].key


def test_what_was_begun_here_goes_on_at_the_other_door(page: Any, file: Path) -> None:
    history = History(file)
    name = history.unfinished()
    assert name is not None
    other = Session(history, name)
    assert other.position == 4
    assert other.question is not None
    assert other.answer(typed(other.question)).verdict.right
    go_on(page)
    heading(page, "Question 6 of 6")


def test_the_clock_is_seen_every_second_and_heard_at_its_marks(page: Any, file: Path) -> None:
    history, name = begun(file)
    target = ideas.IDEAS[asks()[0].idea].target_s
    history.shown(name, 0)
    history._file.execute("update shown set at_s = ? where session = ?", [time.time() - (target - 33), name])  # 33 s left
    go_on(page)
    heading(page, "Question 1 of 6")
    timer = room(page).get_by_role("timer", name="clock")
    assert re.fullmatch(r"0:3[0-3] left of \d:\d\d", timer.text_content())
    aloud = room(page).locator("[data-clock]")
    assert aloud.get_attribute("aria-live") == "polite"
    assert aloud.text_content() == ""
    page.wait_for_function("() => document.querySelector('[data-clock]').textContent === '30 seconds left'", timeout=10_000)
    seen = timer.text_content()
    page.wait_for_timeout(1_200)
    assert timer.text_content() != seen
    assert aloud.text_content() == "30 seconds left"


def test_the_clock_goes_on_while_a_cell_runs_and_the_answer_is_judged_by_it(page: Any, file: Path) -> None:
    timer = room(page).get_by_role("timer", name="clock")
    progress = page.locator(CELL).nth(4)
    progress.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("import time; time.sleep(9)")
    page.keyboard.press("Control+Enter")
    before = timer.text_content()
    page.wait_for_timeout(2_000)
    assert timer.text_content() != before
    room(page).get_by_role("textbox", name="Your answer").focus()
    answer(page, typed(ideas.pose(asks()[0].idea, "number", "browser")))
    page.wait_for_function(SAID, arg="Right.", timeout=20_000)  # at once where widgets have a thread of their own in the kernel, else after the cell
    assert History(file).attempts()[-1].seconds > ideas.IDEAS[asks()[0].idea].target_s - 30


def test_the_room_can_be_heard(page: Any, file: Path) -> None:
    """Names and roles, as the browser tells them to a screen reader."""
    begun(file)
    go_on(page)
    heading(page, "Question 1 of 6")
    tree = room(page).aria_snapshot()
    for part in ("timer", 'textbox "Your answer"', 'button "answer"', 'button "hint"', 'button "give up"', 'button "skip"', "status"):
        assert part in tree, tree
    answer(page, "lots")
    page.wait_for_function(SAID, arg="is not a number with a unit")
    assert re.search(r"status.*: .*is not a number with a unit", room(page).aria_snapshot())


def test_at_200_percent_nothing_is_cut_off(page: Any, file: Path) -> None:
    """A window of 1280 pixels at 200 % is one of 640."""
    page.set_viewport_size({"width": 640, "height": 500})
    try:
        page.wait_for_timeout(500)
        inside = room(page).evaluate(
            """room => { const right = room.closest('.jp-OutputArea-output').getBoundingClientRect().right;
                return [...room.querySelectorAll('button, input, select, p, h3')].filter(e => e.offsetParent && !e.classList.contains('aloud'))
                       .filter(e => e.getBoundingClientRect().right > right + 1).map(e => e.outerHTML); }"""
        )
        assert not inside
        question = ideas.pose(asks()[0].idea, "number", "browser")
        room(page).get_by_role("textbox", name="Your answer").focus()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(typed(question))
        page.keyboard.press("Enter")
        page.wait_for_function(SAID, arg="Right.")
        assert room(page).get_by_role("button", name="next", exact=True).evaluate(HAS_FOCUS)
    finally:
        page.set_viewport_size({"width": 1280, "height": 1000})


def test_the_link_leads_to_the_part(page: Any) -> None:
    press(page, "next")
    heading(page, "Question 2 of 6")
    press(page, "give up")
    link = room(page).get_by_role("link", name=re.compile("Roofline"))
    link.wait_for()
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_function(
        """() => { const box = [...document.querySelectorAll('.jp-Notebook h2')].find(h => h.textContent.includes('2 Roofline'))?.getBoundingClientRect();
                   return box && box.top >= 0 && box.bottom < window.innerHeight; }""",
        timeout=60_000,
    )
    assert "/my/chapters/1_inner_loop.ipynb" in page.url

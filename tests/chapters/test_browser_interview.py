"""The interview room in a real JupyterLab, by keyboard alone: a sprint with a slip, a hint and a surrender; the
clock; 200 % zoom; a second door.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.chapters.conftest import Door, Sight
from threeloops import wall_clock
from threeloops.drills.engine.bank import DRILLS
from threeloops.room import ideas
from threeloops.room.attempts import Ask
from threeloops.room.history import History
from threeloops.room.notebook import interview
from threeloops.room.question import Question, draw_of
from threeloops.room.session import Session

CELL = ".jp-Notebook .jp-Cell"
SAID = "(words) => document.querySelector('.interview-room .said').textContent.includes(words)"
TICKED = "([timer, before]) => timer.textContent !== before"
ROOM = 3  # place of the room's cell, after the way back, the title and how it works
BACK_BY_A_PRESS = """() => {
    const press = [...document.querySelectorAll('.interview-room button')].find(b => b.textContent === 'continue');
    window.dispatchEvent(new Event('focus'));
    press.click(); }"""
HAS_FOCUS = "element => element === document.activeElement"

pytestmark = pytest.mark.timeout(600)


def asks() -> list[Ask]:
    """Six questions about numbers, so that the test knows what to type; the second is taught in a chapter that is
    written.
    """
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
def file(lab: Door) -> Path:
    """The history of every kernel that JupyterLab starts; nothing else writes into it."""
    return lab.root / "history.sqlite3"


@pytest.fixture(scope="module")
def page(open_at: Callable[[str], Door], look: Callable[[Door], Sight]) -> Any:
    """The room as `book.py drills/interview` opens it: nothing has to be run."""
    page = look(open_at("drills/interview")).page
    page.wait_for_selector(CELL)
    page.locator(".interview-room").wait_for()
    page.wait_for_selector(".threeloops-bar[data-kernel='idle']")
    return page


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
    room(page).get_by_role("heading", name=re.compile(words)).wait_for()


def answer(page: Any, written: str) -> None:
    box = room(page).get_by_role("textbox", name="Your answer")
    expect(box, "the answer box has no focus").to_be_focused()
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
    room(page).get_by_role("button", name="continue", exact=True).focus()
    page.keyboard.press("Enter")


def test_a_sprint_is_chosen_and_begun_by_keyboard(page: Any, file: Path) -> None:
    mode = room(page).get_by_label("Mode")
    mode.wait_for()
    mode.focus()
    page.keyboard.press("ArrowUp")  # sprint -> warm-up, and back
    expect(mode).to_have_value("warm-up")
    page.keyboard.press("ArrowDown")
    tab_to(page, room(page).get_by_label("Topic"))
    page.keyboard.type("kv")
    tab_to(page, room(page).get_by_label("Questions", exact=True))
    page.keyboard.insert_text("3")
    tab_to(page, room(page).get_by_label("Extra time"))
    page.keyboard.press("ArrowDown")
    press(page, "begin")
    heading(page, "Question 1 of 3: ")
    expect(room(page).get_by_role("textbox", name="Your answer")).to_be_focused()
    history = History(file)
    record = history.session(str(history.unfinished()))
    assert (record.mode, record.options) == ("sprint", {"extra": 1.25, "topic": "kv_cache", "track": "everything"})


def test_a_slip_a_right_answer_a_hint_and_a_surrender(page: Any, file: Path) -> None:
    history, name = begun(file)
    if room(page).get_by_role("button", name="stop", exact=True).is_visible():
        press(page, "stop")
    press(page, "continue")
    heading(page, "Question 1 of 6")
    questions = [ideas.pose(ask.idea, ask.kind, ask.seed) for ask in asks()]
    expect(room(page)).not_to_contain_text(questions[0].working)

    answer(page, typed(questions[0], slip=0))
    page.wait_for_function(SAID, arg=DRILLS[questions[0].idea].slips[0].story[:60])
    expect(room(page)).to_contain_text(questions[0].working)
    expect(room(page).get_by_role("button", name="next", exact=True)).to_be_focused()
    page.keyboard.press("Enter")

    heading(page, "Question 2 of 6")
    answer(page, typed(questions[1]))
    page.wait_for_function(SAID, arg="Right.")
    expect(room(page).get_by_role("link", name=re.compile("^chapter 1, part 2, Roofline$"))).to_be_visible()
    press(page, "next")

    heading(page, "Question 3 of 6")
    assert "counts as slow" in room(page).get_by_role("button", name="hint").evaluate(
        "button => document.getElementById(button.getAttribute('aria-describedby')).textContent"
    )
    assert questions[2].hints[0] not in room(page).text_content()
    press(page, "hint")
    page.wait_for_function(SAID, arg=questions[2].hints[0])
    expect(room(page).get_by_role("textbox", name="Your answer")).to_be_focused()
    press(page, "give up")
    page.wait_for_function(SAID, arg="Given up")
    expect(room(page).get_by_role("timer")).to_be_hidden()
    press(page, "next")

    heading(page, "Question 4 of 6")
    press(page, "skip")
    heading(page, "Question 5 of 6")
    press(page, "stop")
    page.wait_for_function(SAID, arg="1 right of 2, 1 given up, 1 skipped.")

    kept = [attempt for attempt in history.attempts() if attempt.session == name]
    assert [(attempt.status, attempt.hints) for attempt in kept] == [
        ("wrong", 0),
        ("right", 0),
        ("given-up", 1),
        ("skipped", 0),
    ]
    assert kept[0].slips == DRILLS[kept[0].idea].slips[0].key


def test_what_was_begun_here_goes_on_at_the_other_door(page: Any, file: Path) -> None:
    history = History(file)
    name = history.unfinished()
    assert name is not None
    other = Session(history, name)
    assert other.position == 4
    assert other.question is not None
    assert other.answer(typed(other.question)).verdict.right
    # the press that brings the reader back to this window: the two follow on each other's heels
    page.evaluate(BACK_BY_A_PRESS)
    heading(page, "Question 6 of 6")
    expect(room(page).get_by_role("textbox", name="Your answer")).to_be_focused()


def test_the_clock_is_seen_every_second_and_heard_at_its_marks(page: Any, file: Path) -> None:
    history, name = begun(file)
    target = ideas.pose(asks()[0].idea, "number", "browser").allowed_s
    history.shown(name, 0)
    # 45 s left: time to draw the page
    history._file.execute("update shown set at_s = ? where session = ?", [wall_clock.now_s() - (target - 45), name])
    go_on(page)
    heading(page, "Question 1 of 6")
    timer = room(page).get_by_role("timer", name="clock")
    assert re.fullmatch(r"0:(3[0-9]|4[0-5]) left of \d:\d\d", timer.text_content())
    aloud = room(page).locator("[data-clock]")
    assert aloud.get_attribute("aria-live") == "polite"
    assert aloud.text_content() == ""
    page.wait_for_function(
        "() => document.querySelector('[data-clock]').textContent === '30 seconds left'", timeout=40_000
    )
    page.wait_for_function(TICKED, arg=[timer.element_handle(), timer.text_content()])
    assert aloud.text_content() == "30 seconds left"


def test_the_clock_goes_on_while_a_cell_runs_and_the_answer_is_judged_by_it(page: Any, file: Path) -> None:
    timer = room(page).get_by_role("timer", name="clock")
    progress = page.locator(CELL).nth(ROOM + 2)
    for rest_s in (9, 30, 60):  # a page that a busy machine shows late has a longer cell
        progress.locator(".cm-content").click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(f"import time; time.sleep({rest_s})")
        page.keyboard.press("Control+Enter")
        page.wait_for_function(TICKED, arg=[timer.element_handle(), timer.text_content()])
        if ticked_while_it_ran := progress.locator(".jp-InputPrompt").first.text_content() == "[*]:":
            break
    assert ticked_while_it_ran
    room(page).get_by_role("textbox", name="Your answer").focus()
    answer(page, typed(ideas.pose(asks()[0].idea, "number", "browser")))
    # at once where widgets have a thread of their own in the kernel, else after the cell
    page.wait_for_function(SAID, arg="Right.")
    assert History(file).attempts()[-1].seconds > ideas.pose(asks()[0].idea, "number", "browser").allowed_s - 30


def test_the_room_can_be_heard(page: Any, file: Path) -> None:
    """Names and roles, as the browser tells them to a screen reader."""
    begun(file)
    go_on(page)
    heading(page, "Question 1 of 6")
    tree = room(page).aria_snapshot()
    for part in (
        "timer",
        'textbox "Your answer"',
        'button "answer"',
        'button "hint"',
        'button "give up"',
        'button "skip"',
        "status",
    ):
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
                       .filter(e => e.getBoundingClientRect().right > right + 1).map(e => e.outerHTML); }"""  # noqa: E501
        )
        assert not inside
        question = ideas.pose(asks()[0].idea, "number", "browser")
        room(page).get_by_role("textbox", name="Your answer").focus()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(typed(question))
        page.keyboard.press("Enter")
        page.wait_for_function(SAID, arg="Right.")
        expect(room(page).get_by_role("button", name="next", exact=True)).to_be_focused()
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
                   return box && box.top >= 0 && box.bottom < window.innerHeight; }""",  # noqa: E501
    )
    assert "/my/chapters/1_inner_loop/2_roofline.ipynb" in page.url


VOICES = """([local, there]) => {
    window.said = []; window.sent = []; window.heard = [];
    const voices = [{ localService: false, lang: 'en-US' }, ...(local ? [{ localService: true, lang: 'en-GB' }] : [])];
    const synthesis = { getVoices: () => voices, cancel: () => {}, speak: (one) => said.push(one) };
    Object.defineProperty(window, 'speechSynthesis', { value: synthesis });
    window.SpeechSynthesisUtterance = class { constructor(words) { this.words = words; } };
    window.SpeechRecognition = class {
        static available = async (wanted) => (wanted.processLocally ? there : 'available');
        start() { heard.push(this.processLocally); this.onresult({ results: [[{ transcript: '24.5 gigabytes' }]] }); }
    }; }"""
HELD = """([screen, form]) => room.render({ el: document.body, model: {
    get: (name) => ({ screen, form })[name], on() {}, off() {}, send: (wish) => sent.push(wish) } })"""


def test_the_room_reads_and_listens_with_what_this_machine_has_alone(chromium: Any, tmp_path: Path) -> None:
    held = interview.room(tmp_path / "history.sqlite3")
    held.history.begin("sprint", {"extra": 1.0}, asks()[:2])
    held.act({"do": "continue"})
    state = held.panel.get_state()
    script = Path(interview.__file__).with_name("interview.js").read_text()
    for local, there in ((False, "downloadable"), (True, "available")):
        page = chromium.new_page()
        page.evaluate(VOICES, [local, there])
        page.add_script_tag(content=script.replace("export default", "window.room ="), type="module")
        page.wait_for_function("window.room")
        page.evaluate(HELD, [state["screen"], state["form"]])
        box, button = page.get_by_role("checkbox"), page.get_by_role("button", name="dictate")
        expect(button).to_be_visible(visible=local)
        expect(box).to_be_visible(visible=local)
        assert page.evaluate("said.length") == 0, "off until it is asked for"
        if local:
            box.check()
            assert page.evaluate("[said[0].voice.localService, said[0].words.length > 40]") == [True, True]
            button.click()
            expect(page.get_by_label("Your answer")).to_have_value("24.5 gigabytes")
            assert page.evaluate("heard") == [True]
            assert [wish["do"] for wish in page.evaluate("sent")] == ["sync"], "it waits for whoever said it"
        page.close()

"""The reader's desk in a real browser: the start page, part to part and back, cards by keyboard, Shift+Enter through
whole parts, a narrow window.
"""

import contextlib
import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import expect

from tests.chapters.conftest import Door, Sight
from tests.chapters.keys import run, within
from threeloops import contents, wall_clock
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.student_draws import HOME_COURSE, HOME_STUDENT, posed

pytestmark = pytest.mark.timeout(600)
CELL = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-Cell"
TAB = "#jp-main-dock-panel .lm-TabBar-tab.lm-mod-current .lm-TabBar-tabLabel"
IDLE = ".jp-NotebookPanel:not(.lm-mod-hidden) .threeloops-bar[data-kernel='idle']"
# The active cell, by its place, and whether something of it can be seen.
ACTIVE = """() => {
  const cell = document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-Cell.jp-mod-active');
  if (!cell) return {index: -1, seen: false};
  const box = cell.getBoundingClientRect(), around = cell.closest('.jp-WindowedPanel-outer, .jp-Notebook').getBoundingClientRect();
  return {index: Number(cell.dataset.windowedListIndex), seen: box.bottom > around.top + 2 && box.top < around.bottom - 2};
}"""  # noqa: E501
PROMPTS = """() => [...document.querySelectorAll(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell")]
  .map(cell => [Number(cell.dataset.windowedListIndex), cell.querySelector(".jp-InputArea-prompt")?.textContent ?? ""])"""  # noqa: E501
SAID_BEFORE = "cell => getComputedStyle(cell, '::before').content"
CUT_OFF = """selector => {
  const width = document.documentElement.clientWidth;
  return [...document.querySelectorAll(selector)].filter(one => one.offsetParent)
    .filter(one => { const box = one.getBoundingClientRect(); return box.right > width + 1 || box.left < -1; }).map(one => one.outerHTML.slice(0, 200));
}"""  # noqa: E501
OVERLAPPING = """selector => {
  const boxes = [...document.querySelectorAll(selector)].filter(one => one.offsetParent).map(one => [one, one.getBoundingClientRect()]);
  return boxes.flatMap(([one, a], n) => boxes.slice(n + 1)
    .filter(([other, b]) => a.right > b.left + 1 && b.right > a.left + 1 && a.bottom > b.top + 1 && b.bottom > a.top + 1)
    .map(([other]) => `${one.textContent} / ${other.textContent}`));
}"""  # noqa: E501


@pytest.fixture(scope="module")
def page(lab: Door, look: Callable[[Door], Sight]) -> Any:
    """The start page, as `book.py` opens it."""
    workspace = replace(lab, page=f"{lab.server}lab/workspaces/start?token={lab.token}")
    page = look(workspace).page
    page.locator(".threeloops-start h1").wait_for()
    return page


def arrive(page: Any, path: str) -> None:
    """Wait until a notebook is before the reader and its kernel is there."""
    expect(page.locator(TAB)).to_have_text(path.rpartition("/")[2])
    page.locator(CELL).first.wait_for()
    page.wait_for_selector(IDLE)


def to_start(page: Any) -> None:
    page.locator(CELL).get_by_role("link", name="Start", exact=True).first.click()
    page.locator(".threeloops-start h1").wait_for()


def test_the_start_page_has_every_part_and_every_drill_set(page: Any, lab: Door) -> None:
    places = contents.places(lab.root)
    hrefs = "links => links.map(one => one.getAttribute('href'))"
    links = page.locator(".threeloops-start a").evaluate_all(hrefs)
    rows = page.locator(".threeloops-start tbody th a").evaluate_all(hrefs)
    assert rows == [place.copy for place in places]
    assert "drills/interview.ipynb" in links
    expect(page.locator(".threeloops-start")).to_contain_text("A sprint asks ten questions")
    assert all((lab.root / "my" / link).is_file() for link in links if not link.startswith("drills/"))


def test_an_explorer_lives_on_the_start_page_without_a_kernel(page: Any) -> None:
    section = page.locator(".threeloops-start .touch")
    expect(section.locator(".tl-chart svg")).to_be_visible()
    said = section.locator(".tl-said")
    before = said.inner_text()
    control = section.locator("input[type=range]:not([disabled])").first
    control.focus()
    control.press("ArrowRight")
    expect(said).not_to_have_text(before)
    assert page.locator(".jp-NotebookPanel").count() == 0
    after = said.inner_text()
    page.evaluate("window.dispatchEvent(new Event('resize'))")
    expect(said).to_have_text(after)


@pytest.mark.parametrize(
    ("name", "told", "said"),
    [("explorer", b'{"serial": 1}', "a turn is"), ("grade", b'{"set": "../my"}', "a drill set of this book is")],
)
def test_what_the_server_cannot_read_is_refused_in_a_sentence(lab: Door, name: str, told: bytes, said: str) -> None:
    headers = {"Authorization": f"token {lab.token}"}
    request = urllib.request.Request(f"{lab.server}threeloops/{name}", told, headers)
    with pytest.raises(urllib.error.HTTPError, match="400") as refused:
        urllib.request.urlopen(request, timeout=20)
    assert said in refused.value.read().decode()


def test_the_whole_book_is_searched_from_the_start_page(page: Any) -> None:
    start = page.locator(".threeloops-start")
    page.get_by_role("searchbox", name="Search the book").fill("allreduce")
    expect(start.locator(".found a").first).to_have_text("2.4 Data parallelism and all-reduce")
    heading = start.locator(".found li").first.locator("a").nth(1)
    words = heading.inner_text()
    heading.click()
    arrive(page, "2_training_loop/4_data_parallelism_and_all_reduce.ipynb")
    expect(page.locator(".jp-Notebook h3").filter(has_text=words)).to_be_in_viewport()
    to_start(page)
    expect(start.locator("tr").filter(has_text="2.4 Data")).to_contain_text("opened")
    page.get_by_role("searchbox", name="Search the book").fill("qqqq")
    expect(start.locator(".found")).to_contain_text("Nothing.")
    page.get_by_role("searchbox", name="Search the book").fill("")
    expect(start.locator(".found")).to_be_empty()


def test_nothing_of_a_teachers_tools_is_in_the_way(page: Any) -> None:
    menus = page.locator(".lm-MenuBar-item").all_text_contents()
    assert {"File", "Run", "Help"} <= set(menus)
    assert not [menu for menu in menus if "nbgrader" in menu.lower()]


def test_one_click_opens_a_part_which_leads_on_and_back_to_the_start(page: Any) -> None:
    page.locator(".threeloops-start").get_by_role("link", name="1.1 Three loops", exact=True).click()
    arrive(page, "my/chapters/1_inner_loop/1_three_loops.ipynb")
    assert page.get_by_role("button", name="Validate").count() == 0
    page.locator(CELL).get_by_role("link", name="1.2 Roofline", exact=True).first.click()
    arrive(page, "1_inner_loop/2_roofline.ipynb")
    page.locator(CELL).get_by_role("link", name="1.1 Three loops", exact=True).first.click()
    arrive(page, "1_three_loops.ipynb")
    to_start(page)
    expect(page.locator(".threeloops-start .go a")).to_have_text("Continue: 1.1 Three loops")
    page.locator(".threeloops-start .go a").click()
    arrive(page, "1_three_loops.ipynb")


def test_opening_a_part_changes_nothing_that_would_have_to_be_saved(page: Any) -> None:
    expect(page.locator(TAB)).to_have_text("1_three_loops.ipynb")
    page.wait_for_timeout(1000)
    assert page.locator(".lm-TabBar-tab.lm-mod-current.jp-mod-dirty").count() == 0


# --- reading ---

CLIPPED = """() => [...document.querySelectorAll('.jp-tocItem-content')].filter(one => one.offsetParent)
  .filter(one => one.scrollWidth > one.clientWidth + 1 || one.clientHeight > one.closest('.jp-tocItem-heading').clientHeight + 1)
  .map(one => one.textContent)"""  # noqa: E501


def test_a_part_is_a_page_that_one_reads_and_one_button_shows_the_editor(page: Any) -> None:
    toolbar, editor = page.locator(".jp-NotebookPanel-toolbar:visible"), page.get_by_role("button", name="Editor")
    expect(page.locator(".jp-tocItem-content").nth(2)).to_be_visible()
    assert not page.evaluate(CLIPPED)
    expect(page.locator(f"{CELL} h2").first).to_contain_text("1.1 Three loops")
    assert toolbar.count() == 0
    assert not page.locator("#jp-main-statusbar").is_visible()
    assert page.locator(CELL).locator(".jp-InputPlaceholder").first.inner_text().startswith("from threeloops")
    editor.click()
    expect(toolbar).to_have_count(1)
    expect(page.locator("#jp-main-statusbar")).to_be_visible()
    expect(editor).to_have_attribute("aria-pressed", "true")
    editor.click()
    expect(toolbar).to_have_count(0)


# --- cards ---


def saved(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook as JupyterLab keeps it, read again while it is being written."""
    for _ in range(100):
        with contextlib.suppress(json.JSONDecodeError):
            cells: list[dict[str, Any]] = json.loads(path.read_text())["cells"]
            return cells
        wall_clock.pause(0.1)
    raise AssertionError(f"{path.name} is never whole")


def cell(page: Any, path: Path, name: str) -> Any:
    ids = [one["id"] for one in saved(path)]
    return page.locator(f'{CELL}[data-windowed-list-index="{ids.index(name)}"]')


def notebook_source(page: Any, path: Path, name: str) -> str:
    """A cell as it is saved."""
    page.keyboard.press("Control+s")
    for _ in range(60):
        (found,) = ["".join(one["source"]) for one in saved(path) if one["id"] == name]
        if not found.startswith("prediction = ..."):
            return found
        page.wait_for_timeout(250)
    raise AssertionError("what the card took is not in the notebook")


@pytest.fixture(scope="module")
def part(lab: Door) -> Path:
    return lab.root / "my/chapters/1_inner_loop/1_three_loops.ipynb"


def test_an_unanswered_prediction_gives_nothing_away(page: Any, part: Path) -> None:
    """Neither the sentence below it, before anything is run, nor the cell that compares, when that is run."""
    run(page, cell(page, part, "loops-load"))
    guess = cell(page, part, "loops-amdahl-prediction")
    assert not guess.locator(".jp-InputArea-editor").is_visible(), "the card stands in the place of the code"
    result, read = cell(page, part, "loops-amdahl-run"), cell(page, part, "loops-amdahl-read")
    first = int(guess.get_attribute("data-windowed-list-index"))
    guess.scroll_into_view_if_needed()
    expect(result).to_have_css("color", re.compile("rgb"))  # it is drawn
    assert not result.locator(".jp-InputArea-editor").is_visible()
    assert not read.locator(".jp-RenderedMarkdown").is_visible()
    assert page.evaluate(SAID_BEFORE, result.element_handle()).startswith('"How it comes out stands here')
    assert page.evaluate(SAID_BEFORE, read.element_handle()) == "none"
    guess.locator(".threeloops-card label").click()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")  # unanswered
    for index in range(first, int(result.get_attribute("data-windowed-list-index")) + 1):
        page.keyboard.press("Shift+Enter")
        page.wait_for_function(f"after => ({ACTIVE})().index > after", arg=index)
    assert within(page, 120, lambda: "First your prediction" in (result.locator(".jp-OutputArea").text_content() or ""))
    expect(result.locator(".jp-OutputArea-output")).not_to_contain_text("1.67")


def test_a_prediction_is_given_by_keyboard_and_compared(page: Any, part: Path) -> None:
    guess = cell(page, part, "loops-amdahl-prediction")
    guess.get_by_role("textbox", name="Your prediction").focus()
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    expect(guess.get_by_role("textbox", name="Your prediction")).to_be_focused()
    page.keyboard.press("Enter")
    expect(guess.get_by_role("status")).to_have_text("Write a number here, or skip.")
    page.keyboard.insert_text("abc")
    page.keyboard.press("Enter")
    expect(guess.get_by_role("status")).to_contain_text("'abc' is not a number")
    expect(guess.get_by_role("textbox", name="Your prediction")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("1.5")
    page.keyboard.press("Enter")
    expect(guess.get_by_role("status")).to_contain_text("Noted.")
    page.wait_for_function(
        f"before => ({ACTIVE})().index > before", arg=int(guess.get_attribute("data-windowed-list-index"))
    )
    assert notebook_source(page, part, "loops-amdahl-prediction").startswith('prediction = "1.5"  # a plain number')
    result = cell(page, part, "loops-amdahl-run")
    expect(result.locator(".jp-InputArea-editor")).to_be_visible()
    expect(cell(page, part, "loops-amdahl-read").locator(".jp-RenderedMarkdown")).to_be_visible()
    expect(result.locator(".jp-OutputArea-output")).to_contain_text("You said 1.5; it comes out at 1.667.")


# How far the top of a cell's output lies below the top of what is in view.
TOP = """cell => {
  const view = cell.closest('.jp-WindowedPanel-outer, .jp-Notebook').getBoundingClientRect();
  return cell.querySelector('.jp-Cell-outputWrapper').getBoundingClientRect().top - view.top;
}"""


def test_the_top_of_what_was_just_made_is_in_view(page: Any, part: Path) -> None:
    shows = next(one["id"] for one in saved(part) if "explorer()" in "".join(one["source"]))
    explorer = cell(page, part, shows)
    explorer.scroll_into_view_if_needed()
    explorer.locator(".jp-InputArea-prompt, .jp-Cell-inputWrapper").first.click()
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+Enter")
    explorer.locator(".jp-OutputArea-output svg").first.wait_for()
    page.wait_for_timeout(2000)  # what was drawn has its height
    assert explorer.evaluate(TOP) >= 0


def test_a_prediction_may_be_skipped(page: Any, part: Path) -> None:
    guess = cell(page, part, "loops-stack-prediction")
    guess.scroll_into_view_if_needed()
    guess.get_by_role("button", name="skip", exact=True).click()
    expect(guess.get_by_role("status")).to_contain_text("Skipped.")
    result = cell(page, part, "loops-stack-run")
    expect(result.locator(".jp-OutputArea-output")).to_contain_text("Skipped: it comes out at 607 ms.")


def test_a_quick_check_asks_before_it_is_run_names_the_slip_and_says_right(page: Any, part: Path) -> None:
    drill = DRILLS["amdahl-one-part"]
    p = posed(drill, course=HOME_COURSE, student=HOME_STUDENT)
    check = cell(page, part, "loops-check-one")
    check.scroll_into_view_if_needed()
    expect(check.locator(".threeloops-card .question")).to_contain_text(drill.prompt(p)[:60])
    box, sure = (check.get_by_role("textbox", name=name) for name in ("Your answer", "How sure?"))
    said = check.locator(".threeloops-card .said")
    for value, words in ((drill.slips[0].wrong(p), drill.slips[0].story[:50]), (drill.derive(p).value, "Right.")):
        box.fill(f"{value!r} {drill.unit}".strip())
        box.press("Enter")
        expect(check.locator(".jp-OutputArea-output").last).to_contain_text(words)
        expect(box).to_be_focused()
    assert check.locator(".threeloops-card .question").is_hidden(), "the output has it"
    for percent, words in (
        ("very", "'very' is no confidence"),
        ("80", "Noted: 80 % sure"),
        ("90", "Your first answer"),
    ):
        sure.fill(percent)
        sure.press("Enter")
        expect(said).to_contain_text(words)


def test_an_answer_while_the_one_before_is_being_saved_is_kept_and_asks_nothing(page: Any, part: Path) -> None:
    """The server is slow: what it has written is not yet answered when the next answer comes."""
    drill = DRILLS["amdahl-one-part"]
    p = posed(drill, course=HOME_COURSE, student=HOME_STUDENT)
    box = cell(page, part, "loops-check-one").get_by_role("textbox", name="Your answer")
    output = cell(page, part, "loops-check-one").locator(".jp-OutputArea-output").last
    held: list[tuple[Any, Any]] = []

    def hold(route: Any) -> None:
        if route.request.method == "PUT" and not held:
            held.append((route, route.fetch()))
        else:
            route.continue_()

    contents_of = f"**/api/contents/**/{part.name}*"
    page.route(contents_of, hold)
    for value, words in ((drill.slips[0].wrong(p), drill.slips[0].story[:50]), (drill.derive(p).value, "Right.")):
        box.fill(f"{value!r} {drill.unit}".strip())
        box.press("Enter")
        expect(output).to_contain_text(words)
        assert within(page, 20, lambda: bool(held))
    page.wait_for_timeout(1000)  # in which the second save would have found the file changed
    assert page.locator("dialog").count() == 0
    (route, response), *_ = held
    route.fulfill(response=response)
    assert within(page, 20, lambda: f'"{drill.derive(p).value!r} {drill.unit}"'.replace(" ", "") in kept(part))
    expect(page.locator("dialog")).to_have_count(0)
    page.unroute(contents_of)


def kept(part: Path) -> str:
    """What the file holds, without the blanks."""
    return json.dumps(saved(part)).replace('\\"', '"').replace(" ", "")


def test_all_runs_up_to_the_next_question_and_then_the_reader_goes_there(page: Any, part: Path) -> None:
    """What has run is not run again, and nothing behind the next question is."""
    said = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .threeloops-told")
    page.locator(CELL).first.click(position={"x": 4, "y": 12})
    page.keyboard.press("Escape")
    ids = [one["id"] for one in saved(part)]
    at = page.evaluate(ACTIVE)["index"]
    onward = page.get_by_role("button", name="Run to the next question")
    onward.click()
    if within(page, 2, lambda: "Running" in (said.text_content() or "")):
        expect(said).to_contain_text("once more goes there")
        onward.click()
    assert within(page, 20, lambda: page.evaluate(ACTIVE)["index"] > at)
    there = page.evaluate(ACTIVE)
    assert there["seen"]
    open_cells = [one["id"] for one in saved(part) if re.search(r"= \.\.\.|, \.\.\.\)", "".join(one["source"]))]
    assert ids[there["index"]] in open_cells
    before = [one for one in page.evaluate(PROMPTS) if one[0] < there["index"]]
    assert before
    assert not [place for place, prompt in before if prompt == "[ ]:" and ids[place] not in open_cells]


def test_code_of_ones_own_in_a_cards_place_counts(page: Any, part: Path) -> None:
    guess = cell(page, part, "loops-amdahl-prediction")
    guess.get_by_role("button", name="code", exact=True).click()
    guess.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("prediction = 3 / 2")
    expect(guess.locator(".threeloops-card")).to_be_hidden()
    assert guess.locator(".jp-InputArea-editor").is_visible()
    page.keyboard.press("Control+z")  # the card is back
    expect(guess.locator(".threeloops-card")).to_be_visible()


def test_what_is_done_is_on_the_start_page(page: Any) -> None:
    to_start(page)
    row = page.locator(".threeloops-start tr").filter(has_text="1.1 Three loops")
    expect(row).to_contain_text(re.compile(r"\d+ of \d+ cells run, 1 of \d checks right"))


# --- a drill set ---


def test_a_drill_set_shows_its_questions_is_answered_in_its_cards_and_kept(
    open_at: Callable[[str], Door], look: Callable[[Door], Sight]
) -> None:
    door = open_at("drills/kv_cache")
    page = look(door).page
    page.locator(".threeloops-card").first.wait_for()
    page.wait_for_selector(IDLE)
    path = door.root / "my/drills/kv_cache/kv_cache.ipynb"
    assert page.locator(".lm-TabBar-tab.lm-mod-current.jp-mod-dirty").count() == 0, "opening changes nothing"
    drill = DRILLS["kv-bytes-per-token"]
    p = posed(drill, course=HOME_COURSE, student=HOME_STUDENT)
    card = cell(page, path, "one-token-answer")
    box = card.get_by_role("textbox", name="Your answer")
    card.scroll_into_view_if_needed()
    expect(box).to_be_hidden()  # nobody answers a question that they have not seen
    card.get_by_role("button", name="Show the questions").click()
    asked = cell(page, path, "one-token-ask").locator(".jp-OutputArea-output")
    expect(asked).to_contain_text(drill.prompt(p).split("\n")[0][:40])
    expect(box).to_be_focused()
    assert page.get_by_role("button", name="Show the questions").count() == 0, "one click shows them all"
    check = cell(page, path, "one-token")
    editor = page.get_by_role("button", name="Editor")
    assert not page.locator(CELL).locator(".jp-InputPlaceholder:visible", has_text="sheet.").count()
    editor.click()  # now it shows what gets the questions ready
    run(page, check)
    editor.click()
    expect(check.locator(".jp-OutputArea-output")).to_contain_text("needs `one_token`, which is made in a cell above")
    value = drill.derive(p).value
    box.fill(f"{value * 1.07!r} B")
    box.press("Enter")
    expect(card.locator(".said")).to_have_text(re.compile(r"Taught in 3\.3 KV cache\."))
    box.fill(f"{value!r} B")
    box.press("Enter")
    expect(check.locator(".jp-OutputArea-output")).to_have_text(re.compile(r"Right\."))
    expect(page.locator(".lm-TabBar-tab.lm-mod-current.jp-mod-dirty")).to_have_count(0)
    assert repr(value) in path.read_text(), "`book.py grade` reads the file; a checked answer is in it"
    marked(page, door)
    page.locator(CELL).get_by_role("link", name="3.3 KV cache", exact=True).first.click()
    arrive(page, "3_product_loop/3_kv_cache.ipynb")


def marked(page: Any, door: Door) -> None:
    """*Grade* says the mark and opens the feedback beside the set; tests/desk/test_graded_there.py has the marking."""
    feedback = door.root / "my/graded/feedback/kv_cache.html"
    feedback.parent.mkdir(parents=True)
    feedback.write_text("<h1>kv cache: 1 of 13 points</h1>")
    told = {"said": "Grading …", "mark": "1 / 13", "page": "my/graded/feedback/kv_cache.html"}
    page.route("**/threeloops/grade", lambda route: route.fulfill(json=told))
    page.get_by_role("button", name="Grade", exact=True).click()
    expect(page.locator(".threeloops-told:visible")).to_contain_text("1 / 13 points")
    expect(page.frame_locator(".jp-HTMLViewer iframe").locator("h1")).to_have_text("kv cache: 1 of 13 points")
    page.locator(".lm-TabBar-tab", has_text="kv_cache.html").locator(".lm-TabBar-tabCloseIcon").click()


# --- a narrow window ---


@pytest.mark.parametrize("width", [1024, 640, 400])
def test_in_a_narrow_window_nothing_is_cut_off_or_overlaps(page: Any, width: int) -> None:
    """A window of 1280 pixels at 200 % is one of 640."""
    page.set_viewport_size({"width": width, "height": 700})
    try:
        page.wait_for_timeout(500)
        assert within(page, 20, lambda: not page.evaluate(CUT_OFF, ".threeloops-start :is(h1, h2, p, a, th, td)"))
        assert not page.evaluate(OVERLAPPING, ".threeloops-start a")
        page.locator(".threeloops-start .go a").click()
        page.locator(CELL).locator(".threeloops-card").first.wait_for()
        assert not page.evaluate(CUT_OFF, ".threeloops-card :is(label, input, button, p, span)")
        assert not page.evaluate(OVERLAPPING, ".threeloops-card :is(label, input, button, .hint)")
        to_start(page)
    finally:
        page.set_viewport_size({"width": 1280, "height": 1000})
        page.wait_for_timeout(300)


# --- Shift+Enter through whole parts ---

BOOK = contents.book_root()
LONGEST = "1_inner_loop/6_fusion_and_flashattention"


@pytest.mark.clock("a key may be lost between two paints of a busy browser")
@pytest.mark.parametrize(
    "copy",
    [
        pytest.param(place.copy, marks=[] if LONGEST in place.copy else pytest.mark.thorough)
        for place in contents.places(BOOK)
    ],
)
def test_shift_enter_through_a_whole_part_never_loses_the_reader(
    lab: Door, look: Callable[[Door], Sight], copy: str
) -> None:
    """Keys come faster than cells end: the next one is active all the same, and to be seen."""
    number = len(json.loads((lab.root / "my" / copy).read_text())["cells"])
    page = look(replace(lab, page=lab.address(f"my/{copy}", workspace=copy))).page
    page.locator(CELL).nth(number - 1).wait_for(state="attached")
    page.wait_for_selector(IDLE)
    page.locator(CELL).first.click(position={"x": 4, "y": 12})
    for index in range(number - 1):
        page.keyboard.press("Shift+Enter")
        try:
            page.wait_for_function(
                f"after => {{ const at = ({ACTIVE})(); return at.index > after && at.seen; }}", arg=index
            )
        except PlaywrightTimeout as error:
            focus = page.evaluate("document.activeElement?.outerHTML.slice(0, 200)")
            raise AssertionError(f"after cell {index}: {page.evaluate(ACTIVE)}, the focus on {focus}") from error
    lab.end_kernel(f"my/{copy}")
    page.context.close()

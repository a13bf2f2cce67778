"""Through the reader's door in a real browser: the book opens at a part, the part runs, the widget works by keyboard,
a wrong answer is told its slip.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.chapters.conftest import FEDERATED, PART, Door, Sight
from threeloops import contents
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.student_draws import HOME_COURSE, HOME_STUDENT, posed

PART_RUNS_S = 180
CELL = ".jp-Notebook .jp-Cell"
ACTIVE_AFTER = (
    "([cells, index]) => Number(document.querySelector(`${cells}.jp-mod-active`)?.dataset.windowedListIndex) > index"
)
HEADING_IN_SIGHT = """
heading => {
  const box = [...document.querySelectorAll('.jp-Notebook h2')].find(found => found.textContent.includes(heading))?.getBoundingClientRect();
  return box && box.top >= 0 && box.bottom < window.innerHeight;
}"""  # noqa: E501
ERROR_OUTPUT = '[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"]'

pytestmark = pytest.mark.timeout(600)


def numbered(index: int) -> str:
    """The selector of a cell by its place in the notebook; what lies between two cells need not be drawn yet."""
    return f'{CELL}[data-windowed-list-index="{index}"]'


@dataclass(frozen=True, kw_only=True)
class Reader:
    """The part as the reader has it on the screen."""

    door: Door
    page: Any
    sight: Sight
    copy: Path
    place: contents.Place
    cells: list[dict[str, Any]]  # those that this run goes through

    @property
    def span(self) -> range:
        """Indices of these cells."""
        return range(len(self.cells))

    def code(self, pattern: str) -> int:
        """Index of the part's first code cell in whose source the pattern is found."""
        for index in self.span:
            if self.cells[index]["cell_type"] == "code" and re.search(pattern, "".join(self.cells[index]["source"])):
                return index
        raise AssertionError(f"no code cell of part {self.place.title} contains {pattern!r}")

    def cell(self, index: int) -> Any:
        return self.page.locator(numbered(index))

    def at_the_part(self) -> None:
        """Wait until the part's heading stands on the screen."""
        self.page.wait_for_function(HEADING_IN_SIGHT, arg=self.place.heading)

    def idle(self) -> None:
        """Wait until nothing runs."""
        self.page.wait_for_function(
            """() => ![...document.querySelectorAll('.jp-InputPrompt')].some(prompt => prompt.textContent.includes('*'))
               && document.querySelector(".threeloops-bar[data-kernel='idle']")""",
            timeout=PART_RUNS_S * 1000,
        )


@pytest.fixture(scope="module")
def reader(lab: Door, look: Callable[[Door], Sight]) -> Reader:
    place = contents.find_place(PART, lab.root)
    sight = look(lab)
    sight.page.wait_for_selector(CELL)
    copy = lab.root / "my" / place.copy
    cells = json.loads(copy.read_text())["cells"]
    return Reader(door=lab, page=sight.page, sight=sight, copy=copy, place=place, cells=cells)


@pytest.fixture(scope="module")
def part_run(reader: Reader) -> Reader:
    """The whole part, run the way a reader runs it: from its heading, cell by cell with Shift+Enter."""
    reader.page.wait_for_selector(".threeloops-bar[data-kernel='idle']")
    reader.at_the_part()
    reader.cell(reader.span[0]).click(position={"x": 4, "y": 20})
    for index in reader.span:
        reader.page.keyboard.press("Shift+Enter")
        reader.page.wait_for_function(ACTIVE_AFTER, arg=[CELL, index])
    reader.idle()
    return reader


def test_the_copy_opens_at_the_part(reader: Reader) -> None:
    assert reader.copy.is_relative_to(contents.book_root()) is False, "the test must not open the real my/"
    reader.at_the_part()


def test_no_answer_stands_under_its_question(reader: Reader) -> None:
    assert reader.page.locator(f"{CELL} .jp-OutputArea-output").count() == 0
    committed = json.loads((reader.door.root / reader.place.notebook).read_text())
    assert any(cell.get("outputs") for cell in committed["cells"]), (
        "the committed chapter has no outputs, so this test shows nothing"
    )


def test_the_contents_panel_is_shown(reader: Reader) -> None:
    contents = reader.page.locator("#table-of-contents")
    contents.wait_for(state="visible")
    contents.get_by_text(reader.place.heading).first.wait_for()


def test_the_part_runs(part_run: Reader) -> None:
    for index in part_run.span:
        cell = part_run.cells[index]
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        prompt = part_run.cell(index).locator(".jp-InputPrompt").first.text_content()
        folded = part_run.cell(index).locator(".jp-InputPlaceholder").count()  # has no number to be seen
        assert folded or re.fullmatch(r"\[\d+\]:", prompt), f"not run: {source}"
        complaint = part_run.cell(index).locator(ERROR_OUTPUT)
        if complaint.count() and "check" not in source:  # an unanswered check says so on stderr
            raise AssertionError(f"{source}\n{complaint.first.text_content()}")


def height(cell: Any) -> float:
    """From the first control down to the table: what a redraw must not change, wherever the page has been scrolled
    to.
    """
    return float(cell.locator("table").bounding_box()["y"] - cell.get_by_label("accelerator").bounding_box()["y"])


def test_the_widget_works_by_keyboard(part_run: Reader) -> None:
    page, cell = part_run.page, part_run.cell(part_run.code(r"roofline_widget\.explorer\("))
    cell.scroll_into_view_if_needed()
    figure, spoken = cell.locator("figure.tl-figure"), cell.get_by_role("status")
    figure.wait_for()
    expect(spoken).to_contain_text("batch 8,")
    below = height(cell)

    cell.get_by_label("accelerator").focus()
    for _ in range(2):  # precision, phase
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    expect(spoken).to_contain_text("Decode, batch 8,")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    expect(spoken).to_contain_text("batch 16,")
    row = cell.locator("tr", has_text="qkv projection")
    expect(row).to_contain_text(re.compile(r"memory15\.\d+ FLOP/B"))  # 16 rows share the weights: just under 16
    point = figure.locator("[aria-label^='gate up projection']")
    expect(point).to_have_attribute("aria-label", re.compile(r"15\."))
    assert height(cell) == pytest.approx(below, abs=1), "the page jumped"

    cell.get_by_label("accelerator").focus()
    page.keyboard.press("ArrowDown")
    expect(spoken).to_contain_text("H100")
    assert height(cell) == pytest.approx(below, abs=1), "the page jumped"


def test_the_changed_value_is_read_in_the_next_cell(part_run: Reader) -> None:
    """What a reader set by keyboard is an ordinary value for the next cell."""
    index = part_run.code(r"roofline_widget\.explorer\(")
    number = part_run.cell(index).locator(".jp-OutputPrompt").first.text_content().strip("[]:")
    part_run.cell(index).click(position={"x": 4, "y": 20})  # its code may be folded
    part_run.page.keyboard.press("Escape")
    part_run.page.keyboard.press("b")
    part_run.page.keyboard.press("Enter")
    part_run.page.keyboard.insert_text(f"print(Out[{number}].state.batch, Out[{number}].state.accelerator)")
    part_run.page.keyboard.press("Control+Enter")
    expect(part_run.cell(index + 1).locator(".jp-OutputArea-output")).to_have_text("16 h100-sxm5")
    part_run.page.keyboard.press("Escape")
    part_run.page.keyboard.press("d")
    part_run.page.keyboard.press("d")


def test_a_wrong_answer_is_told_its_slip(part_run: Reader) -> None:
    index = part_run.code(r"\bcheck\(")
    drill = checked_drill("".join(part_run.cells[index]["source"]))
    p = posed(drill, course=HOME_COURSE, student=HOME_STUDENT)
    slip = drill.slips[0]
    box = part_run.cell(index).get_by_role("textbox", name="Your answer")
    box.fill(f"{slip.wrong(p)!r} {drill.unit}")
    box.press("Enter")
    complaint = part_run.cell(index).locator(ERROR_OUTPUT)
    complaint.get_by_text(slip.story[:60]).wait_for()


def test_a_page_without_a_kernel_shows_the_widgets_picture(reader: Reader) -> None:
    """The committed chapter, as a fresh clone shows it before anything was run or trusted."""
    page = reader.page.context.new_page()
    page.goto(reader.door.address(reader.place.notebook, workspace="committed"))
    wanted = reader.cells[reader.code(r"roofline_widget\.explorer\(")]["id"]
    committed = json.loads((reader.door.root / reader.place.notebook).read_text())["cells"]
    cell = page.locator(numbered([one["id"] for one in committed].index(wanted)))
    cell.wait_for(state="attached")
    cell.scroll_into_view_if_needed()
    picture = cell.locator(".jp-OutputArea-output img")
    picture.wait_for()
    assert picture.evaluate("image => image.naturalWidth") > 600
    assert picture.evaluate("image => image.offsetWidth") <= 640


def checked_drill(source: str) -> Any:
    return next(DRILLS[word] for word in re.findall(r"""["']([a-z0-9-]+)["']""", source) if word in DRILLS)


def test_the_browser_complains_about_nothing_of_ours(
    part_run: Reader, look: Callable[[Door], Sight], folder: Door
) -> None:
    """Nothing that it does not also say of an empty notebook on a page without the book's extension."""
    empty = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder.root / "bare.ipynb").write_text(json.dumps(empty))
    config = json.loads(part_run.page.locator("#jupyter-config-data").text_content())
    others = [extension for extension in config[FEDERATED] if extension["name"] != "threeloops"]
    assert len(others) < len(config[FEDERATED])
    sight = look(replace(folder, page=folder.address("bare.ipynb"), config={FEDERATED: others}))
    sight.page.wait_for_selector(".jp-Notebook")
    sight.page.wait_for_timeout(3_000)
    usual = {plain(error) for error in sight.errors}
    ours = [error for error in part_run.sight.errors if plain(error) not in usual]
    assert not ours


def plain(error: str) -> str:
    """A console message without what differs from run to run."""
    return re.sub(r"https?://\S+|[0-9a-f]{8}-[0-9a-f-]+|\d+", "…", error)

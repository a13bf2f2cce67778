"""Through the reader's door in a real browser: the book opens at a part, the part runs, the widget works by keyboard, a wrong answer is told its slip."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.chapters.conftest import Door, Sight, running
from threeloops import contents, desk
from threeloops.drills.bank import DRILLS
from threeloops.drills.posed import HOME_COURSE, HOME_STUDENT, posed

PART = "roofline"
PART_RUNS_S = 180
CELL = ".jp-Notebook .jp-Cell"
ACTIVE_AFTER = "([cells, index]) => Number(document.querySelector(`${cells}.jp-mod-active`)?.dataset.windowedListIndex) > index"
HEADING_IN_SIGHT = """
heading => {
  const box = [...document.querySelectorAll('.jp-Notebook h2')].find(found => found.textContent.includes(heading))?.getBoundingClientRect();
  return box && box.top >= 0 && box.bottom < window.innerHeight;
}"""
ERROR_OUTPUT = '[data-mime-type="application/vnd.jupyter.error"], [data-mime-type="application/vnd.jupyter.stderr"]'

pytestmark = pytest.mark.timeout(600)


def numbered(index: int) -> str:
    """The selector of a cell by its place in the notebook; what lies between two cells need not be drawn yet."""
    return f'{CELL}[data-windowed-list-index="{index}"]'


@dataclass(frozen=True, kw_only=True)
class Reader:
    """The part as the reader has it on the screen."""

    page: Any
    sight: Sight
    copy: Path
    place: contents.Place
    cells: list[dict[str, Any]]

    @property
    def span(self) -> range:
        """Indices of the part's cells."""
        first = next(index for index, cell in enumerate(self.cells) if cell["id"] == self.place.cell)
        after = (index for index, cell in enumerate(self.cells) if index > first and re.match(r"##? ", "".join(cell["source"])))
        return range(first, next(after, len(self.cells)))

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
        self.page.wait_for_function(HEADING_IN_SIGHT, arg=self.place.heading, timeout=30_000)

    def idle(self) -> None:
        """Wait until nothing runs."""
        self.page.wait_for_function(
            """() => ![...document.querySelectorAll('.jp-InputPrompt')].some(prompt => prompt.textContent.includes('*'))
               && document.querySelector(".jp-Notebook-ExecutionIndicator[data-status='idle']")""",
            timeout=PART_RUNS_S * 1000,
        )


@pytest.fixture(scope="module")
def reader(open_at: Callable[[str | None], Door], look: Callable[[str], Sight]) -> Reader:
    door = open_at(PART)
    place = contents.find_place(PART, door.root)
    sight = look(door.page)
    sight.page.wait_for_selector(CELL, timeout=60_000)
    copy = door.root / "my" / place.notebook
    return Reader(page=sight.page, sight=sight, copy=copy, place=place, cells=json.loads(copy.read_text())["cells"])


@pytest.fixture(scope="module")
def part_run(reader: Reader) -> Reader:
    """The part, run the way a reader runs it: from its heading, cell by cell with Shift+Enter."""
    reader.page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status='idle']", timeout=60_000)
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
    committed = json.loads((reader.copy.parents[2] / reader.place.notebook).read_text())
    assert any(cell.get("outputs") for cell in committed["cells"]), "the committed chapter has no outputs, so this test shows nothing"


def test_the_contents_panel_is_shown(reader: Reader) -> None:
    contents = reader.page.locator("#table-of-contents")
    contents.wait_for(state="visible", timeout=15_000)
    contents.get_by_text(reader.place.heading).first.wait_for(timeout=15_000)


def test_the_contents_go_to_a_part_that_is_not_drawn_yet(reader: Reader) -> None:
    """Far down in a long notebook cells are drawn last; the panel alone would miss them."""
    headings = [match[1] for cell in reader.cells if (match := re.match(r"## (.*)", "".join(cell["source"])))]
    for heading in (headings[-1], reader.place.heading):  # there, and back for the tests that follow
        reader.page.locator("#table-of-contents .jp-tocItem-heading").filter(has_text=heading).first.click()
        reader.page.wait_for_function(HEADING_IN_SIGHT, arg=heading, timeout=15_000)
        reader.page.wait_for_timeout(1500)  # what is drawn meanwhile above it does not push it out of sight
        assert reader.page.evaluate(HEADING_IN_SIGHT, heading)


def test_the_part_runs(part_run: Reader) -> None:
    for index in part_run.span:
        cell = part_run.cells[index]
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        prompt = part_run.cell(index).locator(".jp-InputPrompt").first.text_content()
        assert re.fullmatch(r"\[\d+\]:", prompt), f"not run: {source}"
        complaint = part_run.cell(index).locator(ERROR_OUTPUT)
        if complaint.count() and "check" not in source:  # an unanswered check says so on stderr
            raise AssertionError(f"{source}\n{complaint.first.text_content()}")


def height(cell: Any) -> float:
    """From the first control down to the table: what a redraw must not change, wherever the page has been scrolled to."""
    return float(cell.locator("table").bounding_box()["y"] - cell.get_by_label("accelerator").bounding_box()["y"])


def test_the_widget_works_by_keyboard(part_run: Reader) -> None:
    page, cell = part_run.page, part_run.cell(part_run.code(r"\.explorer\("))
    cell.scroll_into_view_if_needed()
    figure, spoken = cell.locator("[role=graphics-document]"), cell.get_by_role("status")
    figure.wait_for(timeout=30_000)
    assert "batch 8," in spoken.text_content()
    below = height(cell)

    cell.get_by_label("accelerator").focus()
    for _ in range(3):  # precision, phase, batch
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("cell => cell.querySelector('[role=status]').textContent.includes('batch 16,')", arg=cell.element_handle())
    page.wait_for_function("cell => cell.querySelector('[role=graphics-document]')?.textContent.includes('batch 16,')", arg=cell.element_handle())
    row = cell.locator("tr", has_text="qkv projection").text_content()
    assert re.search(r"memory15\.\d+ FLOP/B", row), row  # 16 rows share the weights: just under 16 FLOP per byte
    assert "15." in figure.locator("[aria-label^='gate up projection']").get_attribute("aria-label")
    assert height(cell) == below, "the page jumped"

    cell.get_by_label("accelerator").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("cell => cell.querySelector('[role=status]').textContent.includes('H100')", arg=cell.element_handle())
    assert height(cell) == below, "the page jumped"


def test_the_changed_value_is_read_in_the_next_cell(part_run: Reader) -> None:
    """What a reader set by keyboard is an ordinary value for the next cell."""
    index = part_run.code(r"\.explorer\(")
    number = part_run.cell(index).locator(".jp-InputPrompt").first.text_content().strip("[]:")
    part_run.cell(index).locator(".cm-content").click()
    part_run.page.keyboard.press("Escape")
    part_run.page.keyboard.press("b")
    part_run.page.keyboard.press("Enter")
    part_run.page.keyboard.insert_text(f"print(Out[{number}].state.batch, Out[{number}].state.accelerator)")
    part_run.page.keyboard.press("Control+Enter")
    part_run.cell(index + 1).locator(".jp-OutputArea-output").wait_for(timeout=30_000)
    assert part_run.cell(index + 1).locator(".jp-OutputArea-output").text_content().strip() == "16 h100-sxm5"
    part_run.page.keyboard.press("Escape")
    part_run.page.keyboard.press("d")
    part_run.page.keyboard.press("d")


def test_a_wrong_answer_is_told_its_slip(part_run: Reader) -> None:
    index = part_run.code(r"\bcheck\(")
    key, drill = checked_drill("".join(part_run.cells[index]["source"]))
    p = posed(drill, course=HOME_COURSE, student=HOME_STUDENT)
    slip = drill.slips[0]
    part_run.cell(index).locator(".cm-content").click()
    part_run.page.keyboard.press("Control+a")
    part_run.page.keyboard.insert_text(f'from threeloops.drills import sheet; sheet.check("{key}", "{slip.wrong(p)!r} {drill.unit}")')
    part_run.page.keyboard.press("Escape")
    part_run.page.keyboard.press("Control+Enter")
    complaint = part_run.cell(index).locator(ERROR_OUTPUT)
    complaint.get_by_text(slip.story[:60]).wait_for(timeout=30_000)


def test_a_page_without_a_kernel_shows_the_widgets_picture(reader: Reader) -> None:
    """The committed chapter, as a fresh clone shows it before anything was run or trusted."""
    page = reader.page.context.new_page()
    page.goto(reader.page.url.partition("/lab")[0] + "/lab/workspaces/committed/tree/" + reader.place.notebook)
    cell = page.locator(numbered(reader.code(r"\.explorer\(")))
    cell.wait_for(state="attached", timeout=60_000)
    cell.scroll_into_view_if_needed()
    picture = cell.locator(".jp-OutputArea-output img")
    picture.wait_for(timeout=30_000)
    assert picture.evaluate("image => image.naturalWidth") > 600
    assert picture.evaluate("image => image.offsetWidth") <= 640


def checked_drill(source: str) -> tuple[str, Any]:
    key = next(word for word in re.findall(r"""["']([a-z0-9-]+)["']""", source) if word in DRILLS)
    return key, DRILLS[key]


def test_the_browser_complains_about_nothing_of_ours(part_run: Reader, look: Callable[[str], Sight], tmp_path_factory: pytest.TempPathFactory) -> None:
    root, personal = tmp_path_factory.mktemp("bare"), tmp_path_factory.mktemp("jupyter")
    empty = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (root / "bare.ipynb").write_text(json.dumps(empty))
    bare = [
        word for word in desk.lab_command(root / "bare.ipynb", None, browser=False, root=root) if "labextensions" not in word and "settings_dir" not in word
    ]
    with running(bare, root, personal) as door:
        sight = look(door.page)
        sight.page.wait_for_selector(".jp-Notebook", timeout=60_000)
        sight.page.wait_for_timeout(3_000)
    usual = {plain(error) for error in sight.errors}
    ours = [error for error in part_run.sight.errors if plain(error) not in usual]
    assert not ours


def plain(error: str) -> str:
    """A console message without what differs from run to run."""
    return re.sub(r"https?://\S+|[0-9a-f]{8}-[0-9a-f-]+|\d+", "…", error)

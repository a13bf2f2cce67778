"""The start page: every part and set in reach, what is done read from the copies, marks, and where the reader was."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from threeloops import contents, desk
from threeloops.classroom.report import Answered, Result, keep_mark
from threeloops.desk import begun, copies, start_page
from threeloops.desk.begun import Begun

PART = "chapters/1_inner_loop/1_three_loops.ipynb"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A book of two parts and a drill set that the second one names."""
    monkeypatch.setattr(desk, "history_path", lambda: tmp_path / "history.sqlite3")
    name = "drills/kv_cache/kv_cache.ipynb"
    prose = ("# 1 The inner loop", "## 1 Three loops · 40 min", f"## 2 Roof & floor · 60 min\n\n[set](../{name})")
    cells = [
        {"cell_type": "markdown", "id": f"card-{index}", "metadata": {}, "source": text}
        for index, text in enumerate(prose)
    ]
    cells[2:2] = [code("sheet.check('a', 1)", "check"), code("1 + 1", "sum"), code("", "empty")]
    for path, its in (("chapters/1_inner_loop.ipynb", cells), (name, cells[:1])):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        named = its if path.startswith("chapters") else [{**its[0], "source": "# KV cache: what a context costs"}]
        (tmp_path / path).write_text(json.dumps({"cells": named, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    copies.all_copies(tmp_path)
    return tmp_path


def code(source: str, name: str) -> dict[str, object]:
    return {
        "cell_type": "code", "id": name, "metadata": {}, "source": source, "outputs": [], "execution_count": None
    }  # fmt: skip


def run(path: Path, printed: str) -> None:
    """As JupyterLab leaves a notebook whose first two code cells were run."""
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        if cell["id"] in ("check", "sum"):
            cell["execution_count"] = 3
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": [printed]}]
    path.write_text(json.dumps(notebook))


def text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def test_everything_is_one_click_away(root: Path) -> None:
    page = start_page.start_page(root).html
    links = set(re.findall(r'href="([^"]+)"', page)) - {start_page.ROOM}
    assert links == {PART, "chapters/1_inner_loop/2_roof_floor.ipynb", "drills/kv_cache/kv_cache.ipynb"}
    assert all((root / "my" / link).is_file() for link in links)
    assert "Roof &amp; floor" in page
    assert "2 parts, 1.7 hours" in text(page)
    assert "Start reading: 1.1 Three loops" in page


@pytest.mark.parametrize(
    ("printed", "said"),
    [("No answer yet.", "2 of 2 cells run, 0 of 1 checks right"), ("Right.\n  2 × 3", "done 2 of 2 cells run, 1 of 1")],
)
def test_what_is_done_is_read_from_the_copy(root: Path, printed: str, said: str) -> None:
    run(root / "my" / PART, printed)
    page = text(start_page.start_page(root).html)
    assert said in page
    assert (", 1 done" in page) is ("Right." in printed)


def test_a_notebook_that_cannot_be_read_is_not_begun(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ipynb"
    broken.write_text("{")
    assert begun.begun(broken) == begun.begun(tmp_path / "none.ipynb") == Begun()
    assert Begun(run=2, cells=2).done
    assert not Begun(run=1, cells=2).done
    assert Begun().words == ""


def test_the_last_mark_stands_beside_its_set(root: Path) -> None:
    (root / "my/graded").mkdir()
    for points in (1.0, 8.5):
        answer = Answered(grade_id="a", drill="b", status="off", message="", slips=(), points=points, maximum=13)
        keep_mark("kv_cache", Result(student="reader", status="graded", answers=(answer,)), root / "my/graded")
    assert "KV cache 8.5 / 13 points" in text(start_page.start_page(root).html)
    (root / "my/graded/marks.json").write_text("[1]")
    assert begun.marks(root) == {}


@pytest.mark.parametrize("path", [PART, "drills/kv_cache/kv_cache.ipynb"])
def test_the_reader_goes_on_where_they_were(root: Path, path: str) -> None:
    (root / "my/lab").mkdir()
    (root / "my/lab/here.json").write_text(json.dumps({"path": path}))
    (go,) = re.findall(r'<p class="go"><a href="([^"]+)">Continue: ', start_page.start_page(root).html)
    assert go == path


def test_what_was_opened_counts_before_anything_was_run(root: Path) -> None:
    (root / "my/lab").mkdir()
    assert "So far" not in start_page.start_page(root).html
    (root / "my/lab/here.json").write_text(
        json.dumps({"path": PART, "opened": [PART, 3, "drills/kv_cache/kv_cache.ipynb"]})
    )
    page = text(start_page.start_page(root).html)
    assert "1.1 Three loops 40 opened" in page
    assert "So far: 1 of 2 parts opened, 0 done" in page


@pytest.mark.parametrize("written", ["{", "[]", '{"path": "gone.ipynb"}', '{"path": "../chapters/1_inner_loop.ipynb"}'])
def test_a_place_that_is_not_there_is_not_offered(root: Path, written: str) -> None:
    (root / "my/lab").mkdir()
    (root / "my/lab/here.json").write_text(written)
    assert "Continue" not in start_page.start_page(root).html


def test_whoever_is_new_is_told_where_to_begin_until_that_set_has_a_mark(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "New here" not in start_page.start_page(root).html, "this book has no such set"
    monkeypatch.setattr(contents, "STARTER", "kv_cache")
    assert 'then <a href="drills/kv_cache/kv_cache.ipynb">KV cache</a>: five' in start_page.start_page(root).html
    (root / "my/graded").mkdir()
    keep_mark("kv_cache", Result(student="reader", status="graded", answers=()), root / "my/graded")
    assert "New here" not in start_page.start_page(root).html


def test_the_page_is_a_file_too_for_other_editors(root: Path) -> None:
    page = start_page.written_page(root).read_text()
    assert page.startswith("<!doctype html>")
    assert PART in page
    assert "--jp-content-font-color1, #" in page, "without JupyterLab its colours have a fallback"


def test_the_whole_book_is_on_the_page() -> None:
    book = contents.book_root()
    sets = {path.stem for path in copies.drill_notebooks(book) if path.parent.name == path.stem}
    page = start_page.start_page(book)
    parts = [entry.copy for chapter in page.chapters for entry, _ in chapter.parts]
    assert parts == [place.copy for place in contents.places(book)]
    assert len(set(parts)) == len(parts)
    named = [entry.copy for chapter in page.chapters for _, its in chapter.parts for entry in its]
    assert sorted(Path(copy).parent.name for copy in named) == sorted(sets), "every set stands once"
    assert Path(named[0]).parent.name == contents.STARTER
    assert f"<code>python3 book.py grade my/{Path(named[0]).parent}</code>" in page.html
    assert (
        "New here, with half an hour? The short way of"
        in replace(page, chapters=tuple(map(unmarked, page.chapters))).html
    )


def unmarked(chapter: start_page.Chapter) -> start_page.Chapter:
    """The chapter as somebody sees it who has no marks."""
    return replace(chapter, parts=[(part, [replace(one, mark="") for one in its]) for part, its in chapter.parts])

"""A sentence that names a part leads there: every "part 4" and every "part 2 of chapter 3" is a link, and every link
into a chapter leads to a heading of that chapter.
"""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from tests.chapters import link_parts

CHAPTERS = sorted((Path(__file__).parents[2] / "chapters").glob("*.ipynb"))
every_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=[path.stem for path in CHAPTERS])
INSIDE = re.compile(r'(?:\]\(|href=")#([^)"\s]+)')


def prose(path: Path) -> dict[str, str]:
    """Cell id -> markdown."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return {cell["id"]: "".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"}


def without_links(markdown: str) -> str:
    """What a reader sees as plain words: no code, no formulas, no links, no headings."""
    markdown = re.sub(r"```.*?```|`[^`]*`|\$[^$\n]*\$|\[[^\]]*\]\([^)]*\)|<a .*?</a>", " ", markdown, flags=re.DOTALL)
    return re.sub(r"^#.*$", "", markdown, flags=re.MULTILINE)


@every_chapter
def test_every_mention_of_a_part_is_a_link(path: Path) -> None:
    cells = prose(path)
    if not any(re.search(r'(?:\]\(|href=")#', source) for source in cells.values()):
        pytest.skip(f"not linked yet: python tests/chapters/link_parts.py {path.relative_to(path.parents[1])}")
    plain = {
        name: re.findall(r"\b[Pp]arts? (?:\d+|F\d?)\b(?! of (?!this chapter)).{0,30}", without_links(source))
        for name, source in cells.items()
    }
    assert not {name: found for name, found in plain.items() if found}


@every_chapter
def test_every_link_inside_a_chapter_leads_to_a_heading(path: Path) -> None:
    cells = prose(path)
    headings = {
        line.lstrip("#").strip().replace(" ", "-")
        for source in cells.values()
        for line in source.splitlines()
        if re.match(r"#+ ", line)
    }
    lost = {
        name: [target for target in map(unquote, INSIDE.findall(source)) if target not in headings]
        for name, source in cells.items()
    }
    assert not {name: targets for name, targets in lost.items() if targets}, (
        "run tests/chapters/link_parts.py: a heading was changed"
    )


@every_chapter
def test_every_part_of_another_chapter_is_linked_to_where_it_stands(path: Path) -> None:
    there = set(link_parts.anchors_elsewhere(path).values())
    for name, source in prose(path).items():
        assert not link_parts.ELSEWHERE.findall(without_links(source)), f"{name}: run tests/chapters/link_parts.py"
        led = {unquote(target) for target in re.findall(r'(?:\]\(|href=")(\d_\w+\.ipynb#[^)"\s]+)', source)}
        assert led <= {unquote(target) for target in there}, f"{name}: run tests/chapters/link_parts.py"


@every_chapter
def test_a_part_of_another_chapter_is_not_linked_into_this_one(path: Path) -> None:
    """ "Chapter 1, part 5" would be linked to this chapter's part 5; "part 5 of chapter 1" is left alone."""
    assert not {
        name: found
        for name, source in prose(path).items()
        if (found := re.findall(r"[Cc]hapter \d(?:, |'s )\[[Pp]arts? [^)]*\)", source))
    }


KNOWN = {"2": "2-Roofline-·-60-min", "4": "4-Kernels-·-80-min", "F": "F-Foundations-·-30-min"}
KNOWN |= {"3/2": "3_product_loop.ipynb#2-Prefill-·-35-min"}
TWO, FOUR, FOUNDATIONS = "#2-Roofline-·-60-min", "#4-Kernels-·-80-min", "#F-Foundations-·-30-min"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("See part 4.", f"See [part 4]({FOUR})."),
        ("Part 2 of this chapter", f"[Part 2]({TWO}) of this chapter"),
        ("part F and part 2 (part 4)", f"[part F]({FOUNDATIONS}) and [part 2]({TWO}) ([part 4]({FOUR}))"),
        ("Parts 2, 4 and F teach it", f"[Parts 2]({TWO}), [4]({FOUR}) and [F]({FOUNDATIONS}) teach it"),
        ("parts 2 and 9 are", f"[parts 2]({TWO}) and 9 are"),
        ("> **You need** part 2;", f"> **You need** [part 2]({TWO});"),
        (
            "<details><summary>Answers</summary>\nIn part 2.\n</details>",
            '<details><summary>Answers</summary>\nIn <a href="#2-Roofline-%C2%B7-60-min">part 2</a>.\n</details>',
        ),
        (
            "<details><summary>Answers</summary>\n\nIn part 2.\n</details>",
            f"<details><summary>Answers</summary>\n\nIn [part 2]({TWO}).\n</details>",
        ),
        (
            "part 2, and part 2 of chapter 3",
            f"[part 2]({TWO}), and [part 2 of chapter 3](3_product_loop.ipynb#2-Prefill-·-35-min)",
        ),
        ("[there](3_product_loop.ipynb#2-Old-·-75-min)", "[there](3_product_loop.ipynb#2-Prefill-·-35-min)"),
        (
            "<p>part 2 of chapter 3",
            '<p><a href="3_product_loop.ipynb#2-Prefill-%C2%B7-35-min">part 2 of chapter 3</a>',
        ),
        ("old [part 4](#4-Kernels-·-45-min), [4](#4-Old)", f"old [part 4]({FOUR}), [4]({FOUR})"),
        ('<p>old <a href="#4-Kernels-·-45-min">part 4</a>', '<p>old <a href="#4-Kernels-%C2%B7-80-min">part 4</a>'),
    ],
)
def test_mentions_become_links_and_stay_so(before: str, after: str) -> None:
    assert link_parts.linked(before, KNOWN) == after
    assert link_parts.linked(after, KNOWN) == after


@pytest.mark.parametrize(
    "untouched",
    [
        "part 9 is not here",
        "part 2 of the training loop",
        "part 9 of chapter 3",
        "`part 2`",
        "```\npart 2\n```",
        "```python\n# part 2\nprint('part 4')\n```",
        "$\\text{part 2}$",
        "### Why part 2 came first",
        "[part 2 of a book](https://example.org)",
        "a counterpart 2, part 25 and part 2nd",
        "the F part",
        # says one thing and leads to another: the test above finds what the script must not guess
        "[part 2](#4-Kernels-·-80-min)",
    ],
)
def test_what_is_not_a_mention_is_left_alone(untouched: str) -> None:
    assert link_parts.linked(untouched, KNOWN) == untouched


def notebook(*sources: str) -> dict[str, Any]:
    return {
        "cells": [
            {"cell_type": "markdown", "id": f"cell-{index}", "metadata": {}, "source": source.splitlines(True)}
            for index, source in enumerate(sources)
        ]
    }


def test_a_notebook_is_linked_once_and_follows_its_headings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.ipynb"
    path.write_text(
        json.dumps(
            notebook(
                "## 2 Roofline · 60 min\n\nAs part 4 says, and part 7.", "## 4 Kernels (few) · 80 min\n\nPart 2 first."
            )
        )
    )
    link_parts.main([str(path)])
    assert capsys.readouterr().out == f"{path}: 2 cells changed\n  no such part: cell-0: part 7\n"
    once = path.read_text()
    assert "[part 4](#4-Kernels-%28few%29-·-80-min)" in once
    link_parts.main([str(path)])
    assert path.read_text() == once
    path.write_text(once.replace("· 60 min", "· 75 min", 1))
    link_parts.main([str(path)])
    assert "[Part 2](#2-Roofline-·-75-min)" in path.read_text()


def test_the_committed_form_of_a_notebook_is_kept() -> None:
    for path in CHAPTERS:
        text = path.read_text(encoding="utf-8")
        assert json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n" == text

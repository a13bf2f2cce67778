"""A link to a part, clicked in a real JupyterLab, and its anchor as nbconvert writes it for code hosts."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import nbformat
import pytest
from nbconvert import HTMLExporter

from tests.chapters import link_parts
from tests.chapters.conftest import Door, Sight

pytestmark = pytest.mark.timeout(300)
FAR = "4 The programming model · 80 min"
FURTHER = 'F Foundations, in "few" words (and a remark) · 9 min'
AT_THE_TOP = """heading => {
  const found = [...document.querySelectorAll('.jp-Notebook h2')].find(one => one.textContent.startsWith(heading));
  return found && found.getBoundingClientRect().top > 0 && found.getBoundingClientRect().top < 400;
}"""


def notebook() -> dict[str, Any]:
    """A first cell that names two parts, and both of them far below it."""

    def prose(name: str, source: str) -> dict[str, Any]:
        return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}

    cells = [
        prose(
            "title",
            "# 1 Chapter\n\nSee part 4 and part F.\n\n<details open><summary>Answers</summary>\nPart 4"
            " again.\n</details>",
        )
    ]
    for part, heading in (("far", FAR), ("further", FURTHER)):
        cells += [prose(f"{part}-{index}", f"filler {index}\n\n" + "text\n\n" * 12) for index in range(20)]
        cells.append(prose(part, f"## {heading}\n\n> a card"))
    cells += [prose(f"end-{index}", "text\n\n" * 12) for index in range(5)]
    made = {
        "cells": cells,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    link_parts.rewritten(made, elsewhere={})
    return made


def test_clicked_links_lead_to_their_parts_and_back(look: Callable[[Door], Sight], folder: Door) -> None:
    (folder.root / "linked.ipynb").write_text(json.dumps(notebook()))
    page = look(replace(folder, page=folder.address("linked.ipynb"))).page
    page.get_by_role("link", name="part 4", exact=True).wait_for()
    for words, heading in (("part 4", FAR), ("part F", FURTHER), ("Part 4", FAR)):
        page.get_by_role("link", name=words, exact=True).click()
        page.wait_for_function(AT_THE_TOP, arg=heading)
    page.go_back()
    page.wait_for_function(AT_THE_TOP, arg=FURTHER)
    page.get_by_role("link", name="part F", exact=True).click()  # the address stays as it is
    page.wait_for_function(AT_THE_TOP, arg=FURTHER)


def test_nbconvert_writes_the_same_anchors() -> None:
    page, _ = HTMLExporter().from_notebook_node(nbformat.reads(json.dumps(notebook()), as_version=4))
    headings = {unquote(name) for name in re.findall(r'<h2 id="([^"]*)"', page)}
    links = {unquote(name) for name in re.findall(r'<a href="#((?:4|F)-[^"]*)"', page)}
    assert links == {heading.replace(" ", "-") for heading in (FAR, FURTHER)}
    assert links <= headings

"""The list of sources: nothing that the library cites is missing, and a part uses what it is said to take."""

import ast
import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from threeloops.contents import book_root, places
from threeloops.drills.coding.tasks import TASKS
from threeloops.drills.engine.bank import DRILLS
from threeloops.sheets import papers, references

LIB = Path(references.__file__).parents[1]
MODULES = {
    ".".join(("threeloops", *path.relative_to(LIB).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in LIB.rglob("*.py")
}


def imported(source: str) -> set[str]:
    """Modules of the library that this code imports."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.module]
    names = {f"{node.module}.{alias.name}" for node in nodes for alias in node.names} | {node.module for node in nodes}
    return {str(name) for name in names} & MODULES.keys()


@pytest.fixture(scope="module")
def used() -> dict[str, set[str]]:
    """Part -> what it says in prose, and the modules behind its cells, its numbers and its drills."""
    begun: defaultdict[str, set[str]] = defaultdict(set)
    last = defaultdict(set)
    for module in MODULES:
        last[module.rpartition(".")[2]].add(module)
    known = {(place.notebook, place.cell): f"{place.chapter}.{place.number}" for place in places(book_root())}
    for path in sorted(book_root().glob("chapters/*.ipynb")):
        part = ""
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            part = known.get((f"chapters/{path.name}", cell["id"]), part)
            source = "".join(cell["source"])
            begun[part] |= imported(source) if cell["cell_type"] == "code" else set(references.NUMBERED.findall(source))
            for bound in cell["metadata"].get("numbers", {}).values():
                begun[part] |= {module for name in re.findall(r"\b([a-z_]+)\.", bound) for module in last[name]}
    titled = {place.title: f"{place.chapter}.{place.number}" for place in places(book_root())}
    for drill in DRILLS.values():
        begun[titled[drill.section]].add(drill.derive.__module__)
    for task in TASKS.values():
        begun[titled[task.section]].add(task.draw.__module__)
    needs = {module: imported(path.read_text(encoding="utf-8")) for module, path in MODULES.items()}
    return {part: reached(modules, needs) for part, modules in begun.items()}


def reached(modules: set[str], needs: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = set(modules)
    while waiting:
        found |= waiting
        waiting = {other for module in waiting for other in needs.get(module, ())} - found
    return found


def test_every_paper_that_the_library_names_stands_in_the_list_and_no_other() -> None:
    """Numbers found by a plain search of the files, not by reading their syntax."""
    written = {
        number
        for path in LIB.rglob("*.py")
        if path.parent.name != "sheets"
        for number in re.findall(r"arXiv:\d{4}\.\d{4,5}", path.read_text())
    }
    listed = set(re.findall(r"arXiv:\d{4}\.\d{4,5}", " ".join(row[1] for row in references.papers().rows)))
    assert listed <= written
    assert len(listed) > 0.9 * len(written), written - listed


def test_of_every_paper_that_is_cited_it_is_said_once_what_is_taken_from_it() -> None:
    told = [number for taken in papers.TAKEN.values() for number in taken]
    assert len(told) == len(set(told))
    assert set(told) == {key for key in references.found() if references.NUMBERED.fullmatch(key)}


def test_a_part_uses_what_it_is_said_to_take(used: dict[str, set[str]]) -> None:
    for part, taken in papers.TAKEN.items():
        for number in taken:
            citing = {f"threeloops.{module}" for module in references.found()[number].modules}
            assert citing & used[part] or number in used[part], f"part {part} does not use {number}"


def test_a_source_has_a_year_stands_once_and_says_where_it_is_used() -> None:
    for part, paper, use in references.papers().rows:
        assert re.search(r"(19|20)\d\d", paper)
        assert len(use.split()) >= 3, paper
        assert re.match(r"\d\.\w+ \w", part)
    for source, citing in references.manuals().rows:
        assert re.search(r"(19|20)\d\d", source)
        assert citing
    assert len({row[1].rpartition(" ")[2] for row in references.papers().rows}) == len(references.papers().rows)
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\d", row[-1]) for row in references.pages_read().rows)

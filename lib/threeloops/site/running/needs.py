"""What a cell of a part needs to be run in a page: packages that a page has not, and cells above it.

A page has Python's own library and what of this book imports nothing else. A name is followed to where it comes from:
a cell that uses nothing of torch runs, whatever else the part loads.
"""

import ast
import functools
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from threeloops.site import wasm
from threeloops.site.parts import APART, Cell, Part, text
from threeloops.site.running.names import modules_of, names_of

OURS = "threeloops"
AWAITS = (ast.Await, ast.AsyncFor, ast.AsyncWith)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)  # what they import, they import when they are called

_none: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a cell needs; its places are those of the part's cells."""

    packages: frozenset[str]  # that a page has not
    above: tuple[int, ...]  # the cells that have to be run before it, in their order


def needs(cells: Sequence[Cell]) -> dict[int, Needs]:
    """For every code cell of a part, by its place."""
    made: dict[int, Needs] = {}
    makers: dict[str, int] = {}  # name -> the cell above that made it last
    packages: dict[str, frozenset[str]] = {}  # name -> what it needs
    # What was cut from a part's imports comes with them: who changes a cell below finds its names, too.
    halves = {place: place + 1 for place, cell in enumerate(cells) if cell.get("id", "").endswith(APART)}
    for place, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        wanted, above, own = frozenset(_loop(text(cell))), set[int](), set[str]()
        for read in map(names_of, statements(text(cell))):
            each = _none.union(*(packages.get(name, _none) for name in read.asked))
            imported = {name: _none.union(*map(missing, modules)) for name, modules in read.imported.items()}
            packages |= dict.fromkeys(read.made, each) | imported
            for maker in {makers[name] for name in read.asked - own if name in makers}:
                above |= {maker, *made[maker].above}
            own |= read.made
            wanted |= each
        for half in (halves[place] for place in above & halves.keys()):
            if half in made:
                above |= {half, *made[half].above}
        made[place] = Needs(packages=wanted, above=tuple(sorted(above)))
        makers |= dict.fromkeys(own, place)
    return made


def statements(source: str) -> list[str]:
    """The statements of a cell, one after the other: one that fails for want of a package takes no other with it."""
    return [ast.unparse(node) for node in ast.parse(source).body]


def _loop(source: str) -> set[str]:
    """A cell that waits needs the loop of a notebook's own kernel."""
    return {"JupyterLab"} if any(isinstance(node, AWAITS) for node in _outside(ast.parse(source))) else set()


def _outside(node: ast.AST) -> Iterator[ast.AST]:
    """Everything but what stands in functions."""
    yield node
    for one in ast.iter_child_nodes(node):
        if not isinstance(one, FUNCTIONS):
            yield from _outside(one)


@functools.cache
def missing(module: str) -> frozenset[str]:
    """The packages that have to be there for a module to be imported, and that a page has not.

    >>> sorted(missing("threeloops.operations.roofline")), sorted(missing("torch.nn"))
    ([], ['torch'])
    """
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        first = name.partition(".")[0]
        if first != OURS:
            found |= {first} - sys.stdlib_module_names - {*wasm.FROM_ELSEWHERE, ""}
            continue
        path = wasm.path_of(name)
        if name in seen:
            continue
        if path is None:  # a function, which may import when it is called
            parent = wasm.path_of(name.rpartition(".")[0])
            waiting += [one for one in _imported(parent) if one.partition(".")[0] != OURS] if parent else []
            continue
        seen.add(name)
        waiting += [name.rpartition(".")[0], *_loaded_with(path)]
    return frozenset(found)


@functools.cache
def _loaded_with(path: Path) -> tuple[str, ...]:
    return tuple(_at_once(ast.parse(path.read_text(encoding="utf-8"))))


@functools.cache
def _imported(path: Path) -> tuple[str, ...]:
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    nodes = [one for one in found if isinstance(one, ast.Import | ast.ImportFrom)]
    return tuple(name for one in nodes for alias in one.names for name in modules_of(one, alias))


def _at_once(node: ast.AST) -> list[str]:
    """The modules that are imported while a module is loaded; what begins with no dot is whole."""
    names: list[str] = []
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.Import | ast.ImportFrom):
            names += [name for alias in one.names for name in modules_of(one, alias)]
        elif not isinstance(one, FUNCTIONS) and not _for_types(one):
            names += _at_once(one)
    return names


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def modules(pages: Iterable[Part]) -> set[str]:
    """Every module of the book that a cell which runs in a page may import."""
    return {
        module
        for page in pages
        for cell in page.cells
        if cell["cell_type"] == "code"
        for asked in names_of(text(cell)).imported.values()
        for module in asked
        if module.startswith(OURS) and wasm.path_of(module) and not missing(module)
    }

"""Who stands against a formula: names in docstrings looked up in the files of the book, and what tests bring together.

Files are read and not run: the rooms of real code would load torch. Drills alone are run, on one small draw.
"""

import ast
import functools
import importlib
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Drill
from threeloops.drills.engine.trial import called
from threeloops.sheets.stated import fields

BOOK = Path(__file__).parents[2]
LIB, TESTS = BOOK / "lib" / "threeloops", BOOK / "tests"
# Where tests compare: the others are of what readers see.
COMPARING = (
    *("facts", "operations", "models", "foundations", "inner_loop", "training_loop", "product_loop", "driving"),
    *("simulate", "measure", "lib"),
)
FOLDERS = {"Counted": ("simulate", "drills", "tests"), "Measured": ("measure", "tests")}
NAME = re.compile(r"[a-z_]\w*(?:\.\w+)+")

Place = tuple[str, str]  # a module, and what it defines


class Module:
    """What a file defines, and what it imports from the book, by the names it gives them."""

    def __init__(self, source: str) -> None:
        tree = ast.parse(source)
        self.says = ast.get_docstring(tree) or ""
        self.own: dict[str, ast.stmt] = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                self.own[node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                self.own |= {part.id: node for top in targets for part in ast.walk(top) if isinstance(part, ast.Name)}
        self.imports = {
            alias.asname or alias.name: f"{node.module}.{alias.name}".removeprefix("threeloops.")
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("threeloops", "tests")
            for alias in node.names
        }


class Book:
    """Files by dotted name: those of the library below threeloops, those of the tests with "tests" before them."""

    def __init__(self, sources: dict[str, str]) -> None:
        self.sources = sources
        self._uses: dict[Place, set[Place]] = {}
        self._read: dict[str, Module] = {}
        self._asserted: dict[Place, list[set[Place]]] = {}

    def module(self, name: str) -> Module:
        """A file, read when it is asked for."""
        if name not in self._read:
            self._read[name] = Module(self.sources[name])
        return self._read[name]

    def place(self, name: str) -> Place | None:
        """What a dotted name means, also where a module only hands it on; None if there is nothing of that name."""
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            if ".".join(parts[:cut]) not in self.sources:
                continue
            module = self.module(".".join(parts[:cut]))
            if parts[cut] in module.own:
                return ".".join(parts[:cut]), parts[cut]
            handed = module.imports.get(parts[cut])
            itself = ".".join(parts[: cut + 1])  # a folder may import what lies in it
            return self.place(".".join((handed, *parts[cut + 1 :]))) if handed not in (None, itself) else None
        return None

    def uses(self, start: Place) -> set[Place]:
        """What of the book the text of a function names."""
        if start not in self._uses:
            self._uses[start] = set(self._named(*start))
        return self._uses[start]

    def _named(self, module: str, name: str) -> Iterator[Place]:
        for node in ast.walk(self.module(module).own[name]):
            yield from self.named(module, node)

    def named(self, module: str, node: ast.AST) -> Iterator[Place]:
        """What of the book one word of a module means, or one chain of words with dots."""
        here = self.module(module)
        word = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""
        if word in here.own:
            yield module, word
        if isinstance(node, ast.Attribute | ast.Name):
            first, *rest = _chain(node)
            if first in here.imports and (place := self.place(".".join((here.imports[first], *rest)))):
                yield place

    def reached(self, start: Place) -> set[Place]:
        """What a function of the tests uses, itself or through other functions of the tests."""
        found, waiting = {start}, [start]
        while waiting:
            module, name = waiting.pop()
            if module.startswith("tests."):
                new = self.uses((module, name)) - found
                found |= new
                waiting += new
        return found

    @functools.cached_property
    def tests(self) -> dict[Place, set[Place]]:
        """Each test, and what it reaches."""
        return {
            (name, test): self.reached((name, test))
            for name in self.sources
            if name.startswith("tests.")
            for test, node in self.module(name).own.items()
            if test.startswith("test_") and isinstance(node, ast.FunctionDef)
        }

    def asserted(self, test: Place) -> list[set[Place]]:
        """What each assertion of a test depends on."""
        if test not in self._asserted:
            self._asserted[test] = Assertions(self, *test).found()
        return self._asserted[test]

    def formulas(self, rooms: tuple[str, ...]) -> dict[str, tuple[str, str]]:
        """Dotted name of each public function of these rooms that states a formula -> what it and its module say."""
        return {
            f"{name}.{function}": (says, self.module(name).says)
            for name in self.sources
            if name.startswith(tuple(f"{room}." for room in rooms))
            for function, node in self.module(name).own.items()
            if isinstance(node, ast.FunctionDef) and not function.startswith("_")
            if fields(says := ast.get_docstring(node) or "").get("Formula")
        }

    def faults(self, formula: str, says: str, module_says: str = "") -> Iterator[str]:
        """What a formula's docstring lacks, or says that is not so."""
        own = fields(says)
        source = own.get("Source") or fields(module_says).get("Source", "")
        if not source:
            yield "names no Source, and does not say that it holds by definition"
        named = [(label, name.strip()) for label in FOLDERS for name in own.get(label, "").split(",") if name.strip()]
        if not named:
            yield "names neither who counts nor who measures the same"
        for label, name in named:
            yield from (f"{label}: {name} {fault}" for fault in self._unopposed(formula, label, name))

    def _unopposed(self, formula: str, label: str, name: str) -> Iterator[str]:
        """Why what is named is no second opinion of this formula."""
        whole, other = self.place(formula), self.place(name)
        if not NAME.fullmatch(name) or name.split(".")[0] not in FOLDERS[label]:
            yield f"is no dotted name below {' or '.join(FOLDERS[label])}"
        elif other is None:
            yield "does not exist"
        elif name.startswith("drills."):
            yield from _uncounted(formula, other)
        elif other[1].startswith("test_"):
            if not any(whole in asserted for asserted in self.asserted(other)):
                yield "asserts nothing of it"
        elif name.startswith("tests.") and whole in self.reached(other):
            yield "knows the formula"
        elif not any(
            {whole, other} <= asserted
            for test, reached in self.tests.items()
            if {whole, other} <= reached
            for asserted in self.asserted(test)
        ):
            yield "is compared with it in no test"


class Assertions:
    """The assertions of one test, each with what it depends on: through names that are given a value, changed in a
    loop, or filled; not what is only asked to refuse.
    """

    def __init__(self, book: Book, module: str, test: str) -> None:
        self.book, self.module, self.node = book, module, book.module(module).own[test]
        self.behind: dict[str, set[Place]] = {}  # name -> what its value comes from

    def found(self) -> list[set[Place]]:
        every = list(_outside_raises(self.node))
        known = -1
        while known != (known := sum(map(len, self.behind.values()))):
            for node in every:
                for name, source in _given(node):
                    self.behind.setdefault(name, set()).update(self.of(source))
        return [self.of(node) for node in every if self._asserts(node)]

    def of(self, source: ast.AST) -> set[Place]:
        """What an expression comes from."""
        found: set[Place] = set()
        for node in ast.walk(source):
            found |= self.behind.get(node.id, set()) if isinstance(node, ast.Name) else set()
            for place in self.book.named(self.module, node):
                found |= self.book.reached(place)
        return found

    def _asserts(self, node: ast.AST) -> bool:
        """An assertion, or a call of what asserts."""
        if isinstance(node, ast.Assert):
            return True
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            return False
        called = node.value.func
        helpers = [place for place in self.book.named(self.module, called) if place[0].startswith("tests.")]
        return _chain(called)[-1].startswith("assert_") or any(
            isinstance(part, ast.Assert)
            for module, name in helpers
            for part in ast.walk(self.book.module(module).own[name])
        )


def _outside_raises(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those of a block that has to fail."""
    yield node
    if not (isinstance(node, ast.With) and "raises" in ast.unparse(node.items[0].context_expr)):
        for child in ast.iter_child_nodes(node):
            yield from _outside_raises(child)


def _given(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """(name, what its value comes from) of each name that a node gives a value to, or changes."""
    pairs: list[tuple[ast.AST, ast.AST | None]] = []
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
        pairs = [(node.target, node.value)]
    elif isinstance(node, ast.For | ast.comprehension):
        pairs = [(node.target, node.iter)]
    elif isinstance(node, ast.withitem) and node.optional_vars:
        pairs = [(node.optional_vars, node.context_expr)]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):  # rows.append(x)
        pairs = [(node.func.value, argument) for argument in (*node.args, *(word.value for word in node.keywords))]
    elif isinstance(node, ast.FunctionDef):
        pairs = [(ast.Name(node.name), part) for part in node.body]
        pairs += [(ast.Name(argument.arg), part) for argument in node.args.args for part in node.decorator_list]
    for target, source in pairs:
        yield from ((part.id, source) for part in ast.walk(target) if isinstance(part, ast.Name) and source)
    if isinstance(node, ast.While | ast.For | ast.If):  # what a condition decides
        asked = [part.test for part in ast.walk(node) if isinstance(part, ast.While | ast.If)]
        changed = {name for part in ast.walk(node) if part is not node for name, _ in _given_plainly(part)}
        yield from ((name, condition) for name in changed for condition in asked)


def _given_plainly(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The same without conditions: of a node inside the one that asks."""
    return iter(()) if isinstance(node, ast.While | ast.For | ast.If | ast.FunctionDef) else _given(node)


def _chain(node: ast.expr) -> list[str]:
    """The words of a.b.c, from the first; [""] for what does not begin with a name."""
    if isinstance(node, ast.Attribute):
        return [*_chain(node.value), node.attr]
    return [node.id] if isinstance(node, ast.Name) else [""]


def _uncounted(formula: str, place: Place) -> Iterator[str]:
    """Why a drill does not count what the formula gives. Elsewhere, all drills are held to their counts."""
    named = getattr(importlib.import_module(f"threeloops.{place[0]}"), place[1])
    if not isinstance(named, Drill) or named.key not in DRILLS:
        yield "is no drill of the bank"
        return
    drill = DRILLS[named.key]
    p = drill.small(random.Random(0))
    module, _, name = formula.rpartition(".")
    forget = getattr(getattr(sys.modules.get(f"threeloops.{module}"), name, None), "cache_clear", None)
    if forget:  # what was asked before, in this process, would not be called again
        forget()
    if f"threeloops.{formula}" not in called(drill, p):
        yield "does not ask for it"
    elif f"threeloops.{formula}" in called(replace(drill, derive=drill.count), p):
        yield "counts with it"


def book() -> Book:
    """The library, and the tests of its rooms of formulas, facts, counting and measuring."""
    files = {path.relative_to(LIB): path for path in LIB.rglob("*.py")}
    files |= {path.relative_to(BOOK): path for folder in COMPARING for path in (TESTS / folder).rglob("*.py")}
    return Book(
        {
            ".".join(short.with_suffix("").parts).removesuffix(".__init__"): path.read_text(encoding="utf-8")
            for short, path in files.items()
        }
    )

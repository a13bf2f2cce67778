"""The names of a cell: what it asks for that another cell has to have made, and what it leaves behind or changes.

>>> read = names_of("total = sum(one.size for one in parts)\\nparts.append(total)")
>>> sorted(read.asked), sorted(read.made)
(['parts', 'sum'], ['parts', 'total'])
"""

import ast
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class CellNames:
    """What a cell has to do with others."""

    asked: frozenset[str]
    made: frozenset[str]  # also what is changed: a list that something is appended to
    imported: dict[str, tuple[str, ...]]  # name -> the modules that may stand behind it


def names_of(source: str) -> CellNames:
    """The names of a cell's source."""
    found = _Names()
    found.visit(ast.parse(source))
    return CellNames(asked=frozenset(found.asked), made=frozenset(found.made), imported=found.imported)


def modules_of(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> tuple[str, ...]:
    """The modules that one name of an import may stand for: the package, and what is named in it."""
    if isinstance(node, ast.Import):
        return (alias.name,)
    return (node.module or "", f"{node.module}.{alias.name}")


def _front(node: ast.expr) -> ast.expr:
    """What stands at the front: `a` of `a.b[c].d(e)`."""
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


@dataclass
class _Names(ast.NodeVisitor):
    """Walks a cell in the order in which it runs."""

    known: set[str] = field(default_factory=set)  # bound by here
    asked: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)
    imported: dict[str, tuple[str, ...]] = field(default_factory=dict)
    inside: int = 0  # functions and comprehensions around

    def bind(self, name: str) -> None:
        self.known.add(name)
        if not self.inside:
            self.made.add(name)

    @contextlib.contextmanager
    def scope(self, own: set[str]) -> Iterator[None]:
        before = set(self.known)
        self.known |= own
        self.inside += 1
        yield
        self.inside -= 1
        self.known = before

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.bind(node.id)
        elif node.id not in self.known:
            self.asked.add(node.id)

    def _changed(self, node: ast.expr) -> None:
        """What is changed in its place is asked for, and left behind."""
        node = _front(node)
        if isinstance(node, ast.Name):
            if node.id not in self.known:
                self.asked.add(node.id)
            self.bind(node.id)

    def visit_Subscript(self, node: ast.Subscript | ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._changed(node)
        self.generic_visit(node)

    visit_Attribute = visit_Subscript

    def visit_Expr(self, node: ast.Expr) -> None:
        """A call of a method for its own sake."""
        called = node.value.func if isinstance(node.value, ast.Call) else None
        if isinstance(called, ast.Attribute) and self._is_thing(called):
            self._changed(called)
        self.generic_visit(node)

    def _is_thing(self, node: ast.expr) -> bool:
        """Whether the name at the front is no module of this cell."""
        node = _front(node)
        return isinstance(node, ast.Name) and node.id not in self.imported

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)
        self.visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        self._changed(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.visit(node.target)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        for part in (node.iter, node.target, *node.body, *node.orelse):
            self.visit(part)

    visit_AsyncFor = visit_For

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.bind(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self.bind(node.name)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            name = (alias.asname or alias.name).partition(".")[0]
            self.imported[name] = modules_of(node, alias)
            self.bind(name)

    visit_ImportFrom = visit_Import

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for part in (*node.decorator_list, node.args):
            self.visit(part)
        self.bind(node.name)
        own = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
        own |= {
            one.id
            for line in node.body
            for one in ast.walk(line)
            if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)
        }
        with self.scope(own):
            for line in node.body:
                self.visit(line)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        with self.scope({one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}):
            self.visit(node.body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        self.bind(node.name)
        with self.scope(set()):
            for line in node.body:
                self.visit(line)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        self.visit(node.generators[0].iter)
        with self.scope(set()):
            for number, part in enumerate(node.generators):
                for one in (*([part.iter] if number else []), part.target, *part.ifs):
                    self.visit(one)
            for one in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                self.visit(one)

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

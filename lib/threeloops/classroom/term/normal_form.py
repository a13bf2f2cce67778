"""A function without what does not matter in it: names of locals, annotations, docstrings, the order of sums and
products, a value that is only stored to be used once.

>>> one = "def f(*, a, b):\\n    total = a * b\\n    return 2 * total"
>>> other = "def f(*, a: int, b: int):\\n    'Twice.'\\n    return b * a * 2.0"
>>> normal_form(one, "f") == normal_form(other, "f")
True
>>> normal_form("def f(*, a, b):\\n    return a + b", "f") == normal_form(one, "f")
False
"""

import ast
import copy
from collections import Counter
from typing import Any

MOST_ROUNDS = 50  # of putting a value where it is used: nobody writes more lines


def normal_form(code: str, name: str) -> str | None:
    """The normal form of the last function of that name; None where there is none that can be read."""
    tree = parsed(code, name)
    try:
        return None if tree is None else ast.unparse(tree)
    except RecursionError:  # nested as no person nests
        return None


def nodes(code: str, name: str) -> int:
    """Size of a function's normal form: nodes of its syntax tree, without what only says how a name is used."""
    tree = parsed(code, name)
    return 0 if tree is None else sum(not isinstance(node, ast.expr_context) for node in ast.walk(tree))


def parsed(code: str, name: str) -> ast.FunctionDef | None:
    """The same as a tree."""
    try:
        found = [node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef) and node.name == name]
        if not found:
            return None
        tree = copy.deepcopy(found[-1])
        _strip(tree)
        _put_where_used(tree)
        _Sorted().visit(tree)
        _rename(tree)
        _Sorted().visit(tree)
        return ast.fix_missing_locations(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _strip(tree: ast.FunctionDef) -> None:
    """Take away what a reader sees and a computer does not."""
    tree.decorator_list, tree.returns = [], None
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [_plain(line) for line in body if not _says_nothing(line)] or [ast.Pass()]


def _says_nothing(line: Any) -> bool:
    return isinstance(line, ast.Pass) or (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))


def _plain(line: Any) -> Any:
    """An annotated assignment as one without."""
    if isinstance(line, ast.AnnAssign) and line.value is not None:
        return ast.Assign(targets=[line.target], value=line.value)
    return line


def _put_where_used(tree: ast.FunctionDef) -> None:
    """Values that are stored once and used once go where they are used."""
    for _ in range(MOST_ROUNDS):
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        stored = Counter(node.id for node in names if isinstance(node.ctx, ast.Store))
        used = Counter(node.id for node in names if isinstance(node.ctx, ast.Load))
        line = next(
            (
                line
                for line in tree.body
                if isinstance(line, ast.Assign)
                and len(line.targets) == 1
                and isinstance(line.targets[0], ast.Name)
                and stored[line.targets[0].id] == used[line.targets[0].id] == 1
            ),
            None,
        )
        if line is None:
            return
        tree.body.remove(line)
        _Replaced(line.targets[0].id, line.value).visit(tree)  # type: ignore[attr-defined]


class _Replaced(ast.NodeTransformer):
    """A name replaced by a value."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self._name, self._value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._value if node.id == self._name and isinstance(node.ctx, ast.Load) else node


class _Sorted(ast.NodeTransformer):
    """Sums, products, `and` and `or` in one order; > and >= turned round; numbers as floats."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, int) and not isinstance(node.value, bool):
            return ast.Constant(value=float(node.value))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if not isinstance(node.op, ast.Add | ast.Mult):
            return self.generic_visit(node)  # type: ignore[return-value]
        terms = sorted((self.visit(term) for term in _terms(node, type(node.op))), key=_order)
        tree: ast.expr = terms[0]
        for term in terms[1:]:
            tree = ast.BinOp(left=tree, op=node.op, right=term)
        return tree

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        node.values.sort(key=_order)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        turned = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}
        if len(node.ops) == 1 and type(node.ops[0]) in turned:
            return ast.Compare(left=node.comparators[0], ops=[turned[type(node.ops[0])]()], comparators=[node.left])
        return node


def _terms(node: ast.expr, op: type) -> list[ast.expr]:
    """The terms of a sum, or the factors of a product."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, op):
        return [*_terms(node.left, op), *_terms(node.right, op)]
    return [node]


def _order(term: ast.expr) -> str:
    """Where a term comes in a sorted sum, whatever its locals are called."""
    return ast.dump(term)


def _rename(tree: ast.FunctionDef) -> None:
    """Locals by the order in which they appear; what the question has named keeps its name."""
    given = {argument.arg for argument in ast.walk(tree) if isinstance(argument, ast.arg)}
    own: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in given:
            own.setdefault(node.id, f"local_{len(own)}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = own.get(node.id, node.id)

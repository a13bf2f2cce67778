"""Mutants: a module of formulas with one thing changed, as a slip of the hand would change it.

Operators, comparisons, constants, `min` and `max`, `floor` and `ceil`, `and` and `or`, a sign. What only words a
refusal is left alone: docstrings, annotations, f-strings and everything behind `raise`.
"""

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

OPERATORS: dict[type[ast.operator], tuple[type[ast.operator], str]] = {
    ast.Add: (ast.Sub, "+ to -"),
    ast.Sub: (ast.Add, "- to +"),
    ast.Mult: (ast.Div, "* to /"),
    ast.Div: (ast.Mult, "/ to *"),
    ast.FloorDiv: (ast.Mult, "// to *"),
    ast.Mod: (ast.Mult, "% to *"),
    ast.Pow: (ast.Mult, "** to *"),
}
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], str]] = {
    ast.Lt: (ast.LtE, "< to <="),
    ast.LtE: (ast.Lt, "<= to <"),
    ast.Gt: (ast.GtE, "> to >="),
    ast.GtE: (ast.Gt, ">= to >"),
    ast.Eq: (ast.NotEq, "== to !="),
    ast.NotEq: (ast.Eq, "!= to =="),
}
CALLS = {"min": "max", "max": "min", "floor": "ceil", "ceil": "floor"}
Change = tuple[str, ast.AST]


@dataclass(frozen=True)
class Mutant:
    """One change: the function that holds it, the source line, what changes, and where."""

    function: str  # as Python qualifies it: `Cache.bytes`
    line: int
    change: str
    becomes: str  # the line as it would stand
    source: str = field(repr=False)
    place: tuple[int, int]  # which expression of the function, and which of its changes

    @property
    def tree(self) -> ast.Module:
        """The module with the change; made when asked for, as a copy for each of a hundred takes seconds."""
        tree = ast.parse(self.source)
        function = next(each for name, each in _functions(tree, "") if name == self.function)
        number, which = self.place
        node, changes = next(itertools.islice(_places(function), number, None))
        replacement = changes[which][1]
        assert isinstance(replacement, ast.expr)
        _put(function, node, replacement)
        return tree

    @property
    def key(self) -> tuple[str, str]:
        """What stays when lines move."""
        return self.function, self.becomes


def mutants(source: str) -> list[Mutant]:
    """All mutants of a module's functions.

    >>> for mutant in mutants("def area(a, b=2):\\n    return max(a, 0) * b\\n"):
    ...     print(mutant.function, mutant.line, "|", mutant.change, "|", mutant.becomes)
    area 2 | * to / | return max(a, 0) / b
    area 2 | max to min | return min(a, 0) * b
    area 2 | 0 to 1 | return max(a, 1) * b
    >>> [ast.unparse(mutant.tree.body[0].body[0]) for mutant in mutants("def twice(a):\\n    return 2 * a\\n")]
    ['return 2 / a', 'return 3 * a']
    """
    tree, lines, found = ast.parse(source), source.splitlines(), []
    for name, function in _functions(tree, ""):
        for number, (node, changes) in enumerate(_places(function)):
            for which, (said, other) in enumerate(changes):
                becomes = _changed(lines[node.lineno - 1], node, other)
                found.append(Mutant(name, node.lineno, said, becomes, source, (number, which)))
    return found


def _changed(line: str, node: ast.expr, other: ast.AST) -> str:
    """The line as it would stand; of what goes on over several, the beginning."""
    own = line.encode()  # where Python counts columns
    rest = own[node.end_col_offset :] if node.end_lineno == node.lineno else b""
    return (own[: node.col_offset] + ast.unparse(ast.fix_missing_locations(other)).encode() + rest).decode().strip()


def _functions(tree: ast.AST, before: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Top-level functions and methods by name; what a function holds within is changed with it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield before + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{before}{node.name}.")


def _places(function: ast.FunctionDef) -> Iterator[tuple[ast.expr, list[Change]]]:
    for statement in function.body:
        yield from _within(statement)


def _within(node: ast.AST) -> Iterator[tuple[ast.expr, list[Change]]]:
    if isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr, ast.arguments)):
        return
    if isinstance(node, ast.expr) and (changes := _changes(node)):
        yield node, changes
    for name, child in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for each in child if isinstance(child, list) else [child]:
            if isinstance(each, ast.AST):
                yield from _within(each)


def _changes(node: ast.expr) -> list[Change]:
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            if isinstance(left, ast.Constant) and isinstance(left.value, str):
                return []
            other, said = OPERATORS[type(op)]
            return [(said, ast.BinOp(left, other(), right))]
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
            compared, said = COMPARISONS[type(op)]
            return [(said, ast.Compare(left, [compared()], [right]))]
        case ast.Constant(value=bool()):
            return []
        case ast.Constant(value=int(value)):
            return [(f"{value} to {value + 1}", ast.Constant(value + 1))]
        case ast.Constant(value=float(value)):
            return [(f"{value:g} to {value * 1.5 + (not value):g}", ast.Constant(value * 1.5 + (not value)))]
        case ast.Call(func=ast.Name(id=name)) if name in CALLS:
            return [(f"{name} to {CALLS[name]}", _called(node, ast.Name(CALLS[name], ast.Load())))]
        case ast.Call(func=ast.Attribute(value=module, attr=name)) if name in CALLS:
            return [(f"{name} to {CALLS[name]}", _called(node, ast.Attribute(module, CALLS[name], ast.Load())))]
        case ast.BoolOp(op=op, values=values):
            swapped = (ast.And(), "or to and") if isinstance(op, ast.Or) else (ast.Or(), "and to or")
            return [(swapped[1], ast.BoolOp(swapped[0], values))]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return [("minus sign gone", operand)]
    return []


def _called(call: ast.Call, function: ast.expr) -> ast.Call:
    return ast.Call(function, call.args, call.keywords)


def _put(function: ast.FunctionDef, place: ast.expr, replacement: ast.expr) -> None:
    class Putting(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return ast.copy_location(replacement, node) if node is place else super().generic_visit(node)

    Putting().visit(function)
    ast.fix_missing_locations(function)

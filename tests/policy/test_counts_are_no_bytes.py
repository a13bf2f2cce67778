"""GB are bytes. What is counted (parameters, tokens) is scaled by million, billion, trillion: the unit says which."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

LIB = Path(__file__).parents[2] / "lib" / "threeloops"
BYTES = {"kB", "MB", "GB", "TB"}
COUNTED = ("billion", "million", "trillion", "thousand")
NAMES = (*COUNTED, "parameters", "num_parameters")


def _scaled_by_bytes(node: ast.AST) -> bool:
    """A product or quotient with GB itself, and not within what is multiplied or divided."""
    return isinstance(node, ast.BinOp) and any(_is_bytes(side) for side in (node.left, node.right))


def _in_bytes(node: ast.AST) -> bool:
    """The same of GB alone, and of what is rounded."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "round":
        return _in_bytes(node.args[0])
    return _is_bytes(node) or _scaled_by_bytes(node)


def _is_bytes(node: ast.AST) -> bool:
    return (node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else "") in BYTES


def counts_in_bytes(source: str) -> Iterator[str]:
    """Expressions that count in GB: shown before the word "billion", named so, or a billion that is called so."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            for shown, words in zip(node.values, node.values[1:], strict=False):
                said = str(words.value).lstrip() if isinstance(words, ast.Constant) else ""
                if isinstance(shown, ast.FormattedValue) and _scaled_by_bytes(shown.value) and said.startswith(COUNTED):
                    yield ast.unparse(shown.value)
        elif isinstance(node, ast.keyword) and (node.arg or "").startswith(NAMES) and _in_bytes(node.value):
            yield ast.unparse(node)
        elif isinstance(node, ast.Assign) and any(map(_in_bytes, _parts(node.value))):
            names = [each.id for target in node.targets for each in _parts(target) if isinstance(each, ast.Name)]
            yield from (name for name in names if name.lower().startswith(NAMES))


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def test_no_count_is_measured_in_bytes() -> None:
    files = sorted(LIB.rglob("*.py"))
    assert len(files) > 1000
    found = {path.name: told for path in files if (told := list(counts_in_bytes(path.read_text(encoding="utf-8"))))}
    assert not found


@pytest.mark.parametrize(
    ("source", "times"),
    [
        ("f'{p.parameters / GB:g} billion parameters'", 1),
        ("f'{p.parameters / GB:g}' ' billion parameters'", 1),
        ("f'{p.weights / GB:g} GB of weights'", 0),
        ("drawn(billions=round(model.total / units.GB, 2))", 1),
        ("drawn(parameters=7 * GB)", 1),
        ("drawn(parameters=weights / (p.rate * GB) * p.rate)", 0),
        ("parameters = rng.randrange(7) * GB", 1),
        ("drawn(parameters=7 * billion, weights=14 * GB)", 0),
        ("BILLION, SIZE = GB, 3", 1),
        ("SIZE = GB", 0),
    ],
)
def test_what_counts_in_bytes_is_found(source: str, times: int) -> None:
    assert len(list(counts_in_bytes(source))) == times

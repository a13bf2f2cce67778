"""Conversion factors stand in units.py and nowhere else in the library."""

import ast
from pathlib import Path

import pytest
from tests.each import each

LIB = Path(__file__).parents[2] / "lib" / "threeloops"
FACTORS = {10**3, 10**6, 10**9, 10**12, 10**15, 2**10, 2**20, 2**30, 2**40, 1e-3, 1e-6, 1e-9}
# Places where such a number is no conversion: a bound on what a person may type, a count, a unit's definition for
# pint.
ALLOWED = {("drills/engine/answers.py", 1e300)}


def magic(source: str) -> list[tuple[int, float]]:
    """(line, value) of every conversion factor used in arithmetic: x * 1e9, x / 1024, 2**30, 10**6."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.BinOp):
            continue
        if (
            isinstance(node.op, ast.Pow)
            and isinstance(node.left, ast.Constant)
            and node.left.value in (2, 10, 1000, 1024)
        ):
            if isinstance(node.right, ast.Constant) and node.left.value**node.right.value in FACTORS:
                found.append((node.lineno, node.left.value**node.right.value))
        elif isinstance(node.op, ast.Mult | ast.Div | ast.FloorDiv):
            found += [
                (node.lineno, side.value)
                for side in (node.left, node.right)
                if isinstance(side, ast.Constant) and side.value in FACTORS
            ]
    return found


@each("path", {path.relative_to(LIB).as_posix(): path for path in sorted(LIB.rglob("*.py"))})
def test_no_conversion_factor_outside_units(path: Path) -> None:
    name = path.relative_to(LIB).as_posix()
    if name == "units.py":
        return
    assert not [(line, value) for line, value in magic(path.read_text()) if (name, value) not in ALLOWED]


@pytest.mark.parametrize("source", ["x * 1e9", "n / 1024**3", "2**30 * n", "t / 1000", "1e-6 * t"])
def test_the_search_finds_what_it_should(source: str) -> None:
    assert magic(source)


@pytest.mark.parametrize("source", ["2 * m * n * k", "heads // 2", "x**2", "34 + 5 * a"])
def test_the_search_leaves_formulas_alone(source: str) -> None:
    assert not magic(source)

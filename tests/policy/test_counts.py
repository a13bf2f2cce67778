"""What is counted is scaled by thousand, million, billion and trillion; kB, MB, GB and TB are of bytes."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

LIB = Path(__file__).parents[2] / "lib" / "threeloops"
BYTES = {"kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"}
COUNTED = re.compile(
    r"^(?:num_)?(?:thousands|millions|billions|trillions|parameters|tokens|requests|steps|images|flops|operations)$"
)
SCALED = re.compile(rf"\*[\s(\\]*(?:\w+\.)*(?:{'|'.join(BYTES)})\b")


def last_word(node: ast.expr) -> str:
    """The name of a variable or of an attribute; empty for anything else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def in_bytes(node: ast.expr) -> bool:
    """Is it a product whose last factor is a unit of bytes?"""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
        node = node.left
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and last_word(node.right) in BYTES


def counts_in_bytes(source: str) -> Iterator[int]:
    """Lines that scale a count by a unit of bytes, or give a count as so many of them."""
    if not SCALED.search(source):  # most sources hold no such product, and need not be taken apart
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and last_word(node.right) in BYTES:
            factor = node.left.right if isinstance(node.left, ast.BinOp) else node.left
            if COUNTED.match(last_word(factor)):
                yield node.lineno
        if isinstance(node, ast.keyword) and COUNTED.match(node.arg or "") and in_bytes(node.value):
            yield node.value.lineno
        named = [last_word(target).lower() for target in node.targets] if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.Assign) and in_bytes(node.value) and any(map(COUNTED.match, named)):
            yield node.lineno


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("held = 2 * p.billions * GB", [1]),
        ("drawn(parameters=rng.choice((7, 8)) * GB)", [1]),
        ("parameters = 12 * GB // 10", [1]),
        ("TOKENS = 10 * GB", [1]),
        ("drawn(parameters=7 * billion, link=64 * GB)", []),
        ("size = bytes_per_token * GB", []),
    ],
)
def test_the_rule_sees_what_it_should(source: str, lines: list[int]) -> None:
    assert sorted(set(counts_in_bytes(source))) == lines


def test_no_count_is_measured_in_bytes() -> None:
    found = [
        f"{path.relative_to(LIB)}:{line}"
        for path in sorted(LIB.rglob("*.py"))
        for line in counts_in_bytes(path.read_text(encoding="utf-8"))
    ]
    assert not found, f"use million, billion or trillion of threeloops.units: {found}"

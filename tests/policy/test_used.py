"""What the library offers is used: by another part of it, in a notebook, as the second opinion of a formula. What only
tests call is theirs to hold.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIB = ROOT / "lib/threeloops"
WORD = re.compile(r"\w+")


def offered(tree: ast.Module) -> Iterator[str]:
    """Public functions and classes of a module."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            yield node.name


def asked(tree: ast.Module) -> Iterator[str]:
    """Names that a module's code uses, and those that its docstrings call a second opinion."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(r"[\w.:]+", node.value):  # a way to a function, as entry points and tables write it
                yield re.split(r"[.:]", node.value)[-1]
            for names in re.findall(r"(?:Counted|Measured): +(.+)", node.value):
                yield from WORD.findall(names)


def words_of_notebooks() -> Iterator[str]:
    for path in [*ROOT.glob("chapters/*.ipynb"), *ROOT.glob("solutions/*/*.ipynb"), ROOT / "drills/interview.ipynb"]:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            code = cell["source"] if cell["cell_type"] == "code" else ""
            yield from WORD.findall("".join(code) + json.dumps(cell["metadata"]))


def unused(trees: list[tuple[str, ast.Module]], words: Counter[str]) -> set[tuple[str, str]]:
    """(room, name) of what is offered and named nowhere."""
    words = words + Counter(name for _, tree in trees for name in asked(tree))
    return {(room, name) for room, tree in trees for name in offered(tree) if not words[name]}


def test_what_is_offered_is_used() -> None:
    trees = [
        (path.relative_to(LIB).parts[0].removesuffix(".py"), ast.parse(path.read_text(encoding="utf-8")))
        for path in LIB.rglob("*.py")
    ]
    pages = [ROOT / "book.py", ROOT / "nbgrader_config.py", *LIB.rglob("*.js"), *LIB.rglob("*.html")]
    words = Counter(words_of_notebooks())
    words.update(word for path in pages for word in WORD.findall(path.read_text(encoding="utf-8")))
    assert len(trees) > 1000
    assert not unused(trees, words)


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("def area(): ...", {"area"}),
        ("def area(): ...\ndef both(): return area()", {"both"}),
        ("def area(): ...\nTABLE = {'one': 'lands.area'}", set()),
        ('def area():\n    """A field.\n\n    Counted:  simulate.tiles.laid\n    """\ndef laid(): ...', {"area"}),
        ('def area():\n    """As laid."""\ndef laid(): ...', {"area", "laid"}),
    ],
)
def test_what_is_named_nowhere_is_seen(source: str, left: set[str]) -> None:
    assert {name for _, name in unused([("lands", ast.parse(source))], Counter())} == left

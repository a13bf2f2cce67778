"""Touched: the files of tests that a change reaches, for `book.py test --fast`.

A change reaches what imports it, step by step: first the tests that name the changed module, then those of modules
that name it, as long as the last whole run's times allow; a changed chapter reaches the tests of chapters, which
evaluate the numbers bound in its sentences, and so does every change of the library that those numbers come from.
"""

import ast
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests import times

ROOT = Path(__file__).parents[1]
BUDGET_S = 15.0  # of all workers together, by the last whole run; of files that it does not know, the guess
GUESS_S = 1.0
# Rules of the tree, quick to check, and the numbers bound in chapters.
ALWAYS = tuple(
    f"tests/policy/test_{name}.py" for name in ("notebooks", "names", "rooms", "links", "units_stay_at_the_edge")
)


def changed(root: Path = ROOT) -> list[str]:
    """Files that differ from the last commit, and new ones that git does not ignore."""
    said = subprocess.run(
        ["git", "status", "--porcelain", "--no-renames", "--untracked-files=all", "-z"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return [line[3:] for line in said.stdout.split("\0") if line]


def imports(root: Path = ROOT) -> dict[str, set[str]]:
    """For every Python file of the library and its tests, the files of both that it imports by name."""
    files = {path.relative_to(root).as_posix(): path for top in ("lib", "tests") for path in (root / top).rglob("*.py")}
    modules = {_module(file): file for file in files}
    found = {}
    for file, path in files.items():
        names: set[str] = set()
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
        found[file] = {modules[name] for name in names if name in modules}
    return found


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Every statement of a source, without a look at its expressions: a tenth of what `ast.walk` goes through.

    >>> tree = ast.parse("with a: import b")
    >>> [type(node).__name__ for node in statements(tree)]
    ['With', 'Import']
    """
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        for inside in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, inside, ())


def _module(file: str) -> str:
    return file.removeprefix("lib/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def reached(
    changes: Iterable[str], *, imports: Mapping[str, set[str]], seconds: Mapping[str, float], left_out: Iterable[str]
) -> list[str]:
    """The files whose tests a change reaches, the nearest first, as many as the budget allows; changed files of the
    library stand there for their own examples.

    >>> known = {
    ...     "lib/a.py": set(),
    ...     "lib/b.py": {"lib/a.py"},
    ...     "tests/test_a.py": {"lib/a.py"},
    ...     "tests/test_b.py": {"lib/b.py"},
    ... }
    >>> reached(["lib/a.py"], imports=known, seconds={}, left_out=())
    ['lib/a.py', 'tests/test_a.py', 'lib/b.py', 'tests/test_b.py']
    """
    out = set(left_out)
    ring = sorted(file for file in changes if file in imports)
    seen, chosen, spent = set(ring), [], 0.0
    while ring:
        for file in ring:
            if not file.rpartition("/")[2].startswith("test_") and not file.startswith("lib/"):
                continue  # tests' helpers reach on, and have no tests of their own
            if file.rpartition("/")[2] in out:
                continue
            cost = seconds.get(file, GUESS_S if file.startswith("tests/") else 0.2)
            if spent + cost > BUDGET_S:
                continue
            spent += cost
            chosen.append(file)
        ring = sorted(
            (file for file, of in imports.items() if file not in seen and of & seen),
            key=lambda file: (not file.startswith("tests/"), file),
        )
        seen |= set(ring)
    return chosen


def files(left_out: Iterable[str]) -> list[str]:
    """What `--fast` reads: everything that the present change reaches, and the rules of the tree."""
    seconds = {file: taken for file, (_, taken) in times.last_run().items()}
    return [*ALWAYS, *reached(changed(), imports=imports(), seconds=seconds, left_out=(*left_out, *ALWAYS))]

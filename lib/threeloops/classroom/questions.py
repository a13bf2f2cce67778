"""What a notebook asks. A graded cell is one call, `sheet.check("key", name)` or `sheet.check_function("key", name)`:
read from there, it is stated once.

>>> asked("'Right within 2 %.'; sheet.check('kv-bytes-per-token', per_token)")
('check', 'kv-bytes-per-token', 'per_token')
"""

import ast
import re
import textwrap
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from threeloops.sandbox.kernel import whole_characters

HOW_FUNCTIONS = ("all", "share")  # of its draws: what has to be right for a function to earn its points
LONGEST_HEAD = 300  # characters left of an equals sign

Notebook = Mapping[str, Any]
Cell = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One graded cell."""

    grade_id: str
    points: float
    kind: str  # number or function
    drill: str  # key of the drill
    name: str  # of the student's variable or function


def source(cell: Cell) -> str:
    """A cell's source, however the file stores it: as a text, or as lines with what ends them, or without.

    >>> source({"source": ["a = 1\\n", "b = 2"]}) == source({"source": ["a = 1", "b = 2"]})
    True
    """
    text = cell.get("source", "")
    if isinstance(text, str):
        return whole_characters(text)
    lines = [line for line in text if isinstance(line, str)]
    ended = any(line.endswith("\n") for line in lines[:-1])
    return whole_characters(("" if ended else "\n").join(lines))


def mark(cell: Cell, name: str) -> Any:
    """One field of a cell's nbgrader metadata; None where there is none, whatever the file holds."""
    metadata = cell.get("metadata")
    fields = metadata.get("nbgrader") if isinstance(metadata, Mapping) else None
    return fields.get(name) if isinstance(fields, Mapping) else None


def own_mark(cell: Cell, name: str) -> Any:
    """One field of this book's own metadata: `written` (name of a written explanation), `yours` (the student writes
    here, nothing is graded).
    """
    metadata = cell.get("metadata")
    fields = metadata.get("threeloops") if isinstance(metadata, Mapping) else None
    return fields.get(name) if isinstance(fields, Mapping) else None


def asked(code: str) -> tuple[str, str, str]:
    """(the sheet's function, drill key, name) of a graded cell's one call."""
    calls = [
        node.value for node in ast.parse(code).body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ]
    match calls:
        case [
            ast.Call(
                func=ast.Attribute(value=ast.Name(id="sheet"), attr=function),
                args=[ast.Constant(value=str(key)), ast.Name(id=name)],
                keywords=[],
            )
        ]:
            if function in ("check", "check_function"):
                return function, key, name
    raise ValueError(
        f'a graded cell must be one call, sheet.check("key", name) or sheet.check_function("key", name), not {code!r}'
    )


def question(cell: Cell) -> Question | None:
    """The question of a cell; None if it asks nothing (a cell graded by hand asks a person)."""
    if not mark(cell, "grade") or mark(cell, "solution") or cell.get("cell_type") != "code":
        return None
    function, key, name = asked(source(cell))
    kind = "number" if function == "check" else "function"
    return Question(
        grade_id=mark(cell, "grade_id"), points=float(mark(cell, "points")), kind=kind, drill=key, name=name
    )


def questions(notebook: Notebook) -> list[Question]:
    """Every question of a notebook, in order."""
    return [found for cell in notebook["cells"] if (found := question(cell))]


def bound(text: str) -> frozenset[str]:
    """What a cell gives a value to in its first column, placeholders left out. Lines are read one by one: no text of a
    student's is slow to look through.

    >>> sorted(bound("a = 1\\ndef f(*, x):\\n    b = 2\\nc, d = 3, 4\\ne = ...  # number\\nif g == 5: pass"))
    ['a', 'c', 'd', 'f']
    """
    found: set[str] = set()
    for line in text.splitlines():
        if defined := re.match(r"(?:async )?(?:def|class) (\w+)", line):
            found.add(defined[1])
        head, equals, value = line[:LONGEST_HEAD].partition("=")
        if not equals or value.startswith("=") or value.lstrip().startswith("..."):
            continue
        head = head.partition(":")[0].rstrip()
        if re.match(r"[^\W\d]", head) and re.fullmatch(r"[\w\s,*]+", head):
            found |= set(re.findall(r"\w+", head))
    return frozenset(found)


def is_python(text: str) -> bool:
    """Can Python read this, whatever it would do?"""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a student's escapes
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def is_run(text: str) -> bool:
    """Can a notebook run an answer? It reads more than Python: lines for the shell and for itself, what was copied with
    its prompts, and a cell that is indented as a whole.

    >>> [is_run(text) for text in (">>> a = 1", "  a = 1\\n  b = 2", "a = 1\\n%time a\\na?", "a = 1 GB")]
    [True, True, True, False]
    """
    if is_python(text):
        return True
    text = re.sub(r"(?m)^ {0,9}(?:>>>|\.\.\.)(?: |$)", "", text)
    text = re.sub(r"(?m)^([ \t]*)(?:[%!?].*|[\w.]+\?\??[ \t]*)$", r"\1pass", text)
    return is_python(textwrap.dedent(text))

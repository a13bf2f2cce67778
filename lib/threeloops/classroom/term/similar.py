"""How alike the functions of a class are, without names.

Short functions are alike because there are few ways to write them: per function the report says how large the book's
own solution is and how many normal forms the class has found. What is left to ask about is people who share a form
that is rare in the class, and in more than one function. How much of that chance makes is seen by dealing each
function's forms out again at random: what is told is only what no such deal reached.

    weight of a pair = Σ over functions with the same form of −log2((n − 1) / (N − 1)),
    n hand-ins that have this form, N hand-ins with such a function; the book's own form weighs nothing, because its
    solutions are public.

A form that is shared proves nothing: people learn in pairs, and sources are public.
"""

import hashlib
import itertools
import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from threeloops import units
from threeloops.classroom.questions import Notebook, Question, questions, source
from threeloops.classroom.term.collecting import received
from threeloops.classroom.term.normal_form import nodes, normal_form
from threeloops.classroom.term.settings import Term
from threeloops.classroom.transplant import UnparsableError, parsed, transplanted

DEALS = 200
LEAST_BITS = 2.0  # a form that a quarter of the class has says nothing about two of them
SHORT_NODES = 20

Forms = Mapping[str, Mapping[str, str]]  # function -> student -> normal form


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """What the class wrote for one question."""

    grade_id: str
    handed_in: int
    book_nodes: int
    forms: int
    commonest: int  # hand-ins that share the commonest form
    book: int  # hand-ins that have the form of the book's own solution
    rare: int  # hand-ins that share a form with somebody, and with less than a quarter of the class


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A class's functions, compared."""

    functions: tuple[Function, ...]
    groups: tuple[tuple[str, ...], ...]  # students who share more than any deal gave two of them
    bound_bits: float  # the most that a pair got in any deal
    numbers: Mapping[str, int]  # student -> number in the report


def report(term: Term, name: str, *, root: Path) -> Report:
    """Compare what was collected of a set.

    Raises:   ValueError when fewer than two hand-ins have functions, or the set asks for none
    """
    term.handed_out(name)
    release, solution = (
        json.loads((root / where / name / f"{name}.ipynb").read_text(encoding="utf-8"))
        for where in ("drills", "solutions")
    )
    asked = [one for one in questions(release) if one.kind == "function"]
    if not asked:
        raise ValueError(f"{name} asks for no function, so there is nothing to compare")
    folder = term.collected(name)
    written = {student: _code(folder / student / f"{name}.ipynb", release) for student in received(term, name)}
    own, stub = _cells(solution), _cells(release)
    forms = {one.grade_id: _forms(one, written, stub) for one in asked}
    if max(map(len, forms.values())) < 2:
        raise ValueError(f"fewer than two hand-ins of {name} have a function; `threeloops classroom collect` more")
    books = {one.grade_id: normal_form(own, one.name) or "" for one in asked}
    groups, bound = alike(forms, books)
    return Report(
        functions=tuple(
            _function(one, forms[one.grade_id], books[one.grade_id], nodes(own, one.name)) for one in asked
        ),
        groups=groups,
        bound_bits=bound,
        numbers=_numbered(term, written),
    )


def _numbered(term: Term, students: Iterable[str]) -> dict[str, int]:
    """A number for each student, in an order that tells no names, the same each time."""
    order = sorted(students, key=lambda student: hashlib.sha256(f"{term.course}\x1f{student}".encode()).digest())
    return {student: number for number, student in enumerate(order, start=1)}


def _cells(notebook: Notebook) -> str:
    """All code that may hold functions, one cell after the other; a cell that is no Python is left out."""
    return "\n\n".join(source(cell) for cell in notebook["cells"] if cell["cell_type"] == "code")


def _code(path: Path, release: Notebook) -> list[str]:
    """A hand-in's cells as they are graded."""
    try:
        notebook = transplanted(release, parsed(path.read_bytes()))
    except (UnparsableError, OSError):
        return []
    return [source(cell) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _forms(one: Question, written: Mapping[str, Sequence[str]], stub: str) -> dict[str, str]:
    """Each student's normal form of one function; who wrote none is not there."""
    untouched, found = normal_form(stub, one.name), {}
    for student, cells in written.items():
        own = [form for cell in cells if (form := normal_form(cell, one.name))]
        if own and own[-1] != untouched:
            found[student] = own[-1]
    return found


def _function(one: Question, forms: Mapping[str, str], book: str, size: int) -> Function:
    times = Counter(forms.values())
    return Function(
        grade_id=one.grade_id,
        handed_in=len(forms),
        book_nodes=size,
        forms=len(times),
        commonest=max(times.values(), default=0),
        book=times[book],
        rare=sum(n for form, n in times.items() if n > 1 and form != book and _bits(n, len(forms)) >= LEAST_BITS),
    )


def _bits(n: int, total: int) -> float:
    """How surprising it is that two of `total` share a form that n have.

    >>> _bits(2, 9), _bits(9, 9)
    (3.0, 0.0)
    """
    return math.log2((total - 1) / (n - 1))


def _weights(forms: Forms, books: Mapping[str, str]) -> dict[tuple[str, str], float]:
    """Weight of every pair that shares something rare."""
    found: dict[tuple[str, str], float] = defaultdict(float)
    for function, written in forms.items():
        holders: dict[str, list[str]] = defaultdict(list)
        for student, form in written.items():
            holders[form].append(student)
        for form, students in holders.items():
            if (
                len(students) > 1
                and form != books[function]
                and ((bits := _bits(len(students), len(written))) >= LEAST_BITS)
            ):
                for pair in itertools.combinations(sorted(students), 2):
                    found[pair] += bits
    return found


def alike(forms: Forms, books: Mapping[str, str]) -> tuple[tuple[tuple[str, ...], ...], float]:
    """(groups of students who share more than any deal at random gave a pair, the most that one gave in bits)."""
    rng = random.Random(0)  # the same report from the same hand-ins
    bound = 0.0
    for _ in range(DEALS):
        dealt = {}
        for function, written in forms.items():
            students = list(written)
            rng.shuffle(students)
            dealt[function] = dict(zip(students, written.values(), strict=True))
        bound = max(bound, max(_weights(dealt, books).values(), default=0.0))
    pairs = [pair for pair, bits in _weights(forms, books).items() if bits > bound]
    return tuple(sorted(_joined(pairs))), bound


def _joined(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Pairs that have a student in common, as one group.

    >>> _joined([("a", "b"), ("c", "d"), ("b", "e")])
    [('c', 'd'), ('a', 'b', 'e')]
    """
    groups: list[set[str]] = []
    for pair in pairs:
        touching = [group for group in groups if group & {*pair}]
        groups = [group for group in groups if group not in touching] + [{*pair}.union(*touching)]
    return [tuple(sorted(group)) for group in groups]


def told(found: Report, *, ids: bool) -> str:
    """The report to read; with numbers in place of ids unless those are asked for."""
    rows = [["function", "hand-ins", "size", "forms", "commonest", "the book's", "rare, shared", ""]]
    for one in found.functions:
        word = "short: alike says nothing" if one.book_nodes < SHORT_NODES else ""
        numbers = (one.handed_in, one.book_nodes, one.forms, one.commonest, one.book, one.rare)
        rows.append([one.grade_id, *map(str, numbers), word])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines += [
        "",
        "size: nodes of the syntax tree of the book's solution. forms: different normal forms in the class. commonest,"
        " the book's: hand-ins that share it. rare, shared: hand-ins whose form others have, and less than a quarter.",
    ]
    if not found.groups:
        lines.append(f"Nobody shares more across the functions than {DEALS} deals of the same forms at random gave.")
    for group in found.groups:
        named = ", ".join(student if ids else f"hand-in {found.numbers[student]}" for student in group)
        lines.append(
            f"{named}: share rare forms in more functions than any of {DEALS} deals at random gave two hand-ins"
            f" ({found.bound_bits:.1f} bits)."
        )
    if found.groups:
        lines.append(
            f"That is a question to ask {units.counted(len(found.groups), 'group')}, and no answer: people learn"
            " together, and sources are public." + ("" if ids else " --ids names them.")
        )
    return "\n".join(lines)

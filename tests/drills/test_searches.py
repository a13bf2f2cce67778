"""Searches of the drills end, and refuse in a sentence where nothing is found."""

import ast
import itertools
from pathlib import Path

import pytest

from threeloops.drills.engine import searches

LIB = Path(searches.__file__).parents[2]


def test_a_search_ends_where_nothing_is_wanted() -> None:
    numbers = itertools.count()
    with pytest.raises(ValueError, match="none of 2000 draws is wanted"):
        searches.wanted(numbers.__next__, lambda number: number < 0)
    assert next(numbers) == searches.TRIES


@pytest.mark.parametrize(("high", "found"), [(9.0, 3.25), (2.0, 2.0)])
def test_what_always_holds_holds_up_to_the_end(high: float, found: float) -> None:
    assert searches.holds_up_to(lambda value: value < 3.25, high=high) == pytest.approx(found, rel=1e-15)


def loops_that_draw(source: str) -> list[str]:
    """The heads of loops without an end of their own that ask a generator of random numbers."""
    return [
        ast.unparse(node.test)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.While)
        and any(isinstance(each, ast.Name) and each.id == "rng" for within in node.body for each in ast.walk(within))
    ]


@pytest.mark.parametrize("room", ["drills", "room/kinds"])
def test_nothing_is_drawn_in_a_loop_of_its_own(room: str) -> None:
    files = sorted((LIB / room).rglob("*.py"))
    assert len(files) > 40
    found = {path.name: heads for path in files if (heads := loops_that_draw(path.read_text(encoding="utf-8")))}
    assert not found, "a draw that is tried until it fits is searches.wanted, which ends"


def test_a_loop_that_draws_is_found() -> None:
    assert loops_that_draw("while True:\n    p = rng.choice((1, 2))\n    if p > 1: break") == ["True"]
    assert loops_that_draw("def count(p):\n    while p > 1:\n        p -= 1") == []

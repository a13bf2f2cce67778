"""Searches of the drills end, and refuse in a sentence where nothing is found."""

import itertools

import pytest

from threeloops.drills.engine import searches


def test_a_search_ends_where_nothing_is_wanted() -> None:
    numbers = itertools.count()
    with pytest.raises(ValueError, match="none of 2000 draws is wanted"):
        searches.wanted(numbers.__next__, lambda number: number < 0)
    assert next(numbers) == searches.TRIES


@pytest.mark.parametrize(("high", "found"), [(9.0, 3.25), (2.0, 2.0)])
def test_what_always_holds_holds_up_to_the_end(high: float, found: float) -> None:
    assert searches.holds_up_to(lambda value: value < 3.25, high=high) == pytest.approx(found, rel=1e-15)

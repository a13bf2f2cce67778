"""Cases that are folded into one test are all tried, and each that fails is named."""

import pytest
from tests.each import each

CASES = {"one": 1, "two": 2, "three": 3, "four": 4}


def parity(number: int) -> str:
    return "even" if number % 2 == 0 else "odd"


def small(limit: int, tried: list[int]) -> object:
    def is_small(number: int) -> None:
        tried.append(number)
        assert number < limit

    return each("number", CASES, by=parity)(is_small)


def test_every_case_of_a_group_is_tried() -> None:
    tried: list[int] = []
    small(5, tried)("even")
    assert tried == [2, 4]


def test_what_fails_is_named_and_stops_nothing() -> None:
    tried: list[int] = []
    with pytest.raises(AssertionError) as one:
        small(4, tried)("even")
    assert one.value.__notes__ == ["number: four"]
    with pytest.raises(ExceptionGroup) as both:
        small(1, tried)("odd")
    assert [error.__notes__ for error in both.value.exceptions] == [["number: one"], ["number: three"]]
    assert tried == [2, 4, 1, 3]


def test_a_group_is_an_item() -> None:
    (mark,) = small(5, []).pytestmark
    assert list(mark.args[1]) == ["odd", "even"]


def test_a_case_may_have_several_values() -> None:
    def is_half(one: int, two: int) -> None:
        assert 2 * one == two

    with pytest.raises(AssertionError) as failed:
        each(("one", "two"), [(1, 2), (2, 5), (4, 8)])(is_half)("all")
    assert failed.value.__notes__ == ["one, two: (2, 5)"]

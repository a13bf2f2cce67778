"""Refusals: every raising case beside its nearest valid neighbour, and the sentence it says."""

import math

import numpy
import pytest

from threeloops import checks


@pytest.mark.parametrize("value", [1, 0.5, numpy.float64(2), numpy.int32(3)])
def test_positive_takes_any_real_number_above_zero(value: float) -> None:
    checks.positive(size=value)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (0, "size=0 must be greater than 0"),
        (-1.5, "size=-1.5 must be greater than 0"),
        (math.nan, "size=nan must be finite"),
        (math.inf, "size=inf must be finite"),
        (True, "size=True must be a number"),
        ("3", "size='3' must be a number"),
        (None, "size=None must be a number"),
    ],
)
def test_positive_refuses_in_one_sentence(value: object, sentence: str) -> None:
    with pytest.raises(ValueError, match="^" + sentence.replace("(", r"\(") + "$"):
        checks.positive(size=value)


def test_non_negative_and_fraction_have_their_own_edges() -> None:
    checks.non_negative(size=0)
    checks.fraction(share=0, other=1)
    with pytest.raises(ValueError, match="size=-1 must be at least 0"):
        checks.non_negative(size=-1)
    with pytest.raises(ValueError, match="share=82 must lie between 0 and 1"):
        checks.fraction(share=82)


def test_count_wants_whole_numbers() -> None:
    checks.count(layers=numpy.int64(3))
    checks.count(at_least=0, layers=0)
    for bad in (0, 2.0, True, "2"):
        with pytest.raises(ValueError, match="layers=.* must be a whole number of at least 1"):
            checks.count(layers=bad)


def test_divides_says_what_would_work() -> None:
    checks.divides(part="tp", part_value=4, whole="num_heads", whole_value=12)
    with pytest.raises(ValueError, match=r"tp=5 must divide num_heads=12; try tp in \{1, 2, 3, 4, 6, 12\}"):
        checks.divides(part="tp", part_value=5, whole="num_heads", whole_value=12)


def test_one_of_names_the_near_ones() -> None:
    checks.one_of(["adam", "sgd"], optimiser="adam")
    with pytest.raises(ValueError, match=r"optimiser='adamw' is not known; did you mean 'adam'\? Known: adam, sgd"):
        checks.one_of(["adam", "sgd"], optimiser="adamw")
    with pytest.raises(ValueError, match=r"optimiser='zzz' is not known\. See the list"):
        checks.one_of(["adam", "sgd"], optimiser="zzz", see="See the list")

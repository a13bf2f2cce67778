"""Bounds on sums against sums really added in fp32, and the narrow training that one swallowed update makes."""

import math
from fractions import Fraction

import numpy
import pytest

from threeloops.inner_loop import number_formats, summation
from threeloops.inner_loop.number_formats import BF16, FP32
from threeloops.measure.training_loop import narrow_training
from threeloops.simulate.inner_loop import sum_orders
from threeloops.training_loop.memory import recipes


def passed_through(terms: int, parts: list[list[int]]) -> int:
    """Additions that the unluckiest term passes through, followed by hand: parts in order, then their sums in
    order.
    """
    depth = []
    for part in parts:
        deepest = [0] * len(part)
        for position in range(1, len(part)):
            deepest[: position + 1] = [count + 1 for count in deepest[:position]] + [1]
        depth.append(max(deepest))
    joined = [0] * len(parts)
    for position in range(1, len(parts)):
        joined[: position + 1] = [count + 1 for count in joined[:position]] + [1]
    return max(inner + outer for inner, outer in zip(depth, joined, strict=True))


def halved(count: int) -> int:
    rounds = 0
    while count > 1:
        count -= count // 2
        rounds += 1
    return rounds


@pytest.mark.parametrize(("terms", "parts"), [(12, 3), (64, 8), (100, 10), (30, 1), (9, 9)])
def test_additions_are_those_that_a_term_passes_through(terms: int, parts: int) -> None:
    shares = [part.tolist() for part in numpy.array_split(numpy.arange(terms), parts)]
    assert summation.split(terms, parts=parts) == passed_through(terms, shares)
    assert summation.in_order(terms) == passed_through(terms, [list(range(terms))])


@pytest.mark.parametrize("terms", [1, 2, 3, 5, 8, 1000, 1024, 1025])
def test_pairs_are_added_as_often_as_a_list_can_be_halved(terms: int) -> None:
    assert summation.pairwise(terms) == halved(terms)


def test_every_order_stays_within_its_bound() -> None:
    rng = numpy.random.default_rng(4)
    for terms in (100, 4097, 30_000):
        values = rng.random(terms, dtype=numpy.float32)
        exact = sum(map(Fraction, values.tolist()))
        found = {
            summation.in_order(terms): sum_orders.in_order(values),
            summation.split(terms, parts=50): sum_orders.in_parts(values, parts=50),
            summation.pairwise(terms): sum_orders.in_pairs(values),
        }
        for additions, total in found.items():
            assert abs(Fraction(total) - exact) / exact <= summation.relative_error_bound(
                additions=additions, form=FP32
            )


def test_a_sum_beyond_the_bounds_promise_really_loses_everything() -> None:
    # 2 / epsilon = 256 additions in bf16 promise nothing: a count of ones has then stopped, and falls behind without
    # limit
    with pytest.raises(ValueError, match=r"additions=256 in BF16 may lose every digit; try fewer than 256"):
        summation.relative_error_bound(additions=256, form=BF16)
    assert summation.relative_error_bound(additions=100, form=BF16) < 1
    assert number_formats.counting_limit(BF16) == 256


def test_one_order_is_no_worse_than_its_parts_and_one_part_is_the_order() -> None:
    values = numpy.random.default_rng(1).random(1000, dtype=numpy.float32)
    assert sum_orders.in_parts(values, parts=1) == sum_orders.in_order(values)
    assert summation.split(1000, parts=1) == summation.in_order(1000)
    assert sum_orders.in_pairs(values[:2]) == sum_orders.in_order(values[:2])


def test_whole_numbers_have_one_sum_and_fractions_have_many() -> None:
    rng = numpy.random.default_rng(2)
    whole = rng.integers(-100, 100, 500).astype(numpy.float32)
    assert sum_orders.results_of_orders(whole, orders=50, seed=1) == {float(math.fsum(whole))}
    assert len(sum_orders.results_of_orders(rng.standard_normal(500, dtype=numpy.float32), orders=50, seed=1)) > 5


def test_doubling_the_unit_doubles_a_small_bound() -> None:
    half = number_formats.Format(name="half as fine", exponent_bits=8, mantissa_bits=22)
    one, two = (summation.relative_error_bound(additions=3, form=form) for form in (FP32, half))
    assert two == pytest.approx(2 * one, rel=1e-5)


def test_refusals() -> None:
    assert summation.split(4, parts=4) == 3
    with pytest.raises(ValueError, match=r"parts=5 must not be more than terms=4"):
        summation.split(4, parts=5)
    assert summation.relative_error_bound(additions=0, form=FP32) == 0
    with pytest.raises(ValueError, match=r"cancellation=0.5 must be at least 1"):
        summation.relative_error_bound(additions=1, form=FP32, cancellation=0.5)


def test_bf16_weights_do_not_move_where_every_update_is_swallowed() -> None:
    assert number_formats.swallowed_below(1.0, BF16) / 2 > narrow_training.LEARNING_RATE
    stuck, free = narrow_training.train("pure bf16", steps=60), narrow_training.train("autocast", steps=60)
    assert (stuck.moved, stuck.last_loss) == (0, stuck.first_loss)
    assert free.moved == narrow_training.WEIGHTS
    assert free.last_loss < 0.7 * free.first_loss


def test_their_memory_is_that_of_their_recipes() -> None:
    for how, recipe in (("pure bf16", "pure-bf16"), ("autocast", "autocast")):
        measured = narrow_training.train(how, steps=1).state_bytes_per_parameter
        assert measured == recipes.RECIPES[recipe].hidden_matrices.total_bytes

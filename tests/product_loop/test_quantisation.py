"""Uniform grids against weights that are rounded one by one, and compensation against a search."""

import math
import random
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from threeloops.product_loop import compression, quantisation
from threeloops.simulate.product_loop import narrow_weights, rounding_search, weight_pairs

STEP = 1.0


@given(lowest=st.floats(-4, -0.1), highest=st.floats(0.1, 4), bits=st.integers(3, 8))
def test_every_value_in_range_comes_back_to_within_a_step(lowest: float, highest: float, bits: int) -> None:
    grid = quantisation.affine_grid(lowest=lowest, highest=highest, bits=bits)
    assert grid.value(grid.zero_point) == 0.0
    for place in range(101):
        value = lowest + place / 100 * (highest - lowest)
        # half a step from rounding, and at the ends half a step more, by which zero was moved onto the grid
        assert abs(grid.value(grid.code(value)) - value) <= grid.step * (1 + 1e-9)


def test_the_example_of_a_network_for_phones() -> None:
    # ReLU6 in eight bits: 0 to 6 on 255 steps, zero is code 0 (Jacob et al., arXiv:1712.05877, section 2.1)
    grid = quantisation.affine_grid(lowest=0, highest=6, bits=8)
    assert (grid.zero_point, grid.code(6), grid.code(99)) == (0, 255, 255)
    assert grid.value(255) == pytest.approx(6)


@given(largest=st.floats(0.01, 100), bits=st.integers(2, 8))
def test_a_symmetric_grid_ends_where_the_largest_is(largest: float, bits: int) -> None:
    grid = quantisation.symmetric_grid(largest=largest, bits=bits)
    assert grid.value(grid.highest_code) == pytest.approx(largest)
    assert grid.value(grid.lowest_code) == pytest.approx(-largest)
    assert grid.highest_code - grid.lowest_code + 1 == 2**bits - 1


@pytest.mark.parametrize("bits", [6, 8])
def test_the_mean_error_of_a_normal_matrix(bits: int) -> None:
    rng = random.Random(3)
    values = [rng.gauss(0, 1) for _ in range(40_000)]
    grid = quantisation.symmetric_grid(largest=max(map(abs, values)), bits=bits)
    errors = [abs(grid.value(grid.code(value)) - value) for value in values]
    assert sum(errors) / len(errors) == pytest.approx(quantisation.mean_rounding_error(grid.step), rel=0.02)
    squared = sum(error**2 for error in errors) / len(errors)
    assert squared == pytest.approx(compression.noise_power(grid.step), rel=0.03)


@pytest.mark.parametrize(("largest", "outlier"), [(0.07, 0.53), (0.3, 0.9), (2.0, 9.1), (1.5, 1.5)])
def test_lost_bits_are_those_of_a_coarser_grid(largest: float, outlier: float) -> None:
    rng = random.Random(5)
    values = [rng.uniform(-largest, largest) for _ in range(20_000)]
    with_outlier, without = (narrow_weights.noise_power(values, bits=9, peak=peak) for peak in (outlier, largest))
    # a bit is half the step, and a quarter of the squared error
    coarser = math.log(with_outlier / without) / math.log(4)
    assert quantisation.lost_bits(largest=largest, outlier=outlier) == pytest.approx(coarser, abs=0.02)


grams = st.tuples(st.floats(0.5, 5), st.floats(-0.95, 0.95), st.floats(0.5, 5))


@given(gram=grams, error=st.floats(0.05, 0.5))
def test_the_best_move_is_found_by_search(gram: tuple[float, float, float], error: float) -> None:
    own, correlation, other = gram
    together = correlation * math.sqrt(own * other)
    searched = weight_pairs.best_move(error, own=own, together=together, other=other)
    assert quantisation.compensating_move(error, together=together, other=other) == pytest.approx(searched, abs=1e-5)


def test_column_by_column_lies_between_nearest_and_best() -> None:
    rng = np.random.default_rng(4)
    nearest, greedy, best = [], [], []
    for _ in range(60):
        inputs = rng.normal(size=(40, 7)) + 1.5 * rng.normal(size=(40, 1))  # correlated, as activations are
        gram, row = inputs.T @ inputs, rng.normal(size=7)
        errors = [
            rounding_search.squared_error(row, rounded, gram)
            for rounded in (
                np.round(row),
                rounding_search.column_by_column(row, gram, step=STEP),
                rounding_search.best_rounding(row, gram, step=STEP),
            )
        ]
        for found, error in zip((nearest, greedy, best), errors, strict=True):
            found.append(error)
        assert errors[2] <= errors[0] * (1 + 1e-9)
    assert np.mean(best) <= np.mean(greedy) < 0.6 * np.mean(nearest)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: quantisation.affine_grid(lowest=0.1, highest=1, bits=8), "must have 0 between them"),
        (lambda: quantisation.affine_grid(lowest=0, highest=0, bits=8), "must have 0 between them"),
        (lambda: quantisation.symmetric_grid(largest=0, bits=8), "largest=0"),
        (lambda: quantisation.symmetric_grid(largest=1, bits=1), "bits=1"),
        (lambda: quantisation.lost_bits(largest=2, outlier=1.5), "outlier=1.5 must be at least largest=2"),
        (lambda: quantisation.compensating_move(0.1, together=1, other=0), "other=0"),
        (
            lambda: quantisation.UniformGrid(step=1, zero_point=9, lowest_code=0, highest_code=7),
            "zero_point=9 must be one of the codes 0 to 7",
        ),
    ],
)
def test_nonsense_is_refused(call: object, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        call()  # type: ignore[operator]

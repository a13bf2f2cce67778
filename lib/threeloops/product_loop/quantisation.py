"""Uniform grids: which whole number a weight becomes, what it stands for afterwards, how far off that is, and what a
neighbour can do about it.

>>> grid = affine_grid(lowest=-0.5, highest=1.5, bits=4)
>>> round(grid.step, 4), grid.zero_point, grid.code(0.7), round(grid.value(grid.code(0.7)), 4)
(0.1333, 4, 9, 0.6667)

Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
        2017, arXiv:1712.05877, section 2.1
"""

import math
from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformGrid:
    """Evenly spaced values, each named by a whole number.

    Formula:  code = clamp(round(value / step) + zero point);  value = step * (code - zero point)
    """

    step: float  # also called the scale
    zero_point: int  # the code of 0.0
    lowest_code: int
    highest_code: int

    def __post_init__(self) -> None:
        checks.positive(step=self.step)
        if not self.lowest_code <= self.zero_point <= self.highest_code:
            raise ValueError(
                f"zero_point={self.zero_point} must be one of the codes {self.lowest_code} to {self.highest_code}: 0.0"
                " has to be on the grid"
            )

    def code(self, value: float) -> int:
        """The nearest code; what is beyond an end gets the end's."""
        return min(self.highest_code, max(self.lowest_code, round(value / self.step) + self.zero_point))

    def value(self, code: int) -> float:
        """What a code stands for."""
        return self.step * (code - self.zero_point)


def symmetric_grid(*, largest: float, bits: int) -> UniformGrid:
    """The grid from -largest to +largest, with 0.0 in its middle.

    Formula:  step = largest / (2^(bits - 1) - 1), zero point 0
    Assumes:  as many codes below zero as above, so that one pattern of the 2^bits stays unused
    Measured: measure.product_loop.quantisers.quantise

    >>> symmetric_grid(largest=254.0, bits=8).step
    2.0
    """
    checks.positive(largest=largest)
    checks.count(bits=bits, at_least=2)
    last = 2 ** (bits - 1) - 1
    return UniformGrid(step=largest / last, zero_point=0, lowest_code=-last, highest_code=last)


def affine_grid(*, lowest: float, highest: float, bits: int) -> UniformGrid:
    """The grid from lowest to highest, moved by less than a step so that 0.0 is on it.

    Formula:  step = (highest - lowest) / (2^bits - 1), zero point = round(-lowest / step)
    Assumes:  lowest <= 0 <= highest: a range on one side of zero is widened to it first
    Measured: measure.product_loop.quantisers.quantise
    """
    checks.count(bits=bits)
    if not lowest <= 0 <= highest or lowest == highest:
        raise ValueError(f"lowest={lowest:g} and highest={highest:g} must have 0 between them; widen the range to it")
    step = (highest - lowest) / (2**bits - 1)
    return UniformGrid(step=step, zero_point=round(-lowest / step), lowest_code=0, highest_code=2**bits - 1)


def mean_rounding_error(step: float) -> float:
    """Mean size of the error of rounding to a grid; its root mean square is step / sqrt(12).

    Formula:  step / 4
    Assumes:  errors spread evenly between -step / 2 and step / 2: steps small against the values, nothing clipped
    Counted:  tests.product_loop.test_quantisation.test_the_mean_error_of_a_normal_matrix

    >>> mean_rounding_error(0.02)
    0.005
    """
    checks.positive(step=step)
    return step / 4


def lost_bits(*, largest: float, outlier: float) -> float:
    """Bits of precision that all other weights lose when the grid has to reach to an outlier.

    Formula:  log2(outlier / largest): every doubling of the range makes the steps twice as wide
    Units:    largest size of the others, size of the outlier
    Assumes:  an even, symmetric grid of the same bits with and without the outlier
    Raises:   ValueError for an outlier that is smaller than the others
    Source:   Dettmers et al., LLM.int8(), 2022, arXiv:2208.07339, section 3 (outliers and the precision of absmax
              quantisation)
    Counted:  simulate.product_loop.narrow_weights.noise_power

    >>> round(lost_bits(largest=0.25, outlier=3.0), 3)
    3.585
    """
    checks.positive(largest=largest, outlier=outlier)
    if outlier < largest:
        raise ValueError(f"outlier={outlier:g} must be at least largest={largest:g}, the size of all other weights")
    return math.log2(outlier / largest)


def compensating_move(error: float, *, together: float, other: float) -> float:
    """What to add to a second weight once the first has an error, so that the layer's output suffers least.

    Formula:  -error * together / other;  error = rounded - exact,  together = sum of x1 * x2, other = sum of x2^2
              over calibration inputs
    Source:   the step of GPTQ for two weights: Frantar et al., 2022, arXiv:2210.17323, equation 2
    Counted:  simulate.product_loop.weight_pairs.best_move

    >>> compensating_move(0.1, together=3.0, other=4.0)
    -0.07500000000000001
    """
    checks.positive(other=other)
    return -error * together / other


def smoothed_largest(*, input_largest: float, column_largest: float, alpha: float) -> float:
    """The largest input of a channel after SmoothQuant has divided it.

    Formula:  input / (input^alpha / column^(1 - alpha)) = (input * column)^(1 - alpha);  the column of the weights
              that meets it becomes input^alpha * column^alpha
    Source:   Xiao et al., 2022, arXiv:2211.10438, equation 4
    Counted:  drills.compression.grids.SMOOTHED

    >>> smoothed_largest(input_largest=64.0, column_largest=0.25, alpha=0.5)
    4.0
    """
    checks.positive(input_largest=input_largest, column_largest=column_largest)
    checks.fraction(alpha=alpha)
    return float((input_largest * column_largest) ** (1 - alpha))

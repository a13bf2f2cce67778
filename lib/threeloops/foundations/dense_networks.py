"""Dense networks: the parameters of layers in which every unit sees every input, whole or as two thin factors, and
the price of a product of three matrices.

>>> parameters([2, 2, 1])
9
"""

from collections.abc import Sequence
from itertools import pairwise

from threeloops import checks


def parameters(widths: Sequence[int]) -> int:
    """Weights and biases of a network with these widths, inputs first.

    Formula:  sum over layers of (inputs + 1) * outputs
    Assumes:  every unit sees every unit of the layer before, and has a bias; an activation has no parameters
    Raises:   ValueError for fewer than two widths
    Source:   by definition
    Measured: tests.foundations.test_foundations_formulas.test_parameters_are_those_that_torch_allocates

    >>> parameters([784, 128, 10])
    101770
    """
    if len(widths) < 2:
        raise ValueError(f"widths={list(widths)!r} needs at least inputs and outputs, like [2, 2, 1]")
    for place, width in enumerate(widths):
        checks.count(**{f"widths[{place}]": width})
    return sum((inputs + 1) * outputs for inputs, outputs in pairwise(widths))


def left_first_flops(*, rows: int, left: int, right: int, columns: int) -> int:
    """FLOPs of (A B) C with A [rows, left], B [left, right], C [right, columns].

    Formula:  2 * rows * left * right + 2 * rows * right * columns; a multiply-add counts as 2
    Source:   by definition
    Counted:  tests.foundations.test_foundations_formulas.counted_flops

    >>> left_first_flops(rows=1000, left=1000, right=1000, columns=1)
    2002000000
    """
    checks.count(rows=rows, left=left, right=right, columns=columns)
    return 2 * rows * left * right + 2 * rows * right * columns


def right_first_flops(*, rows: int, left: int, right: int, columns: int) -> int:
    """FLOPs of A (B C), the same result in the other order.

    Formula:  2 * left * right * columns + 2 * rows * left * columns
    Source:   by definition
    Counted:  tests.foundations.test_foundations_formulas.counted_flops

    >>> right_first_flops(rows=1000, left=1000, right=1000, columns=1)
    4000000
    """
    checks.count(rows=rows, left=left, right=right, columns=columns)
    return 2 * left * right * columns + 2 * rows * left * columns


def low_rank_parameters(*, rows: int, columns: int, rank: int) -> int:
    """Parameters of a product of two thin matrices that stands for one of [rows, columns]; of a LoRA adapter beside
    it.

    Formula:  rank * (rows + columns)
    Source:   Hu et al., LoRA, 2021, arXiv:2106.09685, section 4.1
    Counted:  simulate.product_loop.narrow_weights.factors

    >>> low_rank_parameters(rows=4096, columns=11008, rank=16)
    241664
    """
    checks.count(rows=rows, columns=columns, rank=rank)
    return rank * (rows + columns)


def break_even_rank(*, rows: int, columns: int) -> float:
    """The rank at which two factors have as many parameters as the matrix: below half of the shorter side where the
    matrix is square.

    Formula:  rows * columns / (rows + columns)
    Source:   by definition: the rank with as many parameters on both sides; factors as in Hu et al., LoRA, 2021,
              arXiv:2106.09685
    Counted:  simulate.product_loop.narrow_weights.factors

    >>> break_even_rank(rows=4096, columns=4096)
    2048.0
    """
    checks.count(rows=rows, columns=columns)
    return rows * columns / (rows + columns)

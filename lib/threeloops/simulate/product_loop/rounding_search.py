"""Rounding by search: every way to round a row of weights tried out, and a row rounded column by column with the rest
solved for anew each time.

Knows neither a formula nor a factorisation: it tries, and keeps what was best.

>>> gram = np.array([[4.0, 3.0], [3.0, 4.0]])
>>> row = np.array([0.4, 0.3])
>>> best_rounding(row, gram, step=1.0).tolist()  # nearest would be [0, 0]
[1.0, 0.0]
"""

import itertools

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float64]


def squared_error(row: Row, rounded: Row, gram: NDArray[np.float64]) -> float:
    """Sum of squared differences of the outputs, from the inputs' Gram matrix X^T X."""
    return float((rounded - row) @ gram @ (rounded - row))


def best_rounding(row: Row, gram: NDArray[np.float64], *, step: float) -> Row:
    """Of all rows whose entries are rounded up or down, the one with the least output error."""
    ends = [(np.floor(weight / step) * step, np.ceil(weight / step) * step) for weight in row]
    tried = (np.array(choice) for choice in itertools.product(*ends))
    return min(tried, key=lambda rounded: squared_error(row, rounded, gram))


def column_by_column(row: Row, gram: NDArray[np.float64], *, step: float) -> Row:
    """Round the first weight, solve for the move of all later ones that makes the output error least, and go on with
    them.
    """
    now, rounded = row.astype(float).copy(), np.zeros_like(row, dtype=float)
    for place in range(len(row)):
        rounded[place] = np.round(now[place] / step) * step
        error, later = rounded[place] - now[place], slice(place + 1, None)
        if place + 1 < len(row):  # the least of e^T G e over the later errors, where the first one is given
            now[later] += np.linalg.solve(gram[later, later], -error * gram[later, place])
    return rounded

"""The same terms added in different orders, every addition rounded to fp32 as the machine rounds it.

>>> terms = numpy.array([1e8, 1.0, -1e8, 1.0], dtype=numpy.float32)
>>> in_order(terms), in_parts(terms, parts=2), in_pairs(terms)
(1.0, 0.0, 0.0)
"""

import numpy
from numpy.typing import NDArray

Terms = NDArray[numpy.float32]


def in_order(terms: Terms) -> float:
    """One after the other: cumsum keeps every partial sum, so it cannot reorder."""
    return float(numpy.cumsum(terms, dtype=numpy.float32)[-1])


def in_parts(terms: Terms, *, parts: int) -> float:
    """Each part on its own, then the sums of the parts: threads that share a sum."""
    sums = [in_order(part) for part in numpy.array_split(terms, parts)]
    return in_order(numpy.array(sums, dtype=numpy.float32))


def in_pairs(terms: Terms) -> float:
    """Neighbours, then neighbours of sums, until one is left."""
    while len(terms) > 1:
        odd = terms[len(terms) - len(terms) % 2 :]
        terms = numpy.concatenate(
            [terms[0 : len(terms) - len(odd) : 2] + terms[1::2][: (len(terms) - len(odd)) // 2], odd]
        )
    return float(terms[0])


def results_of_orders(terms: Terms, *, orders: int, seed: int) -> set[float]:
    """Every different sum that so many random orders give.

    >>> len(results_of_orders([2.0**53, 1.0, -(2.0**53)], orders=50, seed=1))
    2
    """
    rng = numpy.random.default_rng(seed)
    return {in_order(rng.permutation(terms)) for _ in range(orders)}

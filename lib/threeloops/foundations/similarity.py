"""Similarity of two vectors: the dot product, and the cosine that is left when their lengths are divided out.

>>> dot([3, 4], [4, 3]), cosine([3, 4], [4, 3])
(24, 0.96)
"""

import math
from collections.abc import Sequence

from threeloops import checks


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """Sum of the products of matching entries: positive where the vectors point the same way, 0 at a right angle,
    negative where they oppose.

    Raises:   ValueError if the vectors differ in length
    """
    if len(a) != len(b):
        raise ValueError(f"a has {len(a)} entries and b has {len(b)}; a dot product needs as many in both")
    return sum(x * y for x, y in zip(a, b, strict=True))


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """The dot product over both lengths: from -1 to +1, whatever the lengths.

    Formula:  dot(a, b) / (|a| * |b|)
    Raises:   ValueError for a vector of length 0, which points nowhere
    Source:   by definition
    Counted:  drills.foundations.linear_maps.COSINE
    """
    lengths = math.hypot(*a), math.hypot(*b)
    checks.positive(length_of_a=lengths[0], length_of_b=lengths[1])
    return dot(a, b) / (lengths[0] * lengths[1])

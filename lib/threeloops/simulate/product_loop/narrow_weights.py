"""Weights made small for real: rounded to a grid and packed bit by bit, pruned and walked by a mask, rounded and
compared with what they were.

Knows no formula for a size or a noise: it writes, and the length of what it wrote is the count; it rounds, and the
error is what came out.

>>> written = packed_groups([0.5, -1.0, 2.0, 0.25], bits=4, group=4, symmetric=False)
>>> len(written)  # scale 16, zero point 4, four weights of 4
36
"""

import struct
from collections.abc import Sequence


def _half(value: float) -> str:
    return format(int.from_bytes(struct.pack(">e", value), "big"), "016b")


def _unhalf(bits: str) -> float:
    return float(struct.unpack(">e", int(bits, 2).to_bytes(2, "big"))[0])


def packed_groups(values: Sequence[float], *, bits: int, group: int, symmetric: bool) -> str:
    """Per group a scale in half precision, a zero point unless the grid is symmetric, then the places on the grid."""
    written, last = "", 2**bits - 1
    for start in range(0, len(values), group):
        part = values[start : start + group]
        low, high = min(0.0, *part), max(0.0, *part)
        if symmetric:
            high = max(high, -low)
            low = -high
        scale_bits = _half((high - low) / last or 1.0)
        scale = _unhalf(scale_bits)
        zero = last // 2 + 1 if symmetric else min(last, round(-low / scale))
        written += scale_bits + ("" if symmetric else format(zero, f"0{bits}b"))
        written += "".join(format(min(last, max(0, round(value / scale) + zero)), f"0{bits}b") for value in part)
    return written


def masked(values: Sequence[int], *, bits: int) -> str:
    """A one or a zero for every place, then the patterns of the places that are not empty.

    >>> masked([0, 3, 0, 1], bits=2)
    '01011101'
    """
    return "".join("1" if value else "0" for value in values) + "".join(
        format(value, f"0{bits}b") for value in values if value
    )


def indexed(values: Sequence[int], *, bits: int, index_bits: int) -> str:
    """For every place that is not empty its number and its pattern.

    >>> indexed([0, 3, 0, 1], bits=2, index_bits=2)
    '01111101'
    """
    return "".join(
        format(place, f"0{index_bits}b") + format(value, f"0{bits}b") for place, value in enumerate(values) if value
    )


def factors(*, rows: int, columns: int, rank: int) -> tuple[list[list[float]], list[list[float]]]:
    """Two thin matrices of ones whose product has the given shape.

    >>> factors(rows=2, columns=3, rank=1)
    ([[1.0], [1.0]], [[1.0, 1.0, 1.0]])
    """
    return [[1.0] * rank for _ in range(rows)], [[1.0] * columns for _ in range(rank)]


def spread_noise_power(*, bits: int, peak: float) -> float:
    """Mean squared error of rounding values that lie anywhere between -peak and peak: integrated cell by cell, by
    Simpson's rule.
    """
    cell, integral = 2 * peak / 2**bits, 0.0
    for place in range(2**bits):
        left = -peak + place * cell
        middle = left + cell / 2
        integral += (
            cell
            / 6
            * sum(weight * (value - middle) ** 2 for value, weight in ((left, 1), (middle, 4), (left + cell, 1)))
        )
    return integral / (2 * peak)


def noise_power(values: Sequence[float], *, bits: int, peak: float) -> float:
    """Mean squared error after rounding every value to the middle of one of 2^bits equal cells between -peak and
    peak.

    >>> noise_power([0.25, -0.5], bits=1, peak=1.0)
    0.03125
    """
    cells = 2**bits
    cell = 2 * peak / cells
    squared = 0.0
    for value in values:
        place = min(cells - 1, int((value + peak) / cell))
        squared += (value - (-peak + (place + 0.5) * cell)) ** 2
    return squared / len(values)

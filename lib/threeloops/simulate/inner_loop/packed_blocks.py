"""Packed blocks: numbers written bit by bit the way MX and NVFP4 store them, and read back from the bits alone.

Knows no formula for the size: it writes, and the length of what it wrote is the count.

>>> written = packed([0.1, -0.7, 3.0, 24.0], grid=grid("E2M1"), block=32)
>>> len(written), unpacked(written, elements=4, grid=grid("E2M1"), block=32)
(24, [0.0, 0.0, 4.0, 24.0])
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from threeloops.simulate.inner_loop import bit_patterns

LAYOUTS = {
    "E2M1": (2, 1, "none"),
    "E4M3": (4, 3, "nan"),
    "E2M3": (2, 3, "none"),
    "E3M2": (3, 2, "none"),
    "E5M2": (5, 2, "infinity"),
}
SCALE_MIDDLE = 127  # E8M0 stores a power of two as that power plus this


@cache
def grid(name: str) -> bit_patterns.Grid:
    """Every number of a small format."""
    exponent_bits, mantissa_bits, specials = LAYOUTS[name]
    return bit_patterns.Grid(
        bit_patterns.numbers(exponent_bits=exponent_bits, mantissa_bits=mantissa_bits, specials=specials)
    )


def _power_at_most(value: Fraction) -> int:
    """The largest power of two that is not above the value, found by doubling and halving."""
    power = 0
    while Fraction(2) ** (power + 1) <= value:
        power += 1
    while Fraction(2) ** power > value:
        power -= 1
    return power


def packed(values: Sequence[float], *, grid: bit_patterns.Grid, block: int) -> str:
    """The bits of a tensor in an MX format: per block the scale's eight, then its elements.

    The scale puts the block's largest value between the last power of two of the grid and the one after it.
    """
    written = ""
    for start in range(0, len(values), block):
        part = [Fraction(value) for value in values[start : start + block]]
        largest = max(map(abs, part))
        power = _power_at_most(largest) - _power_at_most(grid.values[-1]) if largest else -SCALE_MIDDLE
        written += format(power + SCALE_MIDDLE, "08b") + "".join(
            grid.pattern(value / Fraction(2) ** power) for value in part
        )
    return written


def unpacked(written: str, *, elements: int, grid: bit_patterns.Grid, block: int) -> list[float]:
    """The values that those bits stand for."""
    width = len(grid.patterns[0])
    meaning = dict(zip(grid.patterns, grid.values, strict=True))
    found: list[float] = []
    place = 0
    while len(found) < elements:
        scale = Fraction(2) ** (int(written[place : place + 8], 2) - SCALE_MIDDLE)
        place += 8
        for _ in range(min(block, elements - len(found))):
            bits = written[place : place + width]
            place += width
            found.append(float(meaning["0" + bits[1:]] * scale * (-1 if bits[0] == "1" else 1)))
    return found


def packed_in_two_levels(values: Sequence[float], *, block: int) -> str:
    """The bits of a tensor in NVFP4: 32 for the tensor's scale, then per block an E4M3 scale and its elements in
    E2M1.
    """
    element, scale = grid("E2M1"), grid("E4M3")
    exact = [Fraction(value) for value in values]
    tensor_scale = max(map(abs, exact)) / element.values[-1] / scale.values[-1]
    written = "t" * 32  # an fp32 number, of which only the size matters here
    for start in range(0, len(exact), block):
        part = exact[start : start + block]
        wanted = max(map(abs, part)) / element.values[-1] / tensor_scale
        kept = scale.nearest(wanted)
        written += scale.pattern(wanted) + "".join(
            element.pattern(value / kept / tensor_scale if kept else 0) for value in part
        )
    return written

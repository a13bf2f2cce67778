"""Answers without a unit: a learning platform compares bare numbers, so the question has to name the unit, and one
that suits all its variants.

>>> unit_for("B", [6.4e9, 24.5e9], capacity=False), unit_for("s", [0.0031, 0.0544], capacity=False)
('GB', 'ms')
"""

import math
from collections.abc import Sequence
from decimal import Decimal

from threeloops import checks
from threeloops.drills.engine.answers import parse

_SCALED = ("", "k", "M", "G", "T", "P")
UNITS = {
    "s": ("ns", "µs", "ms", "s", "h"),
    "": ("times",),
    "FLOP/B": ("FLOP/B",),
    "token": ("tokens",),
    "m": ("m",),
    "dollar": ("dollars",),
    "token/s": ("tokens/s",),
}
UNITS |= {unit: tuple(prefix + unit for prefix in _SCALED) for unit in ("B", "B/token", "B/s", "FLOP", "FLOP/s")}
BINARY = {"B": ("B", "KiB", "MiB", "GiB", "TiB"), "B/token": ("B/token", "KiB/token", "MiB/token", "GiB/token")}
DIGITS = 6
SMALLEST, LARGEST = 1e-3, 1e9  # what can be typed and compared without an exponent


def factor(unit: str, *, like: str) -> float:
    """What one `unit` is in the base unit `like`.

    >>> factor("GiB", like="B")
    1073741824.0
    """
    return parse(f"1 {unit}", like=like).value


def unit_for(base: str, values: Sequence[float], *, capacity: bool) -> str:
    """The largest unit in which the geometric mean of the values is at least one.

    Raises:   ValueError for a base unit that no drill uses
    """
    checks.one_of(UNITS, unit=base)
    offered = BINARY.get(base, UNITS[base]) if capacity else UNITS[base]
    sizes = [math.log(abs(value)) for value in values if value]
    mean = math.exp(sum(sizes) / len(sizes)) if sizes else 1.0
    fitting = [unit for unit in offered if mean >= factor(unit, like=base)]
    return fitting[-1] if fitting else offered[0]


def typable(base: str, values: Sequence[float], *, capacity: bool) -> bool:
    """Whether all of them can be asked for in one unit.

    >>> typable("B", [6.4e9, 24.5e9], capacity=True), typable("", [57344, 3.4e38], capacity=False)
    (True, False)
    """
    scale = factor(unit_for(base, values, capacity=capacity), like=base)
    return all(SMALLEST <= abs(value) / scale <= LARGEST for value in values)


def plain(number: float, *, counted: bool = False) -> str:
    """Six significant digits without an exponent: platforms have been seen to hide questions whose bounds have one. Of
    what is counted every digit.

    >>> plain(24.5e9), plain(0.000031), plain(59.0), plain(105_007_500, counted=True)
    ('24500000000', '0.000031', '59', '105007500')
    """
    if counted:
        return f"{number:.0f}"
    written = format(Decimal(f"{number:.{DIGITS}g}"), "f")
    return written.rstrip("0").rstrip(".") if "." in written else written

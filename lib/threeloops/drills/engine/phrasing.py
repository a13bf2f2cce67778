"""How numbers are said in a prompt, and written in a substitution.

>>> billions(13_015_864_320), billions(774_030_080), tera(989.4e12), giga(1.54e9)
('13.0 billion', '774 million', '989.4e12', '1.54e9')
"""

import math
import re

from threeloops.units import GB, PFLOP, TFLOP, fmt_bytes, fmt_si, kB

_LITERAL = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(\.\d*)?(e[+-]?\d+)?(?![\w.])")
_ALONE = re.compile(r"(?<=[×+−] )\((\d[\d,.]*)\)")  # brackets around one number
_EXACT = PFLOP  # counts below are written out: a model has so many parameters and no other number


def billions(number: float) -> str:
    """A count as one says it, with three digits."""
    return fmt_si(number, "").replace(" G", " billion").replace(" M", " million").strip()


def to_the_byte(num_bytes: float) -> str:
    """A size of which every byte may count, because what fits into it is counted.

    >>> to_the_byte(85_520_809_984)
    '85.5 GB (79.6 GiB; to the byte 85,520,809,984)'
    """
    return f"{fmt_bytes(num_bytes, base=10)} ({fmt_bytes(num_bytes, base=2)}; to the byte {num_bytes:,.0f})"


def people(number: float) -> str:
    """A number as people write it: four digits, and a power of ten in place of a bare exponent.

    >>> people(0.4667), people(12_400), people(4.9999999e-06), people(1.26e22)
    ('0.4667', '12,400', '5 × 10^-6', '1.26 × 10^22')
    """
    if 1e-4 <= abs(number) < 1e6 or number == 0:
        return f"{number:,.4g}" if abs(number) < kB else f"{number:,.0f}"
    digits, power = f"{number:.3e}".split("e")
    return f"{float(digits):g} × 10^{int(power)}"


def arithmetic(substitution: str) -> str:
    """A substitution as people write it: four digits, thousands set apart, powers of ten in place of exponents. It
    still says what is computed in which order.

    >>> arithmetic("2 × 4096 × 11264 / 989.5e12"), arithmetic("9 × 5.98e-06 + 0.30000000000000004**2")
    ('2 × 4,096 × 11,264 / (989.5 × 10^12)', '9 × 5.98 × 10^-6 + 0.3^2')
    >>> arithmetic("6 * (7) + 4 * (-1)")
    '6 × 7 + 4 × (-1)'
    >>> arithmetic("ceil(3 × 310 / 100 × log2(100) × 0.6931471805599453 − 0.000001)")
    'ceil(3 × 3.1 × ln(100))'
    """
    substitution = _as_said(substitution)
    said = _LITERAL.sub(lambda found: _operand(found, substitution), substitution)
    said = said.replace("**", "^").replace("*", "×").replace(" - ", " − ")
    return _ALONE.sub(r"\1", said)


def _as_said(substitution: str) -> str:
    """Without what only a computer needs: a natural logarithm by way of base 2, cents and per cent as a division, the
    hair's breadth that keeps a float on its side of a whole number.
    """
    said = re.sub(r"log2\(([^()]+)\) [×*] 0\.6931471\d*", r"ln(\1)", substitution)
    said = re.sub(r" [−+-] 0\.0{5,8}1(?=\))", "", said)
    return re.sub(r"(?<![/^*] )(?<![\w.,])(\d+) / 100(?![\w.,])", lambda cents: f"{int(cents[1]) / 100:g}", said)


def _operand(found: re.Match[str], substitution: str) -> str:
    """One number of a substitution, in brackets where the sign before or after it would tear it apart."""
    said = _engineering(found[0].replace(",", ""), whole=not (found[1] or found[2]))
    torn = substitution[: found.start()].rstrip()[-1:] == "/" or substitution[found.end() :][:1] in ("*", "²")
    return f"({said})" if "×" in said and torn else said


def _engineering(literal: str, *, whole: bool) -> str:
    """A number with a power of ten that a prefix has (thousands, millions), where it needs one."""
    value = float(literal)
    if whole and value < _EXACT:
        return f"{int(literal):,}"
    if value == 0 or 1e-3 <= value < 1e6:
        return f"{value:.4g}" if value < kB else f"{value:,.0f}"
    power = 3 * math.floor(math.log10(value) / 3)
    digits = f"{value / 10**power:.4g}"
    return f"10^{power}" if digits == "1" else f"{digits} × 10^{power}"


def tera(amount: float) -> str:
    """A rate or an amount in 10^12."""
    return f"{amount / TFLOP:g}e12"


def giga(amount: float) -> str:
    """An amount in 10^9."""
    return f"{amount / GB:g}e9"

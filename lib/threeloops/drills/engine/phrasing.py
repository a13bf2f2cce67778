"""How numbers are said in a prompt, and written in a substitution.

>>> billions(13_015_864_320), billions(774_030_080), tera(989.4e12), giga(1.54e9)
('13.0 billion', '774 million', '989.4e12', '1.54e9')
"""

from threeloops.units import GB, TFLOP, fmt_si, kB


def billions(number: float) -> str:
    """A count as one says it, with three digits."""
    return fmt_si(number, "").replace(" G", " billion").replace(" M", " million").strip()


def people(number: float) -> str:
    """A number as people write it: four digits, and a power of ten in place of a bare exponent.

    >>> people(0.4667), people(12_400), people(4.9999999e-06), people(1.26e22)
    ('0.4667', '12,400', '5 × 10^-6', '1.26 × 10^22')
    """
    if 1e-4 <= abs(number) < 1e6 or number == 0:
        return f"{number:,.4g}" if abs(number) < kB else f"{number:,.0f}"
    digits, power = f"{number:.3e}".split("e")
    return f"{float(digits):g} × 10^{int(power)}"


def tera(amount: float) -> str:
    """A rate or an amount in 10^12."""
    return f"{amount / TFLOP:g}e12"


def giga(amount: float) -> str:
    """An amount in 10^9."""
    return f"{amount / GB:g}e9"

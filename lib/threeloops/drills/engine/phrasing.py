"""How numbers are said in a prompt, and written in a substitution.

>>> billions(13_015_864_320), billions(774_030_080), tera(989.4e12), giga(1.54e9)
('13.0 billion', '774 million', '989.4e12', '1.54e9')
"""

from threeloops.units import GB, TFLOP, fmt_si


def billions(number: float) -> str:
    """A count as one says it, with three digits."""
    return fmt_si(number, "").replace(" G", " billion").replace(" M", " million").strip()


def tera(amount: float) -> str:
    """A rate or an amount in 10^12."""
    return f"{amount / TFLOP:g}e12"


def giga(amount: float) -> str:
    """An amount in 10^9."""
    return f"{amount / GB:g}e9"

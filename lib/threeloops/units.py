"""Units: constants to scale by at the edge, and formatters that say which unit they used.

Inside the library every quantity is a plain number in base SI: bytes, seconds, FLOP, metres, watts. Scaling factors
stand here and nowhere else.

>>> 80 * GiB
85899345920
>>> fmt_bytes(6_442_450_944, base=10), fmt_bytes(6_442_450_944, base=2)
('6.44 GB', '6.00 GiB')

Source: IEC 80000-13:2008 (binary prefixes); BIPM, The International System of Units, 9th ed., 2019 (decimal
        prefixes).
"""

import math

kB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12
KiB, MiB, GiB, TiB = 2**10, 2**20, 2**30, 2**40
ns, us, ms = 1e-9, 1e-6, 1e-3
MHz, GHz = 10**6, 10**9
km, mile, foot = 10**3, 1609.344, 0.3048  # metres; the international mile and foot are exact by agreement (1959)
mm, cm, inch = 1 / 10**3, 1 / 10**2, 0.0254  # metres; the inch by the same agreement
minute, hour, day = 60, 3600, 86_400
GFLOP, TFLOP, PFLOP = 10**9, 10**12, 10**15
kWh = 3_600_000  # joules
thousand, million, billion, trillion = 10**3, 10**6, 10**9, 10**12  # of what is counted: parameters, tokens
BITS_PER_BYTE = 8

_DECIMAL = ("", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def _digits(value: float) -> str:
    """Three significant digits, without an exponent: 6.44, 24.5, 131, 1,960."""
    if value == 0:
        return "0"
    if abs(value) < 999.5:
        value = float(f"{value:.2e}")  # rounded first, so that 9.999 counts its decimals as 10.0 does
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def _scaled(value: float, step: int, prefixes: tuple[str, ...]) -> tuple[str, str]:
    """The value's digits in the largest prefix that leaves at least 1, and that prefix."""
    power = 0
    # 999.5 would be printed as "1,000": it belongs to the next prefix.
    while power + 1 < len(prefixes) and abs(value) >= step ** (power + 1) * (0.9995 if step == kB else 1):
        power += 1
    return _digits(value / step**power), prefixes[power]


def fmt_bytes(num_bytes: float, *, base: int) -> str:
    """Bytes in decimal (base=10: kB, MB, GB) or binary (base=2: KiB, MiB, GiB) prefixes; there is no default.

    >>> fmt_bytes(131_072, base=2), fmt_bytes(24.5e9, base=10), fmt_bytes(12, base=2)
    ('128 KiB', '24.5 GB', '12.0 B')
    """
    if base not in (2, 10):
        raise ValueError(f"base={base!r} must be 10 (kB, MB, GB) or 2 (KiB, MiB, GiB)")
    digits, prefix = _scaled(num_bytes, *((kB, _DECIMAL) if base == 10 else (KiB, _BINARY)))
    return f"{digits} {prefix}B"


def fmt_si(value: float, unit: str) -> str:
    """A quantity with a decimal prefix on its unit.

    >>> fmt_si(989.4e12, "FLOP/s"), fmt_si(3.35e12, "B/s"), fmt_si(295.3, "FLOP/B")
    ('989 TFLOP/s', '3.35 TB/s', '295 FLOP/B')
    """
    digits, prefix = _scaled(value, kB, _DECIMAL)
    return f"{digits} {prefix}{unit}"


def fmt_seconds(seconds: float) -> str:
    """A duration in the unit that a person would choose.

    >>> fmt_seconds(1.96), fmt_seconds(0.0544), fmt_seconds(3.1e-6), fmt_seconds(7200)
    ('1.96 s', '54.4 ms', '3.10 µs', '2.00 h')
    """
    if not math.isfinite(seconds):
        return "forever"
    if seconds == 0:
        return "0 s"
    size = abs(seconds)
    for limit, scale, name in (
        (1e-6, 1e-9, "ns"),
        (1e-3, 1e-6, "µs"),
        (1, 1e-3, "ms"),
        (120, 1, "s"),
        (7200, minute, "min"),
        (2 * day, hour, "h"),
    ):
        if size < limit:
            return f"{_digits(seconds / scale)} {name}"
    return f"{_digits(seconds / day)} days"


def fmt_percent(share: float) -> str:
    """A share from 0 to 1 as a percentage; percent exists nowhere else.

    >>> fmt_percent(0.466666)
    '46.7 %'
    """
    return f"{_digits(100 * share)} %"


def fmt(value: float, unit: str, *, binary: bool = False) -> str:
    """A value in a base unit as a person would write it; bytes in both bases, because they differ by 7 % at a
    gigabyte.

    Units:    B, s, FLOP, FLOP/s, B/s, …; FLOP/B, token, dollar and "" (counts, shares) are compared with each other
              and take no prefix

    >>> fmt(6_442_450_944, "B"), fmt(6_442_450_944, "B", binary=True)
    ('6.44 GB (6.00 GiB)', '6.00 GiB (6.44 GB)')
    >>> fmt(1365.3, "FLOP/B"), fmt(0.4667, "")
    ('1,365 FLOP/B', '0.4667')
    >>> fmt(0.556, "dollar"), fmt(12_400, "dollar"), fmt(1510.2, "token/s")
    ('0.556 dollars', '12,400 dollars', '1,510 tokens/s')
    """
    if unit == "s":
        return fmt_seconds(value)
    if unit == "B":
        first, second = (2, 10) if binary else (10, 2)
        return f"{fmt_bytes(value, base=first)} ({fmt_bytes(value, base=second)})"
    if unit == "token":
        return f"{value:,.0f} tokens"
    if unit == "token/s":
        return f"{_digits(value)} tokens/s"
    if unit == "dollar":
        return f"{_digits(value)} dollars"
    if unit in ("", "FLOP/B"):
        return f"{value:,.4g} {unit}".strip() if abs(value) < kB else f"{value:,.0f} {unit}".strip()
    return fmt_si(value, unit)


def counted(number: int, what: str) -> str:
    """A number of things, in the singular where there is one.

    >>> counted(1, "rank"), counted(8, "rank")
    ('1 rank', '8 ranks')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"

"""What a learner typed, as a number with a unit.

"24.5 GB", "1960 ms", "24.5e9 bytes" and "1,960 ms" are answers. A bare number is asked again, because the unit is
half of the answer. Units are read by pint, with a short list of our own in place of its thousand: in a book where b
must never be taken for barn, refusing is better than guessing.

>>> parse("24.5 GB", like="B").value
24500000000.0
>>> parse("1,960 ms", like="s").value
1.96
"""

import functools
import math
import re
import sys
import threading
from dataclasses import dataclass
from numbers import Real
from typing import Any

from threeloops import units
from threeloops.drills.engine import shorthand, spelling

DEFINITIONS = """
yotta- = 1e24
exa- = 1e18 = E-
peta- = 1e15 = P-
tera- = 1e12 = T-
giga- = 1e9 = G-
mega- = 1e6 = M-
kilo- = 1e3 = k- = K-
milli- = 1e-3 = m-
micro- = 1e-6 = µ- = u-
nano- = 1e-9 = n-
kibi- = 2**10 = Ki-
mebi- = 2**20 = Mi-
gibi- = 2**30 = Gi-
tebi- = 2**40 = Ti-
pebi- = 2**50 = Pi-
bit = [information]
byte = 8 * bit = B = Byte
second = [time] = s = sec
minute = 60 * second = min
hour = 3600 * second = h = hr
day = 24 * hour = d
week = 7 * day
year = 365 * day
FLOP = [computation] = FLOP = flop = Flop
token = [token] = token = tok
meter = [length] = m = metre
centimeter = 0.01 * meter = cm = centimetre
watt = [power] = W
dollar = [money] = USD
cent = 0.01 * dollar
percent = 0.01 = %
times = 1 = x = ×
""".strip().splitlines()

# How a good answer in a unit looks.
EXAMPLES = {
    "B": "24.5 GB or 22.8 GiB",
    "B/token": "131 kB/token or 128 KiB/token",
    "B/s": "450 GB/s",
    "s": "1960 ms or 1.96 s",
    "FLOP": "8.4 TFLOP",
    "FLOP/s": "312 TFLOP/s",
    "FLOP/B": "295 FLOP/B",
    "token": "16384 tokens",
    "m": "41.5 m",
    "dollar": "0.35 dollars or $0.35",
    "token/s": "1200 tokens/s",
    "W": "275 W",
    "": "5.9",
}
# And where the question asks for something narrower than its unit says.
NARROWER = {"count": "59", "share": "0.46 or 46 %", "days": "12 days", "hours": "30 h", "minutes": "25 min"}
ASKED = {  # unit -> what may be asked narrower, and by which words
    "": {"share": r"shares?|chance|probability|percent|MFU|HFU|efficiency|fraction", "count": "dollars"},
    "s": {"days": "days", "hours": "hours", "minutes": "minutes"},
}

_NUMBER = re.compile(r"^\s*([+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:[eE][+-]?\d{1,3})?)\s*(.*?)\s*$", re.DOTALL)
_COMMA = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # thousands, or a decimal comma
_POINT = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")  # of what comes whole: decimals, or thousands
_WHOLE = re.compile(r"(?:B|bytes?|tok(?:en)?s?)?", re.IGNORECASE)
# A size twice: as the book prints it, or as people say it.
_TWICE = re.compile(
    r"^([^()=]*\d[^()=]*[A-Za-z])\s*(?:\(|=|\bor\b|(?:,\s*)?\bi\.e\.)\s*([^()=]*\d[^()=]*[A-Za-z][^()=]*)\)?[\s,;!.]*$"
)
SAME = 0.01  # what rounding to three digits makes of one size in two units
_CAPITALS = re.compile(
    r"\b(?:Kilo|Mega|Giga|Tera|Kibi|Mebi|Gibi|Tebi|Second|Minute|Hour|Day|Watt|Token|Dollar|Met)(?=[a-z])|\bWatt\b"
)
_OTHER_MONEY = re.compile(
    r"[€£¥￥₹₩]|\b(?:EUR|euros?|GBP|quid|CHF|JPY|yen|CNY|RMB|yuan|INR|rupees?|AUD|CAD|HKD|NZD|SGD|TWD)\b"
    r"|(?-i:\b(?:AU?|CA?|HK|NZ|SG?|NT|R|MX)\\?\$)|\b(?:Australian|Canadian|Hong Kong|Singapore|New Zealand) dollars?",
    re.IGNORECASE,
)
_UNIT = re.compile(r"^[A-Za-zµμ%×/*·. ]{0,40}$")


class UnreadableError(ValueError):
    """What was typed is not an answer; the message says what would be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A number in base SI (bytes, not bits), and how it was written."""

    value: float
    written: str
    number: float  # the figure before its unit
    unit: str  # the unit as written
    other: float | None = None  # what else it can mean, in base SI
    doubt: str = ""  # and the sentence that asks which

    def doubtful(self, target: float) -> bool:
        """Whether the other reading is nearer to the answer than the one that was taken: then its writer is asked."""
        if self.other is None or target <= 0 or min(self.value, self.other) <= 0:
            return False
        return abs(math.log(self.other / target)) < abs(math.log(self.value / target))


def narrower(unit: str, question: str, *, whole: bool) -> str:
    """What a question asks for, where that is narrower than its unit: a key of NARROWER, or nothing. `whole` says that
    it counts things.

    >>> narrower("", "Of 40 requests 8 are late. What share is that?", whole=False)
    'share'
    """
    if whole and not unit:
        return "count"
    asked = question_in(question)
    return next((kind for kind, words in ASKED.get(unit, {}).items() if re.search(rf"\b(?:{words})\b", asked)), "")


def example(unit: str, question: str, *, whole: bool = False) -> str:
    """How a good answer to this question looks.

    >>> example("", "How many times faster is a step?"), example("s", "How many hours does the run take?")
    ('5.9', '30 h')
    """
    return NARROWER.get(narrower(unit, question, whole=whole)) or EXAMPLES[unit]


def question_in(text: str) -> str:
    """The sentence that asks: the last one with a question mark, or the last one.

    >>> question_in("It takes 3 days. How many hours is that? Round up.")
    'How many hours is that?'
    """
    sentences = re.split(r"(?<=[.?!])\s+", text.strip())
    return next((sentence for sentence in reversed(sentences) if "?" in sentence), sentences[-1])


_LOADING = threading.Lock()


# pint and what it brings take longer to load than the whole bank of drills, so it is loaded when the first unit is
# read, not when a question is asked.
def _registry() -> Any:
    with _LOADING:  # a second thread waits for the first
        return _loaded()


@functools.cache
def _loaded() -> Any:
    sys.modules.setdefault("dask", None)  # type: ignore[arg-type]  # pint would load all of it where it is installed
    try:
        import pint
    finally:
        if sys.modules["dask"] is None:
            del sys.modules["dask"]
    registry: Any = pint.UnitRegistry(None)
    registry.load_definitions(DEFINITIONS)
    return registry


def get_ready() -> None:
    """Load what reads units now: for a door where somebody is still thinking about the first question."""
    _registry()


def _number(text: str, written: str) -> float:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        raise UnreadableError(f"{written!r} does not start with a number; write a number and its unit") from None
    if not math.isfinite(value):
        raise UnreadableError(f"{written!r} is not a finite number")
    return value


@functools.lru_cache(maxsize=1024)  # the same few units, answer after answer
def _factor(unit: str, like: str, example: str) -> float:
    """What one `unit` is in the unit `like`."""
    if re.search(r"(?<![A-Za-z])[kKMGTPmgt]?i?b(ps)?(?![A-Za-z])", unit):
        raise UnreadableError(f"{unit!r} could mean bits or bytes; write bit or B (Gbit/s, GB/s)")
    unit_asked = unit
    if "FLOPS" in unit:  # a count or a rate: the question knows which
        unit = re.sub(r"FLOPS(/s)?", "FLOP/s" if like == "FLOP/s" else r"FLOP\1", unit)
    spelled = (
        re.sub(r"\b([A-Za-zµμ]+)ps\b", r"\1/s", unit)
        .replace("·", "*")
        .replace("μ", "µ")
        .replace("×", "x")
        .replace(" per ", "/")
    )
    spelled = re.sub(r"(?<=[A-Za-z])\s+(?=[A-Za-z])", "*", spelled)
    spelled = _CAPITALS.sub(lambda word: word[0].lower(), spelled)
    registry = _registry()
    import pint

    try:
        return float(
            registry.Quantity(1, registry.parse_units(spelled)).to(registry.parse_units(like or "times")).magnitude
        )
    except pint.DimensionalityError:
        if unit_asked.startswith(("dollar", "USD")) and like != "dollar":
            raise UnreadableError(f"dollars are money, which was not asked; give it like {example}") from None
        raise UnreadableError(f"{unit_asked!r} does not measure what was asked; give it like {example}") from None
    except Exception:
        raise UnreadableError(f"{unit_asked!r} is not a unit that this book knows; give it like {example}") from None


def _printable(number: Real) -> bool:
    """Whether a number can be written out at all: Python refuses str(10**5000)."""
    try:
        return abs(float(number)) < 1e300
    except OverflowError:
        return False


def parse(written: object, *, like: str, nouns: frozenset[str] = frozenset(), example: str = "") -> Answer:
    """The answer in the base unit `like` ("B", "s", "FLOP/B", …; "" for a plain share or count). `nouns` are words of
    the question that may follow the number ("72 GPUs"), see `spelling`; `example` is how an answer to it looks.

    Assumes:  a comma before three digits groups thousands; any other marks decimals, as a point does
    Raises:   UnreadableError, in one sentence, for what is not a number with a fitting unit

    >>> parse("6 GiB", like="B").value
    6442450944.0
    >>> parse("6.44", like="B")
    Traceback (most recent call last):
        ...
    threeloops.drills.engine.answers.UnreadableError: 6.44 of what? Add the unit, like 24.5 GB or 22.8 GiB
    """
    example = example or EXAMPLES.get(like, like)
    if isinstance(written, bool) or not isinstance(written, str | Real):
        raise UnreadableError(f"an answer is a number with its unit, like {example}, not a {type(written).__name__}")
    if not isinstance(written, str) and not _printable(written):
        raise UnreadableError(f"a number as large as this, or no number at all, is no answer; write it like {example}")
    text = str(written).strip()
    if not text:
        raise UnreadableError(f"nothing is written; write it like {example}")
    if len(text) > 100:
        raise UnreadableError(
            f"an answer of {len(text)} characters is too long for one number; write it like {example}"
        )
    if re.match(r"[+-]?0[xX][0-9a-fA-F]", text):
        raise UnreadableError(f"{text[:40]!r} is hexadecimal; write it in decimal, like {example}")
    if like == "dollar" and _OTHER_MONEY.search(text):
        raise UnreadableError(
            f"{text[:40]!r} is not in dollars, and no rate of exchange is given; give it like {example}"
        )
    if like.startswith("B") and (twice := _TWICE.match(text)):
        return _both(*(parse(one, like=like, nouns=nouns, example=example) for one in twice.groups()), written=text)
    if two := shorthand.two_readings(shorthand.bare(text, like=like), like=like):
        return Answer(value=two[0], written=text, number=two[0], unit=like, other=two[1], doubt=two[2])
    match = _NUMBER.match(spelling.plain(text, like=like, nouns=nouns))
    if not match or not match[1] or not _UNIT.match(match[2]):
        near = re.match(r"^\s*[+-]?\d+,\d+\b", text)
        hint = "write a decimal point, not a comma" if near else f"write it like {example}"
        raise UnreadableError(f"{text[:40]!r} is not a number with a unit; {hint}")
    number, unit = _number(match[1], text), match[2]
    if re.search(r",\d{3}[eE]", match[1]):
        raise UnreadableError(f"{text[:40]!r} is not a number with a unit; write a decimal point, not a comma")
    if like in ("B", "B/token") and unit in ("k", "K", "M", "G", "T"):
        return _either_base(number, unit, like, text)
    if not unit and like not in ("", "token"):  # tokens are counted: a number of them needs no unit
        raise UnreadableError(f"{match[1]} of what? Add the unit, like {example}")
    value = number * (_factor(unit, like, example) if unit else 1.0)
    if not math.isfinite(value):
        raise UnreadableError(f"{text!r} is larger than any number that a computer keeps; write it like {example}")
    read = functools.partial(Answer, value=value, written=text, number=number, unit=unit)
    if _COMMA.fullmatch(match[1]):
        comma = match[1].replace(",", "")
        doubt = f"{match[1]!r} is {comma} to some and {match[1].replace(',', '.')} to others; write one of these"
        return read(other=value / units.kB, doubt=doubt)
    if like in ("B", "token") and _POINT.fullmatch(match[1]) and _WHOLE.fullmatch(unit):
        plain = match[1].replace(".", "")
        doubt = f"{match[1]!r} is {plain} to some and {match[1]} to others; write it without a point"
        return read(other=value * units.kB, doubt=doubt)
    if like in ("", "token") and re.search(r"\dK\b", text):
        return read(other=value * units.KiB / units.kB, doubt=f"{text!r} can mean thousands, or 1024s; write it out")
    return read()


def _both(first: Answer, second: Answer, *, written: str) -> Answer:
    """One size in two units, as the book prints it: the first, where the second is the same."""
    if abs(first.value - second.value) > SAME * abs(first.value):
        raise UnreadableError(f"{first.written} and {second.written} are not the same; write one of them")
    return Answer(value=first.value, written=written, number=first.number, unit=first.unit)


def _either_base(number: float, prefix: str, like: str, written: str) -> Answer:
    """80G: taken for GB, unless GiB is the nearer."""
    decimal, binary = f"{prefix}{like}", f"{prefix.upper()}i{like}"
    value, other = (number * _factor(unit, like, EXAMPLES[like]) for unit in (decimal, binary))
    doubt = f"{written!r} can be {prefix}B or {prefix.upper()}iB; write which"
    return Answer(value=value, written=written, number=number, unit=decimal, other=other, doubt=doubt)

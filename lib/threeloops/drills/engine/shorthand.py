"""What people write in a hurry, in the words that the units know: "tflops", "TF", "400 Gbps", "t/s", "80G", "0.4B
tokens", "factor 2.1", "4.5x faster", "1m57s", "10⁹", "46 per cent", "43 $", and what the book itself prints, "60.9 GB
(56.7 GiB)".

Nothing is guessed. What has two readings comes back with both of them, and the judge takes the one that fits or asks.

>>> longhand("~8.4 tflops!", like="FLOP/s"), longhand("1m57s", like="s"), longhand("a factor of 2.1", like="")
('8.4 TFLOP/s', '117.0 s', '2.1 times')
"""

import itertools
import math
import re
import unicodedata

from threeloops import units

_BEFORE = re.compile(
    r"^\s*(?:[~≈≃≅≥≤=→#]|[<>]=|[-=]>|(?:about|around|approximately|approx|roughly|circa|ca|some|nearly|an?|the|it is"
    r"|it's|is|maybe|probably|i think|i guess|i'd say|say|at least|at most|up to|no more than|no fewer than|exactly|min"
    r"|max|minimum|maximum|in total|total)\b\.?:?|c\.|(?:answer|result)\s*[:=]|[A-Za-z]\w{0,20}\s*=)\s*",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"(?:[\s,;!?.]+|(?<=[\s\d(])\(?(?:or so|in total|total|altogether|all in all|each|rounded(?: (?:up|down))?|or more"
    r"|or less|or fewer|at least|at most|i think|i guess|(?:of )?(?:memory|HBM|VRAM))\)?"
    r"|-ish|(?<=\s)ish)+$",
    re.IGNORECASE,
)
_ISH = re.compile(r"(?<=\d)\s?-?ish\b", re.IGNORECASE)
_WORKED_OUT = re.compile(r"^[$\d.,\s]*[*×·^/+][$\d.,\s*×·x^/+()]*=\s*(?=[$\d.])")  # 9*8 = 72
_ENCLOSED = re.compile(r"^\(([^()]+)\)$")
_A_SECOND = re.compile(r"(?<=[A-Za-z])\s+(?:an?|each|every)\s+(?=[A-Za-z]+(?:\s|$))")
_PRECISION = re.compile(r"\s+(?:dense|bf16|fp16|fp8|fp32|tf32|int8)$", re.IGNORECASE)
_OPERATIONS = re.compile(r"\bfloating[ -]point (?:operations|ops)\b", re.IGNORECASE)
_GROUPED = re.compile(r"^([+-]?\d{1,3}(?:[ _'’\u00a0\u2009\u202f]\d{3})+)(?![\d.,]*\d)")
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_POWER = re.compile(r"(?<=\d)([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_SCIENTIFIC = re.compile(r"^((?:US)?\$?\s*[+-]?\d[\d.]*)\s*[x×·*]\s*10\s*(?:\^|\*\*)\s*\(?([+-]?\d{1,3})\)?(?![\d.])")
_MONEY = re.compile(r"^(?:(?:US|U\.S\.)?\$|USD\b)\s*([\d.,]+(?:e[+-]?\d{1,3})?)\s*(.*)$", re.IGNORECASE)
_AMOUNT = re.compile(
    r"^([\d.,]+(?:e[+-]?\d{1,3})?\s*(?:[kKMB]|thousand|million|billion)?)\s*(?:(?:US)?\$|usd\b)\s*(.*)$"
)
_MONEY_SUM = re.compile(r"^([*×·+^–-]\s*[$\d(][$\d.,\s*×·^/+()–-]*)(.*)$")
_MONEY_AGAIN = re.compile(r"^(?:\(.*\)|=.*|/\s?[A-Za-z -]+|[,;:.]*)$")  # said once more, or of what it is
_MILLION = re.compile(r"^(?:m|MM|mln|mio)\b\.?")  # as money is written
_PART = re.compile(
    r"(\d+(?:\.\d+)?)\s*(d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?|ms)(?![a-z])\s*(?:and\s+|,\s*)?"
)
_CLOCK = {"d": units.day, "h": units.hour, "m": units.minute, "s": 1.0, "ms": units.ms}
_FLOPS = re.compile(
    r"^([kKMGTPE]|kilo|mega|giga|tera|peta|exa)?\s?(?:flops?|F|ops|(?<=[MGTPE]))(?:\s?(?:/|per )\s?s(?:ec(?:ond)?)?)?$",
    re.I,
)
_COUNTED = {"thousand": "k", "million": "M", "billion": "G", "trillion": "T"}
_PREFIX = {"kilo": "k", "mega": "M", "giga": "G", "tera": "T", "peta": "P", "exa": "E"}
_BUCKS = re.compile(r"(?<=[\d.kKM])\s*(?:bucks?|(grand))\b(?:\s+(?=an?\b|per\b|/))?", re.IGNORECASE)
_BYTES = re.compile(r"^([kmgtp])(i?)b(?=$|/|ytes?\b| per\b)", re.IGNORECASE)
_LINE_RATE = re.compile(r"^([kKmMgGtT])bps$")
_TOKEN_RATE = re.compile(
    r"^([kM]?)\s?(?:tps|toks?/s(?:ec)?|t/s(?:ec)?|tokens?\s?(?:/|per )\s?s(?:ec(?:ond)?)?)$", re.IGNORECASE
)
_TIMES = re.compile(
    r"^([\d.,]+)\s?(?:x|×|times|-?\s?fold)\b\s*(?:as )?(?:\s*(?:faster|quicker|fast|speed-?\s?up))?$", re.IGNORECASE
)
_ONE_IN = re.compile(r"^(\d+) (?:in|out of) (\d+)$")
_CENTS = re.compile(r"^([\d.]+)\s*(?:ct|cts|c|¢)$")
_SPLIT_PREFIX = re.compile(r"^(milli|micro|nano|kilo|mega|giga|tera)[ -](?=seconds?\b|bytes?\b)", re.IGNORECASE)
_INTENSITY = re.compile(r"^([kMGT]?)\s?(?:flops?|ops)\s?(?:/|per )\s?(?:b|bytes?)$", re.IGNORECASE)
_SCALED_FLOPS = re.compile(r"^(thousand|million|billion|trillion)\s+(?=flops?\b)", re.IGNORECASE)
_FACTOR = re.compile(r"^(?:factor(?:\s+of)?\s+|[x×]\s?)(?=[\d.])", re.IGNORECASE)
_PERCENT = re.compile(r"(?<=\d)\s?(?:per\s?cent|pct\.?|percent)(?![a-z])", re.IGNORECASE)
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen"
)
_SMALL = {word: number for number, word in enumerate(_ONES.split())}
_TENS_SAID = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * number for number, word in enumerate(_TENS_SAID.split(), 2)}
_SHARES_SAID = "half third quarter fifth sixth seventh eighth ninth tenth eleventh twelfth"
_SHARES = {word: number for number, word in enumerate(_SHARES_SAID.split(), 2)} | {
    "fourth": 4,
    "sixteenth": 16,
    "twentieth": 20,
    "hundredth": 100,
    "thousandth": 1000,
}
_SAID = "|".join(sorted({*_SMALL, *_TENS, "hundred", "thousand", "million", "billion"}, key=len, reverse=True))
_NUMBER_WORDS = re.compile(
    rf"\b(?:{_SAID})\b(?:(?:[ -]+(?:and )?)(?:{_SAID})\b)*(?: point(?: (?:{_ONES.replace(' ', '|')})\b)+)?",
    re.IGNORECASE,
)
_LARGE = ("thousand", "million", "billion")
_SHARE = re.compile(
    rf"^(\d+ )?(?:an? )?({'|'.join(_SHARES)})s?(?:(?:\s+of)?\s+an?(?=\s)|\s+of(?=\s)|(?=[\s%]|$))", re.IGNORECASE
)
_AND_A_HALF = re.compile(r"^(?:(\d+) and (?:a |one )?half|(\d+) +(\d)/([1-9])(?=\s|$))\b", re.IGNORECASE)
_UNIT_AND_A_HALF = re.compile(r"^(second|minute|hour|day|week|year) and a half$", re.IGNORECASE)
_FOLD = re.compile(r"^(two|three|four|five|six|seven|eight|nine|ten)-?fold\b", re.IGNORECASE)
_MULTIPLES = {
    "twice": "2 times",
    "double": "2 times",
    "doubled": "2 times",
    "triple": "3 times",
    "quadruple": "4 times",
}
_ROOT = re.compile(r"(\d)?\s*(?:√|\bsqrt)\s*(?:(\([\d.+*/ ]+\))|([\d.]+))")
_DECIMAL_COMMA = re.compile(r"^([+-]?\$?)(?:(\d{1,3}(?:\.\d{3})+),(\d+)|(0),(\d+)|(\d+),(\d{1,2}|\d{4,}))(?![\d.,])")
_RATIO = re.compile(r"^(\d+(?:\.\d+)?)\s*(?::|-?to-?|\s+to\s+)\s*(\d+(?:\.\d+)?)$")
_MARKED = re.compile(r"^(\*\*|`|__|\*|_)(.+)\1$")  # as a notebook sets it off
_TEX_SIGNS = {"times": "×", "cdot": "×", "approx": "~", "sim": "~", "mu": "µ", "upmu": "µ", "textmu": "µ", "quad": " "}
_TEX_SIGN = re.compile(rf"\\({'|'.join(_TEX_SIGNS)})(?![A-Za-z])")
_TEX_AROUND = re.compile(r"\\(?:text|textbf|mathrm|mathbf|operatorname|boxed|rm)\s?\{([^{}]*)\}")
_TEX_FRACTION = re.compile(
    r"(\d(?:\\,|[\s$])*)?\\[dt]?frac\s?\{([\d.,\s]+)\}\s?\{([\d.,\s]+)\}(?=(\$?(?:\d|\\[dt]?frac))?)"
)
_TEX_MICRO = re.compile(r"µ\s+(?=s(?:ec(?:ond)?s?)?\b)")
_TEX_NUMBER = re.compile(  # a number between a pair of dollars
    r"\$\$?(\s*[~+-]?\s*\0?\s*[\d.](?:[\d.,\s*×·^/+()eE-]*[\d)])?\s*(?:[kKMB]|thousand|million|billion)?\s*\0?)\$\$?(?![\d.])"
)
_MONEY_NAMED = re.compile(r"\0|dollars?|USD|cents?|\bcts?\b|¢|bucks?|grand", re.IGNORECASE)
_TEX_SPACE = re.compile(r"\\[,;:! ]|(?<=[$\d])~|\{([.,])\}")
_POINTS_GROUP = re.compile(r"^([+-]?\d{1,3}(?:\.\d{3}){2,})(?![\d.,])")
_OCTETS = re.compile(r"^([kKMGT]i?)o(?=$|/| per )")
_A_SECOND_RAISED = re.compile(r"(?:\s|·|\*)\s?s(?:\^\(?-1\)?|⁻¹)$")
_HANDS = re.compile(
    r"^(?:(\d{1,3}):)?(\d{1,3}):(\d{2}(?:\.\d+)?)\s*(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)?$"
)


def longhand(written: str, *, like: str) -> str:
    """The same answer in words that the units know; unchanged where nothing is short."""
    text = in_figures(bare(written, like=like), like=like)
    text = _A_SECOND.sub(" per ", _OPERATIONS.sub("FLOP", text))
    text = _POWER.sub(lambda found: f"^{found[1].translate(_RAISED)}", text).replace("−", "-")
    text = _SCIENTIFIC.sub(r"\1e\2", text)
    text = _GROUPED.sub(lambda found: re.sub(r"[^\d+-]", "", found[1]), text)
    if like == "s":
        text = _added(text)
    if like == "dollar" or "$" in text:
        text = _CENTS.sub(r"\1 cents", _dollars(text))
    if like == "":
        text = _share_or_factor(text)
    number = re.match(r"^[+-]?[\d.,]+(?:e[+-]?\d{1,3})?(?=\D|$)", text, re.IGNORECASE)
    if not number or number.end() == len(text):
        return text
    unit = text[number.end() :].strip()
    spelled = _unit(unit, like)
    return text if spelled == unit else f"{number[0]} {spelled}"


def bare(written: str, *, like: str = "") -> str:
    """Without what is said before a number (about, at least, ~), left behind it (or so, an exclamation mark) and put
    around it (brackets, a notebook's asterisks).

    >>> bare("I'd say at least 72 or so!"), bare("9*8 = 72"), bare("(24.5 GB)"), bare("**24.5 GB**")
    ('72', '72', '24.5 GB', '24.5 GB')
    """
    text, before = (
        _ISH.sub("", _BEHIND.sub("", _MARKED.sub(r"\2", without_tex(written.strip(), money=like == "dollar")))),
        "",
    )
    while text != before:
        before, text = text, _WORKED_OUT.sub("", _BEFORE.sub("", text))
    return _ENCLOSED.sub(r"\1", text)


def without_tex(text: str, *, money: bool) -> str:
    """What TeX sets, in the signs that it stands for. A pair of dollars is TeX's, and of money alone a dollar, too,
    where it encloses one number.

    >>> [
    ...     without_tex(one, money=False)
    ...     for one in ("$20.88$ GB", r"\\(2.1 \\times 10^{10}\\)\\,\\mathrm{B}", r"$\\approx 46\\%$")
    ... ]
    ['20.88 GB', '2.1 × 10^10  B', '~ 46%']
    >>> [without_tex(one, money=True) for one in ("$20.88$", r"\\$20.88", "$20.88$ dollars", "$~43", "$24 ($3 * 8)")]
    ['$20.88', '$20.88', '20.88 dollars', '$43', '$24 ($3 * 8)']
    """
    if not re.search(r"[\\$]|\{[.,]\}", text):
        return text
    text, before = text.replace("\\$", "\0").replace("\\%", "%"), ""
    while text != before:
        before, text = text, _TEX_AROUND.sub(r" \1", text)
    text = _TEX_FRACTION.sub(_fraction, re.sub(r"\^\{([^{}]*)\}", r"^\1", text))
    text = _TEX_SIGN.sub(lambda found: _TEX_SIGNS[found[1]], _TEX_SPACE.sub(lambda found: found[1] or " ", text))
    text = _TEX_MICRO.sub("µ", re.sub(r"\\[()]", "", text))
    if money:
        sign = "" if _MONEY_NAMED.search(text) else "$"
        text = _TEX_NUMBER.sub(lambda found: sign + found[1].strip(), text)
    elif text.count("$") % 2 == 0:
        text = text.replace("$", "")
    return re.sub(r"^\$\s+(?=\d)", "$", text.replace("\0", "$")).strip()


def _fraction(found: re.Match[str]) -> str:
    """A fraction of TeX's; beside another number it stands apart: one and a half is not 11 halves."""
    before, upper, lower, behind = found.groups()
    return f"{before + ' ' if before else ''}{upper}/{lower}{' ' if behind else ''}"


def _added(text: str) -> str:
    """Two minutes and three seconds, in seconds; unchanged where there is one unit."""
    parts = _PART.findall(text)
    if len(parts) < 2 or _PART.sub("", text).strip():
        return text
    scales = [_CLOCK["ms" if name == "ms" else name[0]] for _, name in parts]
    if any(later >= earlier for earlier, later in itertools.pairwise(scales)):
        return text
    return f"{math.fsum(float(number) * scale for (number, _), scale in zip(parts, scales, strict=True))!r} s"


def _dollars(text: str) -> str:
    text = re.sub(r"^(\$\s?[\d.,]+)\s*USD$", r"\1", text)
    text = _BUCKS.sub(lambda found: "k $ " if found[1] else " $ ", text).strip()
    found = _MONEY.match(text) or _AMOUNT.match(text)
    if not found:
        return text
    found_scale = _MILLION.sub("M", found[2])
    if scale := re.match(r"^(k|K|M|B|thousand|million|billion)?\b\s*(.*)$", found_scale):
        return f"{found[1]}{scale[1] or ''} dollar {scale[2]}".strip()
    if sum_ := _MONEY_SUM.match(found[2]):  # $3 * 8, $3 + $4
        return f"{found[1]} {sum_[1].replace('$', '')} dollar {sum_[2]}".strip()
    return f"{found[1]} dollar" if _MONEY_AGAIN.match(found[2]) else text


def _share_or_factor(text: str) -> str:
    text = _ONE_IN.sub(r"\1/\2", _PERCENT.sub(" %", text))
    text = re.sub(r"%\s+of\s+[A-Za-z' -]+$", "%", text)
    text = re.sub(r"%\s+(?:faster|more|higher|larger|bigger|longer)$", "%", text)
    text = _FACTOR.sub("", text) + (" times" if _FACTOR.match(text) else "")
    found = _TIMES.match(text)
    return f"{found[1]} times" if found else text


def _unit(unit: str, like: str) -> str:
    """A unit as the units know it.

    >>> _unit("GB·s⁻¹", "B/s"), _unit("Mo", "B")
    ('GB/s', 'MB')
    """
    unit = _SPLIT_PREFIX.sub(lambda found: found[1].lower(), _A_SECOND_RAISED.sub("/s", unit))
    if "B" in like:
        unit = _OCTETS.sub(r"\1B", unit)
    if like == "FLOP/B" and (found := _INTENSITY.match(unit)):
        return f"{found[1]}FLOP/B"
    if like in ("FLOP", "FLOP/s"):
        return _flops(unit, like)
    if like == "B/s" and (found := _LINE_RATE.match(unit)):
        return f"{found[1].upper().replace('K', 'k')}bit/s"
    if like == "token/s" and (found := _TOKEN_RATE.match(unit)):
        return f"{found[1]} tokens/s".strip()
    return _bytes(unit) if like in ("B", "B/token") else unit


def _flops(unit: str, like: str) -> str:
    """Arithmetic or a rate of it, as the question asks, where the letters leave that open ("TFLOPS", "TF")."""
    unit = _PRECISION.sub("", unit)
    unit = _SCALED_FLOPS.sub(lambda found: _COUNTED[found[1].lower()], unit)
    found = _FLOPS.match(unit)
    rate = "/" in unit or " per " in unit
    amount = unit.upper().endswith("OP")  # "TFLOP" is an amount
    if not found or (rate and like == "FLOP") or (amount and like == "FLOP/s"):
        return unit
    letter = _PREFIX.get((found[1] or "").lower(), (found[1] or "").upper().replace("K", "k"))
    return f"{letter}{like}"


def _bytes(unit: str) -> str:
    """Bytes in letters of one case (gb, GIB). A single small b under a large prefix (Gb) is a bit as often, and is
    asked about.
    """
    unit = re.sub(
        r"^gigs?\b", "GB", re.sub(r"^([kKMGTP]i?B)s\b", r"\1", re.sub(r"^([kMGTP])\s+(?=bytes?\b)", r"\1", unit))
    )
    found = _BYTES.match(unit)
    if not found or found[0] == "KB" or not (found[0].islower() or found[0].isupper()):
        return unit
    letter = "k" if found[1].lower() == "k" and not found[2] else found[1].upper()
    return f"{letter}{'i' if found[2] else ''}B{unit[found.end() :]}"


def in_figures(text: str, *, like: str) -> str:
    """The same answer in figures; unchanged where it has none of these forms."""
    text = _POINTS_GROUP.sub(lambda found: found[1].replace(".", ""), _DECIMAL_COMMA.sub(_with_a_point, text))
    text = _ROOT.sub(lambda one: f"{one[1] + '*' if one[1] else ''}{one[2] or one[3]}^0.5", text)
    text = "".join(f" {unicodedata.numeric(sign):.15g}" if _is_fraction(sign) else sign for sign in text)
    text = re.sub(r"^\s*(\d+) +(0\.\d+)(?=\s|$)", lambda one: f"{int(one[1]) + float(one[2]):.15g}", text).strip()
    if found := _FOLD.match(text):
        return f"{_SMALL[found[1].lower()]} times"
    if (word := text.lower()) in _MULTIPLES:
        return _MULTIPLES[word]
    if found := _UNIT_AND_A_HALF.match(text):
        return f"1.5 {found[1]}"
    if re.search(r"[A-Za-z]{3}", text):
        text = re.sub(r"^hundred\b", "one hundred", text, flags=re.IGNORECASE)
        text = _NUMBER_WORDS.sub(lambda one: _said(one[0]), text)
    if found := _AND_A_HALF.match(text):
        whole, part = (int(found[1]), 0.5) if found[1] else (int(found[2]), int(found[3]) / int(found[4]))
        return f"{whole + part:.15g}{text[found.end() :]}"
    if found := _SHARE.match(text):
        share = int(found[1] or 1) / _SHARES[found[2].lower()]
        return f"{share!r}{text[found.end() :]}"
    if like == "s" and (found := re.match(r"^(\d+)\s?h\s?(\d{1,2})$", text)):
        return f"{found[1]} h {found[2]} min"
    return text


def _with_a_point(found: re.Match[str]) -> str:
    whole = (found[2] or found[4] or found[6]).replace(".", "")
    return f"{found[1]}{whole}.{found[3] or found[5] or found[7]}"


def _is_fraction(sign: str) -> bool:
    return unicodedata.category(sign) == "No" and "FRACTION" in unicodedata.name(sign, "")


def _said(words: str) -> str:
    """A number in words, in figures; a scale behind it stays for whoever reads scales.

    >>> _said("one hundred and twenty"), _said("twenty-four point five"), _said("two million")
    ('120', '24.5', '2 million')
    """
    whole, _, decimals = words.lower().partition(" point ")
    said = re.split(r"[ -]+(?:and )?", whole)
    counted = list(itertools.takewhile(lambda word: word not in _LARGE, said))
    total, scales = _counted(counted), said[len(counted) :]
    if total is None or not set(scales) <= set(_LARGE):
        return words  # two thousand and five, one twenty: figures are clearer, and asked for
    digits = "".join(str(_SMALL[word]) for word in decimals.split())
    figures = f"{total}.{digits}" if digits else str(total)
    return " ".join([*([figures] if counted else []), *scales])


def _counted(words: list[str]) -> int | None:
    """A number up to 9,999 that has hundreds at most; None for figures that are said one after the other.

    >>> _counted(["twelve", "hundred", "twenty", "five"]), _counted(["one", "twenty"]), _counted(["two", "five"])
    (1225, None, None)
    """
    if "hundred" in words:
        at = words.index("hundred")
        hundreds, rest = _counted(words[:at] or ["one"]), _counted(words[at + 1 :])
        return None if hundreds is None or rest is None or rest > 99 else 100 * hundreds + rest
    match words:
        case []:
            return 0
        case [word]:
            return (_SMALL | _TENS)[word]
        case [tens, ones] if tens in _TENS and 1 <= _SMALL.get(ones, 0) <= 9:
            return _TENS[tens] + _SMALL[ones]
    return None


def two_readings(text: str, *, like: str) -> tuple[float, float | None, str] | None:
    """A ratio or a clock's time: its value, what else it can mean, and the sentence that asks which; None for neither.

    >>> two_readings("3:1", like=""), two_readings("2:03", like="s")[:2], two_readings("1:30 h", like="s")[:2]
    ((3.0, 0.75, "'3:1' can be 3 times as much or a share of 0.75; write which"), (123.0, 7380.0), (5400.0, None))
    """
    if like == "" and (found := _RATIO.match(text)) and float(found[1]) and float(found[2]):
        first, second = float(found[1]), float(found[2])
        times, share = first / second, first / (first + second)
        return times, share, f"{text!r} can be {times:.3g} times as much or a share of {share:.3g}; write which"
    found = _HANDS.match(text) if like == "s" else None
    if not found or float(found[3]) >= units.minute:
        return None
    first, second, unit = int(found[2]), float(found[3]), (found[4] or "")[:1]
    if found[1]:
        return (int(found[1]) * units.hour + first * units.minute + second, None, "") if first < units.minute else None
    short, long = float(first * units.minute + second), float(first * units.hour + second * units.minute)
    if unit or "." in found[3]:
        return long if unit == "h" else short, None, ""
    return short, long, f"{text!r} can be minutes and seconds or hours and minutes; write the units"

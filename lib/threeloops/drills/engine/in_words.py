"""Numbers as they are said: "half a second", "one in twenty", "an hour and a half", "twenty-four point five", "24 1/2",
"√2", "3:1", "2:03", and figures with a decimal comma where it can be nothing else.

>>> in_figures("half a second", like="s"), in_figures("twenty-four point five GB", like="B")
('0.5 second', '24.5 GB')
>>> in_figures("24,5 GB", like="B"), in_figures("24,500 GB", like="B"), in_figures("1.234,5 GB", like="B")
('24.5 GB', '24,500 GB', '1234.5 GB')
"""

import re
import unicodedata

from threeloops import units

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen"
)
_SMALL = {word: number for number, word in enumerate(_ONES.split())}
_TENS_SAID = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * number for number, word in enumerate(_TENS_SAID.split(), 2)}
_PARTS_SAID = "half third quarter fifth sixth seventh eighth ninth tenth eleventh twelfth"
_PARTS = {word: number for number, word in enumerate(_PARTS_SAID.split(), 2)} | {
    "fourth": 4,
    "sixteenth": 16,
    "twentieth": 20,
    "hundredth": 100,
    "thousandth": 1000,
}
_SAID = "|".join(sorted({*_SMALL, *_TENS, "hundred", "thousand", "million", "billion"}, key=len, reverse=True))
_WORDS = re.compile(
    rf"\b(?:{_SAID})\b(?:(?:[ -]+(?:and )?)(?:{_SAID})\b)*(?: point(?: (?:{_ONES.replace(' ', '|')})\b)+)?",
    re.IGNORECASE,
)
_LARGE = ("thousand", "million", "billion")
_PART = re.compile(
    rf"^(\d+ )?(?:an? )?({'|'.join(_PARTS)})s?(?:(?:\s+of)?\s+an?(?=\s)|\s+of(?=\s)|(?=[\s%]|$))", re.IGNORECASE
)
_AND_A_HALF = re.compile(r"^(?:(\d+) and (?:a |one )?half|(\d+) (\d)/(\d)(?=\s|$))\b", re.IGNORECASE)
_UNIT_AND_A_HALF = re.compile(r"^(second|minute|hour|day|week|year) and a half$", re.IGNORECASE)
_FOLD = re.compile(r"^(two|three|four|five|six|seven|eight|nine|ten)-?fold\b", re.IGNORECASE)
_TIMES = {"twice": "2 times", "double": "2 times", "doubled": "2 times", "triple": "3 times", "quadruple": "4 times"}
_ROOT = re.compile(r"(\d)?\s*(?:√|\bsqrt)\s*(?:(\([\d.+*/ ]+\))|([\d.]+))")
_DECIMAL_COMMA = re.compile(r"^([+-]?\$?)(?:(\d{1,3}(?:\.\d{3})+),(\d+)|(0),(\d+)|(\d+),(\d{1,2}|\d{4,}))(?![\d.,])")
_RATIO = re.compile(r"^(\d+(?:\.\d+)?)\s*(?::|-?to-?|\s+to\s+)\s*(\d+(?:\.\d+)?)$")
_CLOCK = re.compile(r"^(?:(\d{1,3}):)?(\d{1,3}):(\d{2})\s*(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)?$")


def in_figures(text: str, *, like: str) -> str:
    """The same answer in figures; unchanged where it has none of these forms."""
    text = _DECIMAL_COMMA.sub(_with_a_point, text)
    text = _ROOT.sub(lambda one: f"{one[1] + '*' if one[1] else ''}{one[2] or one[3]}^0.5", text)
    text = "".join(f" {unicodedata.numeric(sign):.15g}" if _is_fraction(sign) else sign for sign in text)
    text = re.sub(r"^\s*(\d+) +(0\.\d+)(?=\s|$)", lambda one: f"{int(one[1]) + float(one[2]):.15g}", text).strip()
    if found := _FOLD.match(text):
        return f"{_SMALL[found[1].lower()]} times"
    if (word := text.lower()) in _TIMES:
        return _TIMES[word]
    if found := _UNIT_AND_A_HALF.match(text):
        return f"1.5 {found[1]}"
    if re.search(r"[A-Za-z]{3}", text):
        text = re.sub(r"^hundred\b", "one hundred", text, flags=re.IGNORECASE)
        text = _WORDS.sub(lambda one: _said(one[0]), text)
    if found := _AND_A_HALF.match(text):
        whole, part = (int(found[1]), 0.5) if found[1] else (int(found[2]), int(found[3]) / max(int(found[4]), 1))
        return f"{whole + part:.15g}{text[found.end() :]}"
    if found := _PART.match(text):
        share = int(found[1] or 1) / _PARTS[found[2].lower()]
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
    total, scales = 0, []
    for word in re.split(r"[ -]+(?:and )?", whole):
        if word in _LARGE:
            scales.append(word)
        elif scales:
            return words  # two thousand and five: figures are clearer, and asked for
        elif word == "hundred":
            total = max(total, 1) * 100
        else:
            total += _SMALL.get(word, 0) + _TENS.get(word, 0)
    digits = "".join(str(_SMALL[word]) for word in decimals.split())
    figures = f"{total}.{digits}" if digits else str(total)
    return " ".join([*([figures] if whole.split()[0] not in _LARGE else []), *scales])


def two_readings(text: str, *, like: str) -> tuple[float, float | None, str] | None:
    """A ratio or a clock's time: its value, what else it can mean, and the sentence that asks which; None for neither.

    >>> two_readings("3:1", like=""), two_readings("2:03", like="s")[:2], two_readings("1:30 h", like="s")[:2]
    ((3.0, 0.75, "'3:1' can be 3 times as much or a share of 0.75; write which"), (123.0, 7380.0), (5400.0, None))
    """
    if like == "" and (found := _RATIO.match(text)) and float(found[1]) and float(found[2]):
        first, second = float(found[1]), float(found[2])
        times, share = first / second, first / (first + second)
        return times, share, f"{text!r} can be {times:.3g} times as much or a share of {share:.3g}; write which"
    found = _CLOCK.match(text) if like == "s" else None
    if not found or int(found[3]) >= units.minute:
        return None
    first, second, unit = int(found[2]), int(found[3]), (found[4] or "")[:1]
    if found[1]:
        return (int(found[1]) * units.hour + first * units.minute + second, None, "") if first < units.minute else None
    short, long = float(first * units.minute + second), float(first * units.hour + second * units.minute)
    if unit:
        return long if unit == "h" else short, None, ""
    return short, long, f"{text!r} can be minutes and seconds or hours and minutes; write the units"

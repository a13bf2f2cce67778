"""What people write for a number and its unit, brought to the one form that `answers` reads.

A right answer may not fail by its spelling: "~24.5 GB", "2*36*4", "10.8k", "30.3 billion tokens", "72 GPUs", "stage 3"
and "128 KiB/token" are answers as much as "24.5 GB" is. Nouns are taken only from the question's own words, so that a
unit which does not fit is still refused.

>>> plain("~2*36*4 GPUs", like="", nouns=nouns("How many GPUs hold it?"))
'288.0 '
>>> plain("30.3 billion tokens", like="token")
'30300000000.0 tokens'
"""

import ast
import functools
import math
import operator
import re
from collections.abc import Callable

from threeloops import units
from threeloops.drills.engine.shorthand import longhand

_FIGURES = re.compile(r"^[\d.,\s+\-*/^×·()]*(?:[eE][+-]?\d[\d.,\s+\-*/^×·()]*)*")
_NUMBER = re.compile(r"^\s*([+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:[eE][+-]?\d{1,3})?)\s*(.*?)\s*$", re.DOTALL)
_SCALES = {
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "bn": 1e9,
    "trillion": 1e12,
    "mio": 1e6,
    "mln": 1e6,
    "mrd": 1e9,
}
_UNITS = re.compile(r"[kKMGTP]i?B|[mµun]s|[kMGTP]?FLOPS?|[kmMG]W|[kMG]?Hz|[GM]bit")
_SHORT = {  # how else a noun of a question is written
    "fps": "per second",
    "qps": "per second",
    "rps": "per second",
    "QPS": "per second",
    "RPS": "per second",
    "Hz": "per second",
    "km/h": "km",
    "kmh": "km",
    "kph": "km",
    "dB": "decibels",
    "px": "pixels",
    "t": "tonnes",
    "USD": "dollars",
    "-fold": "times",
}
_SUFFIXES = {"Ki": units.KiB, "Mi": units.MiB, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_ALIKE = (  # nouns that people take for each other, and may
    {"gpu", "card", "device", "accelerator"},
    {"request", "req", "conversation", "sequence"},
    {"replica", "server", "instance"},
    {"worker", "process", "processe"},
    {"node", "machine", "host"},
    {"token", "tok"},
)
_SUFFIXED = ("", "token", "token/s", "dollar")  # elsewhere a prefix belongs to a unit
_SHARERS = frozenset({"gpu", "user", "direction"})  # whose a rate is, as people say it of any rate
_RATE = re.compile(r"/|\bper\b|ps$|FLOPS$", re.IGNORECASE)  # what a rate has before a second “per”
_CARD = re.compile(r"(?:(?:[AHBLV]|GH|GB|MI)\d{2,3}X?|TPU|[A-Z]{1,4}200)s?")  # what a GPU is called by
_OPERATORS: dict[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


@functools.lru_cache(maxsize=64)  # every answer to a question is read with them
def nouns(question: str) -> frozenset[str]:
    """The words of a question that may stand behind a number, in the singular; its units are none: in milliseconds no
    steps are counted.

    >>> sorted(nouns("How many SMs, in 3 ms?"))
    ['how', 'in', 'many', 'sm']
    """
    words = re.findall(r"[A-Za-zµ]{2,}", question)
    found = {_singular(word) for word in words if not _UNITS.fullmatch(word)}
    return frozenset(found.union(*(alike for alike in _ALIKE if alike & found)))


def plain(written: str, *, like: str, nouns: frozenset[str] = frozenset()) -> str:
    """The answer as a number and a unit; unchanged where nothing is to be done."""
    text = longhand(written, like=like)
    named = re.match(r"^\s*([A-Za-z]{2,})\s+(?=[\d.])", text)
    if named and _singular(named[1]) in nouns:  # stage 3
        text = text[named.end() :]
    text = _reckoned(text)
    match = _NUMBER.match(text)
    if not match or not match[1].strip("+-"):
        return text
    number, unit = match[1], _without_nouns(match[2], like, nouns)
    scale, unit = _scaled(unit, like)
    unit = _without_nouns(unit, like, nouns)
    if scale != 1:
        number = repr(float(number.replace(",", "")) * scale)
    return f"{number} {unit}" if scale != 1 or unit != match[2] else text


def _singular(noun: str) -> str:
    return noun.lower().removesuffix("s")


def _reckoned(text: str) -> str:
    """A product or a power in front of the unit, worked out: "2^13" is 8192."""
    spelled = re.sub(r"(?<=\d)\s*x\s*(?=\d)", "*", text)
    figures = _FIGURES.match(spelled)
    sum_ = figures[0].rstrip("*/^×·+- ") if figures else ""
    signs = re.findall(r"[\d)]\s*([*/^×·+-]+)\s*(?=[(\d.-])", re.sub(r"[eE][+-]?\d+", "", sum_))
    if not signs or set(signs) == {"-"}:  # "24-25 GB" is a range, and no answer
        return text
    python = re.sub(r"(?<=\d),(?=\d{3})", "", sum_).replace("^", "**").replace("×", "*").replace("·", "*")
    try:
        value = _value(ast.parse(python.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError):
        return text
    return f"{value!r} {spelled[len(sum_) :].strip()}" if math.isfinite(value) else text


def _value(node: ast.AST) -> float:
    """The value of a sum of plain numbers, in floats alone: no power can grow beyond what a float keeps."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        value = _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
        if isinstance(value, float):  # a root of a negative number is none
            return value
    raise ValueError("only + - * / and powers of numbers are reckoned")


def _scaled(unit: str, like: str) -> tuple[float, str]:
    """The scale that a word or a suffix in front of the unit gives, and the unit without it."""
    words = re.match(r"^([A-Za-z]+)\b\s*(.*)$", unit)
    if words and words[1].lower() in _SCALES:
        return _SCALES[words[1].lower()], words[2]
    if words and like in _SUFFIXED and words[1] in _SUFFIXES:
        return _SUFFIXES[words[1]], words[2]
    return 1.0, unit


def _without_nouns(unit: str, like: str, nouns: frozenset[str]) -> str:
    """The unit without what is counted: "GPUs" where a plain number was asked, "/layer" where bytes were."""
    if like == "":
        unit = re.sub(r"/s(?:ec)?$", " per second", _SHORT.get(unit, unit))
        unit = re.sub(r"^req\b", "requests", unit)
        if "gpu" in nouns and _CARD.fullmatch(unit):
            return ""
    per = re.match(r"^(.*)(?:\s*/\s*|\s+per\s+|^per\s+)([A-Za-z]{2,}(?: [A-Za-z]{2,})*)$", unit)
    shared = nouns | _SHARERS if "/" in like else nouns
    if per and ("/" not in like or _RATE.search(per[1])) and all(_singular(one) in shared for one in per[2].split()):
        return _without_nouns(per[1].strip(), like, nouns)
    words = re.findall(r"[A-Za-z]+", unit)
    # a question that speaks of 62 million scenes takes no "million" away from an answer
    counted = like == "" and words and words[0].lower() not in _SCALES and re.fullmatch(r"[A-Za-z\s-]+", unit)
    return "" if counted and all(_singular(word) in nouns for word in words) else unit

"""What stands behind a prediction: everything from the first cell below its card that gives the answer away to the
last, as far as the next question or heading. The pages fold it, the desk leaves it out, until the card is answered.

A number gives an answer away that is within 2 % of it, in any scale of its unit and whatever it counts: one too many
behind a card costs a reader nothing, and one too few costs the question.

>>> cells = [{"cell_type": "markdown", "source": words} for words in ("54 of 64", "In 0.0544 s.", "# 54.4 ms")]
>>> [gives_away(cell, answer(outcome="54.4 ms", unit="s")) for cell in cells]
[True, True, True]
>>> gives_away(cells[0], answer(outcome="60 ms", unit="s"))
False
"""

import re
from collections.abc import Iterator, Sequence

from threeloops import units
from threeloops.site.parts import Cell, headings, text
from threeloops.site.predictions import Question, questions

NEAR = 0.02  # relative; what a drill takes for right
NUMBER = re.compile(r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?!\d)")
SPELT = {
    **dict.fromkeys(("none", "zero"), 0),
    **{"half": 1 / 2, "a third": 1 / 3, "two thirds": 2 / 3, "a quarter": 1 / 4, "three quarters": 3 / 4},
    **dict.fromkeys(("twice", "double"), 2),
    **{
        word: number
        for number, word in enumerate(
            ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 2
        )
    },
}
SPELLING = re.compile(rf"\b(?:{'|'.join(sorted(SPELT, key=len, reverse=True))})\b", re.IGNORECASE)
# A link's address, a comma in a formula, a tag: what is not read.
UNREAD = (
    (re.compile(r"\]\([^)\s]*\)"), "]"),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"<[^>]*>"), " "),
)
# A quick check asks for something else, and may be answered before.
OF_ITS_OWN = re.compile(r"^sheet\.", re.MULTILINE)
_PREFIXES = (1, units.thousand, units.million, units.billion, units.trillion, units.PFLOP)
_SECONDS = {
    "ns": units.ns,
    "µs": units.us,
    "ms": units.ms,
    "s": 1,
    "min": units.minute,
    "h": units.hour,
    "days": units.day,
}
_PREFIXED = dict(zip(("", "k", "M", "G", "T", "P"), _PREFIXES, strict=True))
_PERCENT = 1 / 100
_SCALES = {
    "s": tuple(_SECONDS.values()),
    "B": (*_PREFIXES, units.KiB, units.MiB, units.GiB, units.TiB),
    "": (_PERCENT, *_PREFIXES),
}


def answer(*, outcome: str, unit: str) -> tuple[float, tuple[float, ...]]:
    """An outcome as it is printed, in its unit; and the scales in which a text may have it.

    >>> answer(outcome="39.3 MB (37.5 MiB)", unit="B")[0], answer(outcome="2,334 tokens/s", unit="token/s")[0]
    (39300000.0, 2334.0)
    """
    figure, _, rest = outcome.partition(" ")
    named = rest.partition(" (")[0]
    scale = _SECONDS[named] if unit == "s" else _PREFIXED.get(named.removesuffix(unit), 1)
    return float(figure.replace(",", "")) * scale, _SCALES.get(unit, _PREFIXES)


def gives_away(cell: Cell, known: tuple[float, tuple[float, ...]]) -> bool:
    """Whether an answer is told by what a cell says or shows: its text, its results, the words for its pictures."""
    value, scales = known
    return any(
        abs(number * scale - value) <= NEAR * abs(value)
        for words in _words(cell)
        for number in _numbers(words)
        for scale in scales
    )


def _words(cell: Cell) -> Iterator[str]:
    yield text(cell)
    for output in cell.get("outputs", ()):
        yield "".join(output.get("text", ""))
        for kind, data in output.get("data", {}).items():
            if kind.startswith("text/"):
                yield "".join(data)
        for about in output.get("metadata", {}).values():
            yield about.get("alt", "") if isinstance(about, dict) else ""


def _numbers(words: str) -> Iterator[float]:
    """Every number in a text, also one that is spelt.

    >>> list(_numbers(r"[Part 9](#9-B) says $1{,}365$: twice as much, in 5e3 of fp16"))
    [9.0, 1365.0, 2, 5000.0]
    """
    for pattern, read_as in UNREAD:
        words = pattern.sub(read_as, words)
    for match in re.finditer(f"{NUMBER.pattern}|{SPELLING.pattern}", words, re.IGNORECASE):
        yield SPELT[match[0].lower()] if match[0].lower() in SPELT else float(match[0].replace(",", ""))


def spans(cells: Sequence[Cell]) -> list[tuple[Question, list[int]]]:
    """Every question of a part, with the cells that stand behind its card."""
    asked = questions(cells)
    asking = {question.asked for question in asked}
    ends = {place for place, cell in enumerate(cells) if place in asking or _has_heading(cell)}
    found = []
    for question in asked:
        known = answer(outcome=question.outcome, unit=question.unit)
        end = min((place for place in ends if place > question.answered), default=len(cells))
        telling = [
            place
            for place in range(question.asked + 1, end)
            if place not in ends and not _stands_alone(cells[place]) and gives_away(cells[place], known)
        ]
        run = range(telling[0], telling[-1] + 1)
        found.append((question, [place for place in run if place not in ends and not _stands_alone(cells[place])]))
    return found


def _stands_alone(cell: Cell) -> bool:
    return cell["cell_type"] == "code" and bool(OF_ITS_OWN.search(text(cell)))


def _has_heading(cell: Cell) -> bool:
    return cell["cell_type"] == "markdown" and any(headings(text(cell)))


def waiting(cells: Sequence[Cell]) -> dict[int, tuple[str, ...]]:
    """For every cell that stands behind a card, or behind several: the names of their results."""
    found: dict[int, tuple[str, ...]] = {}
    for question, places in spans(cells):
        for place in places:
            found[place] = (*found.get(place, ()), question.result)
    return found

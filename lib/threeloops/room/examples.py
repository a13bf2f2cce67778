"""How an answer is written, by unit: figures that are nobody's answer. A drill's own example may be the very number
that everybody ought to know.
"""

from threeloops.drills.engine import answers
from threeloops.drills.engine.answers import Answer, UnreadableError, parse
from threeloops.drills.engine.spelling import nouns

EXAMPLES = {
    "B": "3 MB or 2.9 MiB",
    "B/token": "3 kB/token",
    "B/s": "7 GB/s",
    "s": "6 s or 6000 ms",
    "FLOP": "7 TFLOP",
    "FLOP/s": "7 TFLOP/s",
    "FLOP/B": "7 FLOP/B",
    "token": "70 tokens",
    "m": "7 m",
    "dollar": "70 dollars",
    "token/s": "70 tokens/s",
    "W": "7 W",
    "": "7.7",
}
NARROWER = {"count": "7", "share": "0.03 or 3 %", "days": "7 days", "hours": "7 h", "minutes": "7 min"}


def example(unit: str, question: str, *, whole: bool = False) -> str:
    """How an answer to this question looks."""
    return NARROWER.get(answers.narrower(unit, question, whole=whole)) or EXAMPLES[unit]


def every(unit: str) -> tuple[str, ...]:
    """All that may stand as an example where this unit is asked."""
    kinds = (*answers.ASKED.get(unit, ()), *(() if unit else ("count",)))
    written = (EXAMPLES[unit], *(NARROWER[kind] for kind in kinds))
    return tuple(dict.fromkeys(one for some in written for one in some.split(" or ")))


def wanted(unit: str, question: str, *, whole: bool = False) -> str:
    """The sentence that asks for it."""
    kind = "a unit" if unit else "a whole number" if whole else "a plain number"
    return f"Answer with {kind}, like {example(unit, question, whole=whole)}"


def read(written: object, unit: str, *, question: str = "", whole: bool = False) -> Answer | str:
    """What was answered, or a sentence that asks again and tells no answer; words of the question may stand behind the
    number.

    >>> read("7", "B/s")
    '7 of what? Add the unit, like 7 GB/s.'
    """
    try:
        return parse(written, like=unit, nouns=nouns(question), example=example(unit, question, whole=whole))
    except UnreadableError as error:
        return f"{error}."

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
    "": "7.7 or 770 %",
}


def wanted(unit: str) -> str:
    """The sentence that asks for it."""
    return f"Answer with {'a unit' if unit else 'a plain number'}, like {EXAMPLES[unit]}"


def read(written: object, unit: str, *, question: str = "") -> Answer | str:
    """What was answered, or a sentence that asks again and tells no answer; words of the question may stand behind the
    number.

    >>> read("7", "B/s")
    '7 of what? Add the unit, like 7 GB/s.'
    """
    try:
        return parse(written, like=unit, nouns=nouns(question))
    except UnreadableError as error:
        # the reason is the parser's; its example may be the very number that is asked
        return f"{error}".replace(f"like {answers.EXAMPLES.get(unit, unit)}", f"like {EXAMPLES[unit]}") + "."

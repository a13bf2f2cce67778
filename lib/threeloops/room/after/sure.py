"""How sure an answer is: a number from 0 to 100 behind it, or on a line of its own.

>>> stated("27.6 kB @80")
('27.6 kB', 80.0)
>>> stated("27.6 kB")
('27.6 kB', None)
"""

import re

BEHIND = re.compile(r"\s*@\s*(-?\d+(?:[.,]\d+)?)\s*(%|percent|per cent|pct)?\s*$", re.IGNORECASE)
ALONE = re.compile(r"@?\s*(-?\d+(?:[.,]\d+)?)\s*(%|percent|per cent|pct)?\s*$", re.IGNORECASE)
ASKED = "How sure are you that this is right, from 0 to 100? (Enter alone: not said)"
SURE = 80.0  # percent from which a wrong answer was a confident one


def stated(written: str) -> tuple[str, float | None]:
    """An answer without the confidence behind it, and the confidence in percent; None where none is stated.

    Raises: ValueError for a confidence that is no percentage
    """
    found = BEHIND.search(written)
    return (written[: found.start()], _percent(found[1], found[2])) if found and found.start() else (written, None)


def read(line: str) -> float | None:
    """A confidence on a line of its own, in percent; None for an empty line.

    >>> read("80"), read("0.8"), read("0.8 %"), read("")
    (80.0, 80.0, 0.8, None)

    Raises: ValueError for anything else
    """
    if not line.strip():
        return None
    found = ALONE.match(line.strip())
    if found is None:
        raise ValueError(f"{line.strip()!r} is no confidence; write a number from 0 to 100, like 80, or nothing")
    return _percent(found[1], found[2])


def _percent(figure: str, unit: str | None) -> float:
    """0.8 is how a probability is written; 0.8 % is none, and 1 alone may be either."""
    value = float(figure.replace(",", "."))
    if value == 1 and not unit:
        raise ValueError(f"a confidence of {figure} may be certain or one per cent; write 100, or 1 %")
    percent = 100 * value if 0 < value < 1 and not unit else value
    if not 0 <= percent <= 100:
        raise ValueError(f"a confidence of {figure} is not one; write a number from 0 to 100, like @80")
    return round(percent, 4)


def told(sure: float | None, *, right: bool) -> str:
    """What is said of a confidence beside the verdict: nothing, but to a wrong answer that was sure."""
    if sure is None or right or sure < SURE:
        return ""
    return f"You were {sure:g} % sure of it: a mistake that feels right comes back, so write down what was wrong."

"""A prediction made before the answer is shown: the book's smallest exercise, never graded.

>>> compare(..., 1.34e12, "FLOP/s")
No prediction yet: write yours down, then read the line below.
<BLANKLINE>
It comes out at 1.34 TFLOP/s.
>>> compare("300 GFLOP/s", 1.34e12, "FLOP/s")
You said 300 GFLOP/s; it comes out at 1.34 TFLOP/s, 4.5 times that.
>>> compare("skip", 1.34e12, "FLOP/s")
Skipped: it comes out at 1.34 TFLOP/s.
>>> compare("19.5 TFLOP/s", 1.34e12, "FLOP/s", {19.5e12: "you took the peak"})
You said 19.5 TFLOP/s; it comes out at 1.34 TFLOP/s, 0.069 times that. It looks as if you took the peak.
>>> compare("1.5 TFLOP/s", 1.34e12, "FLOP/s", {1.5e12: "you forgot the last wave"})
You said 1.5 TFLOP/s; it comes out at 1.34 TFLOP/s. Near, but it looks as if you forgot the last wave.
"""

from collections.abc import Mapping

from threeloops.drills.engine.answers import UnreadableError, parse
from threeloops.units import fmt

# A page that nobody runs carries the result too, so the reader is told where to stop and where it stands.
NOT_YET = "No prediction yet: write yours down, then read the line below.\n\n"
SKIP = "skip"  # what a card writes for whoever would rather not guess
WELL = "Well predicted."
LIKE = 0.05  # a number so near to a usual mistake's is taken for it


def compare(prediction: object, value: float, unit: str, usual: Mapping[float, str] | None = None) -> None:
    """Print the value beside what was predicted, and with which mistake that agrees; an unfilled or unreadable
    prediction is met kindly and stops nothing. A page that nobody runs says what the usual mistakes come to.

    Units:    usual: what a usual mistake comes out at -> what somebody who makes it did, "you took the peak"
    """
    print(verdict(prediction, value, unit, usual))


def verdict(prediction: object, value: float, unit: str, usual: Mapping[float, str] | None = None) -> str:
    """What `compare` prints.

    >>> verdict("1 TFLOP/s", 1.34e12, "FLOP/s")
    'You said 1 TFLOP/s; it comes out at 1.34 TFLOP/s, 1.3 times that.'
    >>> print(verdict(..., 1.34e12, "FLOP/s", {19.5e12: "you took the peak"}))
    No prediction yet: write yours down, then read the line below.
    <BLANKLINE>
    It comes out at 1.34 TFLOP/s.
    If you said 19.5 TFLOP/s, you took the peak.
    """
    usual = usual or {}
    outcome = f"it comes out at {fmt(value, unit)}"
    if prediction is ... or prediction is None:
        boxes = "".join(f"\nIf you said {fmt(wrong, unit)}, {mistake}." for wrong, mistake in usual.items())
        return f"{NOT_YET}I{outcome[1:]}.{boxes}"
    if isinstance(prediction, str) and prediction.strip().lower() == SKIP:
        return f"Skipped: {outcome}."
    try:
        answer = parse(prediction, like=unit)
        if answer.doubtful(value):
            raise UnreadableError(answer.doubt)
    except UnreadableError as refusal:
        return f"{str(refusal)[:1].upper()}{str(refusal)[1:]}. I{outcome[1:]}."
    said = answer.value
    mistake = _mistake(said, value, usual)
    looks = f" It looks as if {mistake}." if mistake else ""
    if said <= 0:
        return f"You said {prediction}; {outcome}.{looks}"
    if 0.8 <= value / said <= 1.25:
        return f"You said {prediction}; {outcome}. {f'Near, but it looks as if {mistake}.' if mistake else WELL}"
    return f"You said {prediction}; {outcome}, {value / said:.2g} times that.{looks}"


def _mistake(said: float, value: float, usual: Mapping[float, str]) -> str:
    """The usual mistake that a number agrees with better than with any other, and than with the value."""
    near = [
        wrong for wrong in usual if abs(said - wrong) <= LIKE * abs(wrong) and abs(said - wrong) < abs(said - value)
    ]
    return usual[min(near, key=lambda wrong: abs(said - wrong))] if near else ""

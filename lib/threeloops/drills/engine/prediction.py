"""A prediction made before the answer is shown: the book's smallest exercise, never graded.

>>> compare(..., 1.34e12, "FLOP/s")
No prediction yet: write one down before you read on. It comes out at 1.34 TFLOP/s.
>>> compare("300 GFLOP/s", 1.34e12, "FLOP/s")
You said 300 GFLOP/s; it comes out at 1.34 TFLOP/s, 4.5 times that.
>>> compare("skip", 1.34e12, "FLOP/s")
Skipped: it comes out at 1.34 TFLOP/s.
"""

from threeloops.drills.engine.answers import UnreadableError, parse
from threeloops.units import fmt

SKIP = "skip"  # what a card writes for whoever would rather not guess


def compare(prediction: object, value: float, unit: str) -> None:
    """Print the value beside what was predicted; an unfilled or unreadable prediction is met kindly and stops
    nothing.
    """
    outcome = f"it comes out at {fmt(value, unit)}"
    if prediction is ... or prediction is None:
        print(f"No prediction yet: write one down before you read on. I{outcome[1:]}.")
        return
    if isinstance(prediction, str) and prediction.strip().lower() == SKIP:
        print(f"Skipped: {outcome}.")
        return
    try:
        said = parse(prediction, like=unit).value
    except UnreadableError as refusal:
        print(f"{str(refusal)[:1].upper()}{str(refusal)[1:]}. I{outcome[1:]}.")
        return
    if said <= 0:
        print(f"You said {prediction}; {outcome}.")
    elif 0.8 <= value / said <= 1.25:
        print(f"You said {prediction}; {outcome}. Well predicted.")
    else:
        print(f"You said {prediction}; {outcome}, {value / said:.2g} times that.")

"""Measured times, printed in the one way that the book's tests know how to mask: everything after the word "measured"
may differ on your machine.
"""

from threeloops.measure.timing import Timing
from threeloops.units import fmt_percent, fmt_seconds


def show(what: str, timing: Timing) -> None:
    """One measured time, with how far half of its samples lie apart."""
    print(
        f"{what}: measured {fmt_seconds(timing.median_s)}, spread {fmt_percent(timing.spread)} of {timing.num_samples}"
        " samples"
    )


def table(text: str) -> None:
    """A tool's own table of measured values, line by line, without its rules.

    >>> table("Name   Calls\\n----  ------\\nmm         3")
    measured  Name   Calls
    measured  mm         3
    """
    for line in text.splitlines():
        if line.strip("- "):
            print(f"measured  {line.rstrip()}")


def compare(what: str, timing: Timing, predicted_s: float) -> None:
    """A measured time against a predicted one; the predicted one rests on measured roofs, so it is masked as well."""
    print(
        f"{what}: measured {fmt_seconds(timing.median_s)}, {timing.median_s / predicted_s:.1f} times the"
        f" {fmt_seconds(predicted_s)} predicted"
    )

"""Drawn speed-up explorer: draw what more processors do for a job of which a twentieth stays serial, then see it.

In a notebook:

    from threeloops.widgets.inner_loop import drawn_speedup
    drawn_speedup.explorer()
"""

import math

from threeloops.figures.curves import Axis
from threeloops.inner_loop.scaling import amdahl_limit, amdahl_speedup
from threeloops.widgets.drawn_curve import Question, State, drawing
from threeloops.widgets.explorer import Explorer

SHARE = 0.95  # of the time that can be divided
LIMIT = amdahl_limit(accelerated_share=SHARE)
AT = (2.0, 8.0, 32.0, 128.0, 512.0, 2048.0)


def speedup(processors: float) -> float:
    """How many times faster."""
    return amdahl_speedup(accelerated_share=SHARE, factor=processors)


QUESTION = Question(
    asked="Draw how many times faster the job becomes",
    about=f"{SHARE:.0%} of a job's time can be divided among more and more processors; the rest cannot.",
    answer=f"The speed-up bends early, and never reaches {LIMIT:.0f}",
    at=AT,
    x=Axis(title="processors", log=True, ticks=AT, format=",d", low=1.5, high=2700),
    y=Axis(title="times faster", log=True, ticks=(1, 10, 100, 1000), format=",d", low=1, high=4096),
    unit=lambda times: f"{times:,.3g}" if times < 100 else f"{times:,.0f}",
    truth=speedup,
    slips={
        f"You went straight to the limit: {LIMIT:.0f} is what endless processors would reach. {AT[2]:.0f} of them reach"
        f" {speedup(AT[2]):.1f}, because the divided part still takes time.": lambda n: min(n, LIMIT),
        "You let everything be divided. The serial twentieth stays as long as it was.": lambda n: n,
        "You let every doubling add as much as the last. The first ones nearly double the speed, the last add next to"
        " nothing.": lambda n: 1 + math.log2(n),
    },
)


def explorer() -> Explorer[State]:
    """The explorer, with nothing drawn; as the last line of a cell, it shows itself."""
    return drawing(QUESTION)

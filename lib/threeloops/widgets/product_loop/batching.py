"""Batching explorer: the same requests flow through the slots of two servers, one static and one continuous; let it
play, or step by hand.

In a notebook:

    from threeloops.widgets.product_loop import batching as batching_widget
    batching_widget.explorer()
"""

from threeloops.widgets.controls import Control, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.product_loop.batching_view import RATES, STEPS, State, view

START = State(rate=0.5, step=30)
TICK_MS = 700  # while it plays: a step; slow enough to be followed and to be drawn


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    return (
        slider("rate", "requests a step", {f"{rate:g}": rate for rate in RATES}),
        slider("step", "step", range(STEPS + 1), plays_ms=TICK_MS),
    )


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls)

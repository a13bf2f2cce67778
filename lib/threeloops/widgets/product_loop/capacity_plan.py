"""Capacity explorer: turn a load and a promise, and see which bound asks for the most GPUs.

In a notebook:

    from threeloops.widgets.product_loop import capacity_plan
    capacity_plan.explorer()
"""

from threeloops.widgets.controls import Control, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.product_loop.capacity_plan_view import ITLS, OUTPUTS, PROMPTS, RATES, State, view

START = State(rate=40, prompt=1500, output=300, itl_ms=30)


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    return (
        slider("rate", "requests/s", RATES),
        slider("itl_ms", "ITL in ms", ITLS),
        slider("prompt", "prompt tokens", PROMPTS),
        slider("output", "output tokens", OUTPUTS),
    )


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls)

"""Sharded step explorer: step through FSDP's gathers, computing and scatters, with and without gathering ahead.

In a notebook:

    from threeloops.widgets.training_loop import sharded_step as sharded_step_widget
    sharded_step_widget.explorer()
"""

from dataclasses import replace
from typing import Any

from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.training_loop.sharded_step_view import AFTER, AHEAD, GATHERS, LAYERS, State, moments, view

START = State(layers=3, gather_s=1.0, ahead=1, keep=False, step=0)
TICK_MS = 700  # while it plays: a step, slow enough to be followed


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    return (
        slider("layers", "layers", LAYERS),
        menu("gather_s", "a gather takes", GATHERS),
        menu("ahead", "gathering", AHEAD),
        menu("keep", "after forward", AFTER),
        slider("step", "step", range(_last(state) + 1), plays_ms=TICK_MS),
    )


def settled(state: State, at: dict[str, Any]) -> State:
    """Another step is shown whole."""
    if any(at[name] != getattr(state, name) for name in ("layers", "gather_s", "ahead", "keep")):
        at["step"] = _last(State(**{**at, "step": 0}))
    return State(**at)


def _last(state: State) -> int:
    return len(moments(state.layers, state.gather_s, state.ahead, state.keep)) - 1


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls, settled=settled, still=replace(state, step=_last(state)))

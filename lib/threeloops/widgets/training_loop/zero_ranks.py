"""ZeRO on every rank explorer: play one training step and see which shard lies where, stage by stage.

In a notebook:

    from threeloops.widgets.training_loop import zero_ranks as zero_ranks_widget
    zero_ranks_widget.explorer()
"""

from dataclasses import replace
from typing import Any

from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.training_loop.zero_ranks_view import LAYERS, RANKS, WAYS, State, last_step, played, view

START = State(stage=3, ranks=4, layers=3, step=0)
TICK_MS = 900  # while it plays: a piece of work, slow enough to be followed


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    steps = range(last_step(state.stage, state.ranks, state.layers) + 1)
    return (
        menu("stage", "way", WAYS),
        slider("ranks", "ranks", RANKS),
        slider("layers", "layers", LAYERS),
        slider("step", "step", steps, plays_ms=TICK_MS),
    )


def settled(state: State, at: dict[str, Any]) -> State:
    """Another way is shown from its beginning."""
    if any(at[name] != getattr(state, name) for name in ("stage", "ranks", "layers")):
        at["step"] = 0
    return State(**at)


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(
        state, view=view, controls=controls, settled=settled, still=replace(state, step=_first_gradient(state))
    )


def _first_gradient(state: State) -> int:
    """The first step of the backward pass: something of everything, and no answer yet."""
    moments = played(state.stage, state.ranks, state.layers).moments
    return next(step for step, moment in enumerate(moments) if moment.what == "backward")

"""All-reduce explorer: choose an algorithm and ranks, and step through who sends what to whom.

In a notebook:

    from threeloops.widgets.training_loop import all_reduce as all_reduce_widget
    all_reduce_widget.explorer()
"""

from dataclasses import replace
from typing import Any

from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.training_loop.all_reduce_view import ALGORITHMS, TIMED, State, played, rank_choices, view

START = State(algorithm="ring", ranks=4, step=0)
TICK_MS = 1200  # while it plays: a step, slow enough to find what has come


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    return (
        menu("algorithm", "algorithm", ALGORITHMS),
        slider("ranks", "ranks", rank_choices(state.algorithm)),
        menu("timed", "times measured on", TIMED),
        slider("step", "step", range(played(state.algorithm, state.ranks).steps + 1), plays_ms=TICK_MS),
    )


def settled(state: State, at: dict[str, Any]) -> State:
    """Another algorithm takes the nearest number of ranks that it can have, and begins at its first step."""
    choices = rank_choices(at["algorithm"])
    at["ranks"] = min(choices, key=lambda choice: abs(choice - at["ranks"]))
    if (at["algorithm"], at["ranks"]) != (state.algorithm, state.ranks):
        at["step"] = 0
    return State(**at)


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    middle = played(state.algorithm, state.ranks).steps // 2
    return Explorer(state, view=view, controls=controls, settled=settled, still=replace(state, step=middle))

"""Scaling explorer: add GPUs to a training job, change its model and its batch, and see how many of them work.

In a notebook:

    from threeloops.widgets.training_loop import scaling as scaling_widget
    scaling_widget.explorer()
"""

from typing import Any

from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.training_loop.scaling_view import BATCHES, BILLIONS, CARDS, GPUS, State, most_gpus, view

START = State(gpus=1024, billions=8, batch_tokens=1_048_576, cards=8)


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    most = most_gpus(state.batch_tokens)
    return (
        slider("gpus", "GPUs", [number for number in GPUS if number <= most]),
        menu("cards", "network cards", CARDS),
        slider("billions", "parameters", {f"{number} billion": number for number in BILLIONS}),
        slider("batch_tokens", "batch", {f"{number:,} tokens": number for number in BATCHES}),
    )


def settled(state: State, at: dict[str, Any]) -> State:
    """A smaller batch takes GPUs away that would have no sequence left."""
    return State(**{**at, "gpus": min(at["gpus"], most_gpus(at["batch_tokens"]))})


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls, settled=settled)

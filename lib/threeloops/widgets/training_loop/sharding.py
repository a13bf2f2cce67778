"""Sharding explorer: choose a way to put one model on four GPUs, and see where every byte lives.

In a notebook:

    from threeloops.widgets.training_loop import sharding as sharding_widget
    sharding_widget.explorer()
"""

from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.training_loop.sharding_view import MODELS, RECOMPUTE, SEQUENCES, WAYS, State, view

START = State(way="zero-3", model="llama-3-8b", sequence=4096, recompute="none")


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    return (
        menu("way", "way", WAYS),
        menu("model", "model", MODELS),
        slider("sequence", "sequence", SEQUENCES),
        menu("recompute", "activations", RECOMPUTE),
    )


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls)

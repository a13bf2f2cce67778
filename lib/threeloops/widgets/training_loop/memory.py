"""Training memory explorer: choose micro-batch, recomputation, ZeRO stage and where the optimiser lives, and see
memory over one training step.

In a notebook:

    from threeloops.widgets.training_loop import memory as training_memory_widget
    training_memory_widget.explorer()
"""

from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.training_loop.memory_view import (
    CROSS_ENTROPY,
    IN_HOST_MEMORY,
    MICRO_BATCHES,
    RECOMPUTE,
    ZERO_STAGES,
    State,
    view,
)

START = State(micro_batch=1, recompute="nothing", zero_stage=1, host="nothing", cross_entropy="plain")


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    return (
        slider("micro_batch", "micro-batch", MICRO_BATCHES),
        menu("recompute", "recomputed", RECOMPUTE.keys()),
        menu("cross_entropy", "cross-entropy", CROSS_ENTROPY),
        menu("zero_stage", "ZeRO stage", ZERO_STAGES),
        menu("host", "in host memory", IN_HOST_MEMORY),
    )


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls)

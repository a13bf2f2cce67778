"""Training-stack explorer: switch optimisations on and off, and see what they do to the step, to memory and to the
bill.

In a notebook:

    from threeloops.widgets.training_loop import stack
    training_stack.explorer()
"""

from threeloops.training_loop.updates.optimisation_stack import PRECISIONS, UPDATES, Setup
from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.training_loop.stack_view import MICRO_BATCHES, START, WORKERS, view


def controls(state: Setup) -> tuple[Control, ...]:
    """What can be turned."""
    return (
        slider("workers", "workers", WORKERS),
        menu("precision", "precision", PRECISIONS),
        menu("compiled", "kernels", {"as written": False, "compiled": True}),
        menu("update", "update", UPDATES),
        slider("micro_batches", "micro-batches", MICRO_BATCHES),
        menu("checkpointing", "activations", {"kept": False, "computed again": True}),
    )


def explorer(state: Setup = START) -> Explorer[Setup]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls)

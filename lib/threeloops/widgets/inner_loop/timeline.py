"""Timeline explorer: give a training job more workers, take out its syncs, compile it, overlap its network, and watch
the step time follow.

In a notebook:

    from threeloops.widgets.inner_loop import timeline as timeline_widget
    timeline_widget.explorer()
"""

from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.inner_loop.timeline_view import GRADIENTS, KERNELS, READS, WORKERS, State, view

START = State(workers=1, reads="in every layer", kernels="one by one", gradients="after backward")


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    return (
        slider("workers", "workers", sorted({*WORKERS, state.workers})),
        menu("reads", "values read", READS.keys()),
        menu("kernels", "kernels", KERNELS),
        menu("gradients", "gradients", GRADIENTS),
    )


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls)

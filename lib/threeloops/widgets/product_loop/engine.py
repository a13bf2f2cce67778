"""Engine explorer: fusion, narrow weights, a recorded graph and the batch, and what each does to a decode step.

In a notebook:

    from threeloops.widgets.product_loop import engine as engine_widget
    engine_widget.explorer()
"""

from threeloops.product_loop.engine_step import PRECISIONS
from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.product_loop.engine_view import BATCHES, START, State, view


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    return (
        menu("fused", "kernels", {"as written": False, "fused": True}),
        menu("precision", "matmuls", PRECISIONS.keys()),
        menu("captured", "launches", {"one by one": False, "one graph": True}),
        slider("batch", "batch", BATCHES),
    )


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls)

"""Roofline explorer: turn the batch, the sequence, the precision and the chip, and see which roof each operation of a
layer lives under; drag an operation, the roof or its slope. One menu adds the roofs of the other precisions, the
slopes of the memories on the chip, or matmuls that others timed on it.

In a notebook:

    from threeloops.widgets.inner_loop import roofline as roofline_widget
    roofline_widget.explorer()
"""

from dataclasses import replace
from typing import Any

from threeloops.widgets.controls import Control, Drag, menu, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.inner_loop.roofline_drags import drags
from threeloops.widgets.inner_loop.roofline_layer import model, part, precisions
from threeloops.widgets.inner_loop.roofline_view import ACCELERATORS, PHASES, ROOFS, TIMES, State, view

BATCHES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024)
SEQUENCES = tuple(2**power for power in range(7, 18))
START = State(accelerator="a100-sxm4-80gb", precision="bf16", phase="prefill", batch=8, sequence=2048)


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    longest = model(state.model).max_context
    lengths = {length for length in SEQUENCES if length <= longest}
    return (
        menu("accelerator", "accelerator", {part(key).name.removeprefix("NVIDIA "): key for key in ACCELERATORS}),
        menu("precision", "precision", precisions(state.accelerator)),
        menu("phase", "phase", PHASES),
        slider("batch", "batch", sorted({*BATCHES, state.batch})),
        slider("sequence", "sequence", sorted({*lengths, state.sequence})),
        slider("compute_times", "FLOP/s", {f"× {times:.3g}": times for times in TIMES}),
        slider("memory_times", "bandwidth", {f"× {times:.3g}": times for times in TIMES}),
        menu("roofs", "roofs", ROOFS),
    )


def held(state: State) -> list[Drag]:
    """What the pointer can take hold of."""
    return drags(state, tuple(sorted({*BATCHES, state.batch})))


def settled(state: State, at: dict[str, Any]) -> State:
    """Another chip keeps the precision where it has it, and otherwise takes its first."""
    known = precisions(at["accelerator"])
    at["precision"] = at["precision"] if at["precision"] in known else known[0]
    return replace(state, **at)


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls, settled=settled, drags=held)

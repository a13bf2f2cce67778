"""What can be taken hold of in the roofline explorer: the roof, the slope of the memory, and every operation that moves
with the batch.
"""

from threeloops.figures.inner_loop.roofline_scale import INTENSITIES
from threeloops.operations import roofline as formulas
from threeloops.widgets.controls import Drag
from threeloops.widgets.inner_loop.roofline_layer import PRECISIONS, operations, part
from threeloops.widgets.inner_loop.roofline_view import TIMES, State, rows_of

MOVES = 1.5  # an operation that changes its intensity by less over all batches cannot be dragged


def drags(state: State, batches: tuple[int, ...]) -> list[Drag]:
    """The roof and the slope as they stand, and the operations with their intensity at every batch."""
    chip = part(state.accelerator)
    peak, bandwidth = chip.peak_flops_per_s(PRECISIONS[state.precision].peak), chip["memory_bytes_per_s"]
    roof, slope = peak * state.compute_times, bandwidth * state.memory_times
    ridge = formulas.ridge_point(peak_flops_per_s=roof, memory_bytes_per_s=slope)
    low, high = INTENSITIES
    turned = [
        Drag(
            control="compute_times",
            along="y",
            places=tuple(peak * times for times in TIMES),
            hold=((min(ridge, high), roof), (high, roof)),
        ),
        Drag(
            control="memory_times",
            along="y/x",
            places=tuple(bandwidth * times for times in TIMES),
            hold=((low, low * slope), (min(ridge, high), min(ridge, high) * slope)),
        ),
    ]
    return [*_kernels(state, batches), *turned]


def _kernels(state: State, batches: tuple[int, ...]) -> list[Drag]:
    """Held before the lines on which they lie."""
    every = [operations(state.model, state.precision, state.phase, batch, state.sequence) for batch in batches]
    rows, found = {row.name: row for row in rows_of(state)}, []
    for index, op in enumerate(every[0]):
        row = rows.get(op.name.replace("_", " "))
        places = tuple(ops[index].work.arithmetic_intensity for ops in every if ops[index].work.flops)
        if row and len(places) == len(batches) and max(places) > MOVES * min(places):
            hold = ((row.arithmetic_intensity, row.flops_per_s),)
            found.append(Drag(control="batch", along="x", places=places, hold=hold))
    return found

"""Compression explorer: take bits from a small network's weights, prune them, put a student in its place, and see what
it still reads and what it weighs.

In a notebook:

    from threeloops.widgets.product_loop import compression as compression_widget
    compression_widget.explorer()
"""

from threeloops.facts.compressed_glyphs import BITS, NETWORKS, SPARSITIES
from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.product_loop.compression_view import State, view

START = State(bits=8, sparsity=0.0, network="teacher")


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    return (
        slider("bits", "bits", BITS),
        slider("sparsity", "pruned", {f"{100 * share:.0f} %": share for share in SPARSITIES}),
        menu("network", "network", NETWORKS.keys()),
    )


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls)

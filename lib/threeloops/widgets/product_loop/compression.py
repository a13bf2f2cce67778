"""Compression explorer: take bits from a small network's weights, prune them, put a student in its place, and see what
it still reads and what it weighs.

In a notebook:

    from threeloops.widgets.product_loop import compression as compression_widget
    compression_widget.explorer()
"""

import ipywidgets

from threeloops.facts.compressed_glyphs import BITS, NETWORKS, SPARSITIES
from threeloops.widgets.live_text import LiveText
from threeloops.widgets.product_loop.compression_view import State, view
from threeloops.widgets.shown import Shown

START = State(bits=8, sparsity=0.0, network="teacher")

# Heights are fixed, so that nothing below the figure moves while a control is turned.
FIGURE_HEIGHT, SUMMARY_HEIGHT = "430px", "64px"


class Explorer(Shown):
    """The controls, the figure, a spoken summary and a table. `state` is where the controls stand, `view` what they
    show.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.view = view(state)
        wide, label = {"width": "360px"}, {"description_width": "110px"}
        self.network = ipywidgets.SelectionSlider(
            description="network", options=list(NETWORKS), value=state.network, layout=wide, style=label
        )
        self.bits = ipywidgets.SelectionSlider(
            description="bits", options=[(str(bits), bits) for bits in BITS], value=state.bits, layout=wide, style=label
        )
        self.sparsity = ipywidgets.SelectionSlider(
            description="pruned",
            options=[(f"{100 * share:.0f} %", share) for share in SPARSITIES],
            value=state.sparsity,
            layout=wide,
            style=label,
        )
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        columns = [ipywidgets.VBox([self.bits, self.sparsity]), ipywidgets.VBox([self.network])]
        self.box = ipywidgets.VBox(
            [ipywidgets.HBox(columns, layout={"flex_flow": "row wrap"}), self.figure, self.summary, self.table]
        )
        for control in (self.bits, self.sparsity, self.network):
            control.observe(self._turned, "value")
        self.put(self.view)

    def _turned(self, change: object) -> None:
        """A control was moved."""
        self.state = State(bits=self.bits.value, sparsity=self.sparsity.value, network=self.network.value)
        self.put(view(self.state))


def explorer(state: State = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

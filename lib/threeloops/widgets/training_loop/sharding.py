"""Sharding explorer: choose a way to put one model on four GPUs, and see where every byte lives.

In a notebook:

    from threeloops.widgets.training_loop import sharding as sharding_widget
    sharding_widget.explorer()
"""

import ipywidgets

from threeloops.widgets.live_text import LiveText
from threeloops.widgets.shown import Shown
from threeloops.widgets.training_loop.sharding_view import MODELS, RECOMPUTE, SEQUENCES, WAYS, State, view

START = State(way="zero-3", model="llama-3-8b", sequence=4096, recompute="none")

# Heights are fixed, so that nothing below the figure moves while a control is turned.
FIGURE_HEIGHT, SUMMARY_HEIGHT = "690px", "84px"


class Explorer(Shown):
    """The controls, the figure, a spoken summary and a table. `state` is where the controls stand, `view` what they
    show.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.view = view(state)
        wide, label = {"width": "360px"}, {"description_width": "110px"}
        self.way = ipywidgets.Dropdown(
            description="way", options=list(WAYS.items()), value=state.way, layout=wide, style=label
        )
        self.model = ipywidgets.Dropdown(
            description="model", options=list(MODELS.items()), value=state.model, layout=wide, style=label
        )
        sequences = [(f"{tokens:,}", tokens) for tokens in SEQUENCES]
        self.sequence = ipywidgets.SelectionSlider(
            description="sequence", options=sequences, value=state.sequence, layout=wide, style=label
        )
        self.recompute = ipywidgets.Dropdown(
            description="activations", options=list(RECOMPUTE.items()), value=state.recompute, layout=wide, style=label
        )
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        columns = [ipywidgets.VBox([self.way, self.model]), ipywidgets.VBox([self.sequence, self.recompute])]
        self.box = ipywidgets.VBox(
            [ipywidgets.HBox(columns, layout={"flex_flow": "row wrap"}), self.figure, self.summary, self.table]
        )
        for control in (self.way, self.model, self.sequence, self.recompute):
            control.observe(self._turned, "value")
        self._show()

    def _turned(self, change: object) -> None:
        """A control was moved."""
        self.state = State(
            way=self.way.value, model=self.model.value, sequence=self.sequence.value, recompute=self.recompute.value
        )
        self._show()

    def _show(self) -> None:
        self.put(view(self.state))


def explorer(state: State = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

"""Training memory explorer: choose micro-batch, recomputation, ZeRO stage and where the optimiser lives, and see
memory over one training step.

In a notebook:

    from threeloops.widgets.training_loop import memory as training_memory_widget
    training_memory_widget.explorer()
"""

import ipywidgets

from threeloops.figures.training_loop.memory_timeline import HEIGHT
from threeloops.widgets.live_text import LiveText
from threeloops.widgets.shown import Shown
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

# Heights are fixed, so that nothing below the figure moves while a control is turned.
FIGURE_HEIGHT, SUMMARY_HEIGHT = f"{HEIGHT + 190}px", "64px"


class Explorer(Shown):
    """The controls, the figure, a spoken summary and a table. `state` is where the controls stand, `view` what they
    show.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.view = view(state)
        wide, label = {"width": "360px"}, {"description_width": "120px"}
        sizes = [(str(number), number) for number in MICRO_BATCHES]
        self.micro_batch = ipywidgets.SelectionSlider(
            description="micro-batch", options=sizes, value=state.micro_batch, layout=wide, style=label
        )
        self.recompute = ipywidgets.Dropdown(
            description="recomputed", options=list(RECOMPUTE), value=state.recompute, layout=wide, style=label
        )
        self.zero_stage = ipywidgets.Dropdown(
            description="ZeRO stage",
            options=list(ZERO_STAGES.items()),
            value=state.zero_stage,
            layout=wide,
            style=label,
        )
        self.host = ipywidgets.Dropdown(
            description="in host memory",
            options=list(IN_HOST_MEMORY.items()),
            value=state.host,
            layout=wide,
            style=label,
        )
        self.cross_entropy = ipywidgets.Dropdown(
            description="cross-entropy",
            options=list(CROSS_ENTROPY.items()),
            value=state.cross_entropy,
            layout=wide,
            style=label,
        )
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        columns = [
            ipywidgets.VBox([self.micro_batch, self.recompute, self.cross_entropy]),
            ipywidgets.VBox([self.zero_stage, self.host]),
        ]
        self.box = ipywidgets.VBox(
            [ipywidgets.HBox(columns, layout={"flex_flow": "row wrap"}), self.figure, self.summary, self.table]
        )
        for control in (self.micro_batch, self.recompute, self.cross_entropy, self.zero_stage, self.host):
            control.observe(self._turned, "value")
        self._show()

    def _turned(self, change: object) -> None:
        """A control was moved."""
        self.state = State(
            micro_batch=self.micro_batch.value,
            recompute=self.recompute.value,
            zero_stage=self.zero_stage.value,
            host=self.host.value,
            cross_entropy=self.cross_entropy.value,
        )
        self._show()

    def _show(self) -> None:
        self.put(view(self.state))


def explorer(state: State = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

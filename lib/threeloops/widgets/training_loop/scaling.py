"""Scaling explorer: add GPUs to a training job, change its model and its batch, and see how many of them work.

In a notebook:

    from threeloops.widgets.training_loop import scaling as scaling_widget
    scaling_widget.explorer()
"""

import ipywidgets

from threeloops.widgets.live_text import LiveText
from threeloops.widgets.shown import Shown
from threeloops.widgets.training_loop.scaling_view import BATCHES, BILLIONS, CARDS, GPUS, State, most_gpus, view

START = State(gpus=1024, billions=8, batch_tokens=1_048_576, cards=8)

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
        sizes = [(f"{number} billion", number) for number in BILLIONS]
        batches = [(f"{number:,} tokens", number) for number in BATCHES]
        self.gpus = ipywidgets.SelectionSlider(
            description="GPUs", options=_choices(state), value=state.gpus, layout=wide, style=label
        )
        self.billions = ipywidgets.SelectionSlider(
            description="parameters", options=sizes, value=state.billions, layout=wide, style=label
        )
        self.batch = ipywidgets.SelectionSlider(
            description="batch", options=batches, value=state.batch_tokens, layout=wide, style=label
        )
        self.cards = ipywidgets.Dropdown(
            description="network cards", options=list(CARDS.items()), value=state.cards, layout=wide, style=label
        )
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        columns = [ipywidgets.VBox([self.gpus, self.cards]), ipywidgets.VBox([self.billions, self.batch])]
        self.box = ipywidgets.VBox(
            [ipywidgets.HBox(columns, layout={"flex_flow": "row wrap"}), self.figure, self.summary, self.table]
        )
        self._settling = False
        for control in (self.gpus, self.cards, self.billions, self.batch):
            control.observe(self._turned, "value")
        self._show()

    def _turned(self, change: object) -> None:
        """A control was moved. A smaller batch takes GPUs away that would have no sequence left."""
        if self._settling:
            return
        gpus = min(self.gpus.value, most_gpus(self.batch.value))
        self.state = State(
            gpus=gpus, billions=self.billions.value, batch_tokens=self.batch.value, cards=self.cards.value
        )
        self._settling = True  # new options come with a value of their own for a moment
        if self.gpus.options != tuple(_choices(self.state)):
            self.gpus.options = _choices(self.state)
        self.gpus.value = gpus
        self._settling = False
        self._show()

    def _show(self) -> None:
        self.put(view(self.state))


def _choices(state: State) -> list[tuple[str, int]]:
    return [(f"{number:,}", number) for number in GPUS if number <= most_gpus(state.batch_tokens)]


def explorer(state: State = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

"""Training-stack explorer: switch optimisations on and off, and see what they do to the step, to memory and to the
bill.

In a notebook:

    from threeloops.widgets.training_loop import stack
    training_stack.explorer()
"""

from typing import Any

import ipywidgets

from threeloops.training_loop.updates.optimisation_stack import PRECISIONS, UPDATES, Setup
from threeloops.widgets.live_text import LiveText
from threeloops.widgets.shown import Shown
from threeloops.widgets.training_loop.stack_view import MICRO_BATCHES, START, WORKERS, view

# Heights are fixed, so that nothing below the figure moves while a control is turned.
FIGURE_HEIGHT, SUMMARY_HEIGHT = "320px", "84px"


class Explorer(Shown):
    """The controls, the figure, a spoken summary and a table. `state` is where the controls stand, `view` what they
    show.
    """

    def __init__(self, state: Setup) -> None:
        self.state = state
        self.view = view(state)
        look: dict[str, Any] = {"layout": {"width": "330px"}, "style": {"description_width": "110px"}}
        numbers = [[(str(number), number) for number in choices] for choices in (WORKERS, MICRO_BATCHES)]
        self.workers = ipywidgets.SelectionSlider(
            description="workers", options=numbers[0], value=state.workers, **look
        )
        self.micro_batches = ipywidgets.SelectionSlider(
            description="micro-batches", options=numbers[1], value=state.micro_batches, **look
        )
        self.precision = ipywidgets.Dropdown(description="precision", options=PRECISIONS, value=state.precision, **look)
        self.update = ipywidgets.Dropdown(description="update", options=UPDATES, value=state.update, **look)
        self.compiled = ipywidgets.Dropdown(
            description="kernels", options=[("as written", False), ("compiled", True)], value=state.compiled, **look
        )
        kept = [("kept", False), ("computed again", True)]
        self.checkpointing = ipywidgets.Dropdown(
            description="activations", options=kept, value=state.checkpointing, **look
        )
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        self.controls = (
            self.workers,
            self.precision,
            self.compiled,
            self.update,
            self.micro_batches,
            self.checkpointing,
        )
        columns = [ipywidgets.VBox(self.controls[:3]), ipywidgets.VBox(self.controls[3:])]
        self.box = ipywidgets.VBox(
            [ipywidgets.HBox(columns, layout={"flex_flow": "row wrap"}), self.figure, self.summary, self.table]
        )
        for control in self.controls:
            control.observe(self._turned, "value")
        self._show()

    def _turned(self, change: object) -> None:
        """A control was moved."""
        self.state = Setup(
            batch=self.state.batch,
            workers=self.workers.value,
            precision=self.precision.value,
            compiled=self.compiled.value,
            update=self.update.value,
            micro_batches=self.micro_batches.value,
            checkpointing=self.checkpointing.value,
        )
        self.view = view(self.state)
        self._show()

    def _show(self) -> None:
        self.put(self.view)


def explorer(state: Setup = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

"""Engine explorer: fusion, narrow weights, a recorded graph and the batch, and what each does to a decode step.

In a notebook:

    from threeloops.widgets.product_loop import engine as engine_widget
    engine_widget.explorer()
"""

from typing import Any

import ipywidgets

from threeloops.product_loop.engine_step import PRECISIONS
from threeloops.widgets.live_text import LiveText
from threeloops.widgets.product_loop.engine_view import BATCHES, START, State, view
from threeloops.widgets.shown import Shown

# Heights are fixed, so that nothing below the figure moves while a control is turned.
FIGURE_HEIGHT, SUMMARY_HEIGHT = "300px", "64px"


class Explorer(Shown):
    """The controls, the figure, a spoken summary and a table. `state` is where the controls stand, `view` what they
    show.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.view = view(state)
        look: dict[str, Any] = {"layout": {"width": "330px"}, "style": {"description_width": "90px"}}
        kernels = [("as written", False), ("fused", True)]
        launches = [("one by one", False), ("one graph", True)]
        self.fused = ipywidgets.Dropdown(description="kernels", options=kernels, value=state.fused, **look)
        self.precision = ipywidgets.Dropdown(
            description="products", options=list(PRECISIONS), value=state.precision, **look
        )
        self.captured = ipywidgets.Dropdown(description="launches", options=launches, value=state.captured, **look)
        self.batch = ipywidgets.SelectionSlider(
            description="batch", options=[(str(batch), batch) for batch in BATCHES], value=state.batch, **look
        )
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        self.controls = (self.fused, self.precision, self.captured, self.batch)
        columns = [ipywidgets.VBox(self.controls[:2]), ipywidgets.VBox(self.controls[2:])]
        self.box = ipywidgets.VBox(
            [ipywidgets.HBox(columns, layout={"flex_flow": "row wrap"}), self.figure, self.summary, self.table]
        )
        for control in self.controls:
            control.observe(self._turned, "value")
        self.put(self.view)

    def _turned(self, change: object) -> None:
        """A control was moved."""
        self.state = State(
            precision=self.precision.value,
            fused=self.fused.value,
            captured=self.captured.value,
            batch=self.batch.value,
        )
        self.put(view(self.state))


def explorer(state: State = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

"""Timeline explorer: give a training job more workers, take out its syncs, compile it, overlap its network, and watch
the step time follow.

In a notebook:

    from threeloops.widgets.inner_loop import timeline as timeline_widget
    timeline_widget.explorer()
"""

from dataclasses import replace
from typing import Any

import ipywidgets

from threeloops.figures.inner_loop.timeline import BAND, ROWS
from threeloops.widgets.inner_loop.timeline_view import GRADIENTS, KERNELS, READS, WORKERS, State, View, view
from threeloops.widgets.live_text import LiveText
from threeloops.widgets.shown import Shown

START = State(workers=1, reads="in every layer", kernels="one by one", gradients="after backward")

# Heights are fixed, so that nothing below the figure moves while a control is turned.
FIGURE_HEIGHT, SUMMARY_HEIGHT = f"{180 + BAND * len(ROWS)}px", "64px"


class Explorer(Shown):
    """The controls, the figure, a spoken summary and a table. `state` is where the controls stand, `view` what they
    show.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.view: View = view(state)
        wide, label = {"width": "360px"}, {"description_width": "110px"}

        def menu(name: str, options: Any, value: str) -> Any:
            return ipywidgets.Dropdown(description=name, options=list(options), value=value, layout=wide, style=label)

        workers = [(str(number), number) for number in sorted({*WORKERS, state.workers})]
        self.workers = ipywidgets.SelectionSlider(
            description="workers", options=workers, value=state.workers, layout=wide, style=label
        )
        self.reads = menu("values read", READS, state.reads)
        self.kernels = menu("kernels", KERNELS, state.kernels)
        self.gradients = menu("gradients", GRADIENTS, state.gradients)
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        columns = [ipywidgets.VBox([self.workers, self.reads]), ipywidgets.VBox([self.kernels, self.gradients])]
        self.box = ipywidgets.VBox(
            [ipywidgets.HBox(columns, layout={"flex_flow": "row wrap"}), self.figure, self.summary, self.table]
        )
        self._controls = {name: getattr(self, name) for name in ("workers", "reads", "kernels", "gradients")}
        for control in self._controls.values():
            control.observe(self._turned, "value")
        self._show()

    def _turned(self, change: object) -> None:
        """A control was moved: take over where all of them stand."""
        self.state = replace(self.state, **{name: control.value for name, control in self._controls.items()})
        self._show()

    def _show(self) -> None:
        self.put(view(self.state))


def explorer(state: State = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

"""Batching explorer: the same requests flow through the slots of two servers, one static and one continuous; let it
play, or step by hand.

In a notebook:

    from threeloops.widgets.product_loop import batching as batching_widget
    batching_widget.explorer()
"""

import ipywidgets

from threeloops.widgets.live_text import LiveText
from threeloops.widgets.product_loop.batching_view import BAND, RATES, SLOTS, STEPS, State, view
from threeloops.widgets.shown import Shown

START = State(rate=0.5, step=30)
TICK_MS = 700  # while it plays: a step; slow enough to be followed and to be drawn

# Heights are fixed, so that nothing below the figure moves while a control is turned.
FIGURE_HEIGHT, SUMMARY_HEIGHT = f"{130 + BAND * (SLOTS + 1)}px", "64px"


class Explorer(Shown):
    """The controls, the figure, a spoken summary and a table. `state` is where the controls stand, `view` what they
    show.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.view = view(state)
        wide, label = {"width": "360px"}, {"description_width": "150px"}
        self.rate = ipywidgets.SelectionSlider(
            description="requests a step",
            options=[(f"{rate:g}", rate) for rate in RATES],
            value=state.rate,
            layout=wide,
            style=label,
        )
        self.step = ipywidgets.IntSlider(
            description="step", min=0, max=STEPS, value=state.step, layout=wide, style=label
        )
        self.play = ipywidgets.Play(min=0, max=STEPS, value=state.step, interval=TICK_MS, show_repeat=False)
        self.link = ipywidgets.jslink((self.play, "value"), (self.step, "value"))
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        controls = ipywidgets.HBox([self.rate, self.step, self.play], layout={"flex_flow": "row wrap"})
        self.box = ipywidgets.VBox([controls, self.figure, self.summary, self.table])
        for control in (self.rate, self.step):
            control.observe(self._turned, "value")
        self._show()

    def _turned(self, change: object) -> None:
        self.state = State(rate=self.rate.value, step=self.step.value)
        self._show()

    def _show(self) -> None:
        self.put(view(self.state))


def explorer(state: State = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

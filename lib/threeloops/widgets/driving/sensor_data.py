"""Sensor explorer: number, size, bits and rate of the cameras, and how full their cable, lanes, link and memory bus
are.

In a notebook:

    from threeloops.widgets.driving import sensor_data as sensor_widget
    sensor_widget.explorer()
"""

import ipywidgets

from threeloops.widgets.driving.sensor_data_view import BITS, MOST_CAMERAS, RATES, SIZES, State, view
from threeloops.widgets.live_text import LiveText
from threeloops.widgets.shown import Shown

START = State(cameras=2, size="3840 × 2160", bits=12, rate=30)

# Heights are fixed, so that nothing below the figure moves while a control is turned.
FIGURE_HEIGHT, SUMMARY_HEIGHT = "310px", "64px"


class Explorer(Shown):
    """The controls, the figure, a spoken summary and a table. `state` is where the controls stand, `view` what they
    show.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.view = view(state)
        wide, label = {"width": "360px"}, {"description_width": "110px"}
        self.cameras = ipywidgets.IntSlider(
            description="cameras", min=1, max=MOST_CAMERAS, value=state.cameras, layout=wide, style=label
        )
        self.size = ipywidgets.SelectionSlider(
            description="pixels", options=list(SIZES), value=state.size, layout=wide, style=label
        )
        self.bits = ipywidgets.SelectionSlider(
            description="bits a pixel",
            options=[(str(bits), bits) for bits in BITS],
            value=state.bits,
            layout=wide,
            style=label,
        )
        self.rate = ipywidgets.SelectionSlider(
            description="frames/s",
            options=[(str(rate), rate) for rate in RATES],
            value=state.rate,
            layout=wide,
            style=label,
        )
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        columns = [ipywidgets.VBox([self.cameras, self.size]), ipywidgets.VBox([self.bits, self.rate])]
        self.box = ipywidgets.VBox(
            [ipywidgets.HBox(columns, layout={"flex_flow": "row wrap"}), self.figure, self.summary, self.table]
        )
        for control in (self.cameras, self.size, self.bits, self.rate):
            control.observe(self._turned, "value")
        self.put(self.view)

    def _turned(self, change: object) -> None:
        """A control was moved."""
        self.state = State(cameras=self.cameras.value, size=self.size.value, bits=self.bits.value, rate=self.rate.value)
        self.put(view(self.state))


def explorer(state: State = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

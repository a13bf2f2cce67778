"""Placement explorer: choose a chip with its power mode, the engine of the camera stage and how many of its bytes go
through the memory, and see which engine, or the memory, sets the pace.

In a notebook:

    from threeloops.widgets.driving import placement as placement_widget
    placement_widget.explorer()
"""

import ipywidgets

from threeloops.widgets.driving.placement_view import CAMERA_ON, CHIPS, IN_MEMORY, State, view
from threeloops.widgets.live_text import LiveText
from threeloops.widgets.shown import Shown

START = State(chip="AGX Orin 64GB", camera="gpu", in_memory=1.0)

# Heights are fixed, so that nothing below the figure moves while a control is turned.
FIGURE_HEIGHT, SUMMARY_HEIGHT = "330px", "64px"


class Explorer(Shown):
    """The controls, the figure, a spoken summary and a table. `state` is where the controls stand, `view` what they
    show.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.view = view(state)
        wide, label = {"width": "360px"}, {"description_width": "110px"}
        self.chip = ipywidgets.SelectionSlider(
            description="chip", options=list(CHIPS), value=state.chip, layout=wide, style=label
        )
        self.camera = ipywidgets.SelectionSlider(
            description="camera stage",
            options=[({"gpu": "GPU", "dla": "DLAs"}[engine], engine) for engine in CAMERA_ON],
            value=state.camera,
            layout=wide,
            style=label,
        )
        self.in_memory = ipywidgets.SelectionSlider(
            description="in memory",
            options=[(f"{100 * share:.0f} %", share) for share in IN_MEMORY],
            value=state.in_memory,
            layout=wide,
            style=label,
        )
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        columns = [ipywidgets.VBox([self.chip, self.camera]), ipywidgets.VBox([self.in_memory])]
        self.box = ipywidgets.VBox(
            [ipywidgets.HBox(columns, layout={"flex_flow": "row wrap"}), self.figure, self.summary, self.table]
        )
        for control in (self.chip, self.camera, self.in_memory):
            control.observe(self._turned, "value")
        self.put(self.view)

    def _turned(self, change: object) -> None:
        """A control was moved."""
        self.state = State(chip=self.chip.value, camera=self.camera.value, in_memory=self.in_memory.value)
        self.put(view(self.state))


def explorer(state: State = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

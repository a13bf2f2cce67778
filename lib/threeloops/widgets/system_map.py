"""System map: choose a stage, from data to vehicle, and a number of GPUs; read what can be done there, and what the
GPUs make of a training step.

In a notebook:

    from threeloops.widgets import system_map
    system_map.explorer()
"""

from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import traitlets

from threeloops.widgets.live_text import LiveText
from threeloops.widgets.system_stages import STAGES
from threeloops.widgets.system_view import GPUS, State, View, view

START = State(stage="training", gpus=64)

# A height for the longest text, so that nothing below it moves when another stage is chosen.
SUMMARY_HEIGHT = "104px"


class Stages(anywidget.AnyWidget):
    """The stages as boxes in a row, of which one is chosen by click or by arrow keys."""

    _esm = Path(__file__).with_name("system_map.js")
    stages = traitlets.List(traitlets.Dict()).tag(sync=True)
    chosen = traitlets.Unicode().tag(sync=True)


class Explorer:
    """The map, a slider, a spoken summary and a table. `state` is where the controls stand, `view` what they show."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.view: View = view(state)
        options = [(f"{number:,}", number) for number in sorted({*GPUS, state.gpus})]
        self.map = Stages(chosen=state.stage)
        self.gpus = ipywidgets.SelectionSlider(
            description="GPUs",
            options=options,
            value=state.gpus,
            layout={"width": "420px"},
            style={"description_width": "60px"},
        )
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        self.box = ipywidgets.VBox([self.map, self.gpus, self.summary, self.table])
        self.map.observe(self._turned, "chosen")
        self.gpus.observe(self._turned, "value")
        self._show()

    def _turned(self, change: object) -> None:
        """A stage was chosen or the slider moved: take over where both stand."""
        self.state = State(stage=self.map.chosen, gpus=self.gpus.value)
        self._show()

    def _show(self) -> None:
        self.view = view(self.state)
        self.map.stages = [
            {"key": key, "name": stage.name, "note": self.view.notes[key]} for key, stage in STAGES.items()
        ]
        self.summary.text = self.view.summary
        self.table.value = self.view.table

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget for a page with a kernel; the picture for one without; the words for a terminal."""
        picture, about = self.view.figure.picture()
        return {**self.box._repr_mimebundle_(), "image/png": picture, "text/plain": self.view.text}, {
            "image/png": about
        }


def explorer(state: State = START) -> Explorer:
    """The map, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

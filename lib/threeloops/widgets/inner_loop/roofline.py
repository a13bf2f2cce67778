"""Roofline explorer: turn the batch, the sequence, the precision and the chip, and see which roof each operation of a
layer lives under. One menu adds the roofs of the other precisions, or the slopes of the memories on the chip.

In a notebook:

    from threeloops.widgets.inner_loop import roofline as roofline_widget
    roofline_widget.explorer()

JupyterLab draws the figure with the Vega that it ships, so nothing is loaded from anywhere. Beside the widget stands
its picture, for every place without a kernel.
"""

from dataclasses import replace
from typing import Any

import ipywidgets

from threeloops.widgets.inner_loop.roofline_view import (
    ACCELERATORS,
    PHASES,
    ROOFS,
    State,
    View,
    model,
    part,
    precisions,
    view,
)
from threeloops.widgets.live_text import LiveText
from threeloops.widgets.shown import Shown

BATCHES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024)
SEQUENCES = tuple(2**power for power in range(7, 18))
START = State(accelerator="a100-sxm4-80gb", precision="bf16", phase="decode", batch=8, sequence=2048)

# Heights are fixed, so that nothing below the figure moves while a slider is held.
FIGURE_HEIGHT, SUMMARY_HEIGHT = "476px", "64px"


class Explorer(Shown):
    """The controls, the figure, a spoken summary and a table. `state` is where the controls stand, `view` what they
    show.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.view: View = view(state)
        wide, label = {"width": "360px"}, {"description_width": "110px"}
        longest = model(state.model).max_context

        def slider(name: str, options: tuple[int, ...], value: int) -> Any:
            texts = [(f"{option:,}", option) for option in sorted({*options, value})]
            return ipywidgets.SelectionSlider(description=name, options=texts, value=value, layout=wide, style=label)

        def menu(name: str, options: Any, value: str) -> Any:
            return ipywidgets.Dropdown(description=name, options=options, value=value, layout=wide, style=label)

        self.accelerator = menu("accelerator", [(part(key).name, key) for key in ACCELERATORS], state.accelerator)
        self.precision = menu("precision", precisions(state.accelerator), state.precision)
        self.phase = menu("phase", PHASES, state.phase)
        self.batch = slider("batch", BATCHES, state.batch)
        self.sequence = slider("sequence", tuple(length for length in SEQUENCES if length <= longest), state.sequence)
        self.roofs = menu("roofs", ROOFS, state.roofs)
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        columns = [
            ipywidgets.VBox([self.accelerator, self.precision, self.phase]),
            ipywidgets.VBox([self.batch, self.sequence, self.roofs]),
        ]
        self.box = ipywidgets.VBox(
            [ipywidgets.HBox(columns, layout={"flex_flow": "row wrap"}), self.figure, self.summary, self.table]
        )
        self._controls = {
            name: getattr(self, name) for name in ("accelerator", "precision", "phase", "batch", "sequence", "roofs")
        }
        self._settling = False
        for control in self._controls.values():
            control.observe(self._turned, "value")
        self._show()

    def _turned(self, change: object) -> None:
        """A control was moved: take over where all of them stand. Another chip keeps the precision where it has it,
        and otherwise takes its first.
        """
        if self._settling:
            return
        known = precisions(self.accelerator.value)
        if self.precision.options != known:
            keep = self.precision.value if self.precision.value in known else known[0]
            self._settling = True  # new options come with a value of their own for a moment
            self.precision.options, self.precision.value = known, keep
            self._settling = False
        self.state = replace(self.state, **{name: control.value for name, control in self._controls.items()})
        self._show()

    def _show(self) -> None:
        self.put(view(self.state))


def explorer(state: State = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

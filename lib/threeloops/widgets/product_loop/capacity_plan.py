"""Capacity explorer: turn a load and a promise, and see which bound asks for the most GPUs.

In a notebook:

    from threeloops.widgets.product_loop import capacity_plan
    capacity_plan.explorer()
"""

import ipywidgets

from threeloops.widgets.live_text import LiveText
from threeloops.widgets.product_loop.capacity_plan_view import ITLS, OUTPUTS, PROMPTS, RATES, State, view
from threeloops.widgets.shown import Shown

START = State(rate=40, prompt=1500, output=300, itl_ms=30)

# Heights are fixed, so that nothing below the figure moves while a control is turned.
FIGURE_HEIGHT, SUMMARY_HEIGHT = "250px", "64px"


class Explorer(Shown):
    """The controls, the figure, a spoken summary and a table. `state` is where the controls stand, `view` what they
    show.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.view = view(state)
        self.rate = _slider("requests/s", RATES, state.rate)
        self.prompt = _slider("prompt tokens", PROMPTS, state.prompt)
        self.output = _slider("output tokens", OUTPUTS, state.output)
        self.itl = _slider("ITL in ms", ITLS, state.itl_ms)
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        columns = [ipywidgets.VBox([self.rate, self.itl]), ipywidgets.VBox([self.prompt, self.output])]
        controls = ipywidgets.HBox(columns, layout={"flex_flow": "row wrap"})
        self.box = ipywidgets.VBox([controls, self.figure, self.summary, self.table])
        for control in (self.rate, self.prompt, self.output, self.itl):
            control.observe(self._turned, "value")
        self.put(self.view)

    def _turned(self, change: object) -> None:
        self.state = State(
            rate=self.rate.value, prompt=self.prompt.value, output=self.output.value, itl_ms=self.itl.value
        )
        self.put(view(self.state))


def _slider(description: str, known: tuple[int, ...], value: int) -> ipywidgets.SelectionSlider:
    return ipywidgets.SelectionSlider(
        description=description,
        options=[(f"{number:,}", number) for number in known],
        value=value,
        layout={"width": "360px"},
        style={"description_width": "110px"},
    )


def explorer(state: State = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

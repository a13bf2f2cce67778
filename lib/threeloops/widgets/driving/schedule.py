"""Schedule explorer: three tasks on one core; turn their costs and the rule, and see who waits and who is late.

In a notebook:

    from threeloops.widgets.driving import schedule
    schedule.explorer()
"""

import ipywidgets

from threeloops.widgets.driving.schedule_view import MAP, PERCEPTION, RATE, RULES, State, view
from threeloops.widgets.live_text import LiveText
from threeloops.widgets.shown import Shown

START = State(rule=RATE, perception=12, map=10)

# Heights are fixed, so that nothing below the figure moves while a control is turned.
FIGURE_HEIGHT, SUMMARY_HEIGHT = "250px", "48px"


class Explorer(Shown):
    """The controls, the figure, a spoken summary and a table. `state` is where the controls stand, `view` what they
    show.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.view = view(state)
        wide, label = {"width": "360px"}, {"description_width": "150px"}
        self.rule = ipywidgets.Dropdown(description="rule", options=RULES, value=state.rule, layout=wide, style=label)
        self.perception = ipywidgets.IntSlider(
            description="perception, ms",
            min=PERCEPTION[0],
            max=PERCEPTION[1],
            value=state.perception,
            layout=wide,
            style=label,
        )
        self.map = ipywidgets.IntSlider(
            description="map, ms", min=MAP[0], max=MAP[1], value=state.map, layout=wide, style=label
        )
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        controls = ipywidgets.HBox([self.rule, self.perception, self.map], layout={"flex_flow": "row wrap"})
        self.box = ipywidgets.VBox([controls, self.figure, self.summary, self.table])
        for control in (self.rule, self.perception, self.map):
            control.observe(self._turned, "value")
        self._show()

    def _turned(self, change: object) -> None:
        self.state = State(rule=self.rule.value, perception=self.perception.value, map=self.map.value)
        self._show()

    def _show(self) -> None:
        self.put(view(self.state))


def explorer(state: State = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

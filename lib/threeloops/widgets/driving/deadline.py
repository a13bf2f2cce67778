"""Deadline explorer: a chain's stages against the camera's period, above the cars as they are and as the newest answer
believes them to be; switch repairs on and off, let it play, or step by hand.

In a notebook:

    from threeloops.widgets.driving import deadline
    deadline.explorer()
"""

from typing import Any

import ipywidgets

from threeloops.widgets.driving import deadline_replay
from threeloops.widgets.driving.deadline_view import SLOWER, START, State, view
from threeloops.widgets.live_text import LiveText
from threeloops.widgets.shown import Shown

TICK_MS = 300  # while it plays: a hundred-and-twentieth of a second of the drive

# Heights are fixed, so that nothing below the figure moves while a control is turned.
FIGURE_HEIGHT, SUMMARY_HEIGHT = "580px", "64px"


class Explorer(Shown):
    """The controls, the figure, a spoken summary and a table. `state` is where the controls stand, `view` what they
    show.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.view = view(state)
        look: dict[str, Any] = {"layout": {"width": "310px"}, "style": {"description_width": "100px"}}

        def choice(name: str, no: str, yes: str, value: bool) -> ipywidgets.Dropdown:
            return ipywidgets.Dropdown(description=name, options=[(no, False), (yes, True)], value=value, **look)

        self.shared = choice("backbones", "three, one a task", "one, shared", state.shared)
        self.int8 = choice("convolutions", "FP32", "INT8", state.int8)
        self.predicted = choice("boxes", "as seen", "moved on by the tracker", state.predicted)
        self.queue = choice("busy chain", "drops the frame", "queues the frame", state.queue)
        self.crowded = choice("processor", "quiet", "two neighbour processes", state.crowded)
        self.slower = ipywidgets.SelectionSlider(
            description="times slower", options=[(f"{one:g}", one) for one in SLOWER], value=state.slower, **look
        )
        self.moment = ipywidgets.IntSlider(
            description="moment", min=0, max=deadline_replay.moments(), value=state.moment, **look
        )
        self.play = ipywidgets.Play(
            min=0, max=deadline_replay.moments(), value=state.moment, interval=TICK_MS, show_repeat=False
        )
        self.link = ipywidgets.jslink((self.play, "value"), (self.moment, "value"))
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        repairs = (self.shared, self.int8, self.predicted)
        others = (self.queue, self.crowded, self.slower)
        columns = [ipywidgets.VBox(repairs), ipywidgets.VBox(others), ipywidgets.HBox([self.moment, self.play])]
        self.box = ipywidgets.VBox(
            [ipywidgets.HBox(columns, layout={"flex_flow": "row wrap"}), self.figure, self.summary, self.table]
        )
        for control in (*repairs, *others, self.moment):
            control.observe(self._turned, "value")
        self.put(self.view)

    def _turned(self, change: object) -> None:
        """A control was moved."""
        self.state = State(
            shared=self.shared.value,
            int8=self.int8.value,
            predicted=self.predicted.value,
            queue=self.queue.value,
            crowded=self.crowded.value,
            slower=self.slower.value,
            moment=self.moment.value,
        )
        self.put(view(self.state))


def explorer(state: State = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

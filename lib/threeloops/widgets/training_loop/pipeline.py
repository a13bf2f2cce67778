"""Pipeline explorer: choose a schedule, stages and micro-batches, and step through who works on what and who waits.

In a notebook:

    from threeloops.widgets.training_loop import pipeline as pipeline_widget
    pipeline_widget.explorer()
"""

import ipywidgets

from threeloops.figures.training_loop.pipeline_gantt import BAND
from threeloops.widgets.live_text import LiveText
from threeloops.widgets.shown import Shown
from threeloops.widgets.training_loop.pipeline_view import SCHEDULES, STAGES, State, micro_batch_choices, moments, view

START = State(schedule="1f1b", pp=4, micro_batches=8, step=31)

# Heights are fixed, so that nothing below the figure moves while a control is turned.
FIGURE_HEIGHT, SUMMARY_HEIGHT = f"{190 + BAND * max(STAGES)}px", "64px"


class Explorer(Shown):
    """The controls, the figure, a spoken summary and a table. `state` is where the controls stand, `view` what they
    show.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.view = view(state)
        wide, label = {"width": "360px"}, {"description_width": "110px"}
        self.schedule = ipywidgets.Dropdown(
            description="schedule", options=list(SCHEDULES.items()), value=state.schedule, layout=wide, style=label
        )
        stages = [(str(number), number) for number in STAGES]
        self.pp = ipywidgets.SelectionSlider(
            description="stages", options=stages, value=state.pp, layout=wide, style=label
        )
        self.micro_batches = ipywidgets.SelectionSlider(
            description="micro-batches", options=_choices(state), value=state.micro_batches, layout=wide, style=label
        )
        self.step = ipywidgets.IntSlider(
            description="step", min=0, max=_last(state), value=state.step, layout=wide, style=label
        )
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        columns = [ipywidgets.VBox([self.schedule, self.pp]), ipywidgets.VBox([self.micro_batches, self.step])]
        self.box = ipywidgets.VBox(
            [ipywidgets.HBox(columns, layout={"flex_flow": "row wrap"}), self.figure, self.summary, self.table]
        )
        self._settling = False
        for control in (self.schedule, self.pp, self.micro_batches, self.step):
            control.observe(self._turned, "value")
        self._show()

    def _turned(self, change: object) -> None:
        """A control was moved. Another schedule takes the nearest number of micro-batches that it can have; another
        picture starts at its end.
        """
        if self._settling:
            return
        schedule, pp = self.schedule.value, self.pp.value
        choices = micro_batch_choices(schedule, pp)
        micro_batches = min(choices, key=lambda choice: abs(choice - self.micro_batches.value))
        last = len(moments(schedule, pp, micro_batches)) - 1
        same = (schedule, pp, micro_batches) == (self.state.schedule, self.state.pp, self.state.micro_batches)
        self.state = State(
            schedule=schedule, pp=pp, micro_batches=micro_batches, step=self.step.value if same else last
        )
        self._settle()
        self._show()

    def _settle(self) -> None:
        """Give the controls the options and ends that belong to the state."""
        self._settling = True
        if self.micro_batches.options != tuple(_choices(self.state)):
            self.micro_batches.options = _choices(self.state)
        self.micro_batches.value = self.state.micro_batches
        self.step.max = _last(self.state)
        self.step.value = self.state.step
        self._settling = False

    def _show(self) -> None:
        self.put(view(self.state))


def _choices(state: State) -> list[tuple[str, int]]:
    return [(str(number), number) for number in micro_batch_choices(state.schedule, state.pp)]


def _last(state: State) -> int:
    return len(moments(state.schedule, state.pp, state.micro_batches)) - 1


def explorer(state: State = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

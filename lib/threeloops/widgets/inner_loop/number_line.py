"""Number line explorer: choose formats and a stretch of the line, move a value along it, and read what each format
makes of it.

In a notebook:

    from threeloops.widgets.inner_loop import number_line as number_line_widget
    number_line_widget.explorer()
"""

import ipywidgets

from threeloops.figures.inner_loop.number_line import ROW
from threeloops.widgets.inner_loop.number_line_view import FORMATS, State, View, view
from threeloops.widgets.live_text import LiveText
from threeloops.widgets.shown import Shown

HIGHS = (0.002, 0.01, 0.1, 1.0, 2.0, 8.0, 32.0, 128.0, 512.0, 2048.0, 8192.0, 65536.0)
STEPS = 200  # places of the value between 0 and the right end
START = State(formats=("E2M1", "E3M2", "E4M3", "E5M2", "BF16"), high=8.0, value=3.32)

# A height for all formats, so that nothing below the figure moves while a slider is held.
FIGURE_HEIGHT, SUMMARY_HEIGHT = f"{150 + ROW * len(FORMATS)}px", "64px"


class Explorer(Shown):
    """The controls, the figure, a spoken summary and a table. `state` is where the controls stand, `view` what they
    show.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.view: View = view(state)
        wide, label = {"width": "360px"}, {"description_width": "110px"}
        ends = [(f"0 to {high:g}", high) for high in sorted({*HIGHS, state.high})]
        self.formats = ipywidgets.SelectMultiple(
            description="formats", options=FORMATS, value=state.formats, rows=len(FORMATS), layout=wide, style=label
        )
        self.high = ipywidgets.SelectionSlider(
            description="stretch", options=ends, value=state.high, layout=wide, style=label
        )
        self.place = ipywidgets.SelectionSlider(
            description="value", options=_places(state.high), value=_place(state), layout=wide, style=label
        )
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        columns = [self.formats, ipywidgets.VBox([self.high, self.place])]
        self.box = ipywidgets.VBox(
            [ipywidgets.HBox(columns, layout={"flex_flow": "row wrap"}), self.figure, self.summary, self.table]
        )
        self._settling = False
        for control in (self.formats, self.high, self.place):
            control.observe(self._turned, "value")
        self._show()

    def _turned(self, change: object) -> None:
        """A control was moved. Another stretch keeps the value's place on the screen; without any format, the last
        ones stay.
        """
        if self._settling:
            return
        if self.high.value != self.state.high:
            self._settling = True  # new options come with a value of their own for a moment
            place = self.place.value
            self.place.options = _places(self.high.value)
            self.place.value = place
            self._settling = False
        chosen = tuple(self.formats.value) or self.state.formats
        self.state = State(formats=chosen, high=self.high.value, value=_value(self.place.value, self.high.value))
        self._show()

    def _show(self) -> None:
        self.put(view(self.state))


def _value(place: int, high: float) -> float:
    """The value at a place, as few digits as tell it from its neighbours."""
    return float(f"{place * high / STEPS:.4g}")


def _places(high: float) -> list[tuple[str, int]]:
    return [(f"{_value(place, high):g}", place) for place in range(STEPS + 1)]


def _place(state: State) -> int:
    return min(range(STEPS + 1), key=lambda place: abs(_value(place, state.high) - state.value))


def explorer(state: State = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

"""KV explorer: choose a model, a card, a format, the length of a context and how many there are, and see whether they
fit.

In a notebook:

    from threeloops.widgets.product_loop import kv as kv_widget
    kv_widget.explorer()
"""

import ipywidgets

from threeloops.models import catalogue
from threeloops.widgets.live_text import LiveText
from threeloops.widgets.product_loop.kv_view import CARDS, FORMATS, MODELS, REQUESTS, TOKENS, State, possible_tp, view
from threeloops.widgets.shown import Shown

START = State(model="llama-3-8b", card="h100-sxm5", tp=1, kept_in="bf16", tokens=8192, requests=32)

# Heights are fixed, so that nothing below the figure moves while a control is turned.
FIGURE_HEIGHT, SUMMARY_HEIGHT = "290px", "64px"


class Explorer(Shown):
    """The controls, the figure, a spoken summary and a table. `state` is where the controls stand, `view` what they
    show.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.view = view(state)
        look = {"layout": {"width": "360px"}, "style": {"description_width": "110px"}}
        self.model = ipywidgets.Dropdown(description="model", options=list(MODELS.items()), value=state.model, **look)
        self.card = ipywidgets.Dropdown(description="card", options=list(CARDS.items()), value=state.card, **look)
        self.tp = ipywidgets.SelectionSlider(description="GPUs", options=_degrees(state), value=state.tp, **look)
        self.kept_in = ipywidgets.Dropdown(description="cache in", options=list(FORMATS), value=state.kept_in, **look)
        self.tokens = ipywidgets.SelectionSlider(
            description="tokens", options=[(f"{number:,}", number) for number in TOKENS], value=state.tokens, **look
        )
        self.requests = ipywidgets.SelectionSlider(
            description="requests", options=[(str(n), n) for n in REQUESTS], value=state.requests, **look
        )
        self.figure = ipywidgets.Output(layout={"height": FIGURE_HEIGHT, "overflow": "hidden"})
        self.summary = LiveText(layout={"min_height": SUMMARY_HEIGHT, "max_width": "640px"})
        self.table = ipywidgets.HTML()
        columns = [
            ipywidgets.VBox([self.model, self.card, self.tp]),
            ipywidgets.VBox([self.kept_in, self.tokens, self.requests]),
        ]
        self.box = ipywidgets.VBox(
            [ipywidgets.HBox(columns, layout={"flex_flow": "row wrap"}), self.figure, self.summary, self.table]
        )
        self._settling = False
        for control in (self.model, self.card, self.tp, self.kept_in, self.tokens, self.requests):
            control.observe(self._turned, "value")
        self._show()

    def _turned(self, change: object) -> None:
        """A control was moved. Another model takes the largest number of GPUs up to the present one that its heads
        split over.
        """
        if self._settling:
            return
        possible = possible_tp(catalogue.model(self.model.value))
        tp = max(degree for degree in possible if degree <= self.tp.value)
        self.state = State(
            model=self.model.value,
            card=self.card.value,
            tp=tp,
            kept_in=self.kept_in.value,
            tokens=self.tokens.value,
            requests=self.requests.value,
        )
        self._settle()
        self._show()

    def _settle(self) -> None:
        """Give the GPUs the choices that belong to the model."""
        self._settling = True
        if self.tp.options != tuple(_degrees(self.state)):
            self.tp.options = _degrees(self.state)
        self.tp.value = self.state.tp
        self._settling = False

    def _show(self) -> None:
        self.put(view(self.state))


def _degrees(state: State) -> list[tuple[str, int]]:
    return [(str(number), number) for number in possible_tp(catalogue.model(state.model))]


def explorer(state: State = START) -> Explorer:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state)

"""KV explorer: choose a model, a card, a format, the length of a context and how many there are, and see whether they
fit.

In a notebook:

    from threeloops.widgets.product_loop import kv as kv_widget
    kv_widget.explorer()
"""

from typing import Any

from threeloops.models import catalogue
from threeloops.widgets.controls import Control, menu, slider
from threeloops.widgets.explorer import Explorer
from threeloops.widgets.product_loop.kv_view import CARDS, FORMATS, MODELS, REQUESTS, TOKENS, State, possible_tp, view

START = State(model="llama-3-8b", card="h100-sxm5", tp=1, kept_in="bf16", tokens=8192, requests=32)


def controls(state: State) -> tuple[Control, ...]:
    """What can be turned."""
    return (
        menu("model", "model", MODELS),
        menu("card", "card", CARDS),
        slider("tp", "GPUs", possible_tp(catalogue.model(state.model))),
        menu("kept_in", "cache in", FORMATS.keys()),
        slider("tokens", "tokens", TOKENS),
        slider("requests", "requests", REQUESTS),
    )


def settled(state: State, at: dict[str, Any]) -> State:
    """Another model takes the largest number of GPUs up to the present one that its heads split over."""
    possible = possible_tp(catalogue.model(at["model"]))
    return State(**{**at, "tp": max(degree for degree in possible if degree <= at["tp"])})


def explorer(state: State = START) -> Explorer[State]:
    """The explorer, with its controls at a state; as the last line of a cell, it shows itself."""
    return Explorer(state, view=view, controls=controls, settled=settled)

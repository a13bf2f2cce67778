"""Batching view: what the explorer shows for a state, as figure, sentences and table. No widget in here: it is
computed and tested without a browser.

>>> shown = view(State(rate=0.5, step=30))
>>> print(shown.summary)
Step 30 of 60. Static: 11 waiting, 2 of 4 slots make a token, 2 held by requests that have ended, 3 answered. Continuous: 2 waiting, 4 of 4 slots make a token, 10 answered.
"""  # noqa: E501

import functools
import math
import random
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.simulate.product_loop import serving_play
from threeloops.simulate.product_loop.serving_policies import continuous_batching, static_batching
from threeloops.simulate.product_loop.serving_requests import Moments, Request
from threeloops.simulate.product_loop.serving_server import Server
from threeloops.simulate.product_loop.serving_steps import AffineStep
from threeloops.widgets.view import View

SLOTS, STEPS, LONGEST = 4, 60, 20
RATES = (0.2, 0.3, 0.4, 0.5, 0.7)  # requests that arrive in a step; four slots make four tokens in it
KINDS = ("static", "continuous")
COLUMNS = ("batching", "waiting", "make a token", "held", "answered", "tokens made")
WAITING, WORKS, HELD = "waiting", "makes a token", "has ended, holds its slot"
QUEUE, PANEL, BAND = 9, 244, 34  # dots of the queue that are drawn; pixels across a panel, and of a row


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    rate: float
    step: int

    def __post_init__(self) -> None:
        if self.rate not in RATES:
            raise ValueError(f"rate={self.rate!r} must be one of {', '.join(map(str, RATES))}")
        checks.count(at_least=0, step=self.step)
        if self.step > STEPS:
            raise ValueError(f"step={self.step} must be at most {STEPS}")


@functools.lru_cache(maxsize=8)
def requests(rate: float) -> tuple[Request, ...]:
    """The same answers at every rate, most of them short; they arrive at whole steps, more or less densely."""
    rng, now, made = random.Random(11), 0.0, []
    while now < STEPS:
        answer = rng.choice((2, 3, 4, 5, 6, 8, 11, LONGEST))
        made.append(Request(float(math.ceil(now)), 1, answer))
        now += rng.expovariate(1.0) / rate
    return tuple(made)


@functools.lru_cache(maxsize=16)
def played(kind: str, rate: float) -> tuple[Moments, ...]:
    """What happens to every request; a step takes one unit of time, whatever is in it."""
    policies = {
        "static": static_batching(slots=SLOTS),
        "continuous": continuous_batching(slots=SLOTS, order="decode first"),
    }
    return tuple(
        serving_play.played(requests(rate), server=Server(step_s=AffineStep(base_s=1.0), policy=policies[kind]))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Who is where while a step is being taken."""

    waiting: tuple[Moments, ...]
    works: tuple[Moments, ...]
    held: tuple[Moments, ...]
    answered: int
    tokens: int


def moment(kind: str, rate: float, step: int) -> Moment:
    """The server during a step; tokens are those of the steps that have ended."""
    here = [one for one in played(kind, rate) if one.request.arrival_s <= step]
    return Moment(
        waiting=tuple(one for one in here if one.admitted_s > step),
        works=tuple(one for one in here if one.admitted_s <= step < one.finished_s),
        held=tuple(one for one in here if one.finished_s <= step < one.released_s),
        answered=sum(one.finished_s <= step for one in here),
        tokens=sum(_made(one, step) for one in here),
    )


def _made(one: Moments, step: int) -> int:
    return max(0, min(one.request.output_tokens, int(step - one.admitted_s)))


def view(state: State) -> View:
    """What to show for a state."""
    now = {kind: moment(kind, state.rate, state.step) for kind in KINDS}
    told = " ".join(f"{kind.capitalize()}: {_told(now[kind])}" for kind in KINDS)
    summary = f"Step {state.step} of {STEPS}. {told}"
    rows = tuple(
        (
            kind,
            str(len(one.waiting)),
            f"{len(one.works)} of {SLOTS}",
            str(len(one.held)),
            str(one.answered),
            str(one.tokens),
        )
        for kind, one in now.items()
    )
    static, continuous = (now[kind].tokens for kind in KINDS)
    figure = Figure(
        title=f"After {state.step} steps: static has made {static} tokens, continuous {continuous}",
        caption=(
            f"{state.rate:g} requests arrive per step, the same at both servers. A dot moves right with every token"
            " and leaves at the end of its track; a hollow dot has ended and still holds its slot."
        ),
        alt=summary,
        body={"hconcat": [_panel(kind, now[kind], state.step) for kind in KINDS], "spacing": 12},
    )
    return View(columns=COLUMNS, figure=figure, summary=summary, rows=rows)


def _told(one: Moment) -> str:
    held = f", {len(one.held)} held by requests that have ended" if one.held else ""
    return f"{len(one.waiting)} waiting, {len(one.works)} of {SLOTS} slots make a token{held}, {one.answered} answered."


def _dots(now: Moment, step: int) -> list[dict[str, Any]]:
    dots = [{"x": 2 * place + 0.6, "row": 0, **_dot(one, WAITING)} for place, one in enumerate(now.waiting[:QUEUE])]
    for one in (*now.works, *now.held):
        what = WORKS if one in now.works else HELD
        dots.append({"x": _made(one, step), "row": one.slot + 1, **_dot(one, what)})
    return dots


def _dot(one: Moments, what: str) -> dict[str, Any]:
    number = one.place + 1
    return {
        "who": str(number),
        "shade": one.place % len(look.SERIES_COLOURS),
        "what": what,
        "words": f"request {number}, {one.request.output_tokens} tokens: {what}",
    }


def _panel(kind: str, now: Moment, step: int) -> dict[str, Any]:
    x = quantitative(scale={"domain": [-1, LONGEST + 1], "nice": False}, axis=None)
    y = quantitative(
        scale={"domain": [0, SLOTS + 1], "reverse": True, "nice": False},
        axis={
            "values": [row + 0.5 for row in range(SLOTS + 1)],
            "labelExpr": "datum.value < 1 ? 'queue' : 'slot ' + floor(datum.value)",
            "title": None,
            "ticks": False,
            "domain": False,
            "grid": False,
            "minExtent": 46,
        },
    )
    middle = [{"calculate": "datum.row + 0.5", "as": "middle"}]
    tracks = [{"row": one.slot + 1, "from": 0, "to": one.request.output_tokens} for one in (*now.works, *now.held)]
    track = {"x": {"field": "from", **x}, "x2": {"field": "to"}, "y": {"field": "middle", **y}}
    place = {"x": {"field": "x", **x}, "y": {"field": "middle", **y}}
    colour = nominal(
        "shade",
        scale={"domain": list(range(len(look.SERIES_COLOURS))), "range": list(look.SERIES_COLOURS)},
        legend=None,
    )
    dots = _dots(now, step)
    more = max(0, len(now.waiting) - QUEUE)
    layers = [
        {
            "data": {"values": [{"row": row, "from": -0.7, "to": LONGEST + 0.7} for row in range(1, SLOTS + 1)]},
            "transform": middle,
            "mark": {"type": "rule", "color": look.RULE, "strokeWidth": 20, "aria": False},
            "encoding": track,
        },
        {
            "data": {"values": tracks},
            "transform": middle,
            "mark": {"type": "rule", "color": look.GREY, "strokeWidth": 2, "aria": False},
            "encoding": track,
        },
        {
            "data": {"values": dots},
            "transform": middle,
            **layer(
                {"type": "point", "shape": "circle", "size": 300, "filled": True, "opacity": 1, "strokeWidth": 2.5},
                **place,
                stroke=colour,
                fill={"condition": {"test": f"datum.what === '{HELD}'", "value": look.PAPER}, **colour},
                **WORDS,
            ),
        },
        {
            "data": {"values": dots},
            "transform": middle,
            **layer(
                {"type": "text", "fontSize": look.TEXT - 2, "fontWeight": "bold", "aria": False},
                **place,
                text="who",
                color={"condition": {"test": f"datum.what === '{HELD}'", "value": look.INK}, "value": look.PAPER},
            ),
        },
        {
            "data": {"values": [{"row": 0, "x": LONGEST + 1, "text": f"+{more}" if more else ""}]},
            "transform": middle,
            **layer({"type": "text", "align": "right", "aria": False}, **place, text="text"),
        },
    ]
    return {
        "title": {"text": f"{kind}: {now.answered} answered", "fontSize": look.TEXT, "anchor": "start"},
        "width": PANEL,
        "height": BAND * (SLOTS + 1),
        "layer": layers,
    }

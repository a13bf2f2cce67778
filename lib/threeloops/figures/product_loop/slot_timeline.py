"""Slot timeline: which request has which slot when, and how long a slot is held by a request that has ended.

>>> from threeloops.simulate.product_loop.serving_policies import static_batching
>>> from threeloops.simulate.product_loop.serving_run import run
>>> from threeloops.simulate.product_loop.serving_steps import AffineStep
>>> from threeloops.simulate.product_loop.traffic import at_once
>>> done = run(at_once([3, 1]), step_s=AffineStep(base_s=1.0), policy=static_batching(slots=2))
>>> print(slot_timeline({"static": done}, title="One waits for the other", caption="Two requests.").alt)
static: 2 slots, 3 long; 33.3 % of the slots' time makes no token. Slot 1: request 1. Slot 2: request 2.
"""

from collections.abc import Mapping
from typing import Any

from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.simulate.product_loop.serving_requests import Moments
from threeloops.simulate.product_loop.serving_run import Run
from threeloops.units import fmt_percent

BAND, MARGIN, LETTER = (
    26,
    56,
    8,
)  # pixels: of a slot, of the slots' names, of a digit with room to spare; only bars that make tokens have one
WORKS, HELD = "makes tokens", "ended, slot still held"
SHADES = {WORKS: "#bcd9ee", HELD: "#f6cfb4"}


def slot_timeline(
    runs: Mapping[str, Run], *, title: str, caption: str, unit_s: float = 1.0, time: str = "steps"
) -> Figure:
    """Runs below each other under their names, on one scale of time; requests are numbered from 1 in their order.

    Assumes:  no request was preempted or turned away: a request has one slot from its admission to its release
    """
    if not runs:
        raise ValueError("runs is empty; a timeline needs at least one")
    span = max(run.end_s for run in runs.values()) / unit_s
    lowest = list(runs)[-1]
    views = [
        {
            "title": {"text": name, "fontSize": look.TEXT, "anchor": "start"},
            **_view(run, span, unit_s, time if name == lowest else None),
        }
        for name, run in runs.items()
    ]
    alt = " ".join(f"{name}: {_words(run, unit_s)}" for name, run in runs.items())
    return Figure(title=title, caption=caption, alt=alt, body={"vconcat": views, "spacing": 12})


def _slots(run: Run) -> int:
    return 1 + max(one.slot for one in run.served)


def _words(run: Run, unit_s: float) -> str:
    said = [
        f"{_slots(run)} slots, {run.end_s / unit_s:.4g} long; {fmt_percent(1 - run.useful_share)} of the slots' time"
        " makes no token."
    ]
    for slot in range(_slots(run)):
        numbers = [one.place + 1 for one in sorted(run.served, key=_admitted) if one.slot == slot]
        said.append(
            f"Slot {slot + 1}: request{'s' if len(numbers) > 1 else ''} {', '.join(str(one) for one in numbers)}."
        )
    return " ".join(said)


def _admitted(one: Moments) -> float:
    return one.admitted_s


def _bars(run: Run, unit_s: float) -> list[dict[str, Any]]:
    bars = []
    for one in run.served:
        for kind, begin_s, end_s in (
            (WORKS, one.admitted_s, one.finished_s),
            (HELD, one.finished_s, one.released_s),
        ):
            if end_s > begin_s:
                begin, end = round(begin_s / unit_s, 6), round(end_s / unit_s, 6)
                words = f"slot {one.slot + 1}: request {one.place + 1} {kind}, {begin:.4g} to {end:.4g}"
                bars.append(
                    {"slot": one.slot, "begin": begin, "end": end, "kind": kind, "words": words, "who": one.place + 1}
                )
    return bars


def _view(run: Run, span: float, unit_s: float, time: str | None) -> dict[str, Any]:
    width, slots = look.PLOT_WIDTH - MARGIN, _slots(run)
    bars = [bar | {"top": bar["slot"] + 0.08, "bottom": bar["slot"] + 0.92} for bar in _bars(run, unit_s)]
    named = [
        {"x": (bar["begin"] + bar["end"]) / 2, "y": bar["slot"] + 0.5, "who": str(bar["who"])}
        for bar in bars
        if bar["kind"] == WORKS and (bar["end"] - bar["begin"]) * width / span > LETTER * len(str(bar["who"]))
    ]
    x = quantitative(
        scale={"domain": [0, span], "nice": False},
        axis={"title": time, "labels": time is not None, "grid": False, "tickCount": 8},
    )
    y = quantitative(
        scale={"domain": [0, slots], "reverse": True, "nice": False},
        axis={
            "values": [slot + 0.5 for slot in range(slots)],
            "labelExpr": "'slot ' + (floor(datum.value) + 1)",
            "title": None,
            "ticks": False,
            "domain": False,
            "grid": False,
            "minExtent": MARGIN - 8,
        },
    )
    shades = {"domain": list(SHADES), "range": list(SHADES.values())}
    rects = layer(
        {"type": "rect", "stroke": look.GREY, "strokeWidth": 0.6},
        bars,
        x={"field": "begin", **x},
        x2="end",
        y={"field": "top", **y},
        y2="bottom",
        color=nominal("kind", scale=shades, legend={"symbolStrokeColor": look.GREY}),
        **WORDS,
    )
    labels = layer(
        {"type": "text", "color": look.INK, "fontSize": look.TEXT - 1, "aria": False},
        named,
        x={"field": "x", **x},
        y={"field": "y", **y},
        text="who",
    )
    return {"width": width, "height": BAND * slots, "layer": [rects, labels]}

"""Timeline: a trace as bars on a clock, one band per row, with counters as areas below; alone, or several side by
side.

Bars differ by height and by colour: a matrix product fills its band, another kernel most of it, and whoever only
waits is a thin bar.

>>> from threeloops.inner_loop.trace import Interval, Trace
>>> trace = Trace(
...     intervals=(
...         Interval(row="CPU", name="sync", start_s=0, end_s=2e-3),
...         Interval(row="GPU", name="matmul", start_s=1e-3, end_s=2e-3),
...     )
... )
>>> print(timeline(trace, title="A wait", caption="One kernel.", rows=("CPU", "GPU")).alt)
From 0 to 2 ms. GPU: at work 50.0 % of the time. CPU: at work 0 % of the time, waiting 100 %.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.inner_loop.trace import BATCH_WAIT, QUEUE_FULL, SYNC, Interval, Trace, covered
from threeloops.units import fmt_bytes, fmt_percent, fmt_seconds, ms

ROWS = ("loader", "CPU", "copies", "GPU", "network")
COUNTERS = ("tensor cores", "memory bus", "allocated")
MEMORY = ("allocated", "reserved")  # counters whose rise over many steps is the news
BAND, SMALL_BAND = 26, 13  # pixels
TALL = 3  # small bands that such a counter takes
LABELS = 92  # pixels that the names of rows take
LETTER = 8  # pixels, with room to spare

# Kind of bar: its colour and the share of its band that it fills.
KINDS = {
    "matmul": (look.BLUE, 0.86),
    "at work": (look.GREEN, 0.62),
    "network, copy": (look.PINK, 0.62),
    "waiting": (look.ORANGE, 0.24),
}
WAITS = (BATCH_WAIT, SYNC, QUEUE_FULL)


def timeline(
    trace: Trace,
    *,
    title: str,
    caption: str,
    rows: Sequence[str] = ROWS,
    counters: Sequence[str] = (),
    labelled: Sequence[str] = (),
) -> Figure:
    """One trace, from its start to its end; rows and counters from top to bottom. Bars of labelled rows carry their
    names where there is room.
    """
    for name in (*rows, *counters):
        checks.one_of(dict.fromkeys([*ROWS, *trace.rows, *trace.counters]), row=name)
    body = _view(trace, rows, counters, band=BAND, width=look.PLOT_WIDTH - LABELS, labelled=labelled)
    said = [*(_longest(trace, row) for row in labelled), words(trace, rows, counters)]
    return Figure(title=title, caption=caption, alt=" ".join(said), body=body)


def panel(
    traces: Mapping[str, Trace],
    *,
    title: str,
    caption: str,
    rows: Sequence[str] = ROWS,
    counters: Sequence[str] = COUNTERS,
) -> Figure:
    """Several traces, two beside each other, each under its own name and on its own clock."""
    if not traces:
        raise ValueError("traces is empty; a panel needs at least one")
    width = (look.PLOT_WIDTH + 40) // 2 - LABELS
    views = [
        {"title": {"text": name, "fontSize": look.TEXT}, **_view(trace, rows, counters, band=SMALL_BAND, width=width)}
        for name, trace in traces.items()
    ]
    alt = " ".join(f"{name}: {words(trace, rows, counters)}" for name, trace in traces.items())
    return Figure(
        title=title,
        caption=caption,
        alt=alt,
        body={"concat": views, "columns": 2, "spacing": 18, "resolve": {"scale": {"x": "independent"}}},
    )


def words(trace: Trace, rows: Sequence[str], counters: Sequence[str]) -> str:
    """A trace for those who cannot see it: how much of the time the GPU works, then how much each other row works and
    waits, and between what each counter moves.
    """
    span = trace.end_s - trace.start_s
    said = [f"From 0 to {span / ms:.3g} ms."]
    for row in sorted(rows, key=lambda row: row != "GPU"):
        intervals = trace.of(row)
        if intervals:
            shares = {
                waits: sum(b - a for a, b in covered(i for i in intervals if (i.name in WAITS) == waits)) / span
                for waits in (False, True)
            }
            waiting = f", waiting {fmt_percent(shares[True])}" if shares[True] else ""
            said.append(f"{row}: at work {fmt_percent(shares[False])} of the time{waiting}.")
    for counter in counters:
        values = [reading.value for reading in trace.read(counter)]
        if values:
            low, high = (
                fmt_bytes(v, base=10) if max(values) > 1 else fmt_percent(v) for v in (min(values), max(values))
            )
            said.append(f"{counter}: between {low} and {high}.")
    return " ".join(said)


def _longest(trace: Trace, row: str) -> str:
    """The bars that fill a row, by name and in order: those of more than a tenth of the time."""
    least_s = (trace.end_s - trace.start_s) / 10
    shown = [f"{bar.name} {fmt_seconds(bar.length_s)}" for bar in trace.of(row) if bar.length_s > least_s]
    return f"{row}: {', '.join(shown)}."


def _view(
    trace: Trace, rows: Sequence[str], counters: Sequence[str], *, band: int, width: int, labelled: Sequence[str] = ()
) -> dict[str, Any]:
    shown = [*(row for row in rows if trace.of(row)), *(counter for counter in counters if trace.read(counter))]
    tall = [TALL if name in MEMORY and band == SMALL_BAND else 1 for name in shown]
    places = [sum(tall[:number]) for number in range(len(shown))]
    bars = [bar for place, row in zip(places, shown, strict=True) for bar in _bars(trace, row, place, width)]
    areas = [
        point
        for place, bands, counter in zip(places, tall, shown, strict=True)
        for point in _areas(trace, counter, place, bands)
    ]
    span = (trace.end_s - trace.start_s) / ms
    named, beside = _names(bars, labelled, width / span)
    layers = (
        [_bar_layer(bars, span)]
        + ([_area_layer(areas)] if areas else [])
        + [_name_layer(bars, inside=bars is named) for bars in (named, beside) if bars]
    )
    middles = [place + bands / 2 for place, bands in zip(places, tall, strict=True)]
    y_axis = {
        "values": middles,
        "labelExpr": f"{shown}[indexof({middles}, datum.value)]",
        "title": None,
        "ticks": False,
        "domain": False,
    }
    y = quantitative(
        scale={"domain": [0, sum(tall)], "reverse": True, "nice": False},
        axis={**y_axis, "grid": False, "minExtent": LABELS - 8},
    )
    for one in layers:
        one["encoding"]["y"] = {"field": "middle" if one["mark"]["type"] == "text" else "top", **y}
        if one["mark"]["type"] != "text":
            one["encoding"]["y2"] = {"field": "bottom"}
    return {"width": width, "height": band * sum(tall), "layer": layers}


def _bar_layer(bars: list[dict[str, Any]], span: float) -> dict[str, Any]:
    colour = {"domain": list(KINDS), "range": [colour for colour, _ in KINDS.values()]}
    seen = [name for name in KINDS if any(bar["kind"] == name for bar in bars)]
    x = {"scale": {"domain": [0, span], "nice": False}, "axis": {"title": "time (ms)", "grid": False, "tickCount": 5}}
    return layer(
        {"type": "rect"},
        bars,
        x=quantitative("start", **x),
        x2="end",
        color=nominal("kind", scale=colour, legend={"values": seen}),
        **WORDS,
    )


def _area_layer(areas: list[dict[str, Any]]) -> dict[str, Any]:
    return layer(
        {"type": "area", "interpolate": "step-after", "color": look.GREY, "opacity": 0.75, "aria": False},
        areas,
        x=quantitative("at"),
        detail="counter",
    )


def _names(
    bars: list[dict[str, Any]], labelled: Sequence[str], pixels_per_ms: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Bars that carry their names inside, and bars too narrow for that which are the last of their rows: their names
    stand behind them.
    """
    asked = [bar for bar in bars if bar["row"] in labelled]
    inside = [bar for bar in asked if (bar["end"] - bar["start"]) * pixels_per_ms > LETTER * len(bar["name"])]
    last = [
        max((bar for bar in asked if bar["row"] == row), key=lambda bar: float(bar["end"]))
        for row in dict.fromkeys(bar["row"] for bar in asked)
    ]
    return inside, [bar for bar in last if bar not in inside]


def _name_layer(named: list[dict[str, Any]], *, inside: bool) -> dict[str, Any]:
    values = [
        {
            "at": (bar["start"] + bar["end"]) / 2 if inside else bar["end"],
            "middle": (bar["top"] + bar["bottom"]) / 2,
            "name": bar["name"],
        }
        for bar in named
    ]
    style = {"color": look.PAPER, "fontWeight": "bold"} if inside else {"color": look.INK, "align": "left", "dx": 5}
    return layer({"type": "text", "aria": False, **style}, values, x=quantitative("at"), text="name")


def kind(interval: Interval) -> str:
    """What an interval is drawn as."""
    if interval.name in WAITS:
        return "waiting"
    if interval.row in ("network", "copies"):
        return "network, copy"
    return "matmul" if interval.name == "matmul" else "at work"


def _bars(trace: Trace, row: str, place: int, width: int) -> list[dict[str, Any]]:
    """Bars of a row, in as many lanes as overlap; neighbours of one kind that no eye could tell apart are drawn as
    one.
    """
    apart_s = (trace.end_s - trace.start_s) / width / 3
    lanes: list[list[list[Any]]] = []
    for interval in trace.of(row):
        lane = next((lane for lane in lanes if lane[-1][1] <= interval.start_s), None)
        if lane is None:
            lane = []
            lanes.append(lane)
        if (
            lane
            and lane[-1][2] == kind(interval)
            and lane[-1][3] == interval.name
            and interval.start_s - lane[-1][1] < apart_s
        ):
            lane[-1][1] = interval.end_s
        else:
            lane.append([interval.start_s, interval.end_s, kind(interval), interval.name])
    begin_s = trace.start_s
    return [_bar(begin_s, row, place, n, len(lanes), bar) for n, lane in enumerate(lanes) for bar in lane]


def _bar(begin_s: float, row: str, place: int, lane: int, lanes: int, bar: Sequence[Any]) -> dict[str, Any]:
    begin, end, what, name = bar
    start, stop = (begin - begin_s) / ms, (end - begin_s) / ms
    middle, half = place + (lane + 0.5) / lanes, KINDS[what][1] / lanes / 2
    words_ = f"{row}: {name}, {start:.3g} to {stop:.3g} ms"
    return {
        "start": round(start, 4),
        "end": round(stop, 4),
        "top": middle - half,
        "bottom": middle + half,
        "kind": what,
        "words": words_,
        "row": row,
        "name": name,
    }


def _areas(trace: Trace, counter: str, place: int, bands: int) -> list[dict[str, Any]]:
    readings = trace.read(counter)
    begin_s = trace.start_s
    top = max((reading.value for reading in readings), default=0) if counter in MEMORY else 1.0
    foot, height = place + 0.95 * bands, 0.85 * bands / top
    return [
        {
            "at": round((reading.at_s - begin_s) / ms, 4),
            "top": foot - height * reading.value,
            "bottom": foot,
            "counter": counter,
        }
        for reading in readings
    ]

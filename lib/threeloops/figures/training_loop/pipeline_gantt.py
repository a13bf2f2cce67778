"""Pipeline Gantt: who works on which micro-batch when. One band per rank, one bar per pass; white is time that was
paid for and not used.

Passes differ by colour and by height, and where there is room they carry a letter and their micro-batch: F forward, B
backward, D and W its two halves.

>>> from threeloops.simulate.training_loop.pipeline_schedules import Work, run
>>> played = run(
...     schedule="gpipe",
...     pp=2,
...     micro_batches=1,
...     work=Work(forward_s=1, input_gradient_s=1, weight_gradient_s=1),
...     send_s=0,
... )
>>> gantt(played, title="One micro-batch", caption="Alone.").alt
'2 ranks, 6 long. Rank 1: F1 at 0, B1 at 4; works 50.0 % of the time. Rank 2: F1 at 1, B1 at 2; works 50.0 % of the time.'
"""  # noqa: E501

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from threeloops.figures import look, narrow
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.simulate.training_loop.pipeline_orders import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, Slot
from threeloops.simulate.training_loop.pipeline_schedules import Run, Timed
from threeloops.units import counted, fmt_percent

# pixels: of a rank's band; of one of several figures', and where that has halves or low bars to be labelled; of a
# letter, with room to spare
BAND, SMALL_BAND, SPLIT_BAND, LETTER = 30, 19, 28, 7
MARGIN = 62  # pixels that the names of ranks take
WIDTH = look.PLOT_WIDTH - MARGIN
SPOKEN = 6  # passes of a rank that the words name one by one

# Name, shade (light, for dark letters) and share of the band's height.
KINDS = {
    FORWARD: ("forward (F)", "#bcd9ee", 0.62),
    BACKWARD: ("whole backward (B)", "#f6cfb4", 0.9),
    INPUT_GRADIENT: ("input gradient (D)", "#ecc4da", 0.9),
    WEIGHT_GRADIENT: ("weight gradient (W)", "#bfe6d6", 0.45),
}


def gantt(
    run: Run,
    *,
    title: str,
    caption: str,
    unit_s: float = 1,
    unit: str = "",
    now_s: float | None = None,
    span_s: tuple[float, float] | None = None,
) -> Figure:
    """One schedule, its times in units of unit_s. With now_s, what has not begun by then is left out, and a line
    stands at that time; with span_s, only what lies between these two times is drawn.
    """
    span_s = span_s or (0, run.step_s)
    drawn = partial(_view, run, span_s=span_s, unit_s=unit_s, unit=unit, band=BAND, seen=_seen([run]), now_s=now_s)
    alt = words(run, unit_s=unit_s, unit=unit)
    slim = drawn(width=narrow.PLOT)
    return Figure(title=title, caption=caption, alt=alt, body=drawn(), slim=slim, narrow_px=0)


def panel(runs: Mapping[str, Run], *, title: str, caption: str, unit_s: float = 1, unit: str = "") -> Figure:
    """Several schedules below each other, under their names and on one scale of time."""
    if not runs:
        raise ValueError("runs is empty; a panel needs at least one")
    span_s = (0, max(run.step_s for run in runs.values()))
    shared: dict[str, Any] = {
        "span_s": span_s,
        "unit_s": unit_s,
        "unit": unit,
        "band": SPLIT_BAND if any(map(_split, runs.values())) else SMALL_BAND,
        "seen": _seen(runs.values()),
        "now_s": None,
    }
    lowest = list(runs)[-1]

    def drawn(**form: int) -> dict[str, Any]:
        views = [
            {"title": {"text": key, "fontSize": look.TEXT}, **_view(run, **{**shared, **form}, last=key == lowest)}
            for key, run in runs.items()
        ]
        return {"vconcat": views, "spacing": 10}

    alt = " ".join(f"{key}: {words(run, unit_s=unit_s, unit=unit)}" for key, run in runs.items())
    slim = drawn(width=narrow.PLOT, band=BAND)  # whose letters are not smaller
    return Figure(title=title, caption=caption, alt=alt, body=drawn(), slim=slim, narrow_px=0)


def words(run: Run, *, unit_s: float = 1, unit: str = "") -> str:
    """A schedule for those who cannot see it."""
    said = [f"{counted(len(run.operations), 'rank')}, {run.step_s / unit_s:.4g}{f' {unit}' if unit else ''} long."]
    for rank, (slots, busy_s) in enumerate(zip(run.operations, run.busy_s, strict=True)):
        named = ", ".join(f"{name(slot.passes)} at {slot.start_s / unit_s:.3g}" for slot in slots[:SPOKEN])
        more = f" and {len(slots) - SPOKEN:,} more" if len(slots) > SPOKEN else ""
        said.append(f"Rank {rank + 1}: {named}{more}; works {fmt_percent(busy_s / run.step_s)} of the time.")
    return " ".join(said)


def name(passes: Slot) -> str:
    """What a slot runs, as its bar says it; micro-batches and ranks count from 1, as in the papers' pictures."""
    return " with ".join(f"{one.kind}{one.micro_batch + 1}" for one in passes)


def _view(
    run: Run,
    *,
    span_s: tuple[float, float],
    unit_s: float,
    unit: str,
    band: int,
    seen: list[str],
    now_s: float | None,
    last: bool = True,
    width: int = WIDTH,
) -> dict[str, Any]:
    ranks = len(run.operations)
    begun = [
        (rank, slot)
        for rank, slots in enumerate(run.operations)
        for slot in slots
        if (now_s is None or slot.start_s < now_s) and span_s[0] < slot.end_s and slot.start_s < span_s[1]
    ]
    bars = [bar for rank, slot in begun for bar in _bars(run, rank, slot, unit_s)]
    x = {"domain": [end_s / unit_s for end_s in span_s], "nice": False}
    time_axis = {
        "title": (f"time ({unit})" if unit else "time") if last else None,
        "labels": last,
        "grid": False,
        "tickCount": 8,
    }
    axis = {
        "values": [n + 0.5 for n in range(ranks)],
        "labelExpr": "'rank ' + (floor(datum.value) + 1)",
        "title": None,
        "ticks": False,
        "domain": False,
    }
    y = quantitative(
        scale={"domain": [0, ranks], "reverse": True, "nice": False},
        axis={**axis, "grid": False, "minExtent": MARGIN - 8},
    )
    per_unit = width * unit_s / (span_s[1] - span_s[0])
    inside = [bar for bar in bars if span_s[0] <= unit_s * (bar["start"] + bar["end"]) / 2 <= span_s[1]]
    roomy = [bar | {"label": label} for bar in inside if (label := _fitting(bar, per_unit, band))]
    layers = [_rule_layer(ranks, y), _bar_layer(bars, seen, {"scale": x, "axis": time_axis}, y)]
    layers += [_label_layer(roomy, y, look.TEXT if band == BAND else look.TEXT - 2)] if roomy else []
    layers += [_now_layer(now_s / unit_s)] if now_s is not None else []
    return {"width": width, "height": band * ranks, "layer": layers}


def _rule_layer(ranks: int, y: dict[str, Any]) -> dict[str, Any]:
    """Thin lines between the ranks' bands."""
    values = [{"row": row} for row in range(ranks + 1)]
    return layer({"type": "rule", "color": look.RULE, "aria": False}, values, y={"field": "row", **y})


def _split(run: Run) -> bool:
    """Whether a schedule has bars that are lower than a whole pass: weight gradients, or two passes at once."""
    passes = [slot.passes for slots in run.operations for slot in slots]
    return any(len(one) > 1 or one[0].kind == WEIGHT_GRADIENT for one in passes)


def _seen(runs: Iterable[Run]) -> list[str]:
    """Kinds of pass that the legend names."""
    used = {one.kind for run in runs for slots in run.operations for slot in slots for one in slot.passes}
    return [said for kind, (said, _, _) in KINDS.items() if kind in used]


def _bar_layer(bars: list[dict[str, Any]], seen: list[str], x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    shades = {"domain": [name for name, _, _ in KINDS.values()], "range": [shade for _, shade, _ in KINDS.values()]}
    legend = {"title": None, "symbolStrokeColor": look.GREY, "values": seen, "columns": 2}
    return layer(
        {"type": "rect", "stroke": look.GREY, "strokeWidth": 0.6, "clip": True},
        bars,
        x=quantitative("start", **x),
        x2="end",
        y={"field": "top", **y},
        y2="bottom",
        color=nominal("kind", scale=shades, legend=legend),
        **WORDS,
    )


def _label_layer(bars: list[dict[str, Any]], y: dict[str, Any], size: int) -> dict[str, Any]:
    values = [
        {"centre": (bar["start"] + bar["end"]) / 2, "middle": (bar["top"] + bar["bottom"]) / 2, "label": bar["label"]}
        for bar in bars
    ]
    return layer(
        {"type": "text", "color": look.INK, "fontSize": size, "aria": False},
        values,
        x=quantitative("centre"),
        y={"field": "middle", **y},
        text="label",
    )


def _fitting(bar: dict[str, Any], per_unit: float, band: int) -> str:
    """What of a bar's label there is room for: all of it, the micro-batch, or nothing."""
    room = (bar["end"] - bar["start"]) * per_unit if (bar["bottom"] - bar["top"]) * band > look.TEXT - 2 else 0
    return next((label for label in (bar["label"], bar["label"][1:]) if room > LETTER * len(label) + 2), "")


def _now_layer(now: float) -> dict[str, Any]:
    mark = {"type": "rule", "color": look.ORANGE, "strokeWidth": 2, "aria": False}
    return layer(mark, [{"at": now}], x=quantitative("at"))


def _bars(run: Run, rank: int, slot: Timed, unit_s: float) -> list[dict[str, Any]]:
    """The bars of a slot: one, or a forward above the backward that it overlaps."""
    bars, lanes = [], len(slot.passes)
    start, end = round(slot.start_s / unit_s, 5), round(slot.end_s / unit_s, 5)
    for lane, one in enumerate(slot.passes):
        kind, _, height = KINDS[one.kind]
        middle, half = rank + (lane + 0.5) / lanes, (height if lanes == 1 else 0.9) / lanes / 2
        piece = f", chunk {one.position // len(run.operations) + 1}" if run.chunks > 1 else ""
        said = f"rank {rank + 1}: {kind} of micro-batch {one.micro_batch + 1}{piece}, {start:.4g} to {end:.4g}"
        place = {"start": start, "end": end, "top": middle - half, "bottom": middle + half}
        bars.append({**place, "kind": kind, "label": f"{one.kind}{one.micro_batch + 1}", "words": said})
    return bars

"""Launch timeline: what the host issued and what the device ran, one pair of rows per run.

>>> spans = [Span(run="small", where="host", start_s=0, end_s=2), Span(run="small", where="device", start_s=2, end_s=3)]
>>> print(launch_timeline(spans, title="The device waits", caption="One kernel.", unit_s=1, unit="time").alt)
small: 1 kernel, done after 3 time; the device runs 33.3 % of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.figure import Figure
from threeloops.units import counted, fmt_percent

ROW = 30  # pixels
KINDS = {"host": "host issues a kernel", "device": "device runs it"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One piece of work in one of the runs that are compared."""

    run: str
    where: str  # host or device
    start_s: float
    end_s: float

    def __post_init__(self) -> None:
        checks.one_of(KINDS, where=self.where)
        checks.non_negative(start_s=self.start_s)
        checks.positive(length_s=self.end_s - self.start_s)


def launch_timeline(spans: Sequence[Span], *, title: str, caption: str, unit_s: float, unit: str) -> Figure:
    """Two rows per run on one axis of time; `unit_s` seconds make one `unit` of it."""
    if not spans:
        raise ValueError("spans is empty; a timeline needs at least one piece of work")
    checks.positive(unit_s=unit_s)
    values = [
        {
            "row": f"{span.run}: {span.where}",
            "start": span.start_s / unit_s,
            "end": span.end_s / unit_s,
            "kind": KINDS[span.where],
            "words": f"{span.run}, {span.where}, from {span.start_s / unit_s:.3g} to {span.end_s / unit_s:.3g} {unit}",
        }
        for span in spans
    ]
    runs = list(dict.fromkeys(span.run for span in spans))
    rows = [f"{run}: {where}" for run in runs for where in KINDS]
    return Figure(
        title=title,
        caption=caption,
        alt=" ".join(_words(run, [span for span in spans if span.run == run], unit_s, unit) for run in runs),
        body={
            "width": look.PLOT_WIDTH - 60,
            "height": ROW * len(rows),
            "data": {"values": values},
            "mark": {"type": "bar", "height": ROW - 10, "stroke": look.INK, "strokeWidth": 0.8},
            "encoding": _encoding(rows, unit),
        },
    )


def _encoding(rows: list[str], unit: str) -> dict[str, Any]:
    return {
        "y": {"field": "row", "type": "nominal", "title": None, "sort": rows, "axis": {"labelLimit": 220}},
        "x": {"field": "start", "type": "quantitative", "title": f"time ({unit})", "scale": {"nice": False}},
        "x2": {"field": "end"},
        "color": {
            "field": "kind",
            "type": "nominal",
            "scale": {"domain": list(KINDS.values()), "range": ["#f6d9c5", "#0072b2"]},
        },
        "tooltip": {"field": "words"},
        "description": {"field": "words"},
    }


def _words(run: str, spans: list[Span], unit_s: float, unit: str) -> str:
    device = [span for span in spans if span.where == "device"]
    end = max(span.end_s for span in spans)
    busy = sum(span.end_s - span.start_s for span in device)
    return (
        f"{run}: {counted(len(device), 'kernel')}, done after {end / unit_s:.4g} {unit}; the device runs"
        f" {fmt_percent(busy / end)} of it."
    )

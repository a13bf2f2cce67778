"""Launch timeline: what the CPU launched and what the GPU ran, one pair of rows per run.

>>> runs = {"one kernel": launch_queue.play([1.0], issue_s=2.0, queue=8)}
>>> print(launch_timeline(runs, title="The GPU waits", caption="One kernel.", unit_s=1, unit="s").alt)
one kernel: the GPU runs kernels 33.3 % of the time, 1 kernel in 3 s.
"""

from collections.abc import Mapping
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.simulate.inner_loop import launch_queue
from threeloops.units import counted, fmt_percent

ROW = 30  # pixels
WHO = {"host": "CPU", "device": "GPU"}
KINDS = {"host": "CPU launches", "device": "GPU runs a kernel"}


def launch_timeline(
    runs: Mapping[str, launch_queue.PlayedLaunches], *, title: str, caption: str, unit_s: float, unit: str
) -> Figure:
    """Two rows per run on one axis of time; `unit_s` seconds make one `unit` of it."""
    if not runs:
        raise ValueError("runs is empty; a timeline needs at least one")
    checks.positive(unit_s=unit_s)
    values = [_bar(run, span, unit_s, unit) for run, played in runs.items() for span in played.spans]
    rows = [f"{run}: {who}" for run in runs for who in WHO.values()]
    return Figure(
        title=title,
        caption=caption,
        alt=" ".join(_words(run, played, unit_s, unit) for run, played in runs.items()),
        body={
            "width": look.PLOT_WIDTH - 60,
            "height": ROW * len(rows),
            "data": {"values": values},
            "mark": {"type": "bar", "height": ROW - 10, "stroke": look.INK, "strokeWidth": 0.8},
            "encoding": _encoding(rows, unit),
        },
    )


def _bar(run: str, span: launch_queue.Span, unit_s: float, unit: str) -> dict[str, Any]:
    start, end, who = span.start_s / unit_s, span.end_s / unit_s, WHO[span.where]
    return {
        "row": f"{run}: {who}",
        "start": start,
        "end": end,
        "kind": KINDS[span.where],
        "words": f"{run}, {who}, from {start:.3g} to {end:.3g} {unit}",
    }


def _encoding(rows: list[str], unit: str) -> dict[str, Any]:
    return {
        "y": nominal("row", title=None, sort=rows, axis={"labelLimit": 220}),
        "x": quantitative("start", title=f"time ({unit})", scale={"nice": False}),
        "x2": {"field": "end"},
        "color": nominal("kind", scale={"domain": list(KINDS.values()), "range": ["#f6d9c5", "#0072b2"]}),
        **WORDS,
    }


def _words(run: str, played: launch_queue.PlayedLaunches, unit_s: float, unit: str) -> str:
    kernels = sum(span.where == "device" for span in played.spans)
    busy = 1 - played.device_idle_s / played.finished_s
    return (
        f"{run}: the GPU runs kernels {fmt_percent(busy)} of the time,"
        f" {counted(kernels, 'kernel')} in {played.finished_s / unit_s:.4g} {unit}."
    )

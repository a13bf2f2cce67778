"""Part roofs: the rooflines of several chips on one chart, and the pipeline's stages as lines across them.

>>> figure = part_roofs(
...     {"Orin": (85e12, 204.8e9), "Thor": (517e12, 273e9)},
...     stages={"camera backbone": 349.0},
...     title="More peak than bandwidth",
...     caption="INT8 and FP8, dense.",
... )
>>> print(figure.alt)
Rooflines. Orin: ridge point 415 FLOP/B, camera backbone at most 71.5 TOP/s. Thor: ridge point 1,894 FLOP/B, camera backbone at most 95.3 TOP/s.
"""  # noqa: E501

from collections.abc import Mapping
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.operations import roofline
from threeloops.units import fmt_si

LOW, HIGH, BOTTOM = 1.0, 10_000.0, 0.1  # FLOP/B from the left to the right; tera-operations per second
TERA = 1e12


def part_roofs(
    parts: Mapping[str, tuple[float, float]], *, stages: Mapping[str, float], title: str, caption: str
) -> Figure:
    """`parts` are (peak, memory bandwidth) by name; `stages` are arithmetic intensities by name.

    Raises:   ValueError for more parts than colours can tell apart, or for a stage that is not on the chart
    """
    if not 0 < len(parts) <= len(look.SERIES_COLOURS):
        raise ValueError(f"{len(parts)} parts; draw 1 to {len(look.SERIES_COLOURS)}")
    for name, intensity in stages.items():
        checks.positive(**{name: intensity})
        if not LOW <= intensity <= HIGH:
            raise ValueError(f"{name} at {intensity:g} FLOP/B is not on the chart, from {LOW:g} to {HIGH:g}")
    rows = [row for name, (peak, bandwidth) in parts.items() for row in _line(name, peak, bandwidth)]
    names = list(parts)
    highest = 2 * max(peak for peak, _ in parts.values()) / TERA
    x = quantitative(
        "at",
        title="arithmetic intensity (operations per byte)",
        scale={"type": "log", "domain": [LOW, HIGH], "nice": False},
        axis={"values": [1, 10, 100, 1000, 10_000], "format": "~s"},
    )
    y = quantitative(
        "tera",
        title="tera-operations per second",
        scale={"type": "log", "domain": [BOTTOM, highest], "nice": False},
        axis={"values": [0.1, 1, 10, 100, 1000], "format": "~g"},
    )
    field = nominal("part")
    colours = {"domain": names, "range": list(look.SERIES_COLOURS[: len(names)])}
    dashes = {"domain": names, "range": [list(one) for one in look.SERIES_DASHES[: len(names)]]}
    lines = layer(
        {"type": "line", "strokeWidth": 2.5},
        rows,
        x=x,
        y=y,
        color={**field, "scale": colours, "legend": {"columns": 2, "labelLimit": 300, "symbolType": "stroke"}},
        strokeDash={**field, "scale": dashes},
        description="words",
    )
    return Figure(
        title=title,
        caption=caption,
        alt="Rooflines. " + " ".join(_told(name, *rates, stages) for name, rates in parts.items()),
        body={
            "width": look.PLOT_WIDTH - 30,
            "height": look.PLOT_HEIGHT,
            "layer": [lines, *_stages(stages, x, highest)],
        },
    )


def _line(name: str, peak: float, bandwidth: float) -> list[dict[str, Any]]:
    ridge = roofline.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=bandwidth)
    places = sorted({max(LOW, BOTTOM * TERA / bandwidth), min(HIGH, ridge), HIGH})
    return [
        {"part": name, "at": at, "tera": _attained(at, peak, bandwidth) / TERA, "words": f"{name}, ridge {ridge:.0f}"}
        for at in places
    ]


def _attained(intensity: float, peak: float, bandwidth: float) -> float:
    return roofline.attainable_flops_per_s(
        arithmetic_intensity=intensity, peak_flops_per_s=peak, memory_bytes_per_s=bandwidth
    )


def _stages(stages: Mapping[str, float], x: dict[str, Any], highest: float) -> list[dict[str, Any]]:
    rows = [
        {"at": intensity, "name": name, "tera": 1.5 * BOTTOM * 1.9**place}  # one above the other: no two names touch
        for place, (name, intensity) in enumerate(sorted(stages.items(), key=lambda stage: stage[1]))
    ]
    return [
        layer({"type": "rule", "color": look.GREY, "strokeDash": [3, 3], "aria": False}, rows, x=x),
        # names stand to the left of their lines; the first and the last to the right, where there is room
        *(_names(rows[1:-1], "right", -6, x, highest), _names(rows[:1] + rows[1:][-1:], "left", 6, x, highest)),
    ]


def _names(rows: list[dict[str, Any]], align: str, dx: int, x: dict[str, Any], highest: float) -> dict[str, Any]:
    scale = {"type": "log", "domain": [BOTTOM, highest]}
    return layer(
        {"type": "text", "align": align, "dx": dx, "color": look.INK, "aria": False},
        rows,
        x=x,
        y=quantitative("tera", scale=scale),
        text="name",
    )


def _told(name: str, peak: float, bandwidth: float, stages: Mapping[str, float]) -> str:
    ridge = roofline.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=bandwidth)
    reached = "".join(
        f", {stage} at most {fmt_si(_attained(intensity, peak, bandwidth), 'OP/s')}"
        for stage, intensity in stages.items()
    )
    return f"{name}: ridge point {ridge:,.0f} FLOP/B{reached}."

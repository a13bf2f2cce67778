"""Lanes: one band a task, bars where something happens in it, marks at moments, and lines from band to band.

>>> figure = lanes(
...     ["camera", "brake"],
...     [Bar(lane=0, start=0, end=2, kind="runs"), Bar(lane=1, start=2, end=3, kind="runs")],
...     marks=[Mark(lane=0, at=0, kind="released")],
...     links=[Link(lane=0, at=2, to_lane=1, to=2)],
...     span=4,
...     unit="ms",
...     title="One after the other",
...     caption="A sketch.",
...     alt="The camera runs from 0 to 2, the brake from 2 to 3.",
... )
>>> figure.body["height"]
68
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure

BAND, MARGIN = 34, 92  # pixels: of a lane; of its name
# Fill and height (share of the band) of a bar, by what it says.
BARS = {
    "waits": ("#e6e6e6", 0.3),
    "runs": ("#bcd9ee", 0.66),
    "runs, late": ("#f6cfb4", 0.66),
    "holds the lock": ("#ecc4da", 0.66),
    "other work": ("#e6e6e6", 0.5),
}
# Colour and shape of a mark, and where it stands in the band (0 is its upper edge).
MARKS = {
    "released": (look.INK, "triangle-up", 0.9),
    "deadline missed": (look.ORANGE, "cross", 0.16),
    "event": (look.ORANGE, "diamond", 0.5),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """From start to end in a lane."""

    lane: int
    start: float
    end: float
    kind: str

    def __post_init__(self) -> None:
        checks.one_of(BARS, kind=self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    lane: int
    at: float
    kind: str

    def __post_init__(self) -> None:
        checks.one_of(MARKS, kind=self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A line from a moment in one lane to a moment in another."""

    lane: int
    at: float
    to_lane: int
    to: float


def lanes(
    names: Sequence[str],
    bars: Sequence[Bar],
    *,
    span: float,
    unit: str,
    title: str,
    caption: str,
    alt: str,
    marks: Sequence[Mark] = (),
    links: Sequence[Link] = (),
) -> Figure:
    """The lanes from time 0 to span; what lies beyond is cut off."""
    checks.count(lanes=len(names))
    checks.positive(span=span)
    x = quantitative(
        scale={"domain": [0, span], "nice": False}, axis={"title": f"time ({unit})", "grid": False, "tickCount": 10}
    )
    y = _bands(names)
    layers = [_rules(len(names), y), _bars(names, [bar for bar in bars if bar.start < span], span, x, y)]
    layers += [_links([link for link in links if link.to <= span], x, y)] if links else []
    layers += [_marks(names, [mark for mark in marks if mark.at <= span], x, y)] if marks else []
    body = {"width": look.PLOT_WIDTH - MARGIN, "height": BAND * len(names), "layer": layers}
    # a legend of colours and one of shapes stand apart: they say different things
    body["resolve"] = {"scale": {"color": "independent", "shape": "independent"}}
    return Figure(title=title, caption=caption, alt=alt, body=body, narrow_px=306)


def _bands(names: Sequence[str]) -> dict[str, Any]:
    listed = ", ".join(f"'{name}'" for name in names)
    axis = {
        "values": [place + 0.5 for place in range(len(names))],
        "labelExpr": f"[{listed}][floor(datum.value)]",
        "title": None,
        "ticks": False,
        "domain": False,
        "grid": False,
        "minExtent": MARGIN - 8,
        "labelLimit": MARGIN,
    }
    scale = {"domain": [0, len(names)], "reverse": True, "nice": False}
    return quantitative(scale=scale, axis=axis)


def _rules(count: int, y: dict[str, Any]) -> dict[str, Any]:
    return layer(
        {"type": "rule", "color": look.RULE, "aria": False},
        [{"row": row} for row in range(count + 1)],
        y={"field": "row", **y},
    )


def _bars(
    names: Sequence[str], bars: Sequence[Bar], span: float, x: dict[str, Any], y: dict[str, Any]
) -> dict[str, Any]:
    rows = []
    for bar in bars:
        half = BARS[bar.kind][1] / 2
        rows.append(
            {
                "start": float(bar.start),
                "end": min(float(bar.end), float(span)),
                "top": bar.lane + 0.5 - half,
                "bottom": bar.lane + 0.5 + half,
                "kind": bar.kind,
                "words": f"{names[bar.lane]} {bar.kind}, {float(bar.start):.4g} to {float(bar.end):.4g}",
            }
        )
    used = [kind for kind in BARS if any(bar.kind == kind for bar in bars)]
    shades = {"domain": used, "range": [BARS[kind][0] for kind in used]}
    legend = {"symbolStrokeColor": look.GREY, "symbolType": "square", "columns": 4}
    return layer(
        {"type": "rect", "stroke": look.GREY, "strokeWidth": 0.6},
        rows,
        x={"field": "start", **x},
        x2="end",
        y={"field": "top", **y},
        y2="bottom",
        color=nominal("kind", scale=shades, legend=legend),
        **WORDS,
    )


def _links(links: Sequence[Link], x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    rows = [
        {"at": float(link.at), "from": link.lane + 0.5, "to": float(link.to), "to_lane": link.to_lane + 0.5}
        for link in links
    ]
    return layer(
        {"type": "rule", "color": look.ORANGE, "strokeWidth": 2, "aria": False},
        rows,
        x={"field": "at", **x},
        x2="to",
        y={"field": "from", **y},
        y2="to_lane",
    )


def _marks(names: Sequence[str], marks: Sequence[Mark], x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    rows = [
        {
            "at": float(mark.at),
            "place": mark.lane + MARKS[mark.kind][2],
            "mark": mark.kind,
            "words": f"{names[mark.lane]}: {mark.kind} at {float(mark.at):.4g}",
        }
        for mark in marks
    ]
    used = [kind for kind in MARKS if any(mark.kind == kind for mark in marks)]
    field = nominal("mark")
    shape = {"domain": used, "range": [MARKS[kind][1] for kind in used]}
    colour = {"domain": used, "range": [MARKS[kind][0] for kind in used]}
    return layer(
        {"type": "point", "filled": True, "size": 55, "opacity": 1},
        rows,
        x={"field": "at", **x},
        y={"field": "place", **y},
        shape={**field, "scale": shape},
        color={**field, "scale": colour},
        **WORDS,
    )

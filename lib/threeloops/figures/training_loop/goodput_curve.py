"""Goodput curves: what becomes of wall time against how often a run is saved, with the intervals that somebody's rule
recommends.

>>> figure = goodput_curve(
...     {"30 s saves": [(60, 0.5), (600, 0.8), (6000, 0.6)]},
...     marks={"Young": (600, 0.8)},
...     title="A best interval exists",
...     caption="A run.",
... )
>>> print(figure.alt)
Best goodput: 30 s saves 80.0 % at 10.0 min. Marks: Young at 10.0 min, 80.0 %. The curves against the work between two saves: 30 s saves from 50.0 % at 60.0 s to 60.0 % at 100 min.
"""  # noqa: E501

from collections.abc import Mapping, Sequence

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import fmt_percent, fmt_seconds, minute


def goodput_curve(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    *,
    marks: Mapping[str, tuple[float, float]],
    title: str,
    caption: str,
) -> Figure:
    """One line per run, of (interval in s, goodput from 0 to 1), and named points on the lines.

    Raises:   ValueError for no curve, for more than there are colours, or for more marks than shapes
    """
    if not 0 < len(curves) <= len(look.SERIES_COLOURS) or len(marks) > len(look.SERIES_SHAPES):
        raise ValueError(
            f"{len(curves)} curves and {len(marks)} marks; draw 1 to {len(look.SERIES_COLOURS)} of the first, at most"
            " that many of the other"
        )
    for interval, share in [point for points in curves.values() for point in points] + list(marks.values()):
        checks.positive(interval_s=interval)
        checks.fraction(goodput=share)
    names = list(curves)
    rows = [
        {"run": name, "interval": at / minute, "goodput": share}
        for name, points in curves.items()
        for at, share in points
    ]
    points = [{"mark": name, "interval": at / minute, "goodput": share} for name, (at, share) in marks.items()]
    x = quantitative(
        "interval",
        scale={"type": "log", "nice": False},
        axis={"title": "work between two saves (min)", "tickCount": 6, "format": "~g"},
    )
    y = quantitative("goodput", scale={"zero": False}, axis={"title": "goodput, share of wall time", "format": ".0%"})
    dashes = [list(one) for one in look.SERIES_DASHES[: len(names)]]
    shapes = {"domain": list(marks), "range": list(look.SERIES_SHAPES[: len(marks)])}
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(curves, marks),
        body={
            "width": look.PLOT_WIDTH,
            "height": 300,
            "layer": [
                layer(
                    {"type": "line", "strokeWidth": 2, "aria": False},
                    rows,
                    x=x,
                    y=y,
                    color=nominal("run", scale={"domain": names, "range": list(look.SERIES_COLOURS[: len(names)])}),
                    strokeDash=nominal("run", scale={"domain": names, "range": dashes}),
                ),
                layer(
                    {"type": "point", "filled": True, "size": 110, "color": look.INK, "aria": False},
                    points,
                    x=x,
                    y=y,
                    shape=nominal("mark", scale=shapes),
                ),
            ],
        },
    )


def _alt(curves: Mapping[str, Sequence[tuple[float, float]]], marks: Mapping[str, tuple[float, float]]) -> str:
    """The best of every curve first, then what is marked, then where the curves begin and end."""
    best = ", ".join(f"{name} {_at(max(points, key=lambda point: point[1]))}" for name, points in curves.items())
    named = "; ".join(f"{name} at {fmt_seconds(at)}, {fmt_percent(share)}" for name, (at, share) in marks.items())
    ends = "; ".join(f"{name} from {_at(points[0])} to {_at(points[-1])}" for name, points in curves.items())
    marked = f" Marks: {named}." if marks else ""
    return f"Best goodput: {best}.{marked} The curves against the work between two saves: {ends}."


def _at(point: tuple[float, float]) -> str:
    return f"{fmt_percent(point[1])} at {fmt_seconds(point[0])}"

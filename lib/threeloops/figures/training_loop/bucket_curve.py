"""Bucket curve: the time of a data-parallel step against the size of its gradient buckets.

>>> figure = bucket_curve(
...     {"64 GPUs": [(1e6, 2.0), (1e7, 1.5), (1e8, 1.6)]},
...     marks={"DDP's default": 26_214_400},
...     title="Not too small",
...     caption="A run.",
... )
>>> print(figure.alt)
Time of a step against the bytes of a bucket. 64 GPUs: 2.00 s at 1.00 MB, least 1.50 s at 10.0 MB, 1.60 s at 100 MB. Marked: DDP's default at 26.2 MB.
"""  # noqa: E501

from collections.abc import Mapping, Sequence

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import MB, fmt_bytes, fmt_seconds

Points = Sequence[tuple[float, float]]


def bucket_curve(curves: Mapping[str, Points], *, marks: Mapping[str, float], title: str, caption: str) -> Figure:
    """One line per run, of (bytes of a bucket, seconds of a step); dashed upright lines at the sizes in marks.

    Raises:   ValueError for no curve, an empty one, or more than there are colours
    """
    if not 0 < len(curves) <= len(look.SERIES_COLOURS) or not all(curves.values()):
        raise ValueError(f"{len(curves)} curves; draw 1 to {len(look.SERIES_COLOURS)}, each with at least one point")
    for size_bytes, step_s in [point for points in curves.values() for point in points]:
        checks.positive(size_bytes=size_bytes, step_s=step_s)
    names = list(curves)
    rows = [{"run": name, "mb": size / MB, "s": step} for name, points in curves.items() for size, step in points]
    marked = [{"mark": name, "mb": size / MB} for name, size in marks.items()]
    x = quantitative(
        "mb",
        scale={"type": "log", "nice": False},
        axis={"title": "bytes of a bucket (MB)", "tickCount": 6, "format": ",~r"},
    )
    y = quantitative("s", axis={"title": "time of a step (s)"})
    dashes = [list(one) for one in look.SERIES_DASHES[: len(names)]]
    return Figure(
        title=title,
        caption=caption,
        alt="Time of a step against the bytes of a bucket. "
        + " ".join([*(_said(name, points) for name, points in curves.items()), _marked(marks)]).strip(),
        body={
            "width": look.PLOT_WIDTH,
            "height": 280,
            "layer": [
                layer(
                    {"type": "line", "strokeWidth": 2, "aria": False},
                    rows,
                    x=x,
                    y=y,
                    color=nominal(
                        "run", sort=names, scale={"domain": names, "range": list(look.SERIES_COLOURS[: len(names)])}
                    ),
                    strokeDash=nominal("run", sort=names, scale={"domain": names, "range": dashes}),
                ),
                layer({"type": "rule", "color": look.GREY, "strokeDash": [4, 3]}, marked, x={**x}),
                {
                    "data": {"values": marked},
                    "mark": {
                        "type": "text",
                        "align": "left",
                        "dx": 5,
                        "color": look.INK,
                        "fontSize": look.TEXT,
                        "aria": False,
                    },
                    # near the axis, where no step can be
                    "encoding": {"x": {**x}, "y": {"value": 265}, "text": {"field": "mark"}},
                },
            ],
        },
    )


def _said(name: str, points: Points) -> str:
    ordered = sorted(points)
    least = min(ordered, key=lambda point: point[1])
    first, best, last = (
        f"{fmt_seconds(step)} at {fmt_bytes(size, base=10)}" for size, step in (ordered[0], least, ordered[-1])
    )
    return f"{name}: {first}, least {best}, {last}."


def _marked(marks: Mapping[str, float]) -> str:
    return (
        "Marked: " + ", ".join(f"{name} at {fmt_bytes(size, base=10)}" for name, size in marks.items()) + "."
        if marks
        else ""
    )

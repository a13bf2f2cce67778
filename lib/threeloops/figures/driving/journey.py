"""Journey: an event's way through stages that start by clocks of their own.

>>> from threeloops.simulate.driving.hand_overs import Stage, follow
>>> stages = {"see": Stage(period=4, response=3, first=1), "act": Stage(period=5, response=2)}
>>> way = follow(list(stages.values()), event=1)
>>> print(journey(stages, way, unit="ms", title="Just missed", caption="Twice.").alt)
Event at 1. see: seen by the start at 5, written at 8. act: seen by the start at 10, written at 12. In all 11 ms.
"""

from collections.abc import Mapping, Sequence

from threeloops.figures.driving.lanes import Bar, Link, Mark, lanes
from threeloops.figures.figure import Figure
from threeloops.simulate.driving.hand_overs import Hop, Stage, reaction


def journey(stages: Mapping[str, Stage], way: Sequence[Hop], *, unit: str, title: str, caption: str) -> Figure:
    """A band a stage with all its runs; those that carry the event stand out, and lines show where it waits."""
    names, span = list(stages), float(way[-1].end) * 1.03
    bars = []
    for lane, (stage, hop) in enumerate(zip(stages.values(), way, strict=True)):
        start = stage.first
        while start < span:
            kind = "runs" if start == hop.start else "other work"
            bars.append(Bar(lane=lane, start=start, end=start + stage.response, kind=kind))
            start += stage.period
    links = [Link(lane=max(0, lane - 1), at=hop.seen, to_lane=lane, to=hop.start) for lane, hop in enumerate(way)]
    said = [f"Event at {float(way[0].seen):.4g}."]
    said += [
        f"{name}: seen by the start at {float(hop.start):.4g}, written at {float(hop.end):.4g}."
        for name, hop in zip(names, way, strict=True)
    ]
    return lanes(
        names,
        bars,
        span=span,
        unit=unit,
        title=title,
        caption=caption,
        alt=" ".join([*said, f"In all {float(reaction(way)):.4g} {unit}."]),
        marks=[Mark(lane=0, at=way[0].seen, kind="event")],
        links=links,
    )

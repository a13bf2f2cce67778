"""Overlap rows: who is busy with what, one row a resource, time to the right.

>>> work = [Busy(row="computing", text="backward", start_s=0, end_s=2, kind="compute")]
>>> sends = [Busy(row="network", text="bucket 1", start_s=1, end_s=3, kind="memory")]
>>> overlap_rows([*work, *sends], title="Half hidden", caption="Two seconds each.").alt
'computing: backward from 0 to 2 s. network: bucket 1 from 1 to 3 s.'
"""

from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.figures.boxes import Box, boxes
from threeloops.figures.figure import Figure

WIDTH, HEIGHT, GAP, NAME = 640, 46, 14, 92  # pixels: of all time, of a row, between rows, of a row's name
LETTER = 6  # pixels: a box that is narrower than its words has none


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """A stretch of time in which one resource does one thing."""

    row: str
    text: str
    start_s: float
    end_s: float
    kind: str  # of figures/boxes.py

    def __post_init__(self) -> None:
        checks.non_negative(start_s=self.start_s)
        checks.positive(lasts_s=self.end_s - self.start_s)


def overlap_rows(
    spans: Sequence[Busy],
    *,
    title: str,
    caption: str,
    unit: str = "s",
    rows: Sequence[str] = (),
    until_s: float = 0.0,
    width: int = WIDTH,
) -> Figure:
    """A row a resource, in the order in which they first occur, after those of `rows`. unit: what the words call a
    unit of time, where it stands for something else. until_s: as far as time goes, where that is more than the spans;
    width: in how many pixels.

    Raises:   ValueError without spans
    """
    if not spans:
        raise ValueError("spans is empty; draw at least one")
    names = list(dict.fromkeys([*rows, *(span.row for span in spans)]))
    pixels = width / max(until_s, *(span.end_s for span in spans))
    plan = [
        Box(x=0, y=place * (HEIGHT + GAP), width=NAME, height=HEIGHT, kind="off", text=row)
        for place, row in enumerate(names)
    ]
    for span in spans:
        wide = (span.end_s - span.start_s) * pixels - 2
        plan.append(
            Box(
                x=NAME + 12 + span.start_s * pixels + 1,
                y=names.index(span.row) * (HEIGHT + GAP),
                width=wide,
                height=HEIGHT,
                kind=span.kind,
                text=span.text if wide >= LETTER * max(map(len, span.text.split("\n"))) else "",
            )
        )
    if until_s:  # what is still to come keeps its place
        plan.append(Box(x=NAME + 11 + width, y=0, width=1, height=HEIGHT, kind="bare"))
    told = (
        f"{row}: "
        + ", ".join(f"{span.text} from {span.start_s:g} to {span.end_s:g} {unit}" for span in spans if span.row == row)
        for row in names
        if any(span.row == row for span in spans)
    )
    alt = ". ".join(told).replace("\n", " ") + "."
    return boxes(plan, title=title, caption=caption, alt=alt, to_scale=(NAME + 12, NAME + 12 + width))

"""Encoder plan: the same pictures and the same heads, with an encoder for each task and with one for all of them.

>>> figure = encoder_plan(
...     ("boxes", "road"), pictures="6 pictures", encoder="51", head="2.2", unit="GFLOP", title="One pass", caption="."
... )
>>> print(figure.alt)
One pass. Apart: 6 pictures go through 2 encoders of 51 GFLOP, each with its own head (boxes, road) of 2.2 GFLOP. Shared: 6 pictures go through 1 encoder of 51 GFLOP, which all 2 heads read.
"""  # noqa: E501

from collections.abc import Sequence

from threeloops.figures.boxes import Arrow, Box, boxes
from threeloops.figures.figure import Figure

WIDTH, HEIGHT, ROW, GAP = 82, 42, 54, 16
SHARED = 3 * WIDTH + 2 * GAP + 40  # pixels from the left edge to the second plan
TOP = 26


def encoder_plan(
    tasks: Sequence[str], *, pictures: str, encoder: str, head: str, unit: str, title: str, caption: str
) -> Figure:
    """Two plans side by side; numbers are words, so that the cell that draws says where they come from.

    Raises:   ValueError without tasks
    """
    if not tasks:
        raise ValueError("tasks is empty; name at least one, like ('boxes', 'road')")
    middle = TOP + ROW * (len(tasks) - 1) / 2
    plan = [_named(0, "an encoder for each task"), _named(SHARED, "one encoder for all")]
    arrows: list[Arrow] = []
    for left in (0, SHARED):
        plan.append(_box(left, 0, middle, "frame", pictures.replace(" ", "\n", 1)))
        for row, task in enumerate(tasks):
            plan.append(_box(left, 2, TOP + row * ROW, "memory", f"{task}\n{head}"))
            arrows.append(_arrow(left, 1, TOP + row * ROW if left == 0 else middle, TOP + row * ROW))
    for row in range(len(tasks)):
        plan.append(_box(0, 1, TOP + row * ROW, "compute", f"encoder\n{encoder}"))
        arrows.append(_arrow(0, 0, middle, TOP + row * ROW))
    plan.append(_box(SHARED, 1, middle, "compute", f"encoder\n{encoder}"))
    arrows.append(_arrow(SHARED, 0, middle, middle))
    count = len(tasks)
    alt = (
        f"{title}. Apart: {pictures} go through {count} encoders of {encoder} {unit}, each with its own head"
        f" ({', '.join(tasks)}) of {head} {unit}. Shared: {pictures} go through 1 encoder of {encoder} {unit}, which"
        f" all {count} heads read."
    )
    return boxes(plan, title=title, caption=caption, alt=alt, arrows=arrows)


def _left(left: float, column: int) -> float:
    return left + column * (WIDTH + GAP)


def _box(left: float, column: int, y: float, kind: str, text: str) -> Box:
    return Box(x=_left(left, column), y=y, width=WIDTH, height=HEIGHT, kind=kind, text=text)


def _named(left: float, name: str) -> Box:
    return Box(x=left, y=0, width=3 * WIDTH + 2 * GAP, height=TOP - 6, kind="off", text=name)


def _arrow(left: float, column: int, y: float, to_y: float) -> Arrow:
    """From the right edge of a box in this column to the left edge of one in the next."""
    start = _left(left, column) + WIDTH
    return Arrow(x=start, y=y + HEIGHT / 2, to_x=start + GAP - 3, to_y=to_y + HEIGHT / 2)

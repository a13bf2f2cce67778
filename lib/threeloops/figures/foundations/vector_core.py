"""Vector core: where the operations of a processor's peak are made, lane by lane.

>>> figure = vector_core(cores=64, units=2, lanes=4, title="Sixteen", caption="A sketch.")
>>> print(figure.alt)
One of 64 cores: 2 units of 4 lanes, each a multiplication and an addition: 16 operations per cycle.
"""

from threeloops import checks
from threeloops.figures.boxes import Box, boxes
from threeloops.figures.figure import Figure

LANE, ROW, GAP, NAME = 88, 40, 8, 104  # pixels: of a lane, of a unit, between two of them, of a unit's name


def vector_core(*, cores: int, units: int, lanes: int, title: str, caption: str) -> Figure:
    """One core in full, its units one below another; what it does per cycle beside it, and all cores below.

    Raises:   ValueError for more than 8 lanes, which no longer fit beside each other
    """
    checks.count(cores=cores, units=units, lanes=lanes)
    if lanes > 8:
        raise ValueError(f"lanes={lanes} do not fit in the figure; draw at most 8")
    plan = []
    for unit in range(units):
        top = float(unit * (ROW + GAP))
        plan.append(Box(x=0, y=top, width=NAME, height=ROW, kind="off", text=f"FMA unit {unit + 1}"))
        plan += [
            Box(x=NAME + GAP + lane * LANE, y=top, width=LANE - 4, height=ROW, kind="compute", text="a × b + c")
            for lane in range(lanes)
        ]
    wide, foot, per_cycle = float(NAME + GAP + lanes * LANE), float(units * (ROW + GAP)), 2 * units * lanes
    words = f"one core: {units} units × {lanes} lanes × 2 operations = {per_cycle} per cycle"
    plan.append(Box(x=0, y=foot, width=wide, height=ROW, kind="bare", text=words))
    words = f"{cores} such cores: {cores * per_cycle:,} operations per cycle"
    plan.append(Box(x=0, y=foot + ROW, width=wide, height=ROW, kind="frame", text=words))
    alt = (
        f"One of {cores} cores: {units} units of {lanes} lanes, each a multiplication and an addition: {per_cycle}"
        " operations per cycle."
    )
    return boxes(plan, title=title, caption=caption, alt=alt)

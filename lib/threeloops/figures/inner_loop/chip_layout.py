"""Chip layout: a GPU as a plan, from its memory stacks to its multiprocessors, and one multiprocessor as a plan.

>>> figure = chip(
...     (4, 4, 3, 4),
...     sms_per_column=2,
...     stacks=3,
...     sites=4,
...     l2="8 MB",
...     stack="8 GB",
...     title="A small GPU",
...     caption="A sketch.",
... )
>>> print(figure.alt.split(". ")[0])
15 of 16 multiprocessors are in use, in 4 groups of 4, 4, 3 and 4
"""

from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.figures.boxes import Box, boxes
from threeloops.figures.figure import Figure
from threeloops.units import counted

WIDTH, STACK_WIDTH, GAP = 620, 78, 8  # pixels
SM_HEIGHT, LABEL, BAR = 30, 22, 26
PARTITIONS = 4  # of a multiprocessor, each with a scheduler of its own


def chip(
    sms_per_group: Sequence[int],
    *,
    sms_per_column: int,
    stacks: int,
    sites: int,
    l2: str,
    stack: str,
    title: str,
    caption: str,
) -> Figure:
    """Groups of multiprocessors in two rows, the L2 between them, stacks of memory on both sides; what is there but
    not in use is drawn empty.

    Raises:   ValueError for an odd number of groups or sites: half of them stand on each side
    """
    checks.count(**{f"sms_per_group[{index}]": sms for index, sms in enumerate(sms_per_group)})
    checks.count(sms_per_column=sms_per_column, stacks=stacks, sites=sites)
    if len(sms_per_group) % 2 or sites % 2:
        raise ValueError(f"{len(sms_per_group)} groups and sites={sites} must be even: half of them stand on each side")
    columns = -(-max(sms_per_group) // sms_per_column)
    row = LABEL + sms_per_column * SM_HEIGHT + GAP
    height = 2 * BAR + 2 * row + 54 + 4 * GAP
    left = STACK_WIDTH + 2 * GAP
    group_width = (WIDTH - 2 * left - GAP * (len(sms_per_group) // 2 - 1)) / (len(sms_per_group) // 2)
    plan = [Box(x=left - GAP / 2, y=0, width=WIDTH - 2 * left + GAP, height=height, kind="frame")]
    plan += [
        Box(
            x=left,
            y=GAP / 2,
            width=WIDTH - 2 * left,
            height=BAR - 4,
            kind="control",
            text="host interface and block scheduler",
        )
    ]
    plan += [
        Box(
            x=left,
            y=height - BAR + GAP / 2 - 4,
            width=WIDTH - 2 * left,
            height=BAR - 4,
            kind="control",
            text="links to other GPUs",
        )
    ]
    for index, sms in enumerate(sms_per_group):
        below, column = divmod(index, len(sms_per_group) // 2)
        x, y = left + column * (group_width + GAP), BAR + GAP + below * (row + 54 + 2 * GAP)
        plan += _group(x, y, group_width, row, f"GPC {index}: {sms} SMs", sms, columns, sms_per_column)
    middle = BAR + GAP + row + GAP
    half = (WIDTH - 2 * left - GAP) / 2
    plan += [
        Box(x=left + side * (half + GAP), y=middle, width=half, height=54, kind="memory", text=f"half of the L2: {l2}")
        for side in (0, 1)
    ]
    stack_height = (height - (sites // 2 - 1) * GAP) / (sites // 2)
    for site in range(sites):
        side, level = divmod(site, sites // 2)
        used = site < stacks
        x = side * (WIDTH - STACK_WIDTH)
        text = f"HBM\n{stack}" if used else "site\nunused"
        plan += [
            Box(
                x=x,
                y=level * (stack_height + GAP),
                width=STACK_WIDTH,
                height=stack_height,
                kind="memory" if used else "off",
                text=text,
            )
        ]
    return boxes(
        plan, title=title, caption=caption, alt=_alt(sms_per_group, columns * sms_per_column, stacks, sites, l2, stack)
    )


def _group(x: float, y: float, width: float, height: float, text: str, sms: int, columns: int, rows: int) -> list[Box]:
    """A frame, and one small box per multiprocessor; those that are switched off come last."""
    cell = (width - 6) / columns
    found = [Box(x=x, y=y, width=width, height=height, kind="frame", text=text, at_top=True)]
    for place in range(columns * rows):
        column, row = divmod(place, rows)
        kind = "compute" if place < sms else "off"
        found += [
            Box(
                x=x + 3 + column * cell + 1,
                y=y + LABEL + row * SM_HEIGHT + 2,
                width=cell - 2,
                height=SM_HEIGHT - 4,
                kind=kind,
            )
        ]
    return found


def _alt(sms_per_group: Sequence[int], places: int, stacks: int, sites: int, l2: str, stack: str) -> str:
    held = f"{', '.join(str(sms) for sms in sms_per_group[:-1])} and {sms_per_group[-1]}"
    return (
        f"{sum(sms_per_group)} of {places * len(sms_per_group)} multiprocessors are in use, in {len(sms_per_group)}"
        f" groups of {held}. Between the groups lies the L2, in two halves of {l2}. Beside the chip:"
        f" {counted(stacks, 'stack')} of {stack}, {counted(sites - stacks, 'site')} unused."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """What one multiprocessor holds; each of its four partitions has a quarter. Registers are given for one partition,
    as the picture names them.
    """

    fp32_lanes: int
    int32_lanes: int
    fp64_lanes: int
    matrix_units: int
    special_units: int
    load_store_units: int
    registers_per_partition: str
    shared: str

    def __post_init__(self) -> None:
        for name in ("fp32_lanes", "int32_lanes", "fp64_lanes", "matrix_units", "special_units", "load_store_units"):
            checks.divides(part="partitions", part_value=PARTITIONS, whole=name, whole_value=getattr(self, name))


def multiprocessor(units: Units, *, title: str, caption: str) -> Figure:
    """Four partitions side by side, and below them what they share."""
    width = (WIDTH - 3 * GAP) / PARTITIONS
    quarter = [
        ("control", 40, "warp scheduler\n1 issue per cycle"),
        ("memory", 40, f"registers\n{units.registers_per_partition}"),
        ("compute", 24, f"{units.fp32_lanes // PARTITIONS} FP32 lanes"),
        ("compute", 24, f"{units.int32_lanes // PARTITIONS} INT32 lanes"),
        ("compute", 24, f"{units.fp64_lanes // PARTITIONS} FP64 lanes"),
        ("compute", 24, f"{units.matrix_units // PARTITIONS} tensor core"),
        ("compute", 24, f"{units.special_units // PARTITIONS} special functions"),
        ("control", 24, f"{units.load_store_units // PARTITIONS} load and store"),
    ]
    plan, y = [], 0.0
    for index in range(PARTITIONS):
        x, y = index * (width + GAP), 26.0
        frame = sum(height + 4 for _, height, _ in quarter) + 30
        plan.append(Box(x=x, y=0, width=width, height=frame, kind="frame", text=f"partition {index}", at_top=True))
        for kind, height, text in quarter:
            plan.append(Box(x=x + 4, y=y, width=width - 8, height=height, kind=kind, text=text))
            y += height + 4
    plan.append(
        Box(
            x=0,
            y=y + 14,
            width=WIDTH,
            height=34,
            kind="memory",
            text=f"shared memory and L1 cache, {units.shared} together",
        )
    )
    listed = ", ".join(text.replace("\n", ", ") for _, _, text in quarter)
    alt = (
        f"{PARTITIONS} equal partitions, each with a scheduler, registers and lanes of its own, share one memory. Each"
        f" has: {listed}. All share: shared memory and L1 cache, {units.shared} together."
    )
    return boxes(plan, title=title, caption=caption, alt=alt)

"""Frame way: from the sensor to the network, what crosses each wire above the memory and each pass over its bus below.

>>> figure = frame_way(
...     wires=(("sensor", "24 Gbit/s"), ("receiver", "")),
...     written="4 GB/s",
...     engines=(("ISP", "4 GB/s", "3 GB/s"), ("network", "1 GB/s", "")),
...     title="Three reads and two writes",
...     caption="A sketch.",
... )
>>> print(figure.alt)
Three reads and two writes. sensor to receiver: 24 Gbit/s. receiver writes 4 GB/s to memory. ISP reads 4 GB/s and writes 3 GB/s. network reads 1 GB/s.
"""  # noqa: E501

import itertools
from collections.abc import Sequence

from threeloops.figures.boxes import Arrow, Box, boxes
from threeloops.figures.figure import Figure

WIDTH = 636
STATION, HEIGHT, CHIP, SIDE = 104, 48, 24, 14
MEMORY_TOP, MEMORY, ENGINES_TOP = 124, 36, 236


def frame_way(
    *,
    wires: Sequence[tuple[str, str]],
    written: str,
    engines: Sequence[tuple[str, str, str]],
    title: str,
    caption: str,
) -> Figure:
    """Above, the stations and what each sends to the next; the last one writes to memory. Below, the engines: what
    each reads and, if it does, writes.

    Raises:   ValueError with fewer than two stations or no engine
    """
    if len(wires) < 2 or not engines:
        raise ValueError("give two stations at least, from the sensor to the receiver, and one engine")
    above, above_arrows = _stations(wires, written)
    below, below_arrows = _engines(engines)
    memory = Box(x=0, y=MEMORY_TOP, width=WIDTH, height=MEMORY, kind="memory", text="memory (DRAM)")
    told = [f"{one} to {other}: {sent}." for (one, sent), (other, _) in itertools.pairwise(wires)]
    told.append(f"{wires[-1][0]} writes {written} to memory.")
    told += [f"{name} reads {read}{f' and writes {wrote}' if wrote else ''}." for name, read, wrote in engines]
    alt = f"{title}. {' '.join(told)}".replace("\n", " ")
    return boxes([*above, memory, *below], title=title, caption=caption, alt=alt, arrows=[*above_arrows, *below_arrows])


def _stations(wires: Sequence[tuple[str, str]], written: str) -> tuple[list[Box], list[Arrow]]:
    plan, arrows = [], []
    step = (WIDTH - STATION) / (len(wires) - 1)
    for place, (name, sent) in enumerate(wires):
        x = place * step
        plan.append(Box(x=x, y=0, width=STATION, height=HEIGHT, kind="compute", text=name))
        if place < len(wires) - 1:
            arrows.append(Arrow(x=x + STATION + 2, y=HEIGHT / 2, to_x=x + step - 6, to_y=HEIGHT / 2))
            middle = x + STATION + (step - STATION) / 2
            plan.append(_chip(middle, HEIGHT + 4, sent))
    down = WIDTH - STATION / 2
    arrows.append(Arrow(x=down, y=HEIGHT + 2, to_x=down, to_y=MEMORY_TOP - 6))
    plan.append(_chip(down - SIDE / 2 - (8 + 7.2 * len(written)) / 2, 88, written))
    return plan, arrows


def _engines(engines: Sequence[tuple[str, str, str]]) -> tuple[list[Box], list[Arrow]]:
    plan, arrows = [], []
    step, bottom = WIDTH / len(engines), MEMORY_TOP + MEMORY
    for place, (name, read, wrote) in enumerate(engines):
        left, width = place * step + 8, step - 16
        plan.append(Box(x=left, y=ENGINES_TOP, width=width, height=HEIGHT, kind="compute", text=name))
        reads = left + SIDE
        arrows.append(Arrow(x=reads, y=bottom + 2, to_x=reads, to_y=ENGINES_TOP - 6))
        plan.append(_beside(reads, read))
        if wrote:
            writes = left + width / 2 + SIDE
            arrows.append(Arrow(x=writes, y=ENGINES_TOP - 2, to_x=writes, to_y=bottom + 6))
            plan.append(_beside(writes, wrote))
    return plan, arrows


def _beside(arrow: float, text: str) -> Box:
    """A label to the right of an upright arrow."""
    return _chip(arrow + SIDE / 2 + (8 + 7.2 * len(text)) / 2, 186, text)


def _chip(middle: float, top: float, text: str) -> Box:
    width = 8 + 7.2 * len(text)
    return Box(x=max(0.0, middle - width / 2), y=top, width=width, height=CHIP, kind="frame", text=text)

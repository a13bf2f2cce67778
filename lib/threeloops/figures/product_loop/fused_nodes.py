"""Fused nodes: a graph as it was written above the graph that an engine runs, each node with the bytes that it moves.

>>> figure = fused_nodes(
...     written=[("Mul", 30), ("Add", 20)], fused=[("MulAdd", 20)], title="Two nodes become one", caption="A sketch."
... )
>>> print(figure.alt)
2 nodes move 50.0 B; 1 node moves 20.0 B in their place. As written: Mul 30.0 B, Add 20.0 B. Fused: MulAdd 20.0 B.
"""

from collections.abc import Sequence

from threeloops.figures.boxes import Box, boxes
from threeloops.figures.figure import Figure
from threeloops.units import fmt_bytes

ACROSS, WIDTH, HEIGHT, GAP = 6, 100, 44, 8
Nodes = Sequence[tuple[str, int]]


def fused_nodes(*, written: Nodes, fused: Nodes, title: str, caption: str) -> Figure:
    """Two groups of boxes in reading order, the second below the first; (name, bytes moved) each.

    Raises:   ValueError if a group is empty
    """
    if not written or not fused:
        raise ValueError(f"{len(written)} nodes as written and {len(fused)} fused; give at least one of each")
    below = (len(written) + ACROSS - 1) // ACROSS * (HEIGHT + GAP) + 3 * GAP
    plan = [
        *_row(written, top=0, kind="memory", width=WIDTH, across=ACROSS),
        *_row(fused, top=below, kind="compute", width=2 * WIDTH, across=ACROSS // 2),
    ]
    before, after = (sum(size for _, size in nodes) for nodes in (written, fused))
    many = f"{len(fused)} node{'s move' if len(fused) > 1 else ' moves'}"
    alt = f"{len(written)} nodes move {_told(before)}; {many} {_told(after)} in their place."
    return boxes(
        plan,
        title=title,
        caption=caption,
        alt=f"{alt} As written: {_list(written)}. Fused: {_list(fused)}.",
    )


def _row(nodes: Nodes, *, top: int, kind: str, width: int, across: int) -> list[Box]:
    return [
        Box(
            x=number % across * (width + GAP),
            y=top + number // across * (HEIGHT + GAP),
            width=width,
            height=HEIGHT,
            kind=kind,
            text=f"{name}\n{_told(size)}",
        )
        for number, (name, size) in enumerate(nodes)
    ]


def _list(nodes: Nodes) -> str:
    return ", ".join(f"{name} {_told(size)}" for name, size in nodes)


def _told(size: int) -> str:
    return fmt_bytes(size, base=10)

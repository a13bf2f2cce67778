"""Rail map: the same ranks wired by node and by rail, and the cables that the ring of one local rank uses in each.

>>> figure = rail_map(nodes=3, gpus_per_node=2, place=1, title="Nothing goes up", caption="Three nodes of two.")
>>> print(figure.alt)
Wired by node, the ring of ranks 1, 3, 5 uses leaves 0, 1, 2 and goes up to a spine. Wired by rail, the ring of ranks 1, 3, 5 uses leaf 1 and stays below the \
spines.
"""  # noqa: E501

from dataclasses import dataclass, replace
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.boxes import Box, boxes
from threeloops.figures.figure import Figure
from threeloops.simulate.training_loop.fabric import WIRINGS, Fabric, ring

WIDTH, GAP, MARGIN, TALL = 640, 16, 5, 32  # pixels: of a panel, between nodes, inside a node, of a box
NAME, NODE, LEAF, SPINE, PANEL = 24, 24, 128, 206, 246  # upper edges in a panel; its height
LINES: dict[bool, dict[str, Any]] = {
    False: {"color": look.GREY, "strokeWidth": 0.6},
    True: {"color": look.ORANGE, "strokeWidth": 3},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One wiring, and which leaves and ways up its ring uses."""

    fabric: Fabric
    members: list[int]
    top: float

    @property
    def leaves(self) -> int:
        return self.fabric.leaf(self.fabric.gpus - 1) + 1

    @property
    def used(self) -> set[tuple[str, ...]]:
        return set(self.fabric.load(ring(self.members, 1.0)))

    @property
    def goes_up(self) -> bool:
        return any(link[0] == "up" for link in self.used)


def rail_map(*, nodes: int, gpus_per_node: int, place: int, title: str, caption: str) -> Figure:
    """Two panels, by node above and by rail below; thick cables are those on which the ring among the GPUs of one
    place in every node has bytes, as the simulated network counts them.

    Raises:   ValueError for a place in the node that is not there
    """
    checks.count(nodes=nodes, gpus_per_node=gpus_per_node)
    if not 0 <= place < gpus_per_node:
        raise ValueError(f"place={place} must lie below gpus_per_node={gpus_per_node}; places count from 0")
    panels = [
        Panel(
            fabric=Fabric(
                nodes=nodes,
                gpus_per_node=gpus_per_node,
                nodes_per_leaf=1 if wiring == "by-node" else nodes,
                spines=2,
                wiring=wiring,
                through_nvlink=True,
            ),
            members=[node * gpus_per_node + place for node in range(nodes)],
            top=row * (PANEL + GAP),
        )
        for row, wiring in enumerate(WIRINGS)
    ]
    figure = boxes(
        [box for panel in panels for box in _boxes(panel)],
        title=title,
        caption=caption,
        alt=" ".join(_said(panel) for panel in panels),
    )
    layers = list(figure.body["layer"])
    cables = [cable for panel in panels for cable in _cables(panel)]
    for thick, style in LINES.items():
        lines = [cable for cable in cables if cable["thick"] is thick]
        mark = {"type": "rule", "aria": False, **style}
        layers.append({"data": {"values": lines}, "mark": mark, "encoding": layers[2]["encoding"]})
    return replace(figure, body={**figure.body, "layer": layers})


def _boxes(panel: Panel) -> list[Box]:
    net, top = panel.fabric, panel.top
    frame = (WIDTH - GAP * (net.nodes - 1)) / net.nodes
    plan = [Box(x=0, y=top, width=WIDTH, height=20, kind="bare", text=f"wired {net.wiring.replace('-', ' ')}")]
    for node in range(net.nodes):
        left = node * (frame + GAP)
        shape: dict[str, Any] = {"y": top + NODE, "width": frame, "height": TALL + NAME + MARGIN, "kind": "frame"}
        plan.append(Box(x=left, **shape, text=f"node {node}", at_top=True))
    for gpu in range(net.gpus):
        kind = "memory" if gpu in panel.members else "off"
        width = (frame - 2 * MARGIN) / net.gpus_per_node - 2
        plan.append(
            Box(
                x=_gpu_middle(gpu, net) - width / 2,
                y=top + NODE + NAME,
                width=width,
                height=TALL,
                kind=kind,
                text=f"{gpu}",
            )
        )
    for name, count, y in (("leaf", panel.leaves, LEAF), ("spine", net.spines, SPINE)):
        plan += [
            Box(
                x=_switch_middle(number, count) - 45,
                y=top + y,
                width=90,
                height=TALL,
                kind="control",
                text=f"{name} {number}",
            )
            for number in range(count)
        ]
    return plan


def _gpu_middle(gpu: int, net: Fabric) -> float:
    frame = (WIDTH - GAP * (net.nodes - 1)) / net.nodes
    node, place = divmod(gpu, net.gpus_per_node)
    return node * (frame + GAP) + MARGIN + (place + 0.5) * (frame - 2 * MARGIN) / net.gpus_per_node


def _switch_middle(number: int, count: int) -> float:
    return (number + 0.5) * WIDTH / count


def _cables(panel: Panel) -> list[dict[str, Any]]:
    net, top = panel.fabric, panel.top
    found = [
        {
            "x": _gpu_middle(gpu, net),
            "y": top + NODE + NAME + TALL,
            "x2": _switch_middle(net.leaf(gpu), panel.leaves),
            "y2": top + LEAF,
            "thick": ("card out", str(gpu)) in panel.used,
        }
        for gpu in range(net.gpus)
    ]
    return found + [
        {
            "x": _switch_middle(leaf, panel.leaves),
            "y": top + LEAF + TALL,
            "x2": _switch_middle(spine, net.spines),
            "y2": top + SPINE,
            "thick": ("up", str(leaf), f"spine {spine}") in panel.used,
        }
        for leaf in range(panel.leaves)
        for spine in range(net.spines)
    ]


def _said(panel: Panel) -> str:
    used = sorted({panel.fabric.leaf(gpu) for gpu in panel.members})
    leaves = ("leaf " if len(used) == 1 else "leaves ") + ", ".join(map(str, used))
    ending = "goes up to a spine" if panel.goes_up else "stays below the spines"
    ranks = ", ".join(map(str, panel.members))
    return f"Wired {panel.fabric.wiring.replace('-', ' ')}, the ring of ranks {ranks} uses {leaves} and {ending}."

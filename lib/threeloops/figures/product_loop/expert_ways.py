"""Expert ways: a token's vector on its way to its experts, once with a copy for each node, once with one for each
expert.

>>> figure = expert_ways([(1, 0), (1, 3), (2, 1)], home=2, gpus=4, title="Two ways", caption="Three experts.")
>>> print(figure.alt)
The token is on GPU 2 of node 0; its experts are on GPU 0 of node 1, GPU 3 of node 1, GPU 1 of node 2. \
A copy for each node: 2 copies on the network, 3 over NVLink. A copy for each expert: 3 copies on the network.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.boxes import Box, boxes
from threeloops.figures.figure import Figure

WIDTH, GAP, NODE_GAP, MARGIN = 312, 20, 12, 6  # pixels: of a panel, between panels, between nodes, inside a node
HEAD, SOURCE, NETWORK, DOOR, INSIDE, GPU, NAME, FOOT = 20, 28, 56, 28, 48, 34, 18, 22  # heights, from top to bottom
TOP = HEAD + SOURCE + NETWORK  # of the nodes
EXPERTS = TOP + MARGIN + DOOR + INSIDE  # of the GPUs with experts
LINES: dict[str, dict[str, Any]] = {
    "network": {"color": look.BLUE, "strokeWidth": 2},
    "NVLink": {"color": look.GREY, "strokeWidth": 1.6, "strokeDash": [4, 3]},
}
Spot = tuple[int, int]  # node, GPU in it


def expert_ways(chosen: Sequence[Spot], *, home: int, gpus: int, title: str, caption: str) -> Figure:
    """Two panels. chosen: where the experts are, all on other nodes than the token; home: its GPU's place in node 0.

    Raises:   ValueError without experts, for one on node 0, or on a GPU that a node does not have
    """
    if not chosen:
        raise ValueError("chosen is empty; give at least one expert's node and GPU")
    checks.count(gpus=gpus)
    for node, gpu in chosen:
        checks.count(node=node)
        if not (0 <= gpu < gpus and 0 <= home < gpus):
            raise ValueError(f"gpu={gpu} and home={home} must lie from 0 to {gpus - 1}")
    nodes = sorted({node for node, _ in chosen})
    doors = [(node, home) for node in nodes]
    inside = [spot for spot in dict.fromkeys(chosen) if spot[1] != home]
    plan = [box for right in (False, True) for box in _panel(right, nodes, home, chosen, gpus)]
    words = (
        f"{len(doors)} copies on the network, {len(inside)} over NVLink",
        f"{len(chosen)} copies on the network",
    )
    for right, told in enumerate(words):
        foot = EXPERTS + GPU + NAME + MARGIN
        plan.append(Box(x=right * (WIDTH + GAP), y=foot + 2, width=WIDTH, height=FOOT, kind="bare", text=told))
    where = ", ".join(f"GPU {gpu} of node {node}" for node, gpu in chosen)
    figure = boxes(
        plan,
        title=title,
        caption=caption,
        alt=f"The token is on GPU {home} of node 0; its experts are on {where}. A copy for each node: {words[0]}."
        f" A copy for each expert: {words[1]}.",
    )
    place = {spot: _middle(spot, nodes, gpus) for spot in [*doors, *chosen]}
    low = TOP + MARGIN + DOOR
    there = [(WIDTH / 2, HEAD + SOURCE, place[door], TOP + MARGIN) for door in doors]
    handed = [(place[(node, home)], low, place[(node, gpu)], EXPERTS) for node, gpu in inside]
    offset = WIDTH + GAP
    straight = [(offset + WIDTH / 2, HEAD + SOURCE, offset + place[spot], EXPERTS) for spot in chosen]
    layers = list(figure.body["layer"])
    for name, lines in (("network", there + straight), ("NVLink", handed)):
        values = [dict(zip(("x", "y", "x2", "y2"), line, strict=True)) for line in lines]
        mark = {"type": "rule", "aria": False, **LINES[name]}
        layers.append({"data": {"values": values}, "mark": mark, "encoding": layers[2]["encoding"]})
    return replace(figure, body={**figure.body, "layer": layers})


def _panel(right: bool, nodes: Sequence[int], home: int, chosen: Sequence[Spot], gpus: int) -> list[Box]:
    left = right * (WIDTH + GAP)
    name = "a copy for each expert" if right else "a copy for each node, handed on there"
    plan = [
        Box(x=left, y=0, width=WIDTH, height=HEAD, kind="bare", text=name),
        Box(
            x=left + WIDTH / 2 - 70, y=HEAD, width=140, height=SOURCE, kind="memory", text=f"token: node 0, GPU {home}"
        ),
    ]
    frame, height = _node_width(nodes), MARGIN + DOOR + INSIDE + GPU + NAME + MARGIN
    for place, node in enumerate(nodes):
        x = left + place * (frame + NODE_GAP)
        plan.append(Box(x=x, y=TOP, width=frame, height=height, kind="frame"))
        if not right:
            middle = left + _middle((node, home), nodes, gpus)
            plan.append(Box(x=middle - 28, y=TOP + MARGIN, width=56, height=DOOR, kind="memory", text=f"GPU {home}"))
        for gpu in range(gpus):
            wide = (frame - 2 * MARGIN) / gpus
            plan.append(
                Box(
                    x=x + MARGIN + gpu * wide + 1,
                    y=EXPERTS,
                    width=wide - 2,
                    height=GPU,
                    kind="compute" if (node, gpu) in chosen else "off",
                    text=f"G{gpu}",
                )
            )
        plan.append(Box(x=x + 4, y=EXPERTS + GPU + 2, width=frame - 8, height=NAME, kind="bare", text=f"node {node}"))
    return plan


def _node_width(nodes: Sequence[int]) -> float:
    return (WIDTH - NODE_GAP * (len(nodes) - 1)) / len(nodes)


def _middle(spot: Spot, nodes: Sequence[int], gpus: int) -> float:
    """Of a GPU, from the panel's left edge."""
    frame = _node_width(nodes)
    return nodes.index(spot[0]) * (frame + NODE_GAP) + MARGIN + (spot[1] + 0.5) * (frame - 2 * MARGIN) / gpus

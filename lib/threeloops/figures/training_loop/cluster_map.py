"""Cluster map: two nodes with their switch, PCIe and network cards, the leaf of every rail, the spines; and the way
of a byte that leaves its node.

>>> rates = Rates(nvlink=450e9, pcie=63e9, card=50e9)
>>> figure = cluster_map(rates, rails=4, spines=2, way=(1, 1), title="A byte changes roads", caption="Two nodes of four GPUs.")
>>> print(figure.alt)
Two nodes of 4 GPUs. In each, every GPU reaches the node's NVLink switch at 450 GB/s and, through PCIe at 63.0 GB/s, a network card of its own at 50.0 \
GB/s, one way. Card i of both nodes is on leaf i, rail i; every leaf is on each of 2 spines. A byte from GPU 1 of node 0 to GPU 1 of node 1 goes by PCIe, \
card 1, leaf 1, card 1, PCIe.
"""  # noqa: E501

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.boxes import Arrow, Box, boxes
from threeloops.figures.figure import Figure
from threeloops.units import fmt_si

WIDTH, GAP, MARGIN = 640, 20, 6  # pixels: of the map, between the nodes, inside a node
SWITCH, GPU, PCIE, CARD, LEAF, SPINE = 26, 96, 168, 240, 336, 432  # upper edges
TALL = 34
FOOT = CARD + TALL + MARGIN  # of a node's frame


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Bytes per second, one way, of one GPU's links and of one cable of the network."""

    nvlink: float
    pcie: float
    card: float

    def __post_init__(self) -> None:
        checks.positive(nvlink=self.nvlink, pcie=self.pcie, card=self.card)


def cluster_map(rates: Rates, *, rails: int, spines: int, way: tuple[int, int], title: str, caption: str) -> Figure:
    """Two nodes of `rails` GPUs, wired by rail; arrows follow a byte from the first GPU of `way`, in node 0, to the
    second, in node 1.

    A byte that changes rail goes up to a spine; `way` with two equal places stays on its leaf.

    Raises:   ValueError for a place in the node that is not there
    """
    checks.count(rails=rails, spines=spines)
    if not all(0 <= place < rails for place in way):
        raise ValueError(f"way={way} must name two GPUs below rails={rails}; GPUs count from 0")
    plan = [*_node(0, rails, rates), *_node(1, rails, rates), *_switches(rails, spines, rates)]
    figure = boxes(
        plan, arrows=_way(way, rails, spines), title=title, caption=caption, alt=_said(rates, rails, spines, way)
    )
    cables = [
        _cable(_middle(node, rail, rails), FOOT, _leaf_middle(rail, rails), LEAF)
        for node in (0, 1)
        for rail in range(rails)
    ]
    cables += [
        _cable(_leaf_middle(rail, rails), LEAF + TALL, _spine_middle(spine, spines), SPINE)
        for rail in range(rails)
        for spine in range(spines)
    ]
    layers = list(figure.body["layer"])
    spread = layers[2]["encoding"]
    layers.insert(
        0,
        {
            "data": {"values": cables},
            "mark": {"type": "rule", "color": look.GREY, "strokeWidth": 0.6, "aria": False},
            "encoding": spread,
        },
    )
    return replace(figure, body={**figure.body, "layer": layers})


def _left(node: int) -> float:
    return node * (WIDTH + GAP) / 2


def _cell(rails: int) -> float:
    return ((WIDTH - GAP) / 2 - 2 * MARGIN) / rails


def _middle(node: int, place: int, rails: int) -> float:
    return _left(node) + MARGIN + (place + 0.5) * _cell(rails)


def _leaf_middle(rail: int, rails: int) -> float:
    return (rail + 0.5) * WIDTH / rails


def _spine_middle(spine: int, spines: int) -> float:
    return (spine + 0.5) * WIDTH / spines


def _node(node: int, rails: int, rates: Rates) -> list[Box]:
    """From the NVLink switch down to the cards."""
    left, inner, cell = _left(node), (WIDTH - GAP) / 2 - 2 * MARGIN, _cell(rails)
    shape: dict[str, Any] = {"x": left + MARGIN, "width": inner}
    found = [
        Box(x=left, y=0, width=inner + 2 * MARGIN, height=FOOT, kind="frame", text=f"node {node}", at_top=True),
        Box(**shape, y=SWITCH, height=TALL, kind="control", text="NVLink switch"),
        Box(
            **shape,
            y=SWITCH + TALL,
            height=GPU - SWITCH - TALL,
            kind="frame",
            text=f"NVLink, {fmt_si(rates.nvlink, 'B/s')} per GPU",
        ),
        Box(
            **shape,
            y=GPU + TALL,
            height=PCIE - GPU - TALL,
            kind="frame",
            text=f"PCIe, {fmt_si(rates.pcie, 'B/s')} per GPU",
        ),
        Box(**shape, y=PCIE, height=TALL, kind="control", text="PCIe switches, processors"),
        Box(
            **shape,
            y=PCIE + TALL,
            height=CARD - PCIE - TALL,
            kind="frame",
            text=f"PCIe, {fmt_si(rates.pcie, 'B/s')} per card",
        ),
    ]
    for place in range(rails):
        spot: dict[str, Any] = {"x": left + MARGIN + place * cell + 1, "width": cell - 2, "height": TALL}
        found += [
            Box(**spot, y=GPU, kind="compute", text=f"G{place}"),
            Box(**spot, y=CARD, kind="memory", text=f"N{place}"),
        ]
    return found


def _switches(rails: int, spines: int, rates: Rates) -> list[Box]:
    leaf, spine = WIDTH / rails, WIDTH / spines
    lines = [
        Box(
            x=0,
            y=SPINE + TALL + 8,
            width=WIDTH,
            height=22,
            kind="frame",
            text=f"every cable outside a node: {fmt_si(rates.card, 'B/s')}",
        )
    ]
    lines += [
        Box(x=rail * leaf + 3, y=LEAF, width=leaf - 6, height=TALL, kind="control", text=f"leaf {rail}")
        for rail in range(rails)
    ]
    return lines + [
        Box(x=i * spine + 14, y=SPINE, width=spine - 28, height=TALL, kind="control", text=f"spine {i}")
        for i in range(spines)
    ]


def _way(way: tuple[int, int], rails: int, spines: int) -> list[Arrow]:
    """Down through the first node, over the leaf or a spine, up through the second."""
    start, end = _middle(0, way[0], rails), _middle(1, way[1], rails)
    first, last = _leaf_middle(way[0], rails), _leaf_middle(way[1], rails)
    stops = [(start, GPU + TALL), (start, PCIE), (start, PCIE + TALL), (start, CARD), (start, FOOT), (first - 6, LEAF)]
    if way[0] != way[1]:
        over = _spine_middle(0, spines)
        stops += [(first, LEAF + TALL), (over - 6, SPINE), (over + 6, SPINE), (last, LEAF + TALL)]
    stops += [(last + 6, LEAF), (end, FOOT), (end, CARD), (end, PCIE + TALL), (end, PCIE), (end, GPU + TALL)]
    return [Arrow(x=x, y=y, to_x=to_x, to_y=to_y) for (x, y), (to_x, to_y) in zip(stops[::2], stops[1::2], strict=True)]


def _cable(x: float, y: float, to_x: float, to_y: float) -> dict[str, float]:
    return {"x": x, "y": y, "x2": to_x, "y2": to_y}


def _said(rates: Rates, rails: int, spines: int, way: Sequence[int]) -> str:
    between = f"leaf {way[0]}" if way[0] == way[1] else f"leaf {way[0]}, a spine, leaf {way[1]}"
    return (
        f"Two nodes of {rails} GPUs. In each, every GPU reaches the node's NVLink switch at"
        f" {fmt_si(rates.nvlink, 'B/s')} and, through PCIe at {fmt_si(rates.pcie, 'B/s')}, a network card of its own at"
        f" {fmt_si(rates.card, 'B/s')}, one way. Card i of both nodes is on leaf i, rail i; every leaf is on each of"
        f" {spines} spines. A byte from GPU {way[0]} of node 0 to GPU {way[1]} of node 1 goes by PCIe, card {way[0]},"
        f" {between}, card {way[1]}, PCIe."
    )

"""A network of leaf and spine switches: messages are sent over named links, and every link counts the bytes that
cross it.

A GPU's card hangs on one leaf, every leaf on every spine. Which leaf, is the wiring: `by-node` puts all cards of a
node on one leaf, `by-rail` puts the cards of one place in the node (the rail) on one leaf, whatever the node.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from threeloops import checks

WIRINGS = ("by-node", "by-rail")


class Flow(NamedTuple):
    """Bytes that one GPU sends to another."""

    source: int
    destination: int
    num_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """Nodes of GPUs, one card each; GPUs count through the nodes in turn."""

    nodes: int
    gpus_per_node: int
    nodes_per_leaf: int  # wired by node: nodes below one leaf; wired by rail: nodes whose rails share their leaves
    spines: int
    wiring: str
    through_nvlink: bool  # inside a node over its NVLink switch, and not over the network

    def __post_init__(self) -> None:
        checks.count(
            nodes=self.nodes, gpus_per_node=self.gpus_per_node, nodes_per_leaf=self.nodes_per_leaf, spines=self.spines
        )
        checks.one_of(WIRINGS, wiring=self.wiring)

    @property
    def gpus(self) -> int:
        return self.nodes * self.gpus_per_node

    def leaf(self, gpu: int) -> int:
        node, place = divmod(gpu, self.gpus_per_node)
        group = node // self.nodes_per_leaf
        return group if self.wiring == "by-node" else group * self.gpus_per_node + place

    def links(self, source: int, destination: int) -> list[tuple[str, ...]]:
        """Every link on the way; `up` and `down` are named with the spine, the rest is filled in by load()."""
        if source == destination:
            return []
        if self.through_nvlink and source // self.gpus_per_node == destination // self.gpus_per_node:
            return [("NVLink out", str(source)), ("NVLink in", str(destination))]
        ends: list[tuple[str, ...]] = [("card out", str(source)), ("card in", str(destination))]
        return (
            ends
            if self.leaf(source) == self.leaf(destination)
            else [*ends, ("up", str(self.leaf(source))), ("down", str(self.leaf(destination)))]
        )

    def load(self, flows: Iterable[Flow]) -> Counter[tuple[str, ...]]:
        """Bytes on every link. A message that changes leaf is cut evenly over all spines, as adaptive routing does at
        best.
        """
        whole: Counter[tuple[str, ...]] = Counter()
        for source, destination, num_bytes in flows:
            for link in self.links(source, destination):
                whole[link] += num_bytes  # type: ignore[assignment]
        loads: Counter[tuple[str, ...]] = Counter()
        for link, num_bytes in whole.items():
            ways = [(*link, f"spine {spine}") for spine in range(self.spines)] if link[0] in ("up", "down") else [link]
            loads.update(dict.fromkeys(ways, num_bytes / len(ways)))
        return loads

    def seconds(
        self, flows: Iterable[Flow], *, card_bytes_per_s: float, uplink_bytes_per_s: float, nvlink_bytes_per_s: float
    ) -> float:
        """Time until the busiest link is done; `uplink_bytes_per_s` is one cable between a leaf and a spine, one
        way.
        """
        checks.positive(
            card_bytes_per_s=card_bytes_per_s,
            uplink_bytes_per_s=uplink_bytes_per_s,
            nvlink_bytes_per_s=nvlink_bytes_per_s,
        )
        rates = {
            "card": card_bytes_per_s,
            "up": uplink_bytes_per_s,
            "down": uplink_bytes_per_s,
            "NVLink": nvlink_bytes_per_s,
        }
        return max((num_bytes / rates[link[0].split()[0]] for link, num_bytes in self.load(flows).items()), default=0.0)


def all_to_all(members: list[int], size_bytes: float) -> list[Flow]:
    """Everybody sends 1/n of a buffer to everybody else.

    >>> len(all_to_all([0, 1, 2], 300.0))
    6
    """
    return [
        Flow(source, destination, size_bytes / len(members))
        for source in members
        for destination in members
        if source != destination
    ]


def ring(order: list[int], size_bytes: float) -> list[Flow]:
    """What a ring all-reduce sends, all steps together: each member to its right-hand neighbour, 2 (n - 1) pieces of
    1/n.

    >>> len(ring([0, 1, 2], 300.0))
    3
    """
    pieces = [size_bytes / len(order)] * (2 * len(order) - 2)
    return [
        Flow(source, destination, sum(pieces)) for source, destination in zip(order, order[1:] + order[:1], strict=True)
    ]

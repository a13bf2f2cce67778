"""Count: tokens choose experts, and every copy of a token's vector is walked over the network and inside its nodes.

A token first draws the nodes that it may use, then its experts among theirs. Nothing here knows how many it will visit.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from threeloops import checks


def written_bytes(vector: NDArray[np.float32], *, elements_per_scale: int, header: bytes) -> bytes:
    """A vector as a message: its header, its elements in a byte each, a 32-bit scale for each group of them.

    >>> len(written_bytes(np.ones(256, np.float32), elements_per_scale=128, header=b""))
    264
    """
    message = bytearray(header)
    for start in range(0, len(vector), elements_per_scale):
        group = vector[start : start + elements_per_scale]
        scale = np.float32(np.abs(group).max() / 127 or 1)
        message += np.rint(group / scale).astype(np.int8).tobytes() + scale.tobytes()
    return bytes(message)


def walk(
    *,
    num_experts: int,
    top_k: int,
    ranks: int,
    ranks_per_node: int,
    tokens: int,
    seed: int,
    node_limit: int | None = None,
    by_node: bool,
) -> tuple[float, float]:
    """Copies of a token that cross the network, and that go from one GPU of a node to another; means over `tokens`
    tokens of each rank. by_node: one copy a node and handed on there, else one for each expert.
    """
    checks.count(num_experts=num_experts, top_k=top_k, ranks=ranks, ranks_per_node=ranks_per_node, tokens=tokens)
    generator, nodes = np.random.default_rng(seed), ranks // ranks_per_node
    network = inside = 0
    for home in range(ranks):
        for _ in range(tokens):
            chosen = _ranks_of_choices(generator, num_experts, top_k, ranks, nodes, node_limit)
            for start, end in _handed_on(home, chosen, ranks_per_node) if by_node else ((home, to) for to in chosen):
                network += start // ranks_per_node != end // ranks_per_node
                inside += start // ranks_per_node == end // ranks_per_node and start != end
    return network / (ranks * tokens), inside / (ranks * tokens)


def _ranks_of_choices(
    generator: np.random.Generator, num_experts: int, top_k: int, ranks: int, nodes: int, node_limit: int | None
) -> list[int]:
    """The rank of each expert that one token chose."""
    usable = generator.permutation(nodes)[: nodes if node_limit is None else node_limit]
    experts = [int(expert) for expert in range(num_experts) if expert // (num_experts // nodes) in set(usable)]
    chosen = generator.choice(experts, size=top_k, replace=False)
    return [int(expert) // (num_experts // ranks) for expert in chosen]


def _handed_on(home: int, chosen: list[int], ranks_per_node: int) -> Iterator[tuple[int, int]]:
    """From where to where: to the rank of the same place in each node, and from it to those that want the token."""
    for node in {rank // ranks_per_node for rank in chosen}:
        door = node * ranks_per_node + home % ranks_per_node
        yield home, door
        for rank in {rank for rank in chosen if rank // ranks_per_node == node}:
            yield door, rank

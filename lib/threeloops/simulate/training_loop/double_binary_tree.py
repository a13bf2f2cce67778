"""Two binary trees at once: a rank that passes chunks on in one tree is a leaf of the other, so that every port is
busy in every step.

Rank 0 feeds the trees' roots in turn and is in neither tree. Each link is used in even steps or in odd ones.

>>> import numpy as np
>>> run = broadcast(np.arange(12.0), ranks=6, chunks=12)
>>> max(run.sent_bytes), run.outputs[5].tolist() == run.outputs[0].tolist()
(96, True)

Source: Sanders, Speck, Träff, Two-tree algorithms for full bandwidth broadcast, reduction and scan, Parallel
        Computing 35(12), 2009
"""

from collections.abc import Sequence
from typing import NamedTuple

from threeloops import checks
from threeloops.simulate.training_loop.network import Array, Network, Run, cuts, finished, vectors, zeros


class Edge(NamedTuple):
    """A link of one of the two trees."""

    tree: int
    parent: int
    child: int


def _in_order_edges(nodes: int) -> list[tuple[int, int]]:
    """(parent, child) in a binary tree over 1 … nodes read from left to right: odd numbers are its leaves; 0 is the
    parent of its root.
    """
    edges = []
    for node in range(1, nodes + 1):
        reach = (node & -node) // 2  # half of the largest power of two that divides it
        if reach:
            edges.append((node, node - reach))
            while reach and node + reach > nodes:
                reach //= 2
            if reach:
                edges.append((node, node + reach))
    return [*edges, (0, 2 ** (nodes.bit_length() - 1))] if nodes else edges


def edges_of(ranks: int) -> list[Edge]:
    """Both trees: the second is the first one mirrored (an even number of nodes) or moved on by one (odd), so that no
    rank has children in both.
    """
    nodes = ranks - 1
    first = _in_order_edges(nodes)
    other = {node: nodes + 1 - node if nodes % 2 == 0 else node % nodes + 1 for node in range(1, nodes + 1)} | {0: 0}
    return [Edge(0, *edge) for edge in first] + [Edge(1, other[parent], other[child]) for parent, child in first]


def coloured(edges: Sequence[Edge]) -> dict[Edge, int]:
    """Which steps a link is used in, 0 for even and 1 for odd: a rank's two outgoing links differ, and so do its two
    incoming ones.
    """
    colours: dict[Edge, int] = {}
    # Rank 0 starts, so that the first tree is fed in even steps; after that, each edge forces those with which it
    # shares an end.
    for start in sorted(edges, key=lambda edge: (edge.parent, edge.tree)):
        waiting = [] if start in colours else [(start, 0)]
        while waiting:
            edge, colour = waiting.pop()
            assert colours.get(edge, colour) == colour, "two links of one port in the same steps"
            if edge not in colours:
                colours[edge] = colour
                waiting += [
                    (near, 1 - colour)
                    for near in edges
                    if near != edge and (near.parent == edge.parent or near.child == edge.child)
                ]
    return colours


def _spread(network: Network, buffers: list[Array], chunks: int) -> None:
    """Down both trees; chunk c takes tree c % 2."""
    ranks, pieces = len(buffers), cuts(len(buffers[0]), chunks)
    colours = coloured(edges_of(ranks))
    has = [set(range(chunks))] + [set[int]() for _ in range(ranks - 1)]
    following = {edge: edge.tree for edge in colours}  # the next chunk that the link carries
    step = 0
    while any(len(chunks_here) < chunks for chunks_here in has):
        ready = [edge for edge, colour in colours.items() if colour == step % 2 and following[edge] in has[edge.parent]]
        _send(network, [(edge.parent, edge.child, following[edge]) for edge in ready], buffers, pieces, add=False)
        for edge in ready:
            has[edge.child].add(following[edge])
            following[edge] += 2
        step += 1


def _climb(network: Network, buffers: list[Array], chunks: int) -> None:
    """Up both trees: a rank sends a chunk to its parent when all its children have added theirs."""
    ranks, pieces = len(buffers), cuts(len(buffers[0]), chunks)
    colours = coloured(edges_of(ranks))
    following = {edge: edge.tree for edge in colours}
    below = {
        edge: [other for other in colours if other.tree == edge.tree and other.parent == edge.child] for edge in colours
    }
    step = 0
    while any(chunk < chunks for chunk in following.values()):
        ready = [
            edge
            for edge, colour in colours.items()
            if colour == step % 2
            and following[edge] < chunks
            and all(following[child] > following[edge] for child in below[edge])
        ]
        _send(network, [(edge.child, edge.parent, following[edge]) for edge in ready], buffers, pieces, add=True)
        for edge in ready:
            following[edge] += 2
        step += 1


def _send(
    network: Network, sends: Sequence[tuple[int, int, int]], buffers: list[Array], pieces: list[slice], *, add: bool
) -> None:
    """One step of (source, destination, chunk). When nobody is ready, nobody waits: no step is counted."""
    if not sends:
        return
    arrived = network.exchange(
        [(source, destination, buffers[source][pieces[chunk]]) for source, destination, chunk in sends]
    )
    for (_, destination, chunk), array in zip(sends, arrived, strict=True):
        buffers[destination][pieces[chunk]] = buffers[destination][pieces[chunk]] + array if add else array


def broadcast(vector: Array, *, ranks: int, chunks: int) -> Run:
    """Chunk after chunk from rank 0, down either tree in turn."""
    checks.count(ranks=ranks, chunks=chunks)
    buffers, network = [vector.copy()] + [zeros(len(vector), like=vector) for _ in range(ranks - 1)], Network(ranks)
    _spread(network, buffers, chunks)
    return finished(network, buffers)


def reduce(inputs: Sequence[Array], *, chunks: int) -> Run:
    """Up both trees, to rank 0."""
    checks.count(chunks=chunks)
    buffers = vectors(inputs)
    network = Network(len(buffers))
    _climb(network, buffers, chunks)
    return finished(network, buffers)


def all_reduce(inputs: Sequence[Array], *, chunks: int) -> Run:
    """Up both trees to rank 0; when it has the whole sum, down again."""
    checks.count(chunks=chunks)
    buffers = vectors(inputs)
    network = Network(len(buffers))
    _climb(network, buffers, chunks)
    _spread(network, buffers, chunks)
    return finished(network, buffers)

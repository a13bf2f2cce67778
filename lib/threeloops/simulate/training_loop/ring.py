"""Chunks that walk a ring: every rank only ever talks to its right neighbour.

>>> import numpy as np
>>> run = all_reduce([np.arange(6.0), np.ones(6), np.zeros(6)])
>>> run.outputs[2].tolist(), run.steps, run.sent_bytes
([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 4, (64, 64, 64))
"""

from collections.abc import Sequence

from threeloops import checks
from threeloops.simulate.training_loop.network import Array, Network, Run, cuts, finished, vectors, zeros


def _reduce_round(network: Network, buffers: list[Array], members: Sequence[int]) -> None:
    """n - 1 steps, after which member i holds the sum of piece i; the rest of its buffer is partial sums."""
    n, pieces = len(members), cuts(len(buffers[members[0]]), len(members))
    for step in range(n - 1):
        passed = [(i - step - 1) % n for i in range(n)]
        arrived = network.exchange(
            [(members[i], members[(i + 1) % n], buffers[members[i]][pieces[passed[i]]]) for i in range(n)]
        )
        for i in range(n):
            buffers[members[(i + 1) % n]][pieces[passed[i]]] += arrived[i]


def _gather_round(network: Network, buffers: list[Array], members: Sequence[int]) -> None:
    """n - 1 steps, which start from piece i at member i and end with all pieces everywhere."""
    n, pieces = len(members), cuts(len(buffers[members[0]]), len(members))
    for step in range(n - 1):
        passed = [(i - step) % n for i in range(n)]
        arrived = network.exchange(
            [(members[i], members[(i + 1) % n], buffers[members[i]][pieces[passed[i]]]) for i in range(n)]
        )
        for i in range(n):
            buffers[members[(i + 1) % n]][pieces[passed[i]]] = arrived[i]


def reduce_scatter(inputs: Sequence[Array]) -> Run:
    """Rank r ends with piece r of the sum.

    >>> import numpy as np
    >>> [part.tolist() for part in reduce_scatter([np.array([1.0, 2.0]), np.array([10.0, 20.0])]).outputs]
    [[11.0], [22.0]]
    """
    buffers = vectors(inputs)
    network = Network(len(buffers))
    _reduce_round(network, buffers, range(len(buffers)))
    return finished(
        network, [buffer[piece] for buffer, piece in zip(buffers, cuts(len(buffers[0]), len(buffers)), strict=True)]
    )


def all_gather(parts: Sequence[Array]) -> Run:
    """Every rank ends with the parts of all, in rank order; the parts may differ by one element, as reduce_scatter
    leaves them.

    >>> import numpy as np
    >>> [whole.tolist() for whole in all_gather([np.array([1.0]), np.array([2.0])]).outputs]
    [[1.0, 2.0], [1.0, 2.0]]
    """
    length = sum(len(part) for part in parts)
    pieces = cuts(length, len(parts))
    if [len(part) for part in parts] != [piece.stop - piece.start for piece in pieces]:
        raise ValueError(
            f"parts of {[len(part) for part in parts]} elements must be an even cut; try"
            f" {[piece.stop - piece.start for piece in pieces]}"
        )
    buffers = [zeros(length, like=part) for part in parts]
    for buffer, part, piece in zip(buffers, parts, pieces, strict=True):
        buffer[piece] = part
    network = Network(len(parts))
    _gather_round(network, buffers, range(len(parts)))
    return finished(network, buffers)


def all_reduce(inputs: Sequence[Array], *, watch: bool = False) -> Run:
    """Reduce-scatter, then all-gather: every rank ends with the whole sum."""
    buffers = vectors(inputs)
    network = Network(len(buffers), watched=buffers if watch else ())
    _reduce_round(network, buffers, range(len(buffers)))
    _gather_round(network, buffers, range(len(buffers)))
    return finished(network, buffers)


def broadcast(vector: Array, *, ranks: int, chunks: int) -> Run:
    """The root (rank 0) feeds chunk after chunk into the ring; each rank passes on in one step what came in the step
    before.

    >>> import numpy as np
    >>> broadcast(np.ones(4), ranks=3, chunks=2).sent_bytes
    (32, 32, 0)
    """
    checks.count(ranks=ranks, chunks=chunks)
    buffers = [vector.copy()] + [zeros(len(vector), like=vector) for _ in range(ranks - 1)]
    pieces = cuts(len(vector), chunks)
    network = Network(ranks)
    # chunks that a rank has, but has not passed on
    waiting: list[list[int]] = [list(range(chunks))] + [[] for _ in range(ranks - 1)]
    while any(waiting[rank] for rank in range(ranks - 1)):
        senders = [rank for rank in range(ranks - 1) if waiting[rank]]
        passed = [waiting[rank].pop(0) for rank in senders]
        arrived = network.exchange(
            [(rank, rank + 1, buffers[rank][pieces[chunk]]) for rank, chunk in zip(senders, passed, strict=True)]
        )
        for rank, chunk, array in zip(senders, passed, arrived, strict=True):
            buffers[rank + 1][pieces[chunk]] = array
            waiting[rank + 1].append(chunk)
    return finished(network, buffers)


def reduce(inputs: Sequence[Array], *, chunks: int) -> Run:
    """The far end of the ring starts; each rank adds its own to the chunk that came in the step before, and passes it
    on towards the root (rank 0).
    """
    checks.count(chunks=chunks)
    buffers = vectors(inputs)
    last, pieces = len(buffers) - 1, cuts(len(buffers[0]), chunks)
    network = Network(len(buffers))
    # chunks summed up so far, and not passed on
    waiting: list[list[int]] = [[] for _ in range(last)] + [list(range(chunks))]
    while any(waiting[rank] for rank in range(1, last + 1)):
        senders = [rank for rank in range(1, last + 1) if waiting[rank]]
        passed = [waiting[rank].pop(0) for rank in senders]
        arrived = network.exchange(
            [(rank, rank - 1, buffers[rank][pieces[chunk]]) for rank, chunk in zip(senders, passed, strict=True)]
        )
        for rank, chunk, array in zip(senders, passed, arrived, strict=True):
            buffers[rank - 1][pieces[chunk]] += array
            waiting[rank - 1].append(chunk)
    return finished(network, buffers)


def send_recv(inputs: Sequence[Array]) -> Run:
    """Everyone's vector to the right neighbour, all at once.

    >>> import numpy as np
    >>> [vector.tolist() for vector in send_recv([np.array([1.0]), np.array([2.0]), np.array([3.0])]).outputs]
    [[3.0], [1.0], [2.0]]
    """
    buffers = vectors(inputs)
    network, ranks = Network(len(buffers)), len(buffers)
    if ranks > 1:
        arrived = network.exchange([(rank, (rank + 1) % ranks, buffers[rank]) for rank in range(ranks)])
        buffers = [arrived[rank - 1] for rank in range(ranks)]
    return finished(network, buffers)


def hierarchical_all_reduce(inputs: Sequence[Array], *, ranks_per_node: int) -> Run:
    """Rings inside the nodes, rings of equally placed ranks between them, rings inside again. Ranks count node by
    node.

    The rings of one phase run at the same time, so their steps are merged.

    >>> import numpy as np
    >>> hierarchical_all_reduce([np.ones(4)] * 4, ranks_per_node=2).outputs[3].tolist()
    [4.0, 4.0, 4.0, 4.0]
    """
    buffers = vectors(inputs)
    checks.count(ranks_per_node=ranks_per_node)
    checks.divides(part="ranks_per_node", part_value=ranks_per_node, whole="ranks", whole_value=len(buffers))
    nodes = [range(first, first + ranks_per_node) for first in range(0, len(buffers), ranks_per_node)]
    pieces = cuts(len(buffers[0]), ranks_per_node)
    network = Network(len(buffers))

    def together(rings: Sequence[Sequence[int]], buffers: list[Array], *, reduce: bool, gather: bool) -> None:
        start, end = network.steps, network.steps
        for ring in rings:
            network.steps = start
            if reduce:
                _reduce_round(network, buffers, ring)
            if gather:
                _gather_round(network, buffers, ring)
            end = max(end, network.steps)
        network.steps = end

    together(nodes, buffers, reduce=True, gather=False)
    # views: the sums land in the buffers
    shares = [buffer[pieces[rank % ranks_per_node]] for rank, buffer in enumerate(buffers)]
    together([[node[place] for node in nodes] for place in range(ranks_per_node)], shares, reduce=True, gather=True)
    together(nodes, buffers, reduce=False, gather=True)
    return finished(network, buffers)

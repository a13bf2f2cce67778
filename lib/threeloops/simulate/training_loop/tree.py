"""Vectors that climb and descend trees: whole on a binomial tree, in chunks on a binary one; and the star that trees
replace. The root is rank 0.

>>> import numpy as np
>>> run = binomial_all_reduce([np.full(4, rank, dtype=float) for rank in range(5)])
>>> run.outputs[3].tolist(), run.steps, max(run.sent_bytes)
([10.0, 10.0, 10.0, 10.0], 6, 96)
"""

from collections.abc import Sequence

from threeloops import checks
from threeloops.simulate.training_loop.network import Array, Network, Run, cuts, finished, vectors, zeros


def _copies(vector: Array, ranks: int) -> list[Array]:
    """The vector at the root, and room for it elsewhere."""
    checks.count(ranks=ranks)
    return [vector.copy()] + [zeros(len(vector), like=vector) for _ in range(ranks - 1)]


def _binomial_reduce(network: Network, buffers: list[Array]) -> None:
    """Ranks at distance 1, 2, 4, … pair up; the higher one of a pair gives its sum away and is done."""
    distance = 1
    while distance < len(buffers):
        senders = range(distance, len(buffers), 2 * distance)
        arrived = network.exchange([(rank, rank - distance, buffers[rank]) for rank in senders])
        for rank, array in zip(senders, arrived, strict=True):
            buffers[rank - distance] += array
        distance *= 2


def _binomial_spread(network: Network, buffers: list[Array]) -> None:
    """Everyone who has the vector sends it to someone who has not, until there is nobody left."""
    informed = 1
    while informed < len(buffers):
        senders = range(min(informed, len(buffers) - informed))
        arrived = network.exchange([(rank, rank + informed, buffers[rank]) for rank in senders])
        for rank, array in zip(senders, arrived, strict=True):
            buffers[rank + informed][:] = array
        informed *= 2


def binomial_broadcast(vector: Array, *, ranks: int) -> Run:
    """The whole vector in every step.

    >>> import numpy as np
    >>> binomial_broadcast(np.ones(2), ranks=4).sent_bytes
    (32, 16, 0, 0)
    """
    buffers, network = _copies(vector, ranks), Network(ranks)
    _binomial_spread(network, buffers)
    return finished(network, buffers)


def binomial_reduce(inputs: Sequence[Array]) -> Run:
    """Sums to the root, and no further; the others are left with partial sums.

    >>> import numpy as np
    >>> binomial_reduce([np.ones(2)] * 4).outputs[0].tolist()
    [4.0, 4.0]
    """
    buffers = vectors(inputs)
    network = Network(len(buffers))
    _binomial_reduce(network, buffers)
    return finished(network, buffers)


def binomial_all_reduce(inputs: Sequence[Array], *, watch: bool = False) -> Run:
    """Sums to the root, then a broadcast from it."""
    buffers = vectors(inputs)
    network = Network(len(buffers), watched=buffers if watch else ())
    _binomial_reduce(network, buffers)
    _binomial_spread(network, buffers)
    return finished(network, buffers)


def _children(rank: int, ranks: int) -> list[int]:
    """In a binary tree whose levels fill from the left."""
    return [child for child in (2 * rank + 1, 2 * rank + 2) if child < ranks]


def _tree_spread(network: Network, buffers: list[Array], chunks: int) -> None:
    """Each rank keeps a queue of (child, chunk) and serves the first in every step."""
    ranks, pieces = len(buffers), cuts(len(buffers[0]), chunks)
    queues: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]
    queues[0] = [(child, chunk) for chunk in range(chunks) for child in _children(0, ranks)]
    while any(queues):
        served = [(rank, *queues[rank].pop(0)) for rank in range(ranks) if queues[rank]]
        arrived = network.exchange([(rank, child, buffers[rank][pieces[chunk]]) for rank, child, chunk in served])
        for (_, child, chunk), array in zip(served, arrived, strict=True):
            buffers[child][pieces[chunk]] = array
            queues[child] += [(grandchild, chunk) for grandchild in _children(child, ranks)]


def _tree_climb(network: Network, buffers: list[Array], chunks: int) -> None:
    """Each rank takes chunk after chunk, from its right child and then from its left; it can only be given what that
    child has summed up.
    """
    ranks, pieces = len(buffers), cuts(len(buffers[0]), chunks)
    expected = [
        [(child, chunk) for chunk in range(chunks) for child in reversed(_children(rank, ranks))]
        for rank in range(ranks)
    ]
    while any(expected):
        # A child has chunk c summed up when it expects no more of it.
        taken = [
            (rank, *queue[0])
            for rank, queue in enumerate(expected)
            if queue and all(chunk > queue[0][1] for _, chunk in expected[queue[0][0]])
        ]
        arrived = network.exchange([(child, rank, buffers[child][pieces[chunk]]) for rank, child, chunk in taken])
        for (rank, _, chunk), array in zip(taken, arrived, strict=True):
            buffers[rank][pieces[chunk]] += array
            expected[rank].pop(0)


def pipelined_broadcast(vector: Array, *, ranks: int, chunks: int) -> Run:
    """Chunk after chunk down a binary tree.

    >>> import numpy as np
    >>> pipelined_broadcast(np.ones(4), ranks=3, chunks=2).outputs[2].tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    buffers, network = _copies(vector, ranks), Network(ranks)
    _tree_spread(network, buffers, chunks)
    return finished(network, buffers)


def pipelined_reduce(inputs: Sequence[Array], *, chunks: int) -> Run:
    """Chunk after chunk up a binary tree, to the root.

    >>> import numpy as np
    >>> pipelined_reduce([np.ones(4)] * 3, chunks=2).outputs[0].tolist()
    [3.0, 3.0, 3.0, 3.0]
    """
    buffers = vectors(inputs)
    network = Network(len(buffers))
    _tree_climb(network, buffers, chunks)
    return finished(network, buffers)


def pipelined_all_reduce(inputs: Sequence[Array], *, chunks: int) -> Run:
    """Chunk after chunk up a binary tree; when the root has the whole sum, down again.

    >>> import numpy as np
    >>> pipelined_all_reduce([np.ones(4)] * 3, chunks=2).outputs[1].tolist()
    [3.0, 3.0, 3.0, 3.0]
    """
    buffers = vectors(inputs)
    network = Network(len(buffers))
    _tree_climb(network, buffers, chunks)
    _tree_spread(network, buffers, chunks)
    return finished(network, buffers)


def root_broadcast(vector: Array, *, ranks: int) -> Run:
    """The root sends to everyone, one after the other.

    >>> import numpy as np
    >>> root_broadcast(np.ones(2), ranks=4).sent_bytes
    (48, 0, 0, 0)
    """
    buffers, network = _copies(vector, ranks), Network(ranks)
    for rank in range(1, ranks):
        (buffers[rank],) = network.exchange([(0, rank, buffers[0])])
    return finished(network, buffers)


def root_reduce(inputs: Sequence[Array]) -> Run:
    """Everyone sends to the root, which has one port.

    >>> import numpy as np
    >>> root_reduce([np.ones(2)] * 4).sent_bytes
    (0, 16, 16, 16)
    """
    buffers = vectors(inputs)
    network = Network(len(buffers))
    for rank in range(1, len(buffers)):
        buffers[0] += network.exchange([(rank, 0, buffers[rank])])[0]
    return finished(network, buffers)


def root_all_reduce(inputs: Sequence[Array], *, watch: bool = False) -> Run:
    """Everyone sends to the root, which has one port; then the root sends the sum to everyone.

    >>> import numpy as np
    >>> root_all_reduce([np.ones(2)] * 4).outputs[3].tolist()
    [4.0, 4.0]
    """
    buffers = vectors(inputs)
    network = Network(len(buffers), watched=buffers if watch else ())
    for rank in range(1, len(buffers)):
        buffers[0] += network.exchange([(rank, 0, buffers[rank])])[0]
    for rank in range(1, len(buffers)):
        (buffers[rank],) = network.exchange([(0, rank, buffers[0])])
    return finished(network, buffers)

"""Collectives counted: every algorithm by name, moved for real.

Rings are in ring.py, trees in tree.py and double_binary_tree.py; halving-doubling and pairwise stand here.

>>> run = simulated(op="all_reduce", algorithm="ring", ranks=5, elements=10)
>>> run.steps, max(run.sent_bytes)
(8, 128)
"""

from collections.abc import Callable, Sequence

from threeloops import checks
from threeloops.simulate.training_loop import double_binary_tree, ring, tree
from threeloops.simulate.training_loop.network import Array, Network, Run, cuts, finished, vectors, zeros


def _halve(network: Network, buffers: list[Array], members: Sequence[int]) -> None:
    """Partners at half the distance each time: each gives away the half of its pieces that the other will keep."""
    n, pieces = len(members), cuts(len(buffers[members[0]]), len(members))
    first = [0] * n  # member i still works on pieces first[i] … first[i] + 2 * distance - 1
    distance = n // 2
    while distance:
        # A member with that bit of its number set keeps the upper half, so its partner's half starts below.
        given = [first[i] + (0 if i & distance else distance) for i in range(n)]
        spans = [slice(pieces[start].start, pieces[start + distance - 1].stop) for start in given]
        arrived = network.exchange(
            [(members[i], members[i ^ distance], buffers[members[i]][spans[i]]) for i in range(n)]
        )
        for i in range(n):
            buffers[members[i ^ distance]][spans[i]] += arrived[i]
            first[i] += distance if i & distance else 0
        distance //= 2


def _double(network: Network, buffers: list[Array], members: Sequence[int]) -> None:
    """Partners at twice the distance each time: each sends all the finished pieces that it has."""
    n, pieces = len(members), cuts(len(buffers[members[0]]), len(members))
    distance = 1
    while distance < n:
        starts = [i // distance * distance for i in range(n)]
        spans = [slice(pieces[start].start, pieces[start + distance - 1].stop) for start in starts]
        arrived = network.exchange(
            [(members[i], members[i ^ distance], buffers[members[i]][spans[i]]) for i in range(n)]
        )
        for i in range(n):
            buffers[members[i ^ distance]][spans[i]] = arrived[i]
        distance *= 2


def _power_of_two(ranks: int) -> None:
    if ranks & (ranks - 1):
        raise ValueError(f"ranks={ranks} must be a power of two to be halved down to one")


def halving_reduce_scatter(inputs: Sequence[Array]) -> Run:
    """Rank r ends with piece r of the sum.

    >>> import numpy as np
    >>> [part.tolist() for part in halving_reduce_scatter([np.array([1.0, 2.0]), np.array([10.0, 20.0])]).outputs]
    [[11.0], [22.0]]
    """
    buffers = vectors(inputs)
    _power_of_two(len(buffers))
    network = Network(len(buffers))
    _halve(network, buffers, range(len(buffers)))
    return finished(
        network, [buffer[piece] for buffer, piece in zip(buffers, cuts(len(buffers[0]), len(buffers)), strict=True)]
    )


def doubling_all_gather(parts: Sequence[Array]) -> Run:
    """Every rank ends with all parts in rank order.

    >>> import numpy as np
    >>> [whole.tolist() for whole in doubling_all_gather([np.array([1.0]), np.array([2.0])]).outputs]
    [[1.0, 2.0], [1.0, 2.0]]
    """
    _power_of_two(len(parts))
    vectors(parts)
    ranks, length = len(parts), len(parts[0])
    buffers = [zeros(ranks * length, like=part) for part in parts]
    for rank, part in enumerate(parts):
        buffers[rank][rank * length : (rank + 1) * length] = part
    network = Network(ranks)
    _double(network, buffers, range(ranks))
    return finished(network, buffers)


def halving_doubling_all_reduce(inputs: Sequence[Array], *, watch: bool = False) -> Run:
    """Surplus ranks give their vector to a neighbour and leave; 2^k ranks halve and double; the surplus ranks are
    told the sum.

    >>> import numpy as np
    >>> halving_doubling_all_reduce([np.ones(4)] * 3).outputs[2].tolist()
    [3.0, 3.0, 3.0, 3.0]
    """
    buffers = vectors(inputs)
    network = Network(len(buffers), watched=buffers if watch else ())
    core = 1
    while 2 * core <= len(buffers):
        core *= 2
    surplus = [2 * pair for pair in range(len(buffers) - core)]
    if surplus:
        for rank, array in zip(
            surplus, network.exchange([(rank, rank + 1, buffers[rank]) for rank in surplus]), strict=True
        ):
            buffers[rank + 1] += array
    members = [rank for rank in range(len(buffers)) if rank not in surplus]
    _halve(network, buffers, members)
    _double(network, buffers, members)
    if surplus:
        for rank, array in zip(
            surplus, network.exchange([(rank + 1, rank, buffers[rank + 1]) for rank in surplus]), strict=True
        ):
            buffers[rank] = array
    return finished(network, buffers)


def pairwise_all_to_all(inputs: Sequence[Array]) -> Run:
    """Piece j of rank i becomes piece i of rank j; in step s everyone sends to the rank s places to the right.

    >>> import numpy as np
    >>> [whole.tolist() for whole in pairwise_all_to_all([np.array([1.0, 2.0]), np.array([3.0, 4.0])]).outputs]
    [[1.0, 3.0], [2.0, 4.0]]
    """
    buffers = vectors(inputs)
    ranks, pieces = len(buffers), cuts(len(buffers[0]), len(buffers))
    checks.divides(part="ranks", part_value=ranks, whole="elements", whole_value=len(buffers[0]))
    outputs = [buffer.copy() for buffer in buffers]
    network = Network(ranks)
    for step in range(1, ranks):
        arrived = network.exchange(
            [(rank, (rank + step) % ranks, buffers[rank][pieces[(rank + step) % ranks]]) for rank in range(ranks)]
        )
        for rank in range(ranks):
            outputs[(rank + step) % ranks][pieces[rank]] = arrived[rank]
    return finished(network, outputs)


_BY_NAME: dict[tuple[str, str], Callable[[Sequence[Array], int], Run]] = {
    ("all_reduce", "ring"): lambda inputs, chunks: ring.all_reduce(inputs),
    ("all_reduce", "halving-doubling"): lambda inputs, chunks: halving_doubling_all_reduce(inputs),
    ("all_reduce", "binomial-tree"): lambda inputs, chunks: tree.binomial_all_reduce(inputs),
    ("all_reduce", "pipelined-tree"): lambda inputs, chunks: tree.pipelined_all_reduce(inputs, chunks=chunks),
    ("all_reduce", "double-tree"): lambda inputs, chunks: double_binary_tree.all_reduce(inputs, chunks=chunks),
    ("all_reduce", "through-root"): lambda inputs, chunks: tree.root_all_reduce(inputs),
    ("reduce_scatter", "ring"): lambda inputs, chunks: ring.reduce_scatter(inputs),
    ("reduce_scatter", "halving-doubling"): lambda inputs, chunks: halving_reduce_scatter(inputs),
    ("all_gather", "ring"): lambda inputs, chunks: ring.all_gather(_own_pieces(inputs)),
    ("all_gather", "halving-doubling"): lambda inputs, chunks: doubling_all_gather(_own_pieces(inputs)),
    ("broadcast", "ring"): lambda inputs, chunks: ring.broadcast(inputs[0], ranks=len(inputs), chunks=chunks),
    ("broadcast", "binomial-tree"): lambda inputs, chunks: tree.binomial_broadcast(inputs[0], ranks=len(inputs)),
    ("broadcast", "pipelined-tree"): lambda inputs, chunks: tree.pipelined_broadcast(
        inputs[0], ranks=len(inputs), chunks=chunks
    ),
    ("broadcast", "double-tree"): lambda inputs, chunks: double_binary_tree.broadcast(
        inputs[0], ranks=len(inputs), chunks=chunks
    ),
    ("broadcast", "through-root"): lambda inputs, chunks: tree.root_broadcast(inputs[0], ranks=len(inputs)),
    ("reduce", "ring"): lambda inputs, chunks: ring.reduce(inputs, chunks=chunks),
    ("reduce", "binomial-tree"): lambda inputs, chunks: tree.binomial_reduce(inputs),
    ("reduce", "pipelined-tree"): lambda inputs, chunks: tree.pipelined_reduce(inputs, chunks=chunks),
    ("reduce", "double-tree"): lambda inputs, chunks: double_binary_tree.reduce(inputs, chunks=chunks),
    ("reduce", "through-root"): lambda inputs, chunks: tree.root_reduce(inputs),
    ("all_to_all", "pairwise"): lambda inputs, chunks: pairwise_all_to_all(inputs),
    ("send_recv", "direct"): lambda inputs, chunks: ring.send_recv(inputs),
}


def _own_pieces(inputs: Sequence[Array]) -> list[Array]:
    return [array[piece] for array, piece in zip(inputs, cuts(len(inputs[0]), len(inputs)), strict=True)]


def simulated(*, op: str, algorithm: str, ranks: int, elements: int, chunks: int = 1, seed: int = 0) -> Run:
    """One collective on random whole numbers (exact in float64, whatever the order of the sums): size is 8 * elements
    bytes.
    """
    checks.count(ranks=ranks, elements=elements, chunks=chunks)
    checks.one_of([name for name, _ in _BY_NAME], op=op)
    checks.one_of([name for known_op, name in _BY_NAME if known_op == op], algorithm=algorithm)
    return _BY_NAME[op, algorithm](random_vectors(ranks=ranks, elements=elements, seed=seed), chunks)


def random_vectors(*, ranks: int, elements: int, seed: int) -> list[Array]:
    """One vector of whole numbers per rank.

    >>> [vector.shape for vector in random_vectors(ranks=2, elements=3, seed=1)]
    [(3,), (3,)]
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    return [generator.integers(-1000, 1000, elements).astype(np.float64) for _ in range(ranks)]
